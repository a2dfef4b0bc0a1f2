"""Any callable as an agent."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from agentmem.agents.context import Context
from agentmem.domain.callable import is_async, name_of
from agentmem.domain.trajectory import Trajectory
from agentmem.domain.value import fingerprint
from agentmem.errors import AgentError, InputError, boundary
from agentmem.sandbox.thread import in_thread

OFFERED = ("task", "prior", "model", "context")
"""What a callable may take, by name: the task, the prior as text, a `ModelHandle`, everything at once."""


def agent_function(function: Callable[..., Any]) -> Callable[[Context], Awaitable[Trajectory]]:
    """Wrap a callable `(task, prior) -> answer | Trajectory`, sync or async.

    It is given what its parameters name: `task`, `prior`, `model`, `context`. One that takes `model` or `context`
    has its calls journaled and budgeted one by one; any other is one journaled step as a whole.

    Raises:
        InputError: a parameter has another name and no default.
    """
    name = name_of(function)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InputError(
            f"The agent {name!r} has no readable signature; wrap it in a function of (task, prior)."
        ) from None
    wanted = [p.name for p in parameters if p.name in OFFERED]
    for parameter in parameters:
        optional = parameter.default is not parameter.empty or parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        )
        if parameter.name not in OFFERED and not optional:
            raise InputError(
                f"The agent {name!r} asks for {parameter.name!r}; an agent may take {', '.join(OFFERED)}."
            )
    takes_handle = "model" in wanted or "context" in wanted

    async def act(context: Context) -> Trajectory:
        offered = {"task": context.task, "prior": context.prior_text, "model": context.model, "context": context}

        async def call() -> Trajectory:
            with boundary(AgentError, f"agent {name!r}, task {context.task.id!r},"):
                answer = await _call(function, {key: offered[key] for key in wanted})
                return _trajectory(answer, name)

        if takes_handle:
            return await call()
        request = fingerprint([context.task.id, context.task.input, context.prior.hash, *context.shown.ids])
        return await context.scope.step("agent", call, returns=Trajectory, request=request)

    return act


async def _call(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    if is_async(function):
        return await function(**arguments)
    answer = await in_thread(lambda: function(**arguments), name="agentmem-agent")
    return await answer if inspect.isawaitable(answer) else answer


def _trajectory(answer: object, name: str) -> Trajectory:
    match answer:
        case Trajectory():
            return answer
        case str():
            return Trajectory.said(answer)
        case None:
            return Trajectory(output=None)
    raise AgentError(
        f"agent {name!r} returned a {type(answer).__name__}; return the answer as str, or a Trajectory."
    )
