"""The front door: `learn` and `evaluate`, sync and async. Inside, all is async; here it is started and shown."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from agentmem.agents.agent import Agent
from agentmem.agents.attempt import Conditions
from agentmem.agents.sampler import Sampler
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.task import Task, TaskSet
from agentmem.errors import InputError
from agentmem.evaluation.evaluate import judge_agent
from agentmem.evaluation.report import EvaluationReport
from agentmem.events import Listener
from agentmem.learning.recipe import Recipe
from agentmem.learning.training_free_grpo import TrainingFreeGRPO, hold_out
from agentmem.models.gateway import Gateways
from agentmem.models.names import open_model
from agentmem.prompts import fingerprint as prompts_fingerprint
from agentmem.rewards.reward_function import RewardFunction, resolve_reward
from agentmem.runs.run import Run
from agentmem.settings import Budget, EvalSettings, LearnSettings, settings_of

T = TypeVar("T")

FREE = {"concurrency", "max_error_share"}
"""Settings that do not determine results, so a run may be gone on with under other ones."""


def learn(
    agent: Agent,
    tasks: Iterable[Task],
    *,
    reward: str | RewardFunction | Callable[..., Any],
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
        **changes: fields of `LearnSettings`.

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
        >>> len(learn(agent, tasks, reward="exact", epochs=1, run=tmp / "doc-learn"))
        0
    """
    return _wait(
        alearn(
            agent,
            tasks,
            reward=reward,
            validation=validation,
            settings=settings,
            budget=budget,
            run=run,
            listeners=listeners,
            **changes,
        )
    )


async def alearn(
    agent: Agent,
    tasks: Iterable[Task],
    *,
    reward: str | RewardFunction | Callable[..., Any],
    validation: Iterable[Task] | None = None,
    settings: LearnSettings | None = None,
    budget: Budget | None = None,
    run: str | Path | None = None,
    listeners: Sequence[Listener] | None = None,
    **changes: Any,
) -> ExperienceLibrary:
    """`learn`, for async code."""
    chosen = settings_of(LearnSettings, settings, changes)
    judge = resolve_reward(reward)
    train, gate = hold_out(_task_set(tasks), chosen, None if validation is None else list(validation))
    _check_answers(judge, train, gate)
    agent = agent.with_experience(agent.library, prior_tokens=chosen.prior_tokens)
    asked = {
        "verb": "learn",
        "agent": agent.describe(),
        "reward": judge.name,
        "settings": chosen.model_dump(exclude=FREE),
        "fingerprints": {
            "tasks": train.fingerprint,
            "gate": gate.fingerprint,
            "library": agent.library.hash if agent.library else "",
            "prompts": prompts_fingerprint("prior", "answer_now"),
        },
    }
    async with _opened(run, "learn", asked, agent, budget, listeners) as (opened, gateways):
        rollouts, trials = (
            Sampler(
                opened,
                Conditions(gateways, judge, temperature=temperature, seed=chosen.seed),
                concurrency=chosen.concurrency,
                max_error_share=chosen.max_error_share,
            )
            for temperature in (chosen.temperature, chosen.gate_temperature)
        )
        method = TrainingFreeGRPO(train, gate, chosen, Recipe.of(chosen), rollouts, trials)
        return await method.learn(agent, agent.library)


def evaluate(
    agent: Agent,
    tasks: Iterable[Task],
    *,
    reward: str | RewardFunction | Callable[..., Any],
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
    return _wait(
        aevaluate(
            agent, tasks, reward=reward, settings=settings, budget=budget, run=run, listeners=listeners, **changes
        )
    )


async def aevaluate(
    agent: Agent,
    tasks: Iterable[Task],
    *,
    reward: str | RewardFunction | Callable[..., Any],
    settings: EvalSettings | None = None,
    budget: Budget | None = None,
    run: str | Path | None = None,
    listeners: Sequence[Listener] | None = None,
    **changes: Any,
) -> EvaluationReport:
    """`evaluate`, for async code."""
    chosen = settings_of(EvalSettings, settings, changes)
    judge = resolve_reward(reward)
    task_set = _task_set(tasks)
    _check_answers(judge, task_set)
    asked = {
        "verb": "eval",
        "agent": agent.describe(),
        "reward": judge.name,
        "settings": chosen.model_dump(exclude=FREE),
        "fingerprints": {"tasks": task_set.fingerprint, "prior": agent.prior.hash},
    }
    async with _opened(run, "eval", asked, agent, budget, listeners) as (opened, gateways):
        conditions = Conditions(gateways, judge, temperature=chosen.temperature, seed=chosen.seed)
        sampler = Sampler(opened, conditions, chosen.concurrency, chosen.max_error_share)
        return await judge_agent(agent, task_set, sampler, chosen)


@asynccontextmanager
async def _opened(
    path: str | Path | None,
    verb: str,
    asked: dict[str, Any],
    agent: Agent,
    budget: Budget | None,
    listeners: Sequence[Listener] | None,
) -> AsyncIterator[tuple[Run, Gateways]]:
    """The run and its gateways, with a display where nobody else listens."""
    from agentmem.report.display import display

    with display() if listeners is None else nullcontext(listeners) as shown:
        run = Run.open(path or _new_directory(verb), asked, budget=budget, listeners=tuple(shown))
        gateways = Gateways(run.ledger, settings=agent.calls, events=run.events, open_model=open_model)
        try:
            if agent.model is not None:
                gateways.to(agent.model)  # a budget in dollars without a price is refused here, before any call
            yield run, gateways
        finally:
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


def _task_set(tasks: Iterable[Task]) -> TaskSet:
    task_set = tasks if isinstance(tasks, TaskSet) else TaskSet(tasks)
    if not len(task_set):
        raise InputError(f"{task_set.name!r} holds no task; give at least one.")
    return task_set


def _check_answers(reward: RewardFunction, *sets: TaskSet) -> None:
    """Refuse tasks that the reward can never score, before anything is spent."""
    if not reward.needs_answer:
        return
    missing = [task.id for tasks in sets for task in tasks if task.answer is None]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise InputError(
            f"The reward {reward.name!r} compares with a reference answer, and {', '.join(map(repr, missing[:3]))}"
            f"{more} have none. Add an 'answer', or use a reward that needs none, such as 'judge'."
        )


def _wait(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end; in a notebook, whose loop runs already, in a thread with a loop of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    outcome: list[T | BaseException] = []

    def work() -> None:
        try:
            outcome.append(asyncio.run(coroutine))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]
