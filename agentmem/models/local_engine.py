"""What a local model's thread works with: requests become sequences, and sequences replies."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from agentmem.domain.trajectory import Message, ToolCall
from agentmem.domain.usage import Usage
from agentmem.errors import BadRequest, ModelError
from agentmem.models.local_generation import Decoder, Sampled
from agentmem.models.local_weights import Loaded
from agentmem.models.model import Reply, Request, TokenLogprob, ToolSpec

END_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|end_of_turn|>", "</s>", "<|endoftext|>")
"""Tokens that end a turn where the chat template writes them, whatever the weights' settings say."""


@dataclass(eq=False)
class Job:
    """One request and the future of its reply."""

    request: Request
    future: Future[Reply] = field(default_factory=Future)
    started: float = field(default_factory=time.perf_counter)
    sequence: Sampled | None = None
    retried: bool = False

    def answer(self, reply: Reply) -> None:
        """Give the reply to whoever waits; nothing where nobody does any more."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_result(reply)

    def fail(self, error: Exception) -> None:
        """Raise the error where the reply is waited for."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class Engine:
    """What the thread works with: jobs become sequences, and sequences replies."""

    def __init__(self, name: str, loaded: Loaded, prefixes: int) -> None:
        self._name, self._tokenizer = name, loaded.tokenizer
        config = loaded.model.config.get_text_config()
        self._window = int(getattr(config, "max_position_embeddings", None) or 1 << 20)
        self._template = getattr(loaded.tokenizer, "chat_template", None)
        self._decoder = Decoder(
            loaded.model, self._text, ends=self._ends(loaded), window=self._window, prefixes=prefixes
        )
        self._jobs: dict[int, Job] = {}

    @property
    def running(self) -> int:
        """Sequences under way."""
        return len(self._decoder.sequences)

    def admit(self, jobs: list[Job]) -> None:
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

    def recover(self, error: Exception) -> list[Job]:
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

    def _sequence(self, job: Job) -> Sampled:
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
        if any(message.media for message in request.messages):
            raise BadRequest(f"{self._name} takes text alone, and was shown a picture or a sound.")
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
        text, calls = tool_calls(text[: min(found, default=len(text))])
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


def tool_calls(text: str) -> tuple[str, tuple[ToolCall, ...]]:
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
