"""`agentmem eval`: judge an agent on tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from agentmem.cli.options import (
    AgentOptions,
    AgentPart,
    AttemptPart,
    BudgetOptions,
    CallsPart,
    OutputOptions,
    OutputPart,
    RunOptions,
    RunPart,
    load_function,
    panel,
)
from agentmem.settings import AgentSettings, Budget, EvalSettings, ModelSettings


def evaluate(
    tasks: Path,
    *,
    reward: str = "exact",
    agent: AgentPart = AgentOptions(),  # noqa: B008  # frozen
    settings: Annotated[EvalSettings, panel("Evaluation")] = EvalSettings(),  # noqa: B008  # frozen
    budget: BudgetOptions = Budget(),  # noqa: B008  # frozen
    run: RunPart = RunOptions(),  # noqa: B008  # frozen
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
    attempt: AttemptPart = AgentSettings(),  # noqa: B008  # frozen
    calls: CallsPart = ModelSettings(),  # noqa: B008  # frozen
) -> None:
    """Judge an agent: Mean@k with its interval, both denominators, errors by kind, cost.

    Args:
        tasks: JSONL or JSON file of tasks: input, and answer where there is one.
        reward: exact, numeric, math, f1, choice, json, judge, or FILE.py:FUNCTION.
    """
    import asyncio

    from agentmem.api import carry_out
    from agentmem.evaluation.evaluate import Evaluation
    from agentmem.rewards.reward_function import resolve_reward
    from agentmem.task_files import load_tasks

    judge = resolve_reward(load_function(reward) if ".py:" in reward else reward)
    all_tasks = load_tasks(tasks)
    chosen = all_tasks.head(run.limit) if run.limit is not None else all_tasks
    plan = Evaluation.of(agent.open(attempt, calls), chosen, judge, settings)
    if run.dry_run:
        output.show(plan.estimate())
        return
    directory = run.directory("eval", plan.asked)
    with output.display() as listeners:
        report = asyncio.run(carry_out(plan, directory, budget=budget, listeners=listeners))
    output.show(report)
    if not output.json:
        output.show_fields(run=str(directory))
