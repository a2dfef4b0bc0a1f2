"""A model as one place of a run may use it: every call is journaled, budgeted and seeded by its place."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from agentmem.domain.seed import split_seed
from agentmem.domain.trajectory import Message
from agentmem.domain.usage import Usage
from agentmem.errors import AgentMemError, LimitReached
from agentmem.models.gateway import Gateway
from agentmem.models.model import Reply, Request, ToolSpec
from agentmem.runs.run import Scope

Chat = str | Sequence[Message | Mapping[str, Any]]
"""What can be said to a model: one user message, or a conversation in our or in OpenAI's form."""


class _Meter:
    """What the handles of one attempt have in common, wherever in it they are."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.stopped: AgentMemError | None = None


class ModelHandle:
    r"""What an agent, a judge or an extractor is given to call a model with.

    Example:
        An agent of your own that is seen by journal and budget:

            async def agent(task, prior, model):
                reply = await model.complete(f"{prior}\n\n{task.input}")
                return reply.text
    """

    def __init__(
        self,
        gateway: Gateway,
        scope: Scope,
        *,
        purpose: str,
        seed: int,
        temperature: float = 1.0,
        top_p: float = 1.0,
        max_tokens: int = 2048,
        logprobs: bool = False,
        token_limit: int | None = None,
    ) -> None:
        self.name = gateway.model.name
        self.accepts = gateway.accepts
        """What the model takes beside text."""
        self._meter = _Meter()
        self._gateway = gateway
        self._scope = scope
        self._purpose = purpose
        self._place = purpose
        self._seed = seed
        self._calls = 0
        self._temperature, self._top_p = temperature, top_p
        self._max_tokens, self._logprobs = max_tokens, logprobs
        self._token_limit = token_limit
        self._loop = asyncio.get_running_loop()

    @property
    def usage(self) -> Usage:
        """What the calls of this handle, and of those made from it, cost so far, replayed ones included."""
        return self._meter.usage

    @property
    def stopped(self) -> AgentMemError | None:
        """The first error that stops the run. Code in between may swallow it, but must not turn it into an answer."""
        return self._meter.stopped

    def within(self, place: str) -> ModelHandle:
        """The same model for what goes on at the same time: calls count apart, under a name of their own.

        Otherwise which call is the third would depend on who is faster. Usage, token limit and `stopped` are shared,
        and what is spent counts for the same purpose.
        """
        other = copy(self)
        other._place = f"{self._purpose}/{place}"
        other._calls = 0
        return other

    def sharing(self, other: ModelHandle) -> ModelHandle:
        """This handle, on one account with another one: usage, what the token limit counts, and `stopped`."""
        mine = copy(self)
        mine._meter = other._meter
        return mine

    async def complete(
        self,
        messages: Chat,
        *,
        tools: Sequence[ToolSpec] = (),
        temperature: float | None = None,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
        seed: int | None = None,
        json_schema: dict[str, Any] | None = None,
    ) -> Reply:
        """One reply, bought at most once.

        Args:
            messages: one user message as text, or the conversation.
            tools: what the model may call.
            temperature: by default that of the phase (learning or evaluation).
            max_tokens: by default the agent's setting.
            stop: texts that end the reply.
            seed: by default drawn from the place, so that no two calls share one.
            json_schema: the reply must be JSON of this schema, where the model can promise that.

        Raises:
            ModelError: the call failed, retries included.
            LimitReached: the attempt has used its tokens.
        """
        if self._token_limit is not None and self.usage.tokens >= self._token_limit:
            raise LimitReached(f"The attempt used {self.usage.tokens} of {self._token_limit} tokens.")
        ordinal, self._calls = self._calls, self._calls + 1
        request = Request.model_construct(
            messages=_messages(messages),
            tools=tuple(tools),
            temperature=self._temperature if temperature is None else temperature,
            top_p=self._top_p,
            max_tokens=self._max_tokens if max_tokens is None else max_tokens,
            stop=tuple(stop),
            seed=split_seed(self._seed, self._place, ordinal) if seed is None else seed,
            logprobs=self._logprobs,
            json_schema=json_schema,
        )
        try:
            reply = await self._scope.step(
                self._place,
                lambda: self._gateway.complete(request, purpose=self._purpose),
                returns=Reply,
                request=request.fingerprint,
            )
        except AgentMemError as error:
            if error.stops_run and self._meter.stopped is None:
                self._meter.stopped = error
            raise
        self._meter.usage = self._meter.usage + reply.usage
        return reply

    def complete_sync(self, messages: Chat, **options: Any) -> Reply:
        """`complete`, for an agent that is a plain function (it runs in a thread of its own)."""
        return asyncio.run_coroutine_threadsafe(self.complete(messages, **options), self._loop).result()


def _messages(chat: Chat) -> tuple[Message, ...]:
    if isinstance(chat, str):
        return (Message(role="user", content=chat),)
    return tuple(item if isinstance(item, Message) else Message.model_validate(item) for item in chat)
