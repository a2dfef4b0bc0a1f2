"""`agentmem learn`: learn an experience library from tasks."""

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
    RewardOptions,
    RewardPart,
    RunOptions,
    RunPart,
    panel,
)
from agentmem.settings import AgentSettings, Budget, LearnSettings, ModelSettings


def learn(
    tasks: Path,
    *,
    validation: Path | None = None,
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
        tasks: JSONL or JSON file of tasks: input, and answer where there is one.
        validation: Tasks for the gate, instead of a part of the training tasks.
    """
    import asyncio

    from agentmem.api import carry_out
    from agentmem.learning.learn import Learning
    from agentmem.report.learned import Story
    from agentmem.task_files import load_tasks

    train = run.tasks(tasks)
    acting = agent.open(attempt, calls)
    plan = Learning.of(
        acting,
        train,
        reward.open(acting),
        settings,
        validation=load_tasks(validation) if validation else None,
    )
    if run.dry_run:
        output.show(reward.noted(plan.estimate()))
        return
    directory = run.directory("learn", plan.asked)
    story = Story()
    with output.display() as listeners:
        library = asyncio.run(carry_out(plan, directory, budget=budget, listeners=(*listeners, story.hear)))
    output.show(story.learned(library, directory, before=acting.library))
    if not output.json:
        output.show_fields(library=directory / "library.json")
