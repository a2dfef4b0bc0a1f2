"""`agentmem bench`: run an agent on GAIA or on a set of its form, and check such a set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import App

from agentmem.cli.options import (
    AgentOptions,
    AgentPart,
    AttemptPart,
    BudgetOptions,
    CallsPart,
    MemoryPart,
    OutputOptions,
    OutputPart,
    RunOptions,
    RunPart,
    panel,
)
from agentmem.settings import AgentSettings, Budget, EvalSettings, MemorySettings, ModelSettings

bench = App(
    name="bench",
    help="Run an agent on GAIA or on a set of its form, and check such a set.",
    help_format="plaintext",
)

EVAL = EvalSettings(concurrency=8)
"""Attempts with tools take processes; more of them at once than this need more cores than most machines have."""
ATTEMPT = AgentSettings(max_steps=20, tool_seconds=60.0)


@bench.command
def validate(data: Path, *, output: OutputPart = OutputOptions()) -> int:  # noqa: B008  # frozen
    """Check a set in GAIA's form: every fault with its row and its repair, and the tasks of each level.

    Exits with 1 where there is a fault.

    Args:
        data: The set's folder: dataset.toml, tasks.jsonl and files/; or a copy of GAIA.
    """
    from agentmem.cli.gaia_set import Checked, opened

    folder = opened(data)
    output.show(Checked(folder))
    return 1 if folder.faults else 0


@bench.command
def gaia(
    *,
    data: Path,
    level: str | None = None,
    split: str | None = None,
    learn: bool = False,
    bare: bool = False,
    agent: AgentPart = AgentOptions(),  # noqa: B008  # frozen
    settings: Annotated[EvalSettings, panel("Evaluation")] = EVAL,
    memory: MemoryPart = MemorySettings(),  # noqa: B008  # frozen
    budget: BudgetOptions = Budget(),  # noqa: B008  # frozen
    run: RunPart = RunOptions(),  # noqa: B008  # frozen
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
    attempt: AttemptPart = ATTEMPT,
    calls: CallsPart = ModelSettings(),  # noqa: B008  # frozen
) -> None:
    """Run an agent on GAIA or on a set of its form, and report each level under both denominators.

    The agent has the tools python, read_file, calculator and fetch_page, a search where the set brings its own web,
    and what --tool names. Besides react and planner, --agent takes FILE.py:FUNCTION. The run's folder gets
    bench.json, leaderboard.jsonl with its proof, and urls.jsonl.

    Args:
        data: The set's folder, or a copy of GAIA (2023/validation/metadata.parquet).
        level: Only tasks of this level.
        split: Only tasks of this split, such as validation.
        learn: Learn a memory from the split train, and try the agent on the others without memory, with it, and with
            a shuffled one.
        bare: Give the agent no tools but those of --tool, for models that cannot call any, such as local/smollm2.
    """
    from agentmem.cli.gaia_run import Bench
    from agentmem.cli.gaia_set import opened

    match agent.agent:
        case "react" | "planner" as style:
            agent = replace(agent, style=style, agent=None)
    folder = opened(data)
    with Bench.of(folder, agent, attempt, calls, output, bare=bare) as made:
        if learn:
            from agentmem.cli.gaia_learn import Experiment

            tasks = folder.chosen(level=level)
            experiment = Experiment.of(made, tasks, split=split, settings=settings, memory=memory, options=agent)
            if run.dry_run:
                output.show(experiment.estimate())
                return
            output.show(experiment.carry_out(run.folder("bench-learn"), budget))
            return
        tasks = run.first(folder.chosen(level=level, split=split))
        plan = made.plan(made.agent(agent, memory), tasks, settings)
        if run.dry_run:
            output.show(plan.estimate())
            return
        directory = run.directory("bench", plan.asked)
        output.show(made.carry_out(plan, directory, budget, split=split))
        if not output.json:
            output.show_fields(run=directory)
