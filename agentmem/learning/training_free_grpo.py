"""Training-Free GRPO (2510.08191): the loop.

Task -> G Rollouts -> Rewards -> Group -> SemanticAdvantage -> Operations
-> ExperienceLibrary (next version, if it passes the gate) -> prior of the next Rollouts
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentmem.agents.agent import Agent
from agentmem.agents.sampler import Sampler, cancel
from agentmem.domain.advantage import SemanticAdvantage
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Decision, Operation
from agentmem.domain.rollout import Group
from agentmem.domain.task import TaskSet
from agentmem.domain.value import Value, fingerprint
from agentmem.errors import AgentMemError
from agentmem.events import GateDecided, GroupFinished, Noted, OperationsDecided, PhaseStarted, StepFinished
from agentmem.learning.credit import Credit, harmful
from agentmem.learning.curriculum import Solved
from agentmem.learning.extractor import ExtractorContext
from agentmem.learning.gate import choose
from agentmem.learning.leak_rule import LeakRule
from agentmem.learning.recipe import Recipe
from agentmem.learning.screening import screened
from agentmem.learning.teacher import Teacher
from agentmem.learning.trials import Trials
from agentmem.learning.verdict import Verdict
from agentmem.library_files import save_library
from agentmem.runs.run import Run
from agentmem.settings import LearnSettings


@dataclass(frozen=True)
class TrainingFreeGRPO:
    """One learning run: its tasks, its strategies, and where its rollouts come from."""

    train: TaskSet
    gate_tasks: TaskSet
    settings: LearnSettings
    recipe: Recipe
    rollouts: Sampler
    """Draws the groups that teach."""
    trials: Sampler
    """Draws the gate's attempts, at the temperature of the evaluation."""
    teacher: Teacher
    """Turns a complete group into one that teaches as much as it can."""
    leak: LeakRule
    context: ExtractorContext
    """Of the first step; each step has its own."""

    @property
    def run(self) -> Run:
        """Where everything is stored."""
        return self.rollouts.run

    async def learn(self, agent: Agent, library: ExperienceLibrary | None = None) -> ExperienceLibrary:
        """Go through all steps; returns the newest library that passed the gate."""
        agent = agent.with_experience(None, policy=self.recipe.prior)
        library = library or ExperienceLibrary()
        credit, solved = Credit(), Solved(self.settings.sampling == "adaptive")
        steps = list(self._steps())
        await self._store(library, -1)
        for number, batch in enumerate(steps):
            tally, context = Tally(number, len(steps)), self.context.at(number)
            batch = solved.left(batch, epoch=number * self.settings.epochs // len(steps))
            async with Trials(agent, self.gate_tasks, self.trials, step=number) as trials:
                groups, advantages = await self._advantages(agent, batch, library, tally, context, trials)
                solved.add(groups)
                library, evicted = self._credited(library, groups, credit)
                advantages = screened(advantages, library, self.leak, context)
                operations = await self.recipe.extractor.consolidate(advantages, library, context)
                candidate = library.revise(operations, refuse=self.leak)
                proposed = (*context.rejected, *candidate.decisions)
                self.run.events.emit(OperationsDecided(number, (*evicted, *proposed)))
                kept, verdict = await choose(self.recipe.gate, library, candidate, trials)
            self.run.events.emit(GateDecided(number, verdict.accepted, verdict.reason, len(candidate.accepted)))
            library = kept.library
            record = StepRecord(
                proposed=proposed,
                evicted=evicted,
                unreadable=tuple(text for advantage in advantages for text in advantage.unreadable),
                failed=tuple(f"{a.origin.task_id}: {a.failure.message}" for a in advantages if a.failure),
                verdict=verdict,
                kept=kept.accepted if verdict.accepted else (),
            )
            await self._checkpoint(library, record, tally)
        return library

    def _steps(self) -> Sequence[TaskSet]:
        """The batches of all epochs; each epoch has an order of its own."""
        size = self.settings.batch_size or len(self.train)
        epochs = [self.train.shuffle(self.settings.seed + epoch) for epoch in range(self.settings.epochs)]
        return [epoch[start : start + size] for epoch in epochs for start in range(0, len(epoch), size)]

    async def _advantages(
        self,
        agent: Agent,
        batch: TaskSet,
        library: ExperienceLibrary,
        tally: Tally,
        context: ExtractorContext,
        trials: Trials,
    ) -> tuple[list[Group], list[SemanticAdvantage]]:
        """All groups, and what they teach, in the order of the tasks. A group is distilled when it is complete."""
        agent, step = agent.with_experience(library), tally.number
        self.run.events.emit(PhaseStarted("learn", len(batch) * self.recipe.plan.most, step, tally.steps))
        lessons: dict[str, asyncio.Task[tuple[Group, SemanticAdvantage | None]]] = {}
        drawn = self.rollouts.groups(
            agent, batch, plan=self.recipe.plan, phase="learn", step=step, inclusion=self.settings.inclusion
        )

        async def distilled(group: Group) -> tuple[Group, SemanticAdvantage | None]:
            group = await self.teacher.prepared(group, agent, context)
            teaches = self.teacher.teaches(group, self.settings)
            tally.count(group, teaches)
            self.run.events.emit(GroupFinished(step, group, teaches))
            if not teaches:
                return group, None
            if tally.taught == 1 and self.settings.inclusion >= 1:
                # There will be a candidate, so the gate will ask for the incumbent: while stragglers are awaited.
                sure, likely = self.recipe.gate.looks_ahead(len(self.gate_tasks))
                trials.look_ahead(library, sure if self.run.ledger.budget.buys_less else likely)
            return group, await self.recipe.extractor.distil(group, library, context)

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
            said = f"step {step + 1}: {len(failed)} of {len(advantages)} groups could not be distilled, such as: {why}"
            self.run.events.emit(Noted(said, "warning"))
        return [group for group, _ in pairs], advantages

    def _credited(
        self, library: ExperienceLibrary, groups: Sequence[Group], credit: Credit
    ) -> tuple[ExperienceLibrary, tuple[Decision, ...]]:
        """The library with newly measured effects, without what they show to be harmful."""
        credit.add(groups)
        measured = library.with_effects(credit.effects())
        revision = measured.revise(harmful(measured))
        return revision.library, revision.decisions

    async def _checkpoint(self, library: ExperienceLibrary, record: StepRecord, tally: Tally) -> None:
        # Every trial is stored by now, so a replay must decide the same; the fingerprint makes sure of it.
        await self.run.at("learn", step=tally.number).step(
            "decision", record.itself, returns=StepRecord, request=fingerprint(record)
        )
        await self._store(library, tally.number)
        # What a person did to the library since stays: a replay does not write over it.
        if not any(self.run.journal.rows("SELECT 1 FROM revisions WHERE step >= ?", (tally.number,))):
            save_library(library, self.run.path / "library.json")
        self.run.events.emit(tally.finished(library))

    async def _store(self, library: ExperienceLibrary, step: int) -> None:
        await self.run.journal.write(
            "INSERT OR REPLACE INTO libraries (step, version, library) VALUES (?,?,?)",
            (step, library.version, library.to_json()),
        )


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
