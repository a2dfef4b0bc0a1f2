"""A scripted planner and executor: one function says what each of them says, told apart by what they are asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from agentmem.agents.agent import Agent
from agentmem.api import aevaluate
from agentmem.domain.rollout import Rollout
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Message, ToolCall
from agentmem.events import RolloutFinished
from agentmem.models.model import Request
from agentmem.testing.scripted import ScriptedModel

TASK = Task(id="t", input="What is the sum of the two numbers?", answer="42")


def plan(*subtasks: tuple[str, str] | tuple[str, str, list[str]]) -> str:
    keys = ("id", "description", "needs")
    return json.dumps({"plan": [dict(zip(keys, subtask, strict=False)) for subtask in subtasks]})


def answer(text: str) -> str:
    return json.dumps({"answer": text})


def call(name: str, **arguments: Any) -> Message:
    made = ToolCall(id="c0", name=name, arguments=json.dumps(arguments))
    return Message(role="assistant", content="", tool_calls=(made,))


def is_planner(request: Request) -> bool:
    return request.messages[0].content.find("You plan, and an executor") >= 0


def asked(request: Request) -> str:
    """The subtask that an executor was given."""
    return next(m.content for m in reversed(request.messages) if m.role == "user")


def team(moves: list[Any], does: Callable[[Request], Any] | dict[str, Any], **about: Any) -> ScriptedModel:
    """A model that plans by a list and executes by a function, or by the subtask's last line."""
    left = list(moves)

    def script(request: Request) -> Any:
        if is_planner(request):
            return left.pop(0)
        if callable(does):
            return does(request)
        return does[asked(request).splitlines()[-1]]

    return ScriptedModel(script, **about)


async def attempt(agent: Agent, tmp_path: Any, *, task: Task = TASK, **changes: Any) -> Rollout:
    return (await attempts(agent, [task], tmp_path / "run", **changes))[0]


async def attempts(agent: Agent, tasks: list[Task], run: Any, **changes: Any) -> list[Rollout]:
    heard: list[Rollout] = []
    hear = [lambda event: heard.append(event.rollout) if isinstance(event, RolloutFinished) else None]
    await aevaluate(agent, tasks, reward="exact", run=run, listeners=hear, **changes)
    return heard


def planner(model: Any, **options: Any) -> Agent:
    return Agent(model, style="planner", **options)
