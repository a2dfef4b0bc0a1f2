"""A language model in this process (transformers, CPU or GPU); concurrent requests are decoded together."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from agentmem.domain.trajectory import Message, ToolCall
from agentmem.domain.usage import Usage
from agentmem.errors import AgentMemError, BadRequest, ModelError
from agentmem.models.local_generation import Decoder, Sampled
from agentmem.models.local_weights import Loaded, Weights, find_weights, load_weights
from agentmem.models.model import Reply, Request, TokenLogprob, ToolSpec

END_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|end_of_turn|>", "</s>", "<|endoftext|>")
"""Tokens that end a turn where the chat template writes them, whatever the weights' settings say."""
GATHER_SECONDS = 0.005
"""An idle model waits so long for more requests after the first, because they tend to come together."""


class LocalModel:
    """A language model in this process. It satisfies the `Model` protocol.

    Nothing is loaded before the first `complete`. One thread of its own holds the model: it takes all waiting
    requests, up to `parallel`, decodes them together, answers each the moment it is complete, and lets new ones
    join. A request with a seed draws the same random numbers whatever it is batched with; its tokens are the same
    as far as the numerics of a batch allow (in bfloat16 a near-tie can fall otherwise in another batch).

    Log-probabilities are those of the sampled tokens, the end-of-turn token included, under the model at
    temperature 1, whatever temperature and nucleus they were sampled with. `cached_tokens` are prompt tokens
    computed before, for an earlier prompt or for another one of the same batch.

    Chat templates are applied as the weights bring them; a model without one is shown one line `role: text` for
    each message, and `assistant:`. Tools work with models whose template writes calls as
    `<tool_call>{"name": ..., "arguments": ...}</tool_call>` (Qwen, Hermes, SmolLM3); a request with tools to any
    other model is refused. A `json_schema` is not enforced.

    Args:
        name: the name under which it was asked for.
        weights: where the weights are.
        device: a torch device, or `auto`: `cuda` where there is one, else `cpu`.
        dtype: `float32`, `bfloat16`, `float16`, or `auto`: bfloat16 where the hardware has it, else float32.
        parallel: sequences decoded together at most.
        prefixes: how many computed beginnings of prompts are kept, newest first.

    Example:
        >>> model = LocalModel.from_name("smollm2")  # doctest: +SKIP
        >>> (await model.complete(Request(messages=[Message(role="user", content="Hi!")]))).text  # doctest: +SKIP
        'Hello! How can I help you today?'
    """

    def __init__(
        self,
        name: str,
        weights: Weights,
        *,
        device: str = "auto",
        dtype: str = "auto",
        parallel: int = 64,
        prefixes: int = 4,
    ) -> None:
        self._name, self._weights = name, weights
        self._device, self._dtype = device, dtype
        self._parallel, self._prefixes = max(1, parallel), prefixes
        self._waiting: deque[_Job] = deque()
        self._news = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._loaded: Future[None] = Future()

    @classmethod
    def from_name(
        cls, name: str, *, device: str = "auto", dtype: str = "auto", parallel: int = 64, prefixes: int = 4
    ) -> LocalModel:
        """The model `local/NAME`; what is wrong with the name shows here, before anything is loaded.

        Args:
            name: `smollm2`, a folder, a `.gguf` file, or a Hub id `ORG/NAME`, with or without `local/` before it.
            device: a torch device, or `auto`.
            dtype: `float32`, `bfloat16`, `float16`, or `auto`.
            parallel: sequences decoded together at most.
            prefixes: how many computed beginnings of prompts are kept.

        Raises:
            InputError: the extra `local` is not installed, or there is no such model.
        """
        name = name.removeprefix("local/")
        weights = find_weights(name)
        return cls(f"local/{name}", weights, device=device, dtype=dtype, parallel=parallel, prefixes=prefixes)

    @property
    def name(self) -> str:
        """The name under which it was asked for, such as `local/smollm2`."""
        return self._name

    @property
    def parallel(self) -> int | None:
        """Sequences that are decoded together at most."""
        return self._parallel

    async def prepare(self) -> None:
        """Load the weights, if they are not loaded.

        Raises:
            AccessDenied: they cannot be loaded.
        """
        with self._news:
            self._start()
        await asyncio.shield(asyncio.wrap_future(self._loaded))

    async def complete(self, request: Request) -> Reply:
        """Answer one request.

        Raises:
            BadRequest: the prompt does not fit the context window, or the model cannot call tools.
            AccessDenied: the weights cannot be loaded.
            ModelError: out of memory, also in half the batch; or the model is closed.
        """
        job = _Job(request)
        with self._news:
            self._start()
            self._waiting.append(job)
            self._news.notify()
        return await asyncio.wrap_future(job.future)

    async def close(self) -> None:
        """Nothing belongs to the event loop: the weights stay for the next run. See `unload`."""

    async def unload(self) -> None:
        """Stop the thread and give back the memory, for good; requests not yet answered fail."""
        with self._news:
            self._closed = True
            self._news.notify()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _start(self) -> None:
        if self._closed:
            raise ModelError(f"{self._name} was unloaded; make a new one to go on.")
        if self._thread is None:
            # A daemon, so that a model that nobody unloaded does not keep the interpreter from ending.
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()

    def _work(self) -> None:
        """The thread: load once, then decode until unloaded."""
        try:
            engine = _Engine(
                self._name, load_weights(self._weights, device=self._device, dtype=self._dtype), self._prefixes
            )
        except AgentMemError as error:
            self._loaded.set_exception(error)
            while not self._closed:
                for job in self._take(self._parallel, idle=True):
                    job.fail(error)
            self._refuse_waiting()
            return
        self._loaded.set_result(None)
        rows = self._parallel
        while not self._closed:
            jobs = self._take(rows - engine.running, idle=not engine.running)
            try:
                engine.admit(jobs)
                engine.step()
            except Exception as error:
                again = engine.recover(error)
                if again:
                    rows = max(1, rows // 2)
                with self._news:
                    self._waiting.extendleft(reversed(again))
        engine.stop()
        self._refuse_waiting()

    def _take(self, count: int, *, idle: bool) -> list[_Job]:
        """Up to `count` waiting jobs; an idle model waits for the first."""
        with self._news:
            while idle and not self._waiting and not self._closed:
                self._news.wait()
        if idle:
            time.sleep(GATHER_SECONDS)
        with self._news:
            jobs = [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]
        return [job for job in jobs if not job.future.cancelled()]

    def _refuse_waiting(self) -> None:
        with self._news:
            while self._waiting:
                self._waiting.popleft().fail(ModelError(f"{self._name} was closed before it answered."))


@dataclass(eq=False)
class _Job:
    """One request and the future of its reply."""

    request: Request
    future: Future[Reply] = field(default_factory=Future)
    started: float = field(default_factory=time.perf_counter)
    sequence: Sampled | None = None
    retried: bool = False

    def answer(self, reply: Reply) -> None:
        if self.future.set_running_or_notify_cancel():
            self.future.set_result(reply)

    def fail(self, error: Exception) -> None:
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class _Engine:
    """What the thread works with: jobs become sequences, and sequences replies."""

    def __init__(self, name: str, loaded: Loaded, prefixes: int) -> None:
        self._name, self._tokenizer = name, loaded.tokenizer
        config = loaded.model.config.get_text_config()
        self._window = int(getattr(config, "max_position_embeddings", None) or 1 << 20)
        self._template = getattr(loaded.tokenizer, "chat_template", None)
        self._decoder = Decoder(
            loaded.model, self._text, ends=self._ends(loaded), window=self._window, prefixes=prefixes
        )
        self._jobs: dict[int, _Job] = {}

    @property
    def running(self) -> int:
        return len(self._decoder.sequences)

    def admit(self, jobs: list[_Job]) -> None:
        """Let jobs join; one that cannot be done fails at once."""
        ready: list[Sampled] = []
        for job in jobs:
            try:
                job.sequence = self._sequence(job)
            except ModelError as error:
                job.fail(error)
            except Exception as error:  # Templates are programs, and some raise on what they do not expect.
                job.fail(BadRequest(f"{self._name}: its chat template refused these messages: {error}"))
            else:
                self._jobs[id(job.sequence)] = job
                ready.append(job.sequence)
        if ready:
            self._decoder.admit(ready)

    def step(self) -> None:
        """Sample one token for each running sequence, and answer those that ended."""
        for sequence in self._decoder.step():
            job = self._jobs.pop(id(sequence))
            job.answer(self._reply(sequence, time.perf_counter() - job.started))
        if len(self._jobs) > self.running:
            alive = {id(sequence) for sequence in self._decoder.sequences}
            self._jobs = {key: job for key, job in self._jobs.items() if key in alive}

    def recover(self, error: Exception) -> list[_Job]:
        """After a failure: the jobs to try again in a smaller batch; the others have failed."""
        import torch

        memory = isinstance(error, torch.OutOfMemoryError)
        self._decoder.clear()
        hit, self._jobs = list(self._jobs.values()), {}
        if memory and torch.cuda.is_available():
            torch.cuda.empty_cache()
        again = [job for job in hit if memory and not job.retried and not job.future.cancelled()]
        for job in hit:
            if memory and job.retried:
                job.fail(
                    ModelError(
                        f"{self._name} ran out of memory, also in half the batch ({error}); "
                        "use shorter prompts, a smaller `parallel`, or another device."
                    )
                )
            elif not memory:
                job.fail(ModelError(f"{self._name} failed: {type(error).__name__}: {error}"))
            job.retried = True
        return again

    def stop(self) -> None:
        """Fail what still runs."""
        self._decoder.clear()
        for job in self._jobs.values():
            job.fail(ModelError(f"{self._name} was closed before it answered."))

    def _sequence(self, job: _Job) -> Sampled:
        request = job.request
        prompt = self._tokenizer(self._prompt(request), add_special_tokens=self._template is None)["input_ids"]
        if len(prompt) >= self._window:
            raise BadRequest(
                f"The prompt has {len(prompt)} tokens, and {self._name} takes {self._window} "
                "with its reply; shorten the messages or the library."
            )
        return Sampled(
            tuple(prompt),
            request.max_tokens,
            temperature=request.temperature,
            top_p=request.top_p,
            stop=request.stop,
            seed=request.seed,
            logprobs=request.logprobs,
            gone=job.future.cancelled,
        )

    def _prompt(self, request: Request) -> str:
        if request.tools and "<tool_call>" not in (self._template or ""):
            raise BadRequest(f"{self._name} cannot call tools: its chat template writes no <tool_call>.")
        if self._template is None:
            lines = [f"{message.role}: {message.content}" for message in request.messages]
            return "\n".join([*lines, "assistant:"])
        prompt: str = self._tokenizer.apply_chat_template(
            [_plain(message) for message in request.messages],
            tools=[_function(tool) for tool in request.tools] or None,
            add_generation_prompt=True,
            tokenize=False,
        )
        return prompt

    def _text(self, tokens: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def _reply(self, sequence: Sampled, seconds: float) -> Reply:
        text = self._text(sequence.tokens)
        found = [at for stop in sequence.stop if (at := text.find(stop)) >= 0]
        text, calls = _tool_calls(text[: min(found, default=len(text))])
        return Reply(
            message=Message(role="assistant", content=text, tool_calls=calls),
            finish_reason="tool_calls" if calls else sequence.finish or "other",
            usage=Usage(
                prompt_tokens=len(sequence.prompt),
                completion_tokens=len(sequence.tokens),
                cached_tokens=sequence.cached,
                seconds=seconds,
            ),
            logprobs=tuple(
                TokenLogprob(token=self._tokenizer.decode([token]), logprob=score)
                for token, score in zip(sequence.tokens, sequence.scores, strict=True)
            )
            if sequence.logprobs
            else None,
            model=self._name,
        )

    def _ends(self, loaded: Loaded) -> frozenset[int]:
        """Ids of the tokens that end a turn: by the weights' settings, and those that the template writes."""
        ends: set[int] = set()
        for source in (loaded.model.generation_config, loaded.model.config, self._tokenizer):
            known = getattr(source, "eos_token_id", None)
            ends.update(known if isinstance(known, list | tuple) else [known] if known is not None else [])
        vocabulary = self._tokenizer.get_vocab()
        written = [token for token in END_OF_TURN if token in (self._template or "")]
        return frozenset(ends | {vocabulary[token] for token in written if token in vocabulary})


def _plain(message: Message) -> dict[str, Any]:
    """A message as chat templates expect it."""
    plain: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        plain["tool_calls"] = [
            {
                "type": "function",
                "id": call.id,
                "function": {"name": call.name, "arguments": _object(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        plain["tool_call_id"] = message.tool_call_id
    return plain


def _object(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except json.JSONDecodeError:
        return arguments


def _function(tool: ToolSpec) -> dict[str, Any]:
    return {"type": "function", "function": tool.model_dump()}


def _tool_calls(text: str) -> tuple[str, tuple[ToolCall, ...]]:
    """The text without its well-formed tool calls, and these; what is malformed stays in the text."""
    calls: list[ToolCall] = []

    def take(found: re.Match[str]) -> str:
        try:
            call = json.loads(found[1])
            calls.append(
                ToolCall(
                    id=f"call_{len(calls)}", name=call["name"], arguments=json.dumps(call.get("arguments", {}))
                )
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return found[0]
        return ""

    rest = _CALL.sub(take, text)
    return (rest.strip() if calls else text), tuple(calls)


_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
