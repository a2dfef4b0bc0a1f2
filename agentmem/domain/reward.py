"""What an attempt was worth, or why that is not known."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from agentmem.domain.value import Value


class Reward(Value):
    """A score with where it comes from; a score exists exactly when the status is `scored`.

    Example:
        >>> Reward.of(1.0, source="exact").score
        1.0
        >>> Reward.unknown("the judge did not answer", source="judge").score is None
        True
    """

    score: float | None = None
    """Usually between 0 and 1; any finite number is allowed."""
    feedback: str = ""
    """Why, in words; an extractor may read it."""
    confidence: float | None = None
    """How sure the source is, 0 to 1, where it says so."""
    source: str = ""
    """The reward's name."""
    status: Literal["scored", "unverifiable", "error"] = "scored"
    """`unverifiable`: there is nothing to compare with. `error`: the reward itself failed."""

    @model_validator(mode="after")
    def _score_means_scored(self) -> Self:
        if (self.score is not None) != (self.status == "scored"):
            raise ValueError("a reward has a score exactly when its status is 'scored'")
        return self

    @classmethod
    def of(cls, score: float, *, feedback: str = "", source: str = "") -> Reward:
        """A known score."""
        return cls(score=score, feedback=feedback, source=source)

    @classmethod
    def unknown(cls, why: str, *, source: str = "", status: Literal["unverifiable", "error"] = "error") -> Reward:
        """No score, and why."""
        return cls(feedback=why, source=source, status=status)
