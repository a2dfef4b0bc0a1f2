"""The planner: state -> retrieve cases -> plan -> subtasks -> tools -> answer (2508.16153, section 4)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentmem.agents.context import Context
from agentmem.agents.executor import Executor, Made, as_shown
from agentmem.agents.react import step_of
from agentmem.domain.plan import MOST_SUBTASKS, Move, Plan, Proposed, Status, Subtask
from agentmem.domain.trajectory import Message, Step, Trajectory
from agentmem.errors import LimitReached, StructuredOutputError
from agentmem.models.handle import ModelHandle
from agentmem.models.model import Reply
from agentmem.models.structured import parse, structured
from agentmem.prompts import render

_BROKEN_MOVE = re.compile(r'\s*(?:```\w*\s*)?\{\s*"(?:plan|answer)"')
_WORDS: dict[Status, str] = {
    "open": "not begun",
    "solved": "result",
    "failed": "failed",
    "limit": "ran out of turns or tokens before it was done",
    "skipped": "not begun, because one that it needs was not solved",
}


async def plan_and_act(context: Context) -> Trajectory:
    """One attempt by plans: at most `max_cycles` of them, and a turn in reserve in which only an answer is possible.

    The planner sees the task, lessons and cases. The executor sees a subtask, the results that it needs, what is known
    of its tools, and solved subtasks that resemble it.
    """
    episode = _Episode(context, await Executor.of(context))
    cycles = context.settings.max_cycles
    try:
        for number in range(1, cycles + 1):
            move = await episode.decide(number)
            if move is None:
                break
            if move.answer:
                return episode.ended(move.answer)
            await episode.carry_out(move.as_plan(number), left=0 if episode.garbled else cycles - number)
            if episode.garbled:
                break
        return episode.ended(await episode.answer())
    except LimitReached:
        return episode.ended(None, by="tokens")


@dataclass
class _Episode:
    """What was said and done so far."""

    context: Context
    executor: Executor
    prompt: tuple[Message, ...] = ()
    turns: list[Message] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    garbled: bool = False
    """Whether the planner wrote no plan that could be read: then what it wrote is not asked for again."""

    def __post_init__(self) -> None:
        tools = [{"name": spec.name, "description": spec.description} for spec in self.executor.tools]
        asked = render("plan", tools=tools, most=MOST_SUBTASKS, cycles=self.context.settings.max_cycles)
        parts = (self.context.system, self.context.prior_text, asked)
        system = Message(role="system", content="\n\n".join(part for part in parts if part))
        self.prompt = (system, Message(role="user", content=self.context.task.input))

    @property
    def solved(self) -> dict[str, Subtask]:
        return {
            subtask.id: subtask for plan in self.plans for subtask in plan.subtasks if subtask.status == "solved"
        }

    async def decide(self, number: int) -> Move | None:
        """The planner's next move. None where it cannot be read, and there are results that it can answer from."""
        context = {"solved": tuple(self.solved)}
        try:
            return await structured(self._model, (*self.prompt, *self.turns), Move, context=context)
        except StructuredOutputError:
            # What it wrote is no answer, and must not be stored as a wrong one: the episode goes on without a plan.
            self.garbled = True
            if number > 1:
                await self._say_that_it_must_answer()
                return None
            return Move(plan=(Proposed(id="task", description=self.context.task.input),))

    async def carry_out(self, plan: Plan, *, left: int) -> None:
        """Do a plan, note what came of it, and tell the planner."""
        made = await in_order_of_need(plan, self.solved, self.executor)
        self.steps += [step for one in made for step in one.steps]
        self.plans.append(Plan(subtasks=tuple(one.subtask for one in made), unplanned=self.garbled))
        self.turns.append(Message(role="assistant", content=_as_json(plan)))
        self.turns.append(Message(role="user", content=await self._results(left)))

    async def answer(self) -> str | None:
        """The answer of the reserved turn, in which no plan is possible; None where there is none, asked twice."""
        model = self._model
        for _ in range(2):
            reply = await model.complete((*self.prompt, *self.turns), json_schema=Move.model_json_schema())
            if answer := _answer_in(reply.text):
                return answer
            self.turns += [reply.message, Message(role="user", content=render("only_answer"))]
        return None

    def ended(self, answer: str | None, *, by: str = "steps") -> Trajectory:
        """The whole episode, its record included."""
        return Trajectory.model_validate(
            {
                "prompt": self.prompt,
                "steps": tuple(self.steps),
                "output": answer,
                "ended_by": by if answer is None else "answer",
                "plans": tuple(self.plans),
            }
        )

    @property
    def _model(self) -> _Noted:
        assert self.context.model is not None  # an Agent that plans has one; see Agent
        return _Noted(self.context.model, self.steps)

    async def _results(self, left: int) -> str:
        mark = await self.context.scope.run.mark()
        subtasks = [
            {"id": one.id, "status": _WORDS[one.status], "result": as_shown(one, mark)}
            for one in self.plans[-1].subtasks
        ]
        return render("results", subtasks=subtasks, left=left)

    async def _say_that_it_must_answer(self) -> None:
        self.turns[-1] = Message(role="user", content=await self._results(0))


async def in_order_of_need(plan: Plan, solved: dict[str, Subtask], executor: Executor) -> list[Made]:
    """Each subtask as soon as those that it needs are done; those that need none of each other at the same time.

    One that needs a subtask which was not solved is skipped. An error lets the others end, because they are paid for.
    """
    begun: dict[str, asyncio.Task[Made]] = {}

    async def do(subtask: Subtask) -> Made:
        needed = [solved[id] if id in solved else (await begun[id]).subtask for id in subtask.needs]
        if missing := [one for one in needed if one.status != "solved"]:
            why = f"It needs {missing[0].id}, which was not solved."
            return Made(subtask.model_copy(update={"status": "skipped", "result": why}))
        return await executor.do(subtask, needed)

    begun.update({subtask.id: asyncio.create_task(do(subtask)) for subtask in plan.subtasks})
    try:
        await asyncio.wait(begun.values())
    finally:
        for task in begun.values():
            task.cancel()
        made = await asyncio.gather(*begun.values(), return_exceptions=True)
    if failed := next((one for one in made if isinstance(one, BaseException)), None):
        raise failed
    return [one for one in made if isinstance(one, Made)]


@dataclass(frozen=True)
class _Noted:
    """The planner's model; each of its turns becomes a step of the episode, one that had to be asked again too."""

    model: ModelHandle
    steps: list[Step]

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        temperature: float | None = None,
        json_schema: dict[str, Any] | None = None,
    ) -> Reply:
        """Answer one conversation."""
        reply = await self.model.complete(messages, temperature=temperature, json_schema=json_schema)
        self.steps.append(step_of(reply))
        return reply


def _as_json(plan: Plan) -> str:
    """A plan as the planner might have written it, with the ids by which its results are shown."""
    subtasks = [one.model_dump_json(include={"id", "description", "needs"}) for one in plan.subtasks]
    return f'{{"plan": [{", ".join(subtasks)}]}}'


def _answer_in(text: str) -> str:
    """The answer in a reply: of JSON its `answer`, of other text all of it; empty where it is a plan or nothing."""
    try:
        move = parse(text, Move)
    except ValueError:
        return "" if _BROKEN_MOVE.match(text) else text.strip()
    return move.answer.strip()
