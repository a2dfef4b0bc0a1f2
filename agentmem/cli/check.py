"""`agentmem check`: what a run needs, tried out one by one, with the repair for each thing that fails."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agentmem.cli.options import (
    AgentOptions,
    AgentPart,
    AttemptPart,
    CallsPart,
    OutputOptions,
    OutputPart,
    load_function,
)
from agentmem.errors import AgentMemError
from agentmem.settings import AgentSettings, ModelSettings

ENOUGH_DISK = 200_000_000
"""Bytes; a run of ten thousand rollouts takes some tens of millions."""


def check(
    tasks: Path | None = None,
    *,
    reward: str = "exact",
    agent: AgentPart = AgentOptions(),  # noqa: B008  # frozen
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
    attempt: AttemptPart = AgentSettings(),  # noqa: B008  # frozen
    calls: CallsPart = ModelSettings(),  # noqa: B008  # frozen
) -> int:
    """Try the disk, the sandbox, the model and one task; name the repair for what fails. Makes at most two calls.

    Args:
        tasks: JSONL or JSON file; its first task is tried.
        reward: exact, numeric, math, f1, choice, json, judge, or FILE.py:FUNCTION.
    """
    checks: dict[str, Callable[[], Awaitable[str]]] = {"disk": _disk, "sandbox": _sandbox}
    if agent.model or agent.agent:
        checks["agent"] = lambda: _agent(agent, attempt, calls)
    if tasks is not None:
        checks["one task"] = lambda: _one_task(tasks, reward, agent, attempt, calls)
    results = asyncio.run(_all(checks))
    output.show(_Results(results))
    return 0 if all(ok for _, ok, _ in results) else 1


async def _all(checks: dict[str, Callable[[], Awaitable[str]]]) -> list[tuple[str, bool, str]]:
    results = []
    for name, attempt in checks.items():
        try:
            results.append((name, True, await attempt()))
        except AgentMemError as error:
            results.append((name, False, str(error)))
    return results


async def _disk() -> str:
    free = shutil.disk_usage(Path.cwd()).free
    if free < ENOUGH_DISK:
        raise AgentMemError(
            f"Only {free / 1e6:.0f} MB are free in {Path.cwd()}; free some, or use --run elsewhere."
        )
    return f"{free / 1e9:.1f} GB free in the working folder"


async def _sandbox() -> str:
    from agentmem.domain.trajectory import ToolCall
    from agentmem.tools.tool import ToolContext
    from agentmem.tools.toolbox import Toolbox

    with tempfile.TemporaryDirectory() as folder:
        call = ToolCall(id="check", name="python", arguments='{"code": "print(6 * 7)"}')
        result = await Toolbox(["python"]).call(call, ToolContext(folder=Path(folder), seconds=20))
    if result.status != "ok" or "42" not in result.content:
        raise AgentMemError(f"The python tool does not work: {result.content}")
    return "the python tool runs in a process of its own, with limits on time, memory and output"


async def _agent(options: AgentOptions, attempt: AgentSettings, calls: ModelSettings) -> str:
    from agentmem.domain.trajectory import Message
    from agentmem.models.model import Request
    from agentmem.models.prices import price_of

    agent = options.open(attempt, calls)
    if agent.model is None:
        return f"{agent.name} is a callable without a model: journal and budget see it as one step an attempt"
    request = Request(messages=(Message(role="user", content="Say OK."),), max_tokens=16, temperature=0.0)
    try:
        reply = await agent.model.complete(request)
    finally:
        await agent.model.close()
    priced = "price known" if price_of(agent.model.name) else "no price known, so budgets in dollars are refused"
    return f"{agent.model.name} answered in {reply.usage.tokens} tokens; {priced}"


async def _one_task(
    path: Path, reward: str, options: AgentOptions, attempt: AgentSettings, calls: ModelSettings
) -> str:
    from agentmem.api import carry_out
    from agentmem.evaluation.evaluate import Evaluation
    from agentmem.rewards.reward_function import resolve_reward
    from agentmem.task_files import load_tasks

    tasks = load_tasks(path)
    judge = resolve_reward(load_function(reward) if ".py:" in reward else reward)
    plan = Evaluation.of(options.open(attempt, calls), tasks.head(1), judge)
    Evaluation.of(plan.agent, tasks, judge)  # all of them are looked at; one is tried
    with tempfile.TemporaryDirectory() as folder:
        report = await carry_out(plan, Path(folder) / "run", listeners=())
    outcome = report.outcomes[0]
    if outcome.score is None:
        why = outcome.failure.message if outcome.failure else f"the reward is {outcome.reward_status}"
        raise AgentMemError(f"Task {outcome.task_id!r} got no score: {why}")
    return f"{len(tasks)} tasks are well-formed; {outcome.task_id!r} scored {outcome.score:g}"


class _Results:
    """Rows of (what, whether it works, in words)."""

    def __init__(self, rows: list[tuple[str, bool, str]]) -> None:
        self.rows = rows

    def table(self) -> Any:
        """For a person."""
        from agentmem.format import Table

        rows = tuple((name, "ok" if ok else "FAILED", said) for name, ok, said in self.rows)
        return Table("agentmem check", (("", "left"), ("", "left"), ("", "left")), rows)

    def to_json(self) -> str:
        """For a program."""
        import json

        return json.dumps([{"check": name, "ok": ok, "said": said} for name, ok, said in self.rows])
