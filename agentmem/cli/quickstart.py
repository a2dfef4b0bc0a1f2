"""`agentmem quickstart`: a small real model learns from its own successes, before your eyes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmem.cli.families import Family, families
from agentmem.cli.options import (
    BudgetOptions,
    CallsPart,
    DirectoryOptions,
    DirectoryPart,
    OutputOptions,
    OutputPart,
)
from agentmem.domain.usage import Usage
from agentmem.events import Event, RunClosed
from agentmem.settings import Budget, EvalSettings, LearnSettings, ModelSettings

if TYPE_CHECKING:
    from agentmem.agents.agent import Agent
    from agentmem.agents.estimate import Estimate
    from agentmem.domain.experience import ExperienceLibrary
    from agentmem.domain.task import TaskSet
    from agentmem.evaluation.comparisons import Comparisons
    from agentmem.evaluation.evaluate import Evaluation
    from agentmem.evaluation.intervals import Interval
    from agentmem.evaluation.report import EvaluationReport
    from agentmem.learning.learn import Learning

Bench = Sequence[tuple[Family, "TaskSet", "TaskSet"]]
"""Each family with its training and its held-out tasks."""

TRAIN, TEST = 48, 48
"""Tasks of each family to learn from (the gate's among them), and to be judged on; they share no items."""

EVAL = EvalSettings(samples=2, temperature=0.7, concurrency=64)
LEARN = LearnSettings(
    extractor="exemplar",
    group_size=8,
    epochs=1,
    temperature=1.0,
    gate_temperature=0.7,
    gate_rounds=4,
    gate_min_tasks=24,
    examples_per_step=4,
)


def quickstart(
    *,
    model: str = "local/smollm2",
    base_url: str | None = None,
    seed: int = 0,
    budget: BudgetOptions = Budget(),  # noqa: B008  # frozen
    run: DirectoryPart = DirectoryOptions(Path("runs/quickstart")),  # noqa: B008  # frozen
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
    calls: CallsPart = ModelSettings(),  # noqa: B008  # frozen
) -> None:
    """Measure a model on small tasks, let it learn from its own successes, and measure again on held-out tasks.

    With local/smollm2 it needs no key and no network, and takes some minutes on two CPU cores.

    Args:
        model: Which model; for example openai/gpt-4.1-nano.
        base_url: Address of an OpenAI-compatible server.
        seed: All draws depend on it.
    """
    from agentmem.agents.agent import Agent
    from agentmem.evaluation.comparisons import compare_many

    started = time.monotonic()
    agent = Agent(model, base_url=base_url, calls=calls, max_completion_tokens=16)
    show = Show(output, run.folder("quickstart"), seed, budget)
    bench = []
    for family in families():
        train, test = family.generate(TRAIN, TEST, seed)
        bench.append((family, run.first(train), run.first(test)))
    if run.dry_run:
        output.show(show.estimate(agent, bench))
        return

    tested = len(bench[0][2])
    show.say(f"1. What can {agent.name} do before it learns anything? {tested} held-out tasks of each kind:")
    before = [show.evaluate("before", agent, test, family) for family, _, test in bench]
    for (family, _, _), report in zip(bench, before, strict=True):
        show.say(f"   {family.name}: {_score(report)}  ({family.describe})")

    show.say("\n2. It tries the training tasks several times each, and its best own answers become examples.")
    show.say("   They are kept only if tasks that taught nothing (the gate) go better with them.")
    learned = [show.learn(agent, train, family) for family, train, _ in bench]

    show.say("\n3. The held-out tasks again, with what was learned in the prompt.")
    rows = [
        (family.name, report, show.evaluate("after", agent.with_experience(library), test, family))
        for (family, _, test), library, report in zip(bench, learned, before, strict=True)
        if len(library)  # where nothing was kept, the same prompt would only be measured twice
    ]
    names = [family.name for family, _, _ in bench]
    comparisons = compare_many(rows) if rows else None
    if output.json:
        print(json.dumps({"families": _figures(names, before, learned, comparisons)}))
        return
    if comparisons is not None:
        show.say("")
        output.show(comparisons)
    for name, report, library in zip(names, before, learned, strict=True):
        if not len(library):
            show.say(f"{name}: nothing was kept, so nothing changed: {_score(report)}")
    show.say(_lessons(names, learned))
    show.say(
        f"\n{time.monotonic() - started:.0f} seconds. Every call and decision is in {show.run}; try another --seed."
    )


@dataclass(frozen=True)
class Show:
    """Runs the parts of the quickstart, each in a run directory of its own, and says what happens."""

    output: OutputOptions
    run: Path
    seed: int
    budget: Budget
    spent: list[Usage] = field(default_factory=list)
    """By each part so far."""
    started: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """A line for a person; JSON output has none."""
        if not self.output.json:
            print(text, flush=True)

    def estimate(self, agent: Agent, bench: Bench) -> Estimate:
        """What all parts will take."""
        from agentmem.agents.estimate import Estimate

        parts = [
            part
            for family, train, test in bench
            for part in (
                self._evaluation(agent, test, family).estimate(),
                self._learning(agent, train, family).estimate(),
                Estimate.of(agent, [(test, EVAL.samples)], prior_tokens=LEARN.prior_tokens),
            )
        ]
        return Estimate.total(
            parts, notes=(f"{len(bench)} families; where nothing is kept, one evaluation less.",)
        )

    def evaluate(self, when: str, agent: Agent, tasks: TaskSet, family: Family) -> EvaluationReport:
        """Judge the agent on one family's held-out tasks."""
        plan = self._evaluation(agent, tasks, family)
        report: EvaluationReport = self._carry_out(plan, f"{family.name}-{when}")
        return report

    def learn(self, agent: Agent, tasks: TaskSet, family: Family) -> ExperienceLibrary:
        """Let the agent learn one family."""
        plan = self._learning(agent, tasks, family)
        library: ExperienceLibrary = self._carry_out(plan, f"{family.name}-learn")
        verdict = (
            f"{len(library)} examples kept" if len(library) else "nothing passed the gate, so nothing is kept"
        )
        self.say(f"   {family.name}: {verdict}")
        return library

    def _evaluation(self, agent: Agent, tasks: TaskSet, family: Family) -> Evaluation:
        from agentmem.evaluation.evaluate import Evaluation
        from agentmem.rewards.reward_function import resolve_reward

        settings = EVAL.model_copy(update={"seed": self.seed})
        return Evaluation.of(agent, tasks, resolve_reward(family.reward), settings)

    def _learning(self, agent: Agent, tasks: TaskSet, family: Family) -> Learning:
        from agentmem.learning.learn import Learning
        from agentmem.rewards.reward_function import resolve_reward

        settings = LEARN.model_copy(update={"seed": self.seed})
        return Learning.of(agent, tasks, resolve_reward(family.reward), settings)

    def _carry_out(self, plan: Any, name: str) -> Any:
        from agentmem.domain.value import fingerprint
        from agentmem.execution import carry_out

        def pay(event: Event) -> None:
            if isinstance(event, RunClosed):
                self.spent.append(event.usage)

        with self.output.display() as listeners:
            # Named by what is asked as well, so that another model does not meet this one's run.
            path = self.run / f"{name}-{self.seed}-{fingerprint(plan.asked, length=6)}"
            return asyncio.run(carry_out(plan, path, budget=self._left(), listeners=[*listeners, pay]))

    def _left(self) -> Budget:
        """What the parts so far have left of the budget, which is one for all."""
        used = sum(self.spent, Usage())
        limits = {
            "max_calls": (self.budget.max_calls, used.calls),
            "max_tokens": (self.budget.max_tokens, used.tokens),
            "max_cost": (self.budget.max_cost, used.dollars or 0.0),
            "max_seconds": (self.budget.max_seconds, time.monotonic() - self.started),
        }
        return Budget.model_validate(
            {name: None if most is None else max(most - gone, 0) for name, (most, gone) in limits.items()}
        )


def _figures(
    names: Sequence[str],
    before: Sequence[EvaluationReport],
    libraries: Sequence[ExperienceLibrary],
    comparisons: Comparisons | None,
) -> list[dict[str, Any]]:
    """What the tables say, for a program. A family in which nothing was kept has no `after`: it was not measured."""

    def shown(value: float | None, interval: Interval) -> dict[str, float | None]:
        return {"value": value, "low": interval.low, "high": interval.high}

    found = dict(comparisons.rows) if comparisons else {}
    adjusted = dict(zip(found, comparisons.adjusted, strict=True)) if comparisons else {}
    figures: list[dict[str, Any]] = []
    for name, report, library in zip(names, before, libraries, strict=True):
        row: dict[str, Any] = {
            "family": name,
            "n": report.n,
            "samples": report.k,
            "before": shown(report.score, report.interval),
            "experiences": len(library),
        }
        if name in found:
            strict = found[name].strict
            row["after"] = shown(strict.after, strict.after_interval)
            row["difference"] = shown(strict.value, strict.interval)
            row["p_adjusted"] = adjusted[name]
        figures.append(row)
    return figures


def _score(report: EvaluationReport) -> str:
    from agentmem.format import score

    return f"{score(report.score, report.interval.low, report.interval.high)}, n = {report.n} x {report.k}"


def _lessons(names: Sequence[str], libraries: Sequence[ExperienceLibrary]) -> str:
    """What was learned, and from which rollouts."""
    lines = ["\nWhat was learned, and from which rollouts:"]
    for name, library in zip(names, libraries, strict=True):
        for experience in library:
            origin = experience.origins[0]
            asked, answered = (" ".join(turn.content.split()) for turn in experience.turns[:2])
            rewards = ", ".join(f"{reward:g}" for reward in origin.rewards)
            lines.append(f"  {name} [{experience.id}] {asked} -> {answered}")
            lines.append(
                f"      rollout {origin.rollouts[0]} of task {origin.task_id}; rewards of its group: {rewards}"
            )
        if not len(library):
            lines.append(f"  {name}: nothing; no candidate was better than no experience at all")
    return "\n".join(lines)
