"""Training-Free GRPO (2510.08191): the loop.

Task -> G Rollouts -> Rewards -> Group -> SemanticAdvantage -> Operations
-> ExperienceLibrary (next version, if it passes the gate) -> prior of the next Rollouts
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from agentmem.agents.agent import Agent
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.seed import split_seed
from agentmem.domain.task import TaskSet
from agentmem.events import Noted, PhaseStarted
from agentmem.learning.credit import Credit
from agentmem.learning.curriculum import Solved
from agentmem.learning.gate import choose
from agentmem.learning.leak_rule import LeakRule
from agentmem.learning.step import Parts
from agentmem.learning.trials import Trials


@dataclass(frozen=True)
class TrainingFreeGRPO:
    """One learning run over a task set: what teaches, what candidates are tried on, and the parts of its steps."""

    train: TaskSet
    gate_tasks: TaskSet
    parts: Parts

    async def learn(self, agent: Agent, library: ExperienceLibrary | None = None) -> ExperienceLibrary:
        """Go through all steps; returns the newest library that passed the gate."""
        parts, settings, recipe = self.parts, self.parts.settings, self.parts.recipe
        agent = agent.with_experience(None, policy=recipe.prior)
        library = library or ExperienceLibrary()
        credit, solved = Credit(), Solved(settings.sampling == "adaptive")
        leak, steps = LeakRule.of(self.train), list(self._steps())
        unchanged = 0
        await parts.store(library, -1)
        for number, batch in enumerate(steps):
            batch = solved.left(batch, epoch=number * settings.epochs // len(steps))
            step = parts.step(number, leak=leak, tasks=tuple(self.train), steps=len(steps))
            parts.run.events.emit(PhaseStarted("learn", len(batch) * recipe.plan.most, number, len(steps)))
            async with Trials(agent, self.gate_tasks, parts.trials, step=number) as trials:
                current = agent.with_experience(library)
                drawn = parts.rollouts.groups(
                    current, batch, plan=recipe.plan, phase="learn", step=number, inclusion=settings.inclusion
                )
                # There will be a candidate, so the gate will ask for the incumbent: while stragglers are awaited.
                sure, likely = recipe.gate.looks_ahead(len(self.gate_tasks))
                rounds = sure if parts.run.ledger.budget.buys_less else likely
                groups, advantages = await step.advantages(
                    drawn,
                    batch,
                    current,
                    library,
                    first=partial(trials.look_ahead, library, rounds) if settings.inclusion >= 1 else None,
                )
                solved.add(groups)
                judge = partial(choose, recipe.gate, trial=trials)
                newer = await step.next_version(library, groups, advantages, credit=credit, judge=judge)
            unchanged = 0 if taught(newer) != taught(library) else unchanged + 1
            library = newer
            if settings.patience is not None and unchanged >= settings.patience:
                left = len(steps) - number - 1
                parts.run.events.emit(Noted(f"{unchanged} steps taught nothing new; {left} more are left out."))
                break
        return library

    def _steps(self) -> Sequence[TaskSet]:
        """The batches of all epochs; each epoch has an order of its own."""
        settings = self.parts.settings
        size = settings.batch_size or len(self.train)
        seeds = [split_seed(settings.seed, "epoch", epoch) for epoch in range(settings.epochs)]
        epochs = [self.train.shuffle(seed) for seed in seeds]
        return [epoch[start : start + size] for epoch in epochs for start in range(0, len(epoch), size)]


def taught(library: ExperienceLibrary) -> frozenset[tuple[str, int]]:
    """What a library teaches, apart from what was measured of it meanwhile."""
    return frozenset((experience.id, experience.revision) for experience in library)
