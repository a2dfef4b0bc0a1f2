"""A language model in this process (transformers, CPU or GPU); concurrent requests are decoded together."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from concurrent.futures import Future

from agentmem.errors import AgentMemError, ModelError
from agentmem.models.local_engine import Engine, Job
from agentmem.models.local_weights import Weights, find_weights, load_weights
from agentmem.models.model import Reply, Request

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
        self._waiting: deque[Job] = deque()
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
        job = Job(request)
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
            engine = Engine(
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

    def _take(self, count: int, *, idle: bool) -> list[Job]:
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
