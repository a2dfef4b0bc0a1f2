"""The front door: `learn`, `learn_online` and `evaluate`, sync and async. Inside, all is async; here it is started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from agentmem.agents.agent import Agent
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.task import Task
from agentmem.evaluation.evaluate import Evaluation
from agentmem.evaluation.report import EvaluationReport
from agentmem.evaluation.rescore import Rescoring
from agentmem.events import Listener
from agentmem.execution import carry_out, wait
from agentmem.learning.learn import Learning
from agentmem.learning.learn_online import OnlineLearning
from agentmem.learning.online_result import OnlineResult
from agentmem.learning.stream import Answer, Tasks
from agentmem.rewards.reward_function import RewardFunction, resolve_reward
from agentmem.settings import Budget, EvalSettings, LearnSettings, settings_of

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
    return wait(carry_out(plan, run or _new_directory("learn"), budget=budget, listeners=listeners))


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


def learn_online(
    agent: Agent,
    stream: Tasks,
    *,
    reward: AnyReward,
    validation: Iterable[Task] | None = None,
    settings: LearnSettings | None = None,
    budget: Budget | None = None,
    run: str | Path | None = None,
    listeners: Sequence[Listener] | None = None,
    on_answer: Callable[[Answer], Any] | None = None,
    **changes: Any,
) -> OnlineResult:
    """Answer tasks as they arrive, score each answer, and learn behind the answers.

    No answer waits for learning. Each is given under the newest library that passed the gate, and is scored before
    anything is learned from its task. Behind it the task gets the rest of its group, and every `batch_size` groups (16
    by default) become a candidate, which is in force for later tasks once it has passed the gate. A share of the tasks
    (`gate_share`) teaches nothing and is what candidates are tried on. Where learning falls behind, tasks are answered
    and teach nothing; both are counted.

    Args:
        agent: what acts. If it has a library, learning goes on from that one.
        stream: tasks, from a plain or an asynchronous iterable of any length. It is asked for the next one when that
            can be answered at once: `concurrency` answers may be under way, fewer if the stream should see what was
            learned. An id may come again; later arrivals are stored as `ID@POSITION`.
        reward: a name (`exact`, `math`, ...) or any callable `(task, trajectory) -> float`.
        validation: tasks for the gate, instead of a held-out share.
        settings: see `LearnSettings`; `epochs` does not matter. Single fields may be given as keywords.
        budget: what the run may spend, over all processes that work on it.
        run: the run's directory. Naming the directory of an interrupted run, with the same stream from its start, goes
            on with it. By default a new one under `runs/`.
        listeners: who is told what happens; by default a live display on a terminal, else nobody.
        on_answer: called with each answer when it is scored, also with those of earlier processes of the run.
        **changes: fields of `LearnSettings`; see `learn`.

    Returns:
        The newest library, and the scores of the answers in the order of the stream.

    Raises:
        InputError: what was asked cannot be done, or the stream gave something else than a task.
        StreamError: the stream raised. All that came before is answered, and was learned from.
        BudgetExceeded: the budget is spent; the same call with a larger one goes on. Until then
            `OnlineResult.of(run)` says how far it came.
        TooManyErrors: too many of the latest answers failed for reasons that are not the agent's.

    Example:
        >>> agent = Agent(lambda task, prior: "4")
        >>> stream = (Task(id=str(n), input=f"What is {n} + 2?", answer=str(n + 2)) for n in range(8))
        >>> result = learn_online(agent, stream, reward="exact", extractor="exemplar", run=tmp / "doc-online")
        >>> result.score, result.n, len(result.library)
        (0.125, 8, 0)
    """
    plan = _online(agent, stream, reward, settings, changes, validation, on_answer)
    return wait(carry_out(plan, run or _new_directory("learn"), budget=budget, listeners=listeners))


async def alearn_online(
    agent: Agent,
    stream: Tasks,
    *,
    reward: AnyReward,
    validation: Iterable[Task] | None = None,
    settings: LearnSettings | None = None,
    budget: Budget | None = None,
    run: str | Path | None = None,
    listeners: Sequence[Listener] | None = None,
    on_answer: Callable[[Answer], Any] | None = None,
    **changes: Any,
) -> OnlineResult:
    """`learn_online`, for async code."""
    plan = _online(agent, stream, reward, settings, changes, validation, on_answer)
    return await carry_out(plan, run or _new_directory("learn"), budget=budget, listeners=listeners)


def evaluate(
    agent: Agent,
    tasks: Iterable[Task],
    *,
    reward: AnyReward,
    training: Iterable[Task] = (),
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
        training: the tasks that were learned from: what the others share with them is named in the report.
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
    chosen = settings_of(EvalSettings, settings, changes)
    plan = Evaluation.of(agent, tasks, resolve_reward(reward), chosen, training=training)
    return wait(carry_out(plan, run or _new_directory("eval"), budget=budget, listeners=listeners))


async def aevaluate(
    agent: Agent,
    tasks: Iterable[Task],
    *,
    reward: AnyReward,
    training: Iterable[Task] = (),
    settings: EvalSettings | None = None,
    budget: Budget | None = None,
    run: str | Path | None = None,
    listeners: Sequence[Listener] | None = None,
    **changes: Any,
) -> EvaluationReport:
    """`evaluate`, for async code."""
    chosen = settings_of(EvalSettings, settings, changes)
    plan = Evaluation.of(agent, tasks, resolve_reward(reward), chosen, training=training)
    return await carry_out(plan, run or _new_directory("eval"), budget=budget, listeners=listeners)


def rescore(
    run: str | Path,
    *,
    reward: AnyReward,
    tasks: Iterable[Task] | None = None,
    to: str | Path | None = None,
    budget: Budget | None = None,
    listeners: Sequence[Listener] | None = None,
) -> EvaluationReport:
    """Judge the stored answers of an evaluation with another reward; the agent is not called.

    Args:
        run: the folder of the evaluation, which is not changed.
        reward: a name (`exact`, `math`, ...) or any callable `(task, trajectory) -> float`.
        tasks: for a run of an earlier agentmem, which kept none.
        to: the folder of the scoring; by default a new one under `runs/`.
        budget: what a judge may spend.
        listeners: as in `evaluate`.

    Raises:
        InputError: the folder holds no evaluation, or the reward can never score one of its tasks.
    """
    plan = Rescoring.of(run, resolve_reward(reward), tasks=tasks)
    return wait(carry_out(plan, to or _new_directory("rescore"), budget=budget, listeners=listeners))


def _learning(
    agent: Agent,
    tasks: Iterable[Task],
    reward: AnyReward,
    settings: LearnSettings | None,
    changes: dict[str, Any],
    validation: Iterable[Task] | None,
) -> Learning:
    """The plan; strategies that are given as objects take the place of the named ones."""
    objects, chosen = _strategies(settings, changes)
    return Learning.of(agent, tasks, resolve_reward(reward), chosen, validation=validation, **objects)


def _online(
    agent: Agent,
    stream: Tasks,
    reward: AnyReward,
    settings: LearnSettings | None,
    changes: dict[str, Any],
    validation: Iterable[Task] | None,
    on_answer: Callable[[Answer], Any] | None,
) -> OnlineLearning:
    """The plan, as `_learning` makes it."""
    objects, chosen = _strategies(settings, changes)
    reward = resolve_reward(reward)
    return OnlineLearning.of(agent, stream, reward, chosen, validation=validation, on_answer=on_answer, **objects)


def _strategies(settings: LearnSettings | None, changes: dict[str, Any]) -> tuple[dict[str, Any], LearnSettings]:
    """The strategies that are given as objects, and the settings that name the others."""
    objects = {
        name: changes.pop(name) for name in ("extractor", "embedder") if not isinstance(changes.get(name, ""), str)
    }
    return objects, settings_of(LearnSettings, settings, changes)


def _new_directory(verb: str) -> Path:
    """`runs/` and the time; a number is added where that is taken."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    number, path = 1, Path("runs") / f"{stamp}-{verb}"
    while path.exists():
        number += 1
        path = Path("runs") / f"{stamp}-{verb}-{number}"
    return path
