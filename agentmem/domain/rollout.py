"""One attempt at a task, and the group of attempts that is compared with itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from agentmem.domain.case import Recall
from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory
from agentmem.domain.usage import Usage
from agentmem.domain.value import Value, encodable
from agentmem.errors import AgentMemError


class Failure(Value):
    """Why something gave no result, as data. `kind` is the error's stable name (see `agentmem.errors`)."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: AgentMemError) -> Failure:
        """The data that an error leaves behind."""
        return cls(kind=error.kind, message=encodable(str(error)))


class Confidence(Value):
    """How likely an agent said that its answer is right, in a turn of its own after the answer."""

    probability: float | None = None
    """0 to 1; None where the reply was no number."""
    reply: str = ""
    usage: Usage = Usage()
    """Of that turn; not in the usage of the rollout."""


class Rollout(Value):
    """One attempt at a task under one prior.

    `ok`: the agent gave an answer. `limit`: it ran into its step, token or time limit, which is its own doing, so
    what it had said is scored. `failed`: the infrastructure or the user's code failed; there is no score.
    """

    task_id: str
    index: int = 0
    """Which of the group's attempts it is, from 0."""
    trajectory: Trajectory = Trajectory()
    reward: Reward
    status: Literal["ok", "limit", "failed"] = "ok"
    failure: Failure | None = None
    prior_hash: str = ""
    """Hash of the prior that it saw; empty where it saw none."""
    mask: tuple[str, ...] = ()
    """Ids of the experiences that the prior held."""
    eligible: tuple[str, ...] = ()
    """Ids of those that it could have held, each with probability `inclusion`."""
    inclusion: float = 1.0
    recall: Recall | None = None
    """The cases that it recalled; None where the agent has no memory."""
    cited: tuple[str, ...] = ()
    """Ids of the recalled cases that the answer used: those that it names, else those whose answer it repeats."""
    confidence: Confidence | None = None
    """What it said of its answer; None where it was not asked."""
    off_policy: bool = False
    """Whether it was not drawn from the agent as it is, but refined after a critique."""
    seconds: float = 0.0
    """Wall-clock seconds from its first call to its reward."""

    @property
    def output(self) -> str | None:
        """The answer; None where there is none."""
        return self.trajectory.output

    @property
    def score(self) -> float | None:
        """The reward's score; None where it is unknown."""
        return self.reward.score

    @property
    def usage(self) -> Usage:
        """What the agent's calls cost."""
        return self.trajectory.usage


class Group(Value):
    """The rollouts of one task under one prior (Training-Free GRPO, 2510.08191, section 2).

    Example:
        >>> task = Task(id="t", input="?")
        >>> right, wrong = (Rollout(task_id="t", reward=Reward.of(s)) for s in (1.0, 0.0))
        >>> Group(task=task, rollouts=(right, wrong)).advantages
        (0.5, -0.5)
    """

    task: Task
    rollouts: tuple[Rollout, ...]

    @property
    def scored(self) -> tuple[Rollout, ...]:
        """The rollouts with a score; infrastructure failures are not among them."""
        return tuple(rollout for rollout in self.rollouts if rollout.score is not None)

    @property
    def rewards(self) -> tuple[float, ...]:
        """The known scores."""
        return tuple(rollout.score for rollout in self.rollouts if rollout.score is not None)

    @property
    def mean(self) -> float | None:
        """Mean of the known scores; None where none is known."""
        return math.fsum(self.rewards) / len(self.rewards) if self.rewards else None

    @property
    def spread(self) -> float:
        """Population standard deviation of the known scores."""
        from statistics import pstdev  # it brings decimal and fractions along, which takes 10 ms

        return pstdev(self.rewards) if len(self.rewards) > 1 else 0.0

    @property
    def advantages(self) -> tuple[float, ...]:
        """Each known score minus the group's mean."""
        mean = self.mean
        return tuple(score - mean for score in self.rewards) if mean is not None else ()

    def teaches(self, gap: float | None = None) -> bool:
        """Whether two known scores differ enough to be contrasted.

        Args:
            gap: what max - min must exceed; by default 0 where all scores are 0 or 1, else 0.1. A rule on the mean
                would let a group of equal half scores pass.
        """
        return spread_teaches(self.rewards, gap)


def spread_teaches(scores: Sequence[float], gap: float | None = None) -> bool:
    """`Group.teaches`, for scores alone."""
    if len(scores) < 2:
        return False
    if gap is None:
        gap = 0.0 if set(scores) <= {0.0, 1.0} else 0.1
    return max(scores) - min(scores) > gap
