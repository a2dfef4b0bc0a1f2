"""The protocol of a reward, the rewards known by name, and any callable as a reward."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from numbers import Number
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from agentmem.domain.callable import is_async, source_hash
from agentmem.domain.reward import Reward
from agentmem.domain.task import Task, TaskSet
from agentmem.domain.trajectory import Trajectory
from agentmem.errors import InputError, RewardError, boundary
from agentmem.sandbox.thread import in_thread

if TYPE_CHECKING:
    from agentmem.models.handle import ModelHandle
    from agentmem.models.model import Model


class RewardContext(Protocol):
    """What a reward may use besides the task and the attempt."""

    def model(self, model: str | Model | None = None) -> ModelHandle:
        """A handle on a model, by name or object; None: the model that the caller provides for judging."""
        ...


@runtime_checkable
class RewardFunction(Protocol):
    """Says what an attempt at a task was worth.

    It may also have `unscorable(task) -> str`: why no attempt at the task can be scored, empty where it can.
    """

    name: str
    """What results and messages call it."""
    needs_answer: bool
    """Whether a task without a reference answer cannot be scored."""

    async def __call__(self, task: Task, trajectory: Trajectory, context: RewardContext) -> Reward:
        """Score one attempt.

        Raises:
            RewardError: no reward could be computed; the caller records it with status `error`.
        """
        ...


def resolve_reward(reward: str | RewardFunction | Callable[..., Any]) -> RewardFunction:
    """The reward of this name, or this callable as a reward.

    Args:
        reward: a name, a `RewardFunction`, or a callable `(task, trajectory) -> float | bool | Reward | None`,
            plain or async, which may also take `context`. None from a callable means that it cannot tell.

    Raises:
        InputError: no reward has this name, an optional dependency of it is missing, or it cannot be called so.

    Example:
        >>> resolve_reward("exact").name
        'exact'
    """
    if isinstance(reward, str):
        if reward not in KNOWN:
            near = get_close_matches(reward, KNOWN, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InputError(f"No reward named {reward!r}.{hint} Known: {', '.join(sorted(KNOWN))}.")
        return KNOWN[reward]()
    if inspect.isclass(reward):
        raise InputError(f"reward = {reward.__name__} is a class; pass an instance, such as {reward.__name__}().")
    if not callable(reward):
        raise InputError(
            f"reward = {reward!r} is neither a name nor callable; pass one of {', '.join(sorted(KNOWN))}, "
            "or a function (task, trajectory) -> float."
        )
    if isinstance(reward, RewardFunction):
        return reward
    return CallableReward(reward)


def unscorable(reward: RewardFunction, task: Task) -> str:
    """Why `reward` can score no attempt at `task`; empty where it can. Free: ask it before money is spent."""
    check = getattr(reward, "unscorable", None)
    if callable(check):
        return str(check(task))
    missing = reward.needs_answer and not (task.answer or "").strip()
    return "the task has no reference answer" if missing else ""


def describe(reward: RewardFunction) -> str:
    """What determines its scores, in one line; compared when a run is gone on with."""
    own = getattr(reward, "describe", None)
    return str(own()) if callable(own) else reward.name


def check_answers(reward: RewardFunction, *sets: TaskSet) -> None:
    """Refuse tasks that `reward` can never score, before anything is spent.

    Raises:
        InputError: it names the first of them, and the repair.
    """
    for tasks in sets:
        refused = {task.id: why for task in tasks if (why := unscorable(reward, task))}
        if refused:
            first, why = next(iter(refused.items()))
            more = f", nor {len(refused) - 1} more tasks" if len(refused) > 1 else ""
            raise InputError(
                f"The reward {reward.name!r} cannot score task {first!r} of {tasks.name!r}{more}: {why}. "
                "Mend the tasks, or use a reward that needs no answer, such as 'judge'."
            )


class Unscored:
    """Scores nothing: for rollouts whose reward is found later, from the whole group."""

    name = "unscored"
    needs_answer = False

    async def __call__(self, task: Task, trajectory: Trajectory, context: RewardContext) -> Reward:
        """No score."""
        return Reward.unknown("found from the group", source=self.name, status="unverifiable")


class CallableReward:
    """A user's function as a reward.

    A plain function runs in a thread of its own, so that a slow one holds up nothing else. What it raises comes
    out as a `RewardError` that names it; so does a result that is no finite number.
    """

    needs_answer = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = str(getattr(function, "__name__", None) or type(function).__name__)
        self._function = function
        self._takes_context = _takes_context(function, self.name)

    async def __call__(self, task: Task, trajectory: Trajectory, context: RewardContext) -> Reward:
        """Score one attempt."""
        more = {"context": context} if self._takes_context else {}
        with boundary(RewardError, f"reward {self.name!r}"):
            if is_async(self._function):
                value = await self._function(task, trajectory, **more)
            else:
                value = await in_thread(
                    lambda: self._function(task, trajectory, **more), name=f"reward-{self.name}"
                )
                if inspect.isawaitable(value):
                    value = await value
        return self._reward(value, task)

    def describe(self) -> str:
        """Its name, and a hash of its source."""
        return f"{self.name}#{source_hash(self._function)}"

    def _reward(self, value: Any, task: Task) -> Reward:
        if isinstance(value, Reward):
            return value if value.source else value.model_copy(update={"source": self.name})
        if value is None:
            return Reward.unknown(f"{self.name} gave None", source=self.name, status="unverifiable")
        score = _number(value)
        if score is None:
            raise RewardError(
                f"reward {self.name!r} returned {value!r:.80} ({type(value).__name__}) for task {task.id!r}; "
                "return a finite number, a bool, a Reward, or None where it cannot tell."
            )
        return Reward.of(score, source=self.name)


def _number(value: Any) -> float | None:
    """A finite float, or None where `value` is none; zero-dimensional arrays and tensors count as numbers."""
    if not isinstance(value, Number) and callable(getattr(value, "item", None)):
        try:
            value = value.item()
        except (TypeError, ValueError, RuntimeError):  # more than one element
            return None
    if not isinstance(value, Number):
        return None
    try:
        score = float(cast(float, value))
    except (TypeError, ValueError, OverflowError):
        return None
    return score if math.isfinite(score) else None


def _takes_context(function: Callable[..., Any], name: str) -> bool:
    """Whether it takes `context`; that it takes a task and a trajectory is checked, before anything is spent."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have none
        return False
    takes = "context" in signature.parameters
    try:
        signature.bind(object(), object(), **({"context": object()} if takes else {}))
    except TypeError as why:
        raise InputError(
            f"reward {name!r} has the signature {signature} ({why}); "
            "a reward takes (task, trajectory), and may take context."
        ) from None
    return takes


def _loader(module: str, class_name: str) -> Callable[[], RewardFunction]:
    def load() -> RewardFunction:
        return cast(RewardFunction, getattr(import_module(f"agentmem.rewards.{module}"), class_name)())

    return load


KNOWN: dict[str, Callable[[], RewardFunction]] = {
    "choice": _loader("choice", "Choice"),
    "exact": _loader("exact", "Exact"),
    "f1": _loader("f1", "F1"),
    "gaia": _loader("gaia", "Gaia"),
    "json": _loader("json_match", "JsonMatch"),
    "judge": _loader("judge", "Judge"),
    "math": _loader("math", "Math"),
    "numeric": _loader("numeric", "Numeric"),
}
"""The rewards known by name; each is imported when it is asked for."""
