"""`agentmem eval`: judge an agent on tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from agentmem.agents.agent import Agent


def evaluate(
    tasks: Path,
    *,
    against: tuple[Path, ...] = (),
    control: str | None = None,
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
        against: A file of training tasks: what the tasks share with them is named; may be given several times.
        control: none, shuffled, irrelevant, filler, raw, memory-alone or bare: the same agent with a memory that should
            not help.
    """
    import asyncio

    from agentmem.evaluation.evaluate import Evaluation
    from agentmem.execution import carry_out
    from agentmem.task_files import load_tasks

    chosen = run.tasks(tasks)
    acting = agent.open(attempt, calls, memory)
    if control is not None:
        acting = _controlled(acting, control, agent.library)
    training = [task for path in against for task in load_tasks(path)]
    plan = Evaluation.of(acting, chosen, reward.open(acting, tasks), settings, training=training)
    if run.dry_run:
        output.show(plan.estimate())
        return
    directory = run.directory("eval", plan.asked)
    with output.display() as listeners:
        report = asyncio.run(carry_out(plan, directory, budget=budget, listeners=listeners))
    output.show(report)
    if not output.json:
        output.show_fields(run=directory)


def _controlled(agent: Agent, control: str, library: Path | None) -> Agent:
    """The agent under a control; `raw` takes its attempts from the learning run that `--library` names."""
    from agentmem.errors import InputError
    from agentmem.evaluation.controls import controlled, raw_trajectories

    if control != "raw":
        return controlled(agent, control)
    if library is None or not library.is_dir():
        raise InputError("--control raw shows the attempts of a learning run: name its folder with --library.")
    return raw_trajectories(agent, library)
