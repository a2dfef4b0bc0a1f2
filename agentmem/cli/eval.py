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
    MemoryPart,
    OutputOptions,
    OutputPart,
    RewardOptions,
    RewardPart,
    RunOptions,
    RunPart,
    panel,
)
from agentmem.settings import AgentSettings, Budget, EvalSettings, MemorySettings, ModelSettings


def evaluate(
    tasks: Path,
    *,
    agent: AgentPart = AgentOptions(),  # noqa: B008  # frozen
    reward: RewardPart = RewardOptions(),  # noqa: B008  # frozen
    settings: Annotated[EvalSettings, panel("Evaluation")] = EvalSettings(),  # noqa: B008  # frozen
    memory: MemoryPart = MemorySettings(),  # noqa: B008  # frozen
    budget: BudgetOptions = Budget(),  # noqa: B008  # frozen
    run: RunPart = RunOptions(),  # noqa: B008  # frozen
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
    attempt: AttemptPart = AgentSettings(),  # noqa: B008  # frozen
    calls: CallsPart = ModelSettings(),  # noqa: B008  # frozen
) -> None:
    """Judge an agent: Mean@k with its interval, both denominators, errors by kind, cost.

    Args:
        tasks: File of tasks (JSONL, JSON, CSV, Parquet): input, and answer where there is one. Or
            hub:OWNER/NAME@COMMIT?split=test, or a benchmark: benchmarks/tasks/gsm8k.py.
    """
    import asyncio

    from agentmem.api import carry_out
    from agentmem.evaluation.evaluate import Evaluation

    chosen = run.tasks(tasks)
    acting = agent.open(attempt, calls, memory)
    plan = Evaluation.of(acting, chosen, reward.open(acting, tasks), settings)
    if run.dry_run:
        output.show(plan.estimate())
        return
    directory = run.directory("eval", plan.asked)
    with output.display() as listeners:
        report = asyncio.run(carry_out(plan, directory, budget=budget, listeners=listeners))
    output.show(report)
    if not output.json:
        output.show_fields(run=directory)
