"""The front door: `learn` and `evaluate`, sync and async. Inside, all is async; here it is started and shown."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

from agentmem.agents.agent import Agent
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.task import Task
from agentmem.evaluation.evaluate import Evaluation
from agentmem.evaluation.report import EvaluationReport
from agentmem.events import Listener, Noted, RunClosed
from agentmem.learning.learn import Learning
from agentmem.models.gateway import Gateways
from agentmem.models.model import Model
from agentmem.models.names import open_model
from agentmem.prompts import check_prompts
from agentmem.report.display import display
from agentmem.rewards.judge import Judge
from agentmem.rewards.reward_function import RewardFunction, resolve_reward
from agentmem.runs.run import Run
from agentmem.settings import Budget, EvalSettings, LearnSettings, settings_of

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
AnyReward = str | RewardFunction | Callable[..., Any]


def learn(
    agent: Agent,
    tasks: Iterable[Task],
    *,
    reward: AnyReward,
    validation: Iterable[Task] | None = None,
    settings: LearnSettings | None = None,
    budget: Budget | None = None,
    run: str | Path | None = None,
    listeners: Sequence[Listener] | None = None,
    **changes: Any,
) -> ExperienceLibrary:
    """Learn an experience library from the agent's own rollouts, without touching weights (2510.08191).

    Args:
        agent: what acts. If it has a library, learning goes on from that one.
        tasks: the training tasks; a part is held out for the gate.
        reward: a name (`exact`, `math`, ...) or any callable `(task, trajectory) -> float`.
        validation: tasks for the gate, instead of a held-out part.
        settings: see `LearnSettings`; single fields may be given as keywords (`group_size=5, epochs=3`).
        budget: what the run may spend, over all processes that work on it.
        run: the run's directory. Naming the directory of an interrupted run goes on with it. By default a new one
            under `runs/`.
        listeners: who is told what happens; by default a live display on a terminal, else nobody.
        **changes: fields of `LearnSettings`. `extractor` may also be a function `(group, library) -> operations`, and
            `embedder` an object with `name` and `embed`.

    Returns:
        The newest library that passed the gate; the empty one if none did.

    Raises:
        InputError: what was asked cannot be done; nothing was spent.
        BudgetExceeded: the budget is spent. What was learned so far is in the run's `library.json`; the same call
            with a larger budget goes on.
        TooManyErrors: too many attempts failed for reasons that are not the agent's.

    Example:
        >>> agent = Agent(lambda task, prior: "4")
        >>> tasks = [Task(id=str(i), input="What is 2 + 2?", answer="4") for i in range(8)]
        >>> len(learn(agent, tasks, reward="exact", extractor="exemplar", epochs=1, run=tmp / "doc-learn"))
        0
    """
    plan = _learning(agent, tasks, reward, settings, changes, validation)
    return _wait(carry_out(plan, run or _new_directory("learn"), budget=budget, listeners=listeners))


async def alearn(
    agent: Agent,
    tasks: Iterable[Task],
    *,
    reward: AnyReward,
    validation: Iterable[Task] | None = None,
    settings: LearnSettings | None = None,
    budget: Budget | None = None,
    run: str | Path | None = None,
    listeners: Sequence[Listener] | None = None,
    **changes: Any,
) -> ExperienceLibrary:
    """`learn`, for async code."""
    plan = _learning(agent, tasks, reward, settings, changes, validation)
    return await carry_out(plan, run or _new_directory("learn"), budget=budget, listeners=listeners)


def evaluate(
    agent: Agent,
    tasks: Iterable[Task],
    *,
    reward: AnyReward,
    settings: EvalSettings | None = None,
    budget: Budget | None = None,
    run: str | Path | None = None,
    listeners: Sequence[Listener] | None = None,
    **changes: Any,
) -> EvaluationReport:
    """Judge an agent on tasks: Mean@k with its interval, under both denominators, with its cost.

    Args:
        agent: what acts; its library is frozen, and its hash is in the report.
        tasks: the tasks.
        reward: a name (`exact`, `math`, ...) or any callable `(task, trajectory) -> float`.
        settings: see `EvalSettings`; single fields may be given as keywords (`samples=4`).
        budget: what the run may spend, over all processes that work on it.
        run: the run's directory; see `learn`.
        listeners: who is told what happens; by default a live display on a terminal, else nobody.
        **changes: fields of `EvalSettings`.

    Raises:
        InputError: what was asked cannot be done; nothing was spent.
        BudgetExceeded: the budget is spent; the same call with a larger one goes on.
        TooManyErrors: too many attempts failed for reasons that are not the agent's.

    Example:
        >>> agent = Agent(lambda task, prior: "4")
        >>> tasks = [Task(id="sum", input="What is 2 + 2?", answer="4")]
        >>> evaluate(agent, tasks, reward="exact", run=tmp / "doc-evaluate").score
        1.0
    """
    plan = Evaluation.of(agent, tasks, resolve_reward(reward), settings_of(EvalSettings, settings, changes))
    return _wait(carry_out(plan, run or _new_directory("eval"), budget=budget, listeners=listeners))


async def aevaluate(
    agent: Agent,
    tasks: Iterable[Task],
    *,
    reward: AnyReward,
    settings: EvalSettings | None = None,
    budget: Budget | None = None,
    run: str | Path | None = None,
    listeners: Sequence[Listener] | None = None,
    **changes: Any,
) -> EvaluationReport:
    """`evaluate`, for async code."""
    plan = Evaluation.of(agent, tasks, resolve_reward(reward), settings_of(EvalSettings, settings, changes))
    return await carry_out(plan, run or _new_directory("eval"), budget=budget, listeners=listeners)


def _learning(
    agent: Agent,
    tasks: Iterable[Task],
    reward: AnyReward,
    settings: LearnSettings | None,
    changes: dict[str, Any],
    validation: Iterable[Task] | None,
) -> Learning:
    """The plan; strategies that are given as objects take the place of the named ones."""
    objects = {
        name: changes.pop(name) for name in ("extractor", "embedder") if not isinstance(changes.get(name, ""), str)
    }
    chosen = settings_of(LearnSettings, settings, changes)
    return Learning.of(agent, tasks, resolve_reward(reward), chosen, validation=validation, **objects)


class Plan(Protocol[T_co]):
    """What can be carried out: `Learning` or `Evaluation`."""

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


def _new_directory(verb: str) -> Path:
    """`runs/` and the time; a number is added where that is taken."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    number, path = 1, Path("runs") / f"{stamp}-{verb}"
    while path.exists():
        number += 1
        path = Path("runs") / f"{stamp}-{verb}-{number}"
    return path


def _wait(coroutine: Coroutine[Any, Any, T]) -> T:
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
