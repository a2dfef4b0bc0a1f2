"""`agentmem learn`: learn an experience library from tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from agentmem.cli.options import (
    AgentOptions,
    AgentPart,
    AttemptPart,
    BudgetOptions,
    CallsPart,
    OutputOptions,
    OutputPart,
    RewardOptions,
    RewardPart,
    RunOptions,
    RunPart,
    panel,
)
from agentmem.cli.stream import Stream
from agentmem.errors import InputError
from agentmem.settings import AgentSettings, Budget, LearnSettings, ModelSettings


def learn(
    tasks: Annotated[Path, Parameter(allow_leading_hyphen=True)],  # for `-`
    *,
    validation: Path | None = None,
    online: bool = False,
    agent: AgentPart = AgentOptions(),  # noqa: B008  # frozen
    reward: RewardPart = RewardOptions(),  # noqa: B008  # frozen
    settings: Annotated[LearnSettings, panel("Learning")] = LearnSettings(),  # noqa: B008  # frozen
    budget: BudgetOptions = Budget(),  # noqa: B008  # frozen
    run: RunPart = RunOptions(),  # noqa: B008  # frozen
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
    attempt: AttemptPart = AgentSettings(),  # noqa: B008  # frozen
    calls: CallsPart = ModelSettings(),  # noqa: B008  # frozen
) -> None:
    """Learn an experience library from the agent's own rollouts (Training-Free GRPO).

    Args:
        tasks: File of tasks (JSONL, JSON, CSV, Parquet): input, and answer where there is one. Or
            hub:OWNER/NAME@COMMIT?split=train, or a benchmark: benchmarks/tasks/gsm8k.py. With --online, - reads
            standard input.
        validation: Tasks for the gate, instead of a part of the training tasks.
        online: Answer the tasks as they come, score each answer, and learn behind the answers (--json prints each).
    """
    import asyncio

    from agentmem.execution import carry_out
    from agentmem.learning.learn import Learning
    from agentmem.report.learned import Story

    acting = agent.open(attempt, calls)
    tried = run.read(validation) if validation else None
    if online:
        stream = Stream(tasks, run, output)
        return stream.learn(acting, reward, settings, budget, tried)
    if str(tasks) == "-":
        raise InputError("Standard input (-) is read as a stream: add --online, or name a file.")
    train = run.tasks(tasks)
    plan = Learning.of(acting, train, reward.open(acting, tasks), settings, validation=tried)
    if run.dry_run:
        output.show(plan.estimate())
        return
    directory = run.directory("learn", plan.asked)
    story = Story()
    with output.display() as listeners:
        library = asyncio.run(carry_out(plan, directory, budget=budget, listeners=(*listeners, story.hear)))
    output.show(story.learned(library, directory, before=acting.library))
    if not output.json:
        output.show_fields(library=directory / "library.json")
