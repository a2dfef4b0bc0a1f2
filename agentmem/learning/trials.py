"""The gate's bench: a library's score on each gate task in each round, tried at most once."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Self

from agentmem.agents.agent import Agent
from agentmem.agents.sampler import Sampler, cancel
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.task import TaskSet
from agentmem.events import PhaseStarted
from agentmem.learning.duel import Hear

Place = tuple[str, int, str]
"""What the agent was shown, the round, and the task."""


class Trials:
    """Scores libraries on the gate's tasks; satisfies `Trial`.

    Several gates may ask at once for the same score, such as that of the incumbent: the first draws it, and the others
    wait for it.

    Args:
        agent: what acts; its own library does not matter.
        tasks: the gate's tasks.
        sampler: where attempts come from, at the temperature of the evaluation.
        step: the learning step, for the display.
    """

    def __init__(self, agent: Agent, tasks: TaskSet, sampler: Sampler, *, step: int) -> None:
        self._agent, self._tasks, self._sampler, self._step = agent, tasks, sampler, step
        self._scores: dict[Place, asyncio.Future[float | None]] = {}
        self._ahead: list[asyncio.Task[dict[str, float | None]]] = []

    async def __call__(
        self,
        library: ExperienceLibrary,
        round: int,
        only: Collection[str] | None = None,
        *,
        hear: Hear | None = None,
        ahead: bool = False,
    ) -> dict[str, float | None]:
        """The score of each task; None where the attempt failed."""
        arm = self._agent.with_experience(library)
        shown = arm.memory_hash or "empty"
        tasks = [task for task in self._tasks if only is None or task.id in only]
        missing = [task for task in tasks if (shown, round, task.id) not in self._scores]
        loop = asyncio.get_running_loop()
        mine = {task.id: loop.create_future() for task in missing}
        self._scores.update({(shown, round, id): future for id, future in mine.items()})
        if hear:
            _tell({task.id: self._scores[shown, round, task.id] for task in tasks}, hear)
        if missing and not ahead:
            title = f"round {round + 1}"
            self._sampler.run.events.emit(PhaseStarted("gate", len(missing), self._step, title=title))
        try:
            # The phase is named by what the arm is shown, so the scores of an unchanged arm are found in the journal.
            phase = f"gate/{shown}"
            sampler = replace(self._sampler, precedence=1 + round) if ahead else self._sampler
            async for group in sampler.groups(arm, missing, plan=1, phase=phase, step=round, stream="gate"):
                mine[group.task.id].set_result(group.mean)
        except Exception as error:
            for future in mine.values():
                if not future.done():  # who waits for these fails with us
                    future.set_exception(error)
                    future.exception()  # perhaps nobody waits, and that is no oversight
            raise
        finally:
            for future in mine.values():
                future.cancel()  # of those that are not done, because we were cancelled
        return {task.id: await self._scores[shown, round, task.id] for task in tasks}

    def look_ahead(self, library: ExperienceLibrary, rounds: int) -> None:
        """Begin with scores that a gate will ask for, in places that other attempts leave free."""
        for number in range(rounds):
            self._ahead.append(asyncio.create_task(self(library, number, ahead=True)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # What was begun ahead ends also where nobody asked for it: what is bought must not depend on who was faster.
        if kind is None:
            await asyncio.gather(*self._ahead, return_exceptions=True)
        await cancel(self._ahead)


def _tell(scores: Mapping[str, asyncio.Future[float | None]], hear: Hear) -> None:
    """Tell of each score when it comes in."""
    known: dict[str, float | None] = {}
    missing = set(scores)

    def came(id: str, score: asyncio.Future[float | None]) -> None:
        if not score.cancelled() and score.exception() is None:
            known[id] = score.result()
            missing.discard(id)
            hear(known, missing)

    for id, score in scores.items():
        score.add_done_callback(partial(came, id))
