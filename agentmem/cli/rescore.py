"""`agentmem rescore`: judge the answers of an evaluation again, without calling the agent."""

from __future__ import annotations

from pathlib import Path

from agentmem.cli.options import (
    BudgetOptions,
    CallsPart,
    OutputOptions,
    OutputPart,
    RewardOptions,
    RewardPart,
    RunOptions,
    RunPart,
)
from agentmem.settings import Budget, ModelSettings


def rescore(
    source: Path,
    *,
    tasks: Path | None = None,
    reward: RewardPart = RewardOptions(),  # noqa: B008  # frozen
    budget: BudgetOptions = Budget(),  # noqa: B008  # frozen
    run: RunPart = RunOptions(),  # noqa: B008  # frozen
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
    calls: CallsPart = ModelSettings(),  # noqa: B008  # frozen
) -> None:
    """Score the stored answers of an evaluation with another reward; only a judge costs anything.

    Args:
        source: The evaluation's run directory.
        tasks: The file of its tasks, for a run of an earlier agentmem, which kept none.
    """
    import asyncio

    from agentmem.evaluation.rescore import Rescoring
    from agentmem.execution import carry_out

    plan = Rescoring.of(
        source, reward.open(None), tasks=run.tasks(tasks) if tasks is not None else None, calls=calls
    )
    if run.dry_run:
        output.show(plan.estimate())
        return
    directory = run.directory("rescore", plan.asked)
    with output.display() as listeners:
        report = asyncio.run(carry_out(plan, directory, budget=budget, listeners=listeners))
    output.show(report)
    if not output.json:
        output.show_fields(run=directory)
