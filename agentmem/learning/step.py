"""One learning step: Groups -> SemanticAdvantages -> Operations -> the next library, if it passes the gate.

The loop over a task set and the loop on a stream both take it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from agentmem.agents.agent import Agent
from agentmem.agents.sampler import Sampler, cancel
from agentmem.domain.advantage import SemanticAdvantage
from agentmem.domain.experience import ExperienceLibrary, Revision
from agentmem.domain.operation import Decision, Operation
from agentmem.domain.rollout import Group
from agentmem.domain.task import Task
from agentmem.domain.value import Value, fingerprint
from agentmem.errors import AgentMemError
from agentmem.events import GateDecided, GroupFinished, Noted, OperationsDecided, StepFinished
from agentmem.learning.credit import Credit, harmful
from agentmem.learning.extractor import ExtractorContext
from agentmem.learning.leak_rule import LeakRule
from agentmem.learning.recipe import Recipe
from agentmem.learning.screening import screened
from agentmem.learning.taint import marked
from agentmem.learning.teacher import Teacher
from agentmem.learning.verdict import Verdict
from agentmem.library_files import save_library
from agentmem.runs.run import Run
from agentmem.settings import LearnSettings

Judge = Callable[[ExperienceLibrary, Revision], Awaitable[tuple[Revision, Verdict]]]
"""Says what is kept of a candidate, given the incumbent; see `Gate.choose`."""


@dataclass(frozen=True)
class Parts:
    """What the steps of one learning run work with."""

    settings: LearnSettings
    recipe: Recipe
    rollouts: Sampler
    """Draws the groups that teach."""
    trials: Sampler
    """Draws the gate's attempts, at the temperature of the evaluation."""
    teacher: Teacher
    """Turns a complete group into one that teaches as much as it can."""
    context: ExtractorContext
    """Of the first step; each step has its own."""

    @property
    def run(self) -> Run:
        """Where everything is stored."""
        return self.rollouts.run

    def step(self, number: int, *, leak: LeakRule, tasks: Sequence[Task], steps: int = 0) -> LearningStep:
        """The step of this number.

        Args:
            number: from 0.
            leak: what its lessons must not carry.
            tasks: what an extractor may look at.
            steps: how many there will be; 0 where nobody knows.
        """
        return LearningStep(number, self, leak, self.context.at(number, tasks), Tally(number, steps))

    async def store(self, library: ExperienceLibrary, step: int) -> None:
        """Keep the library as it is after a step; -1 is before the first."""
        await self.run.journal.write(
            "INSERT OR REPLACE INTO libraries (step, version, library) VALUES (?,?,?)",
            (step, library.version, library.to_json()),
        )


