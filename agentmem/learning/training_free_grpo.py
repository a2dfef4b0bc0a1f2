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
from agentmem.domain.experience import ExperienceLibrary, Revision
from agentmem.domain.operation import Decision, Operation
from agentmem.domain.rollout import Group
from agentmem.domain.task import TaskSet
from agentmem.domain.value import Value, fingerprint
from agentmem.events import GateDecided, GroupFinished, OperationsDecided, PhaseStarted, StepFinished
from agentmem.learning.gate import Verdict, choose
from agentmem.learning.recipe import Recipe
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

    @property
    def run(self) -> Run:
        """Where everything is stored."""
        return self.rollouts.run

    async def learn(self, agent: Agent, library: ExperienceLibrary | None = None) -> ExperienceLibrary:
        """Go through all steps; returns the newest library that passed the gate."""
        library = library or ExperienceLibrary()
        steps = list(self._steps())
        await self._store(library, -1)
        for number, batch in enumerate(steps):
            tally = Tally(number, len(steps))
            advantages = await self._advantages(agent.with_experience(library), batch, library, tally)
            operations = await self.recipe.extractor.consolidate(advantages, library)
            candidate = library.revise(operations)
            self.run.events.emit(OperationsDecided(number, candidate.decisions))
            library = await self._gate(agent, library, candidate, number)
            await self._checkpoint(library, tally)
        return library

    def _steps(self) -> Sequence[TaskSet]:
        """The batches of all epochs; each epoch has an order of its own."""
        size = self.settings.batch_size or len(self.train)
        epochs = [self.train.shuffle(self.settings.seed + epoch) for epoch in range(self.settings.epochs)]
        return [epoch[start : start + size] for epoch in epochs for start in range(0, len(epoch), size)]

    async def _advantages(
        self, agent: Agent, batch: TaskSet, library: ExperienceLibrary, tally: Tally
    ) -> list[SemanticAdvantage]:
        """What the batch teaches, in the order of its tasks. A group is distilled the moment it is complete."""
        size, step = self.settings.group_size, tally.number
        self.run.events.emit(PhaseStarted("learn", len(batch) * size, step, tally.steps))
        distilling: dict[str, asyncio.Task[SemanticAdvantage]] = {}
        try:
            async for group in self.rollouts.groups(agent, batch, size=size, phase="learn", step=step):
                teaches = group.teaches(self.settings.gap)
                tally.count(group, teaches)
                self.run.events.emit(GroupFinished(step, group, teaches))
                if teaches:
                    distil = self.recipe.extractor.distil(group, library, step=step)
                    distilling[group.task.id] = asyncio.create_task(distil)
            return [await distilling[task.id] for task in batch if task.id in distilling]
        finally:
            await cancel(distilling.values())

    async def _gate(
        self, agent: Agent, incumbent: ExperienceLibrary, candidate: Revision, step: int
    ) -> ExperienceLibrary:
        """The candidate, the half of it that passes, or the incumbent."""

        async def trial(library: ExperienceLibrary, round: int) -> dict[str, float | None]:
            arm = agent.with_experience(library)
            # The phase is named by the prior, so the scores of an unchanged prior are stored already and cost nothing.
            phase = f"gate/{arm.prior.hash or 'empty'}"
            self.run.events.emit(PhaseStarted("gate", len(self.gate_tasks), step, title=f"round {round + 1}"))
            scores: dict[str, float | None] = {}
            async for group in self.trials.groups(
                arm, self.gate_tasks, size=1, phase=phase, step=round, stream="gate"
            ):
                scores[group.task.id] = group.mean
            return {task.id: scores[task.id] for task in self.gate_tasks}

        kept, verdict = await choose(self.recipe.gate, incumbent, candidate, trial)
        record = StepRecord(
            proposed=candidate.decisions, verdict=verdict, kept=kept.accepted if verdict.accepted else ()
        )
        # Every trial is stored by now, so a replay must decide the same; the fingerprint makes sure of it.
        await self.run.at("learn", step=step).step(
            "decision", record.itself, returns=StepRecord, request=fingerprint(record)
        )
        self.run.events.emit(GateDecided(step, verdict.accepted, verdict.reason, len(candidate.accepted)))
        return kept.library

    async def _checkpoint(self, library: ExperienceLibrary, tally: Tally) -> None:
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
        self.groups += 1
        self.taught += teaches
        self.failed += len(group.rollouts) - len(group.scored)
        self.rewards.extend(group.rewards)

    def finished(self, library: ExperienceLibrary) -> StepFinished:
        """The event that ends the step."""
        mean = sum(self.rewards) / len(self.rewards) if self.rewards else None
        return StepFinished(self.number, self.steps, library, mean, self.groups, self.taught, self.failed)
