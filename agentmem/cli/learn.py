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
    RunOptions,
    RunPart,
    load_function,
    panel,
)
from agentmem.settings import AgentSettings, Budget, LearnSettings, ModelSettings


def learn(
    tasks: Path,
    *,
    reward: str = "exact",
    validation: Path | None = None,
    agent: AgentPart = AgentOptions(),  # noqa: B008  # frozen
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
        reward: exact, numeric, math, f1, choice, json, judge, or FILE.py:FUNCTION.
        validation: Tasks for the gate, instead of a part of the training tasks.
    """
    import asyncio

    from agentmem.api import carry_out
    from agentmem.learning.learn import Learning
    from agentmem.rewards.reward_function import resolve_reward
    from agentmem.task_files import load_tasks

    judge = resolve_reward(load_function(reward) if ".py:" in reward else reward)
    train = load_tasks(tasks)
    plan = Learning.of(
        agent.open(attempt, calls),
        train.head(run.limit) if run.limit is not None else train,
        judge,
        settings,
        validation=load_tasks(validation) if validation else None,
    )
    if run.dry_run:
        output.show(plan.estimate())
        return
    directory = run.directory("learn", plan.asked)
    with output.display() as listeners:
        library = asyncio.run(carry_out(plan, directory, budget=budget, listeners=listeners))
    output.show_fields(
        run=str(directory),
        library=str(directory / "library.json"),
        version=library.version,
        experiences=len(library),
    )
