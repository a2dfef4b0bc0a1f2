"""Carrying a plan out: a run and its gateways are opened around it, whatever the plan is, and closed after it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol, TypeVar

from agentmem.agents.agent import Agent
from agentmem.events import Listener, Noted, RunClosed
from agentmem.models.gateway import Gateways
from agentmem.models.model import Model
from agentmem.models.names import open_model
from agentmem.prompts import check_prompts
from agentmem.report.display import display
from agentmem.rewards.judge import Judge
from agentmem.rewards.reward_function import RewardFunction
from agentmem.runs.run import Run
from agentmem.settings import Budget

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Plan(Protocol[T_co]):
    """What can be carried out: `Learning`, `OnlineLearning`, `Evaluation` or `Rescoring`."""

    @property
    def agent(self) -> Agent:
        """What acts."""
        ...

    @property
    def models(self) -> tuple[str | Model | None, ...]:
        """What it will call; each is opened, and its price looked up, before anything is spent."""
        ...

    @property
    def reward(self) -> RewardFunction:
        """What says what an attempt is worth."""
        ...

    @property
    def asked(self) -> dict[str, Any]:
        """What determines the results."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know before spending."""
        ...

    async def execute(self, run: Run, gateways: Gateways) -> T_co:
        """Do it."""
        ...


async def carry_out(
    plan: Plan[T],
    path: str | Path,
    *,
    budget: Budget | None = None,
    listeners: Sequence[Listener] | None = None,
) -> T:
    """Open the run directory, carry the plan out in it, and close everything.

    Args:
        plan: what to do.
        path: the run's directory; if it holds the same plan, it is gone on with.
        budget: what the run may spend.
        listeners: who is told what happens; by default a live display on a terminal, else nobody.
    """
    with display() if listeners is None else nullcontext(tuple(listeners)) as shown:
        run = Run.open(path, plan.asked, budget=budget, listeners=shown)
        gateways = Gateways(run.ledger, settings=plan.agent.calls, events=run.events, open_model=open_model)
        finished = False
        try:
            # What is wrong with a prompt, a model's name or its price is said here, before any call.
            check_prompts()
            for model in (*plan.models, plan.reward.model if isinstance(plan.reward, Judge) else None):
                if model is not None:
                    gateways.to(model)
            for note in plan.notes:
                run.events.emit(Noted(note))
            result = await plan.execute(run, gateways)
            finished = True
            return result
        finally:
            run.events.emit(RunClosed(str(path), finished, run.ledger.total, run.ledger.seconds))
            await plan.agent.tools.close()
            await gateways.close()
            run.close()


def wait(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end; in a notebook, whose loop runs already, in a thread with a loop of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    outcome: list[T | BaseException] = []
    under_way: list[asyncio.Task[Any]] = []

    async def whole() -> T:
        under_way.extend(filter(None, [asyncio.current_task()]))
        return await coroutine

    def work() -> None:
        try:
            outcome.append(asyncio.run(whole()))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=work, name="agentmem")
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        # Otherwise the thread would go on spending after the cell was stopped.
        for task in under_way:
            task.get_loop().call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]