@dataclass(frozen=True)
class LearningStep:
    """What becomes of some complete groups. Use `Parts.step`."""

    number: int
    parts: Parts
    leak: LeakRule
    context: ExtractorContext
    tally: Tally

    async def advantages(
        self,
        drawn: AsyncIterator[Group],
        batch: Sequence[Task],
        agent: Agent,
        library: ExperienceLibrary,
        *,
        first: Callable[[], None] | None = None,
    ) -> tuple[list[Group], list[SemanticAdvantage]]:
        """All groups, and what they teach, in the order of the tasks. A group is distilled when it is complete.

        Args:
            drawn: the groups, in order of completion.
            batch: their tasks, in the order that counts.
            agent: with this library.
            library: what the operations will be applied to.
            first: called when the first group teaches: from then on a candidate is to be expected.
        """
        parts, events = self.parts, self.parts.run.events
        lessons: dict[str, asyncio.Task[tuple[Group, SemanticAdvantage | None]]] = {}

        async def distilled(group: Group) -> tuple[Group, SemanticAdvantage | None]:
            group = await parts.teacher.prepared(group, agent, self.context)
            teaches = parts.teacher.teaches(group, parts.settings)
            self.tally.count(group, teaches)
            events.emit(GroupFinished(self.number, group, teaches))
            if not teaches:
                return group, None
            if self.tally.taught == 1 and first is not None:
                first()
            return group, await parts.recipe.extractor.distil(group, library, self.context)

        try:
            async for group in drawn:
                lessons[group.task.id] = asyncio.create_task(distilled(group))
            pairs = [await lessons[task.id] for task in batch]
        except AgentMemError:
            # The others are in the middle of calls that are paid for: let them store what they get.
            await asyncio.gather(*lessons.values(), return_exceptions=True)
            raise
        finally:
            await cancel(lessons.values())
        advantages = [advantage for _, advantage in pairs if advantage is not None]
        if failed := [advantage for advantage in advantages if advantage.failure is not None]:
            why = failed[0].failure.message if failed[0].failure else ""
            count = f"{len(failed)} of {len(advantages)} groups could not be distilled"
            events.emit(Noted(f"step {self.number + 1}: {count}, such as: {why}", "warning"))
        return [group for group, _ in pairs], advantages

    async def next_version(
        self,
        library: ExperienceLibrary,
        groups: Sequence[Group],
        advantages: Sequence[SemanticAdvantage],
        *,
        credit: Credit,
        judge: Judge,
    ) -> ExperienceLibrary:
        """What goes on: the library with newly measured effects, and with those operations that passed the gate.

        All of it is stored, with the reasons, when this returns.
        """
        events, extractor = self.parts.run.events, self.parts.recipe.extractor
        library, evicted = _credited(library, groups, credit)
        standing = screened(advantages, library, self.leak, self.context)
        proposed_by_groups = await extractor.consolidate(standing, library, self.context)
        operations = marked(
            proposed_by_groups, groups, run=self.parts.run.path.name, gate=self.parts.settings.gate
        )
        candidate = library.revise(operations, refuse=self.leak)
        proposed = (*self.context.rejected, *candidate.decisions)
        events.emit(OperationsDecided(self.number, (*evicted, *proposed)))
        kept, verdict = await judge(library, candidate)
        events.emit(GateDecided(self.number, verdict.accepted, verdict.reason, len(candidate.accepted)))
        record = StepRecord(
            proposed=proposed,
            evicted=evicted,
            unreadable=tuple(text for advantage in advantages for text in advantage.unreadable),
            failed=tuple(f"{a.origin.task_id}: {a.failure.message}" for a in advantages if a.failure),
            verdict=verdict,
            kept=kept.accepted if verdict.accepted else (),
        )
        await self._checkpoint(kept.library, record)
        return kept.library

    async def _checkpoint(self, library: ExperienceLibrary, record: StepRecord) -> None:
        # Every trial is stored by now, so a replay must decide the same; the fingerprint makes sure of it.
        run = self.parts.run
        await run.at("learn", step=self.number).step(
            "decision", record.itself, returns=StepRecord, request=fingerprint(record)
        )
        await self.parts.store(library, self.number)
        # What a person did to the library since stays: a replay does not write over it.
        if not any(run.journal.rows("SELECT 1 FROM revisions WHERE step >= ?", (self.number,))):
            save_library(library, run.path / "library.json")
        run.events.emit(self.tally.finished(library))


class StepRecord(Value):
    """What one learning step decided, as the journal keeps it."""

    proposed: tuple[Decision, ...]
    """Each operation of the candidate, accepted or rejected with the reason."""
    verdict: Verdict
    """What the gate said to those that were accepted."""
    kept: tuple[Operation, ...]
    """The operations that made the next version."""
    evicted: tuple[Decision, ...] = ()
    """Experiences whose measured effect was harmful."""
    unreadable: tuple[str, ...] = ()
    """Proposals of the extractor that were no operations, each with the reason."""
    failed: tuple[str, ...] = ()
    """Groups that could not be distilled, each with the reason."""

    async def itself(self) -> StepRecord:
        """For a durable step whose result is known already."""
        return self


@dataclass(slots=True)
class Tally:
    """What a step's display counts."""

    number: int
    steps: int
    groups: int = 0
    taught: int = 0
    failed: int = 0
    rewards: list[float] = field(default_factory=list)

    def count(self, group: Group, teaches: bool) -> None:
        """One more group."""
        drawn = [rollout for rollout in group.rollouts if not rollout.off_policy]
        self.groups += 1
        self.taught += teaches
        self.failed += sum(rollout.score is None for rollout in drawn)
        self.rewards.extend(rollout.score for rollout in drawn if rollout.score is not None)

    def finished(self, library: ExperienceLibrary) -> StepFinished:
        """The event that ends the step."""
        mean = sum(self.rewards) / len(self.rewards) if self.rewards else None
        return StepFinished(self.number, self.steps, library, mean, self.groups, self.taught, self.failed)


def _credited(
    library: ExperienceLibrary, groups: Sequence[Group], credit: Credit
) -> tuple[ExperienceLibrary, tuple[Decision, ...]]:
    """The library with newly measured effects, without what they show to be harmful."""
    credit.add(groups)
    measured = library.with_effects(credit.effects())
    revision = measured.revise(harmful(measured))
    return revision.library, revision.decisions
