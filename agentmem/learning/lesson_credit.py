"""What each lesson of a finished run was worth, from the rollouts that are stored: with it and without it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Literal

from agentmem import format as fmt
from agentmem.domain.experience import Effect, Experience
from agentmem.domain.rollout import Group, Rollout
from agentmem.domain.task import Task
from agentmem.errors import InputError
from agentmem.learning.credit import Credit
from agentmem.learning.history import History, read_value
from agentmem.runs.records import Records

SURE = 0.975
"""A lesson helps, or harms, where the chance of it exceeds this."""


@dataclass(frozen=True)
class Worth:
    """What one lesson did to the reward of those who saw it."""

    id: str
    experience: Experience | None
    """The lesson; None where no version of the library has it any more."""
    standing: bool
    """Whether the newest library still holds it."""
    effect: Effect

    @property
    def interval(self) -> tuple[float, float]:
        """The central 95 % of the posterior."""
        half = NormalDist().inv_cdf(SURE) * self.effect.sd
        return self.effect.mean - half, self.effect.mean + half

    @property
    def harm(self) -> float:
        """The chance that the reward is better without it."""
        return NormalDist(self.effect.mean, self.effect.sd).cdf(0.0)

    @property
    def verdict(self) -> Literal["helps", "harms", "undecided"]:
        """What the posterior says."""
        return "harms" if self.harm > SURE else "helps" if self.harm < 1 - SURE else "undecided"


@dataclass(frozen=True)
class LessonCredit(fmt.Shown):
    """Leave-one-out credit: the reward with a lesson minus without it, the others as they were shown.

    It rests on randomised inclusion alone: rollouts of one group that differ in which lessons they were shown (see
    `Credit`). A lesson that everybody saw says nothing about itself, and is named in `unvaried`.
    """

    run: str
    worths: tuple[Worth, ...]
    """Most helpful first."""
    unvaried: tuple[str, ...]
    """Ids of lessons in the newest library that no stored group tells about."""
    rollouts: int
    """Scored rollouts that were looked at."""

    @classmethod
    def of(cls, folder: str | Path) -> LessonCredit:
        """Read a learning run's journal; no model is called.

        Raises:
            InputError: the folder holds no learning run, or no rollout of it was shown a part of the lessons.
            JournalError: the journal cannot be read.
        """
        history = History.of(folder)
        groups = _groups(history.records)
        credit = Credit()
        credit.add(groups)
        effects = credit.effects()
        if not effects:
            raise InputError(
                f"No scored group of {folder} differs in which lessons its rollouts saw, so nothing tells what one is "
                "worth: learn with --inclusion 0.8, which shows each lesson to four rollouts of five."
            )
        newest = history.newest.library
        known = {e.id: e for version in history.versions for e in (*version.library.retired, *version.library)}
        standing = {experience.id for experience in newest}
        worths = [Worth(id, known.get(id), id in standing, effect) for id, effect in effects.items()]
        return cls(
            run=Path(folder).name,
            worths=tuple(sorted(worths, key=lambda worth: (-worth.effect.mean, worth.id))),
            unvaried=tuple(experience.id for experience in newest if experience.id not in effects),
            rollouts=sum(len(group.scored) for group in groups),
        )

    def table(self) -> fmt.Table:
        """A row for each lesson."""
        rows = [
            (
                worth.id,
                fmt.score(worth.effect.mean, *worth.interval, signs=True),
                fmt.count(worth.effect.exposures),
                worth.verdict,
                "" if worth.standing else "retired",
                _text(worth.experience),
            )
            for worth in self.worths
        ]
        lines = [
            "with the lesson minus without it, within groups; 95 % of the posterior under a prior of 0 +/- 0.25",
            f"{fmt.count(self.rollouts, 'rollout')} looked at, no model called",
        ]
        if self.unvaried:
            lines.append(f"nothing is known of {fmt.some(self.unvaried)}: no group was shown it in part")
        return fmt.Table(
            title=f"{self.run}: what {fmt.count(len(rows), 'lesson')} {'was' if len(rows) == 1 else 'were'} worth",
            columns=(
                ("lesson", "left"),
                ("worth", "right"),
                ("exposures", "right"),
                ("", "left"),
                ("", "left"),
                ("text", "left"),
            ),
            rows=tuple(rows),
            caption="\n".join(lines),
        )

    def to_json(self) -> str:
        """The credit for a program."""
        lessons = [
            {
                "id": worth.id,
                "text": worth.experience.text if worth.experience else None,
                "standing": worth.standing,
                **worth.effect.model_dump(mode="json"),
                "interval": list(worth.interval),
                "harm": worth.harm,
                "verdict": worth.verdict,
            }
            for worth in self.worths
        ]
        content = {"run": self.run, "rollouts": self.rollouts, "lessons": lessons, "unvaried": list(self.unvaried)}
        return json.dumps(content, ensure_ascii=False)


def _groups(records: Records) -> list[Group]:
    """The groups that taught, in the order in which they were begun; a task's words are not needed."""
    (rows,) = records.rows(
        (
            "SELECT phase, step, task, result FROM steps WHERE phase IN ('learn', 'online') AND purpose='rollout'"
            " AND failure IS NULL ORDER BY seq",
            (),
        )
    )
    groups: dict[tuple[str, int, str], list[Rollout]] = {}
    for phase, step, task, text in rows:
        where = f"{records.journal}, task {task!r} of step {step}"
        groups.setdefault((phase, step, task), []).append(read_value(Rollout, text, where))
    return [
        Group(task=Task(id=rollouts[0].task_id, input="?"), rollouts=tuple(rollouts))
        for rollouts in groups.values()
    ]


def _text(experience: Experience | None) -> str:
    text = " ".join(experience.text.split()) if experience else fmt.MISSING
    return text if len(text) <= 60 else f"{text[:59]}…"
