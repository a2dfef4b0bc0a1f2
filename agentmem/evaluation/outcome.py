"""What came of one attempt at a task: what a report keeps of it."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from agentmem.domain.rollout import Failure, Rollout
from agentmem.domain.usage import Usage
from agentmem.domain.value import Value

OUTPUT_CHARS = 2_000
"""Characters of an answer or a failure's message that a report keeps; the run's journal has all of it."""


class Outcome(Value):
    """What came of one attempt at a task, without its trajectory."""

    task_id: str
    index: int = 0
    """Which of the task's attempts it is, from 0."""
    score: float | None = None
    status: Literal["ok", "limit", "failed"] = "ok"
    """As on a rollout; `failed` says nothing about the agent."""
    failure: Failure | None = None
    reward_status: Literal["scored", "unverifiable", "error"] = "scored"
    output: str | None = None
    """The answer, cut to `OUTPUT_CHARS`."""
    usage: Usage = Usage()
    seconds: float = 0.0
    """Wall-clock seconds from the first call to the reward."""
    cluster: str | None = None
    """The task's cluster."""
    confidence: float | None = None
    """How likely the agent said that its answer is right, 0 to 1; None where it was not asked, or gave no number."""
    asked: bool = False
    """Whether it was asked."""

    @classmethod
    def of(cls, rollout: Rollout, cluster: str | None = None) -> Outcome:
        """What a report keeps of a rollout.

        Args:
            rollout: one finished attempt.
            cluster: the cluster of its task.

        Example:
            >>> from agentmem.domain.reward import Reward
            >>> Outcome.of(Rollout(task_id="t", reward=Reward.of(1.0))).score
            1.0
        """
        failure = rollout.failure
        if failure is not None:
            failure = Failure(kind=failure.kind, message=_cut(failure.message))
        return cls(
            task_id=rollout.task_id,
            index=rollout.index,
            score=rollout.score,
            status=rollout.status,
            failure=failure,
            reward_status=rollout.reward.status,
            output=None if rollout.output is None else _cut(rollout.output),
            usage=rollout.usage,
            seconds=rollout.seconds,
            cluster=cluster,
            confidence=rollout.confidence.probability if rollout.confidence else None,
            asked=rollout.confidence is not None,
        )

    @model_validator(mode="after")
    def _score_means_scored(self) -> Self:
        if (self.score is not None) != (self.reward_status == "scored"):
            raise ValueError("an outcome has a score exactly when its reward_status is 'scored'")
        return self

    @property
    def unverifiable(self) -> bool:
        """Whether the attempt was fine and there is nothing to judge it by."""
        return self.status != "failed" and self.reward_status == "unverifiable"

    @property
    def completed(self) -> bool:
        """Whether it was made and judged; where not, and it was verifiable, it is an error."""
        return self.status != "failed" and self.reward_status == "scored"

    @property
    def error(self) -> str | None:
        """The kind of the error that it ended in; None where it was completed or is unverifiable."""
        if self.completed or self.unverifiable:
            return None
        if self.failure is not None:
            return self.failure.kind
        return "error" if self.status == "failed" else "reward"


def _cut(text: str) -> str:
    return text if len(text) <= OUTPUT_CHARS else text[: OUTPUT_CHARS - 1] + "…"
