"""What a stored run scored task by task, in the order in which it went, and what it had spent by then."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Rollout
from agentmem.errors import InputError, JournalError
from agentmem.runs.records import Records


@dataclass(frozen=True)
class Answered:
    """One task at one step of a run, when its last attempt was finished."""

    task: str
    score: float
    """Mean over its attempts, failed ones counting as the least that the run gave."""
    tokens: int
    """All that the run had spent by then: attempts, gates, lessons, judges, failed calls and retries."""
    dollars: float | None
    """The same in US dollars; None where the price of any part is not known."""


@dataclass(frozen=True)
class Course:
    """The course of one run."""

    name: str
    answered: tuple[Answered, ...]
    """In the order in which the tasks were finished."""

    @classmethod
    def of(cls, folder: str | Path) -> Course:
        """Read it from a run's journal; the run may be under way. Nothing is changed, and no model is called.

        Looked at are the attempts of learning and of evaluations, and of a stream the answers that were handed out. A
        gate's attempts are trials of candidates: what they cost counts, not what they score. Refined (off-policy)
        attempts are left out, and so are those that nothing can verify.

        Raises:
            InputError: the folder holds no run, or one that has scored nothing yet.
            JournalError: the journal cannot be read.
        """
        records = Records(Path(folder))
        attempts, paid, late = records.rows(
            (
                "SELECT phase, step, task, result, written_at FROM steps WHERE purpose='rollout' AND failure IS NULL"
                " AND (phase IN ('learn', 'eval') OR (phase='online' AND rollout=0)) ORDER BY seq",
                (),
            ),
            (
                "SELECT sent_at, prompt_tokens + completion_tokens, dollars FROM attempts ORDER BY sent_at, id",
                (),
            ),
            ("SELECT step, result, written_at FROM steps WHERE phase='online' AND purpose='score'", ()),
        )
        if not attempts:
            raise InputError(f"{folder} has scored nothing yet; start its command again, or name another run.")
        later = {step: (_read(Reward, text, records), at) for step, text, at in late}
        groups: dict[tuple[str, int, str], _Attempts] = {}
        for phase, step, task, text, at in attempts:
            rollout = _read(Rollout, text, records)
            if phase == "online" and step in later:
                reward, at = later[step]
                rollout = rollout.model_copy(update={"reward": reward})
            if not rollout.off_policy:
                groups.setdefault((phase, step, task), _Attempts(task)).take(rollout, at)
        finished = sorted((group for group in groups.values() if group.count), key=lambda group: group.at)
        if not finished:
            raise InputError(f"Nothing in {folder} can be verified, so there is no score to follow.")
        worst = min([0.0, *(score for group in finished for score in group.scores)])
        spent = _Spent(paid)
        return cls(
            Path(folder).name,
            tuple(Answered(group.task, group.mean(worst), *spent.by(group.at)) for group in finished),
        )


class _Attempts:
    """The attempts at one task in one step."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.scores: list[float] = []
        self.count = 0
        self.at = 0.0

    def take(self, rollout: Rollout, at: float) -> None:
        if rollout.score is not None:
            self.scores.append(rollout.score)
        elif rollout.status != "failed" and rollout.reward.status == "unverifiable":
            return
        self.count += 1
        self.at = max(self.at, at)

    def mean(self, worst: float) -> float:
        return (sum(self.scores) + worst * (self.count - len(self.scores))) / self.count


class _Spent:
    """What a run had spent by a moment; a call counts from when it was sent."""

    def __init__(self, paid: list[tuple[Any, ...]]) -> None:
        self._moments = [at for at, _, _ in paid]
        self._tokens = [0, *accumulate(int(tokens) for _, tokens, _ in paid)]
        known = all(dollars is not None for _, _, dollars in paid)
        self._dollars = [0.0, *accumulate(dollars for _, _, dollars in paid)] if known else None

    def by(self, moment: float) -> tuple[int, float | None]:
        place = bisect_right(self._moments, moment)
        return self._tokens[place], None if self._dollars is None else self._dollars[place]


def _read(kind: Any, text: str, records: Records) -> Any:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise JournalError(
            f"{records.journal}: {error.errors()[0]['msg']}. The journal was changed by other means, or a newer "
            "agentmem wrote it; restore it from a copy, or upgrade agentmem."
        ) from None
