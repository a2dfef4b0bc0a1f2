"""A memory tried: learned on a training split; held-out tasks without it, with it, and with a shuffled one."""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmem import format as fmt
from agentmem.cli.gaia_run import Bench
from agentmem.cli.options import AgentOptions
from agentmem.domain.task import TaskSet
from agentmem.errors import InputError
from agentmem.settings import Budget, EvalSettings, MemorySettings

if TYPE_CHECKING:
    from agentmem.agents.estimate import Estimate
    from agentmem.evaluation.by_level import LevelReport
    from agentmem.evaluation.comparison import Comparison
    from agentmem.evaluation.report import EvaluationReport

TRAIN = "train"
CONTRASTS = (("off", "on"), ("off", "shuffled"), ("shuffled", "on"))
"""What is compared, before and after. The second says what any cases do to an agent, the third what theirs add."""


@dataclass(frozen=True)
class Experiment:
    """A memory from a training split, and three arms on the same held-out tasks under the same random numbers."""

    bench: Bench
    train: TaskSet
    held_out: TaskSet
    settings: EvalSettings
    memory: MemorySettings
    options: AgentOptions

    @classmethod
    def of(
        cls,
        bench: Bench,
        tasks: TaskSet,
        *,
        split: str | None,
        settings: EvalSettings,
        memory: MemorySettings,
        options: AgentOptions,
    ) -> Experiment:
        """Divide the tasks.

        Where the set has a split `train`, that is learned from, and `split`, or all others, are held out. Where it has
        none, half of the tasks (of `split`), drawn by the seed, is learned from.

        Raises:
            InputError: nothing is left to learn from, or to be tried on; or there is no scored answer.
        """
        if options.memory is not None:
            raise InputError("--learn makes a memory of its own, in the run's folder; leave --memory out.")
        train = TaskSet((t for t in tasks if t.split == TRAIN), name=f"{tasks.name}[train]")
        rest = [t for t in tasks if t.split != TRAIN and split in (None, t.split)]
        held_out = TaskSet(rest, name=f"{tasks.name}[{split or 'held out'}]")
        if not len(train):
            train, held_out = held_out.split(0.5, seed=settings.seed)
        if not len(train) or not len(held_out):
            raise InputError(
                f"{tasks.name!r} has {fmt.count(len(train), 'task')} to learn from and "
                f"{fmt.count(len(held_out), 'task')} to be tried on; give --split another value, or a larger set."
            )
        if not any(task.answer for task in train):
            raise InputError(
                "The answers of the training tasks are not published, so nothing is learned from them."
            )
        return cls(bench, train, held_out, settings, memory, options)

    def estimate(self) -> Estimate:
        """What all parts will take."""
        from agentmem.agents.estimate import Estimate

        agent = self.bench.agent(self.options)
        plans = [(tasks, self.settings.samples) for tasks in (self.train, *[self.held_out] * 3)]
        return Estimate.of(agent, plans, prior_tokens=self.memory.memory_tokens)

    def carry_out(self, folder: Path, budget: Budget) -> Learned:
        """Learn, then try the three arms; each part goes on from where it was."""
        from agentmem.memory.case_bank import CaseBank

        spending = Spending(budget)
        bank = folder / "memory"
        # One by one would take as long as all attempts together; a batch is written before the next one recalls.
        batch = max(self.settings.online_batch, self.settings.concurrency)
        settings = self.settings.model_copy(update={"online_batch": batch})
        learning = self.memory.model_copy(update={"online": True})
        trained = self._arm(folder / "train", self.train, bank, learning, settings, spending)
        with closing(CaseBank(bank)) as made:
            cases = list(made)
        frozen = self.memory.model_copy(update={"online": False})
        arms = {"off": self._arm(folder / "off", self.held_out, None, None, self.settings, spending)}
        arms["on"] = self._arm(folder / "on", self.held_out, bank, frozen, self.settings, spending)
        arms["shuffled"] = self._arm(
            folder / "shuffled", self.held_out, bank, frozen, self.settings, spending, shuffled=True
        )
        splits = {task.id: task.split or "" for task in self.held_out}
        return Learned(trained, arms, splits, len(cases), any(case.gated for case in cases))

    def _arm(
        self,
        directory: Path,
        tasks: TaskSet,
        memory: Path | None,
        how: MemorySettings | None,
        settings: EvalSettings,
        spending: Spending,
        *,
        shuffled: bool = False,
    ) -> LevelReport:
        from agentmem.evaluation.controls import controlled

        agent = self.bench.agent(replace(self.options, memory=memory), how)
        if shuffled:
            agent = controlled(agent, "shuffled", seed=settings.seed)
        found = self.bench.carry_out(self.bench.plan(agent, tasks, settings), directory, spending.left)
        spending.spent.append(found)
        return found


