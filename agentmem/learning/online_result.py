"""What came of a stream: the newest library, and the score of each answer before its task taught anything."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentmem import format as fmt
from agentmem.atomic import atomic_write
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Rollout
from agentmem.domain.usage import Usage
from agentmem.errors import InputError
from agentmem.evaluation.intervals import Interval
from agentmem.evaluation.report import EvaluationReport, Outcome
from agentmem.learning.history import History, Version, read_value
from agentmem.learning.stream import Answer, Arrival
from agentmem.runs.records import Records

WINDOWS = 8
"""Points of the learning curve at most."""
PAGE = 256
"""Answers that are read from the journal at once."""


@dataclass(frozen=True)
class Point:
    """A stretch of the stream: how good its answers were."""

    first: int
    """The position of its first answer, from 1."""
    last: int
    score: float | None
    """Their mean, failed attempts counting as wrong."""
    interval: Interval
    n: int
    """Tasks that the score rests on."""
    versions: tuple[int, int]
    """Of the libraries that answered: the oldest and the newest."""


@dataclass(frozen=True)
class OnlineResult(fmt.Shown):
    """What came of a stream, as far as it was answered; also of one that is under way or was stopped."""

    library: ExperienceLibrary
    """The newest that passed the gate."""
    report: EvaluationReport
    """The prequential record: one outcome for each answer, scored before anything was learned from its task. Two of
    the same stream can be compared."""
    arrivals: tuple[Arrival, ...]
    """What was decided for each answer, in the order of the report's outcomes."""
    steps: tuple[Version, ...]
    """Every learning step, with what the gate said."""
    run: Path

    @classmethod
    def of(cls, run: str | Path) -> OnlineResult:
        """Read it from the run's directory, in which a process may be at work.

        Raises:
            InputError: there is no run on a stream.
            JournalError: its journal cannot be read.
        """
        records = Records(Path(run))
        asked = records.asked
        if not asked.get("online"):
            raise InputError(f"{run} holds no run on a stream; name one that `learn_online` made.")
        answers, arrivals, outcomes = answers_of(records), [], []
        for answer in answers:
            arrivals.append(answer.arrival)
            outcomes.append(Outcome.of(answer.rollout, answer.arrival.cluster))
        if len({arrival.task_id for arrival in arrivals}) < len(arrivals):
            # Tasks that come again are not independent of each other.
            clusters = [arrival.cluster or f"task {arrival.task_id}" for arrival in arrivals]
            outcomes = [
                each.model_copy(update={"cluster": cluster})
                for each, cluster in zip(outcomes, clusters, strict=True)
            ]
        (spent, time, begun) = records.rows(
            (
                "SELECT count(*), total(prompt_tokens), total(completion_tokens), sum(dollars), sum(dollars IS NULL)"
                " FROM attempts",
                (),
            ),
            ("SELECT coalesce(max(written_at) - min(written_at), 0) FROM steps", ()),
            ("SELECT library FROM libraries WHERE step=-1", ()),
        )
        calls, prompt, completion, dollars, unpriced = spent[0]
        versions = History.of(run).versions if _learned(records) else ()
        library = versions[-1].library if versions else ExperienceLibrary()
        if not versions and begun:
            library = ExperienceLibrary.from_json(begun[0][0])
        agent = asked.get("agent", {})
        report = EvaluationReport(
            name=os.fsencode(Path(run).name).decode("utf-8", "replace"),
            agent=str(agent.get("function") or agent.get("model", "")).partition("#")[0],
            model=agent.get("model", ""),
            tasks_name="stream",
            reward=str(asked.get("reward", "")).partition("#")[0],
            settings=asked.get("settings", {}),
            outcomes=tuple(outcomes),
            usage=Usage(
                calls=calls,
                prompt_tokens=int(prompt),
                completion_tokens=int(completion),
                dollars=None if unpriced else float(dollars or 0.0),
            ),
            seconds=time[0][0],
        )
        steps = tuple(version for version in versions if version.made_by == "learning")
        return cls(library, report, tuple(arrivals), steps, Path(run))

    @property
    def score(self) -> float | None:
        """The prequential score: the mean over all answers, failed attempts counting as wrong."""
        return self.report.score

    @property
    def interval(self) -> Interval:
        """The 95 % interval of `score`."""
        return self.report.interval

    @property
    def n(self) -> int:
        """Tasks that `score` rests on."""
        return self.report.n

    @property
    def curve(self) -> tuple[Point, ...]:
        """The score over stretches of the stream that are equally long: what learning did to the answers."""
        return self.points()

    def points(self, windows: int = WINDOWS) -> tuple[Point, ...]:
        """The curve with this number of points, or fewer where there are fewer answers."""
        size = max(1, -(-len(self.arrivals) // windows))
        return tuple(self._point(start, size) for start in range(0, len(self.arrivals), size))

    def answers(self) -> Iterator[Answer]:
        """Each answer with its whole rollout, in the order of arrival, read from the journal as they are asked for."""
        return answers_of(Records(self.run))

    def save(self) -> None:
        """Write the prequential record to the run's `report.json`, which `agentmem compare` reads."""
        atomic_write(self.run / "report.json", self.report.to_json())

    def table(self) -> fmt.Tables:
        """The scores, the curve, and what the learning steps came to."""
        roles = Counter(arrival.role for arrival in self.arrivals)
        used = ", ".join(f"{fmt.count(n)} {role}" for role, n in sorted(roles.items()))
        curve = fmt.Table(
            "score of the answers, before anything was learned from their tasks",
            (
                ("tasks", "left"),
                ("score", "right"),
                ("95 % interval", "left"),
                ("n", "right"),
                ("library", "left"),
            ),
            tuple(
                (
                    f"{point.first} to {point.last}",
                    fmt.number(point.score),
                    fmt.interval(point.interval.low, point.interval.high),
                    fmt.count(point.n),
                    _span("version", *point.versions),
                )
                for point in self.curve
            ),
            caption=f"arrivals: {used}" if used else "",
        )
        tried = [
            version for version in self.steps if version.verdict and any(d.accepted for d in version.proposed)
        ]
        learned = fmt.Table(
            f"library version {self.library.version}: {fmt.count(len(self.library), 'experience')} after "
            f"{fmt.count(len(self.steps), 'learning step')}",
            (("step", "left"), ("gate", "left"), ("", "left")) if tried else (),
            tuple((str(v.step + 1), v.verdict.outcome, v.verdict.reason) for v in tried if v.verdict is not None),
            caption="" if tried else "No step proposed anything that could be tried.",
        )
        return fmt.Tables((self.report.table(), curve, learned))

    def to_json(self) -> str:
        """One object: the score, the curve, the steps and the cost; the answers are in the journal."""
        content = {
            "run": str(self.run),
            "library": str(self.run / "library.json"),
            "version": self.library.version,
            "experiences": len(self.library),
            "score": self.score,
            "interval": self.interval.model_dump(mode="json"),
            "n": self.n,
            "completed_score": self.report.completed_score,
            "errors": self.report.errors,
            "unverifiable": self.report.unverifiable,
            "curve": [_plain(point) for point in self.curve],
            "roles": dict(Counter(arrival.role for arrival in self.arrivals)),
            "steps": [
                {
                    "step": version.step,
                    "version": version.number,
                    "gate": version.verdict.model_dump(mode="json") if version.verdict else None,
                }
                for version in self.steps
            ],
            "usage": self.report.usage.model_dump(mode="json"),
            "seconds": self.report.seconds,
        }
        return json.dumps(content, ensure_ascii=False)

    def _point(self, start: int, size: int) -> Point:
        arrivals = self.arrivals[start : start + size]
        part = self.report.model_copy(update={"outcomes": self.report.outcomes[start : start + size]})
        versions = [arrival.version for arrival in arrivals]
        first, last = arrivals[0].position, arrivals[-1].position
        return Point(first, last, part.score, part.interval, part.n, (min(versions), max(versions)))


def answers_of(records: Records) -> Iterator[Answer]:
    """The answers that a journal holds, in the order of arrival; a few at a time are in memory."""
    last = 0
    while True:
        (rows,) = records.rows(
            (
                "SELECT a.step, a.result, r.result, s.result FROM steps a"
                " JOIN steps r ON r.phase='online' AND r.step=a.step AND r.rollout=0 AND r.purpose='rollout'"
                " LEFT JOIN steps s ON s.phase='online' AND s.step=a.step AND s.purpose='score'"
                " WHERE a.phase='online' AND a.purpose='arrival' AND a.step>? ORDER BY a.step LIMIT ?",
                (last, PAGE),
            )
        )
        for position, arrival, rollout, score in rows:
            where = f"{records.journal}, task {position} of the stream"
            made = read_value(Rollout, rollout, where)
            if score is not None:
                made = made.model_copy(update={"reward": read_value(Reward, score, where)})
            yield Answer(arrival=read_value(Arrival, arrival, where), rollout=made)
            last = position
        if len(rows) < PAGE:
            return


def _learned(records: Records) -> bool:
    return bool(records.rows(("SELECT 1 FROM libraries WHERE step>=0 LIMIT 1", ()))[0])


def _span(noun: str, low: int, high: int) -> str:
    return f"{noun} {low}" if low == high else f"{noun}s {low} to {high}"


def _plain(point: Point) -> dict[str, Any]:
    return {**vars(point), "interval": point.interval.model_dump(mode="json")}
