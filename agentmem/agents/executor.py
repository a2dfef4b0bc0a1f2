"""The executor: does one subtask of a plan with tools, and knows nothing of the plan (2508.16153, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentmem.agents.case_prompt import ShownCases
from agentmem.agents.context import Context
from agentmem.agents.quoting import quoted
from agentmem.agents.react import Loop
from agentmem.domain.plan import Subtask
from agentmem.domain.trajectory import Message, Step, Trajectory
from agentmem.errors import BadRequest
from agentmem.models.model import ToolSpec
from agentmem.prompts import render


@dataclass(frozen=True)
class Made:
    """What came of a subtask, with the turns that it took."""

    subtask: Subtask
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Executor:
    """Does subtasks, many at the same time."""

    context: Context
    tools: tuple[ToolSpec, ...]
    known: tuple[str, ...] = ()
    """What tool memory says of these tools, a line each."""

    @classmethod
    async def of(cls, context: Context) -> Executor:
        """The executor of one attempt."""
        tools = await context.tool_specs()
        names = [spec.name for spec in tools]
        known = await context.memory.about_tools(names, context.scope) if context.memory else ()
        return cls(context, tools, known)

    async def do(self, subtask: Subtask, needed: Sequence[Subtask]) -> Made:
        """One subtask by tool calling. That it fails, or runs out of turns, is its result and no error.

        Args:
            subtask: what is to be done.
            needed: those whose results it is given; all are solved.

        Raises:
            AgentMemError: a model or a sandbox is not there, which is no doing of the agent's.
        """
        inside = self.context.within(subtask.id)
        shown = ShownCases()
        if self.context.memory is not None:
            shown = await self.context.memory.recall_subtask(subtask, inside)
        loop = Loop(inside, self.tools)
        try:
            ended = await loop.run(await self._prompt(subtask, needed, shown))
            done = _judged(subtask, ended)
        except (
            BadRequest
        ) as error:  # it is this conversation that the server refuses: the planner may find a way round
            done = subtask.model_copy(update={"status": "failed", "result": f"The model refused it: {error}"})
        read = any(result.untrusted for step in loop.steps for result in step.results)
        untrusted = read or any(one.untrusted for one in needed)
        done = done.model_copy(update={"untrusted": untrusted, "recall": shown.recall})
        return Made(done, tuple(step.model_copy(update={"subtask": subtask.id}) for step in loop.steps))

    async def _prompt(self, subtask: Subtask, needed: Sequence[Subtask], shown: ShownCases) -> tuple[Message, ...]:
        mark = await self.context.scope.run.mark()
        names = {spec.name for spec in self.tools}
        lessons = [one.model_dump() for one in self.context.prior.tool_lessons if one.tool in names]
        told = render("subtask", tools=list(self.known), lessons=lessons)
        asked = render(
            "subtask_asked",
            description=subtask.description,
            needed=[{"description": one.description, "result": as_shown(one, mark)} for one in needed],
        )
        system = Message(role="system", content="\n\n".join(part for part in (told, shown.block) if part))
        return (system, *shown.turns, Message(role="user", content=asked))


def as_shown(subtask: Subtask, mark: str) -> str:
    """The result of a subtask as another prompt may hold it: quoted where text from outside had a part in it."""
    said = subtask.result or "(nothing)"
    return quoted(said, mark, source=subtask.id) if subtask.untrusted else said


def _judged(subtask: Subtask, ended: Trajectory) -> Subtask:
    said = (ended.output or "").strip()
    if ended.ended_by != "answer":
        words = f" What it said last: {said}" if said else ""
        result = f"It ran out of {ended.ended_by if ended.ended_by == 'tokens' else 'turns'}.{words}"
        return subtask.model_copy(update={"status": "limit", "result": result})
    if not said:
        return subtask.model_copy(update={"status": "failed", "result": "The executor said nothing."})
    return subtask.model_copy(update={"status": "solved", "result": said})