class Spending:
    """One budget for several runs."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.spent: list[LevelReport] = []
        self.started = time.monotonic()

    @property
    def left(self) -> Budget:
        """What the runs so far have left."""
        used = [found.report.usage for found in self.spent]
        limits = {
            "max_calls": (self.budget.max_calls, sum(usage.calls for usage in used)),
            "max_tokens": (self.budget.max_tokens, sum(usage.tokens for usage in used)),
            "max_cost": (self.budget.max_cost, sum(usage.dollars or 0.0 for usage in used)),
            "max_seconds": (self.budget.max_seconds, time.monotonic() - self.started),
        }
        return Budget.model_validate(
            {name: None if most is None else max(most - gone, 0) for name, (most, gone) in limits.items()}
        )


@dataclass(frozen=True)
class Learned:
    """What the experiment found."""

    trained: LevelReport
    arms: dict[str, LevelReport]
    splits: dict[str, str]
    """The split of each held-out task."""
    cases: int
    gated: bool

    def comparisons(self) -> list[tuple[str, Comparison, float]]:
        """Each contrast on all held-out tasks with its p-value after Holm; then memory off and on, split by split."""
        from agentmem.evaluation.comparison import compare
        from agentmem.evaluation.statistics import holm

        reports = {name: arm.report for name, arm in self.arms.items()}
        found = [(f"{a} → {b}", compare(reports[a], reports[b])) for a, b in CONTRASTS]
        names = sorted(set(self.splits.values()))
        for split in names if len(names) > 1 else ():
            off, on = (self._of_split(reports[arm], split) for arm in ("off", "on"))
            found.append((f"off → on, split {split or '–'}", compare(off, on)))
        adjusted = holm([comparison.test.p for _, comparison in found])
        return [(name, comparison, p) for (name, comparison), p in zip(found, adjusted, strict=True)]

    def table(self) -> fmt.Tables:
        """The arms level by level, and the paired differences."""
        rows = []
        for name, comparison, p in self.comparisons():
            strict = comparison.strict
            rows.append(
                (
                    name,
                    fmt.count(strict.n),
                    fmt.score(strict.before, strict.before_interval.low, strict.before_interval.high),
                    fmt.score(strict.after, strict.after_interval.low, strict.after_interval.high),
                    fmt.score(strict.value, strict.interval.low, strict.interval.high, signs=True),
                    fmt.probability(p),
                )
            )
        strict = self.comparisons()[0][1].strict
        paired = fmt.Table(
            title=f"Memory off, on and shuffled: {fmt.count(self.cases, 'case')} learned from "
            f"{fmt.count(self.trained.report.n, 'task')}, agent {self.trained.report.agent}",
            columns=(
                ("contrast", "left"),
                ("n", "right"),
                ("before, 95 %", "right"),
                ("after, 95 %", "right"),
                ("difference, 95 %", "right"),
                ("p", "right"),
            ),
            rows=tuple(rows),
            caption=f"paired by task ({strict.interval.method}); p: {strict.test.method}, adjusted by Holm for "
            f"{len(rows)} contrasts\nshuffled: the same cases are recalled, each with the action of another"
            + (
                "\nThe set is gated: its memory is marked, and is not exported without --allow-gated." * self.gated
            ),
        )
        return fmt.Tables((*(self.arms[name].table() for name in self.arms), paired))

    def to_json(self) -> str:
        """The same for a program."""
        contrasts: list[dict[str, Any]] = [
            {
                "contrast": name,
                "n": comparison.n,
                "difference": comparison.difference,
                "low": comparison.interval.low,
                "high": comparison.interval.high,
                "p_adjusted": p,
            }
            for name, comparison, p in self.comparisons()
        ]
        scores = {name: arm.report.score for name, arm in self.arms.items()}
        said = {"cases": self.cases, "gated": self.gated, "scores": scores, "contrasts": contrasts}
        return json.dumps({"train": self.trained.report.score, **said}, ensure_ascii=False)

    def _of_split(self, report: EvaluationReport, split: str) -> EvaluationReport:
        kept = tuple(outcome for outcome in report.outcomes if self.splits[outcome.task_id] == split)
        return report.model_copy(update={"outcomes": kept})
