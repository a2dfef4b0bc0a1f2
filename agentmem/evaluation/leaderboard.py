"""What a leaderboard is sent: one line a task, with a proof that it is all of them, each once, none empty."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from agentmem.atomic import atomic_write
from agentmem.domain.task import Task
from agentmem.domain.value import Value, fingerprint
from agentmem.evaluation.by_level import Attempt

GAIA_COUNTS = {"validation": {"1": 53, "2": 86, "3": 26}, "test": {"1": 93, "2": 159, "3": 49}}
"""What GAIA's leaderboard asks for."""


class Submission(Value):
    """The lines of a submission, and what is lacking in them."""

    lines: tuple[tuple[str, str], ...]
    """Task and answer, in the order of the set."""
    expected: int
    """Tasks of the set."""
    levels: dict[str, int]
    """Answers of each level."""
    ids: str
    """Fingerprint of the ids of all tasks that are asked for."""
    faults: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every task has one answer that is not empty."""
        return not self.faults

    @classmethod
    def of(
        cls, tasks: Iterable[Task], attempts: Iterable[Attempt], *, counts: dict[str, int] | None = None
    ) -> Submission:
        """Take the first attempt at each task.

        Args:
            tasks: all tasks that the leaderboard asks for, not only those that were tried.
            attempts: what was tried.
            counts: how many tasks of each level the leaderboard wants, where that is known.

        Example:
            >>> tasks = [Task(id="a", input="?"), Task(id="b", input="?")]
            >>> Submission.of(tasks, [Attempt(task_id="a", answer="4")]).faults
            ('1 of 2 tasks has no answer: b',)
        """
        wanted = list(tasks)
        answers = {attempt.task_id: attempt.answer for attempt in attempts if attempt.index == 0}
        given = [(task, (answers.get(task.id) or "").strip()) for task in wanted]
        levels = Counter(task.level or "" for task, answer in given if answer)
        faults = []
        if missing := [task.id for task, answer in given if not answer]:
            verb = "has" if len(missing) == 1 else "have"
            faults.append(f"{len(missing)} of {len(wanted)} tasks {verb} no answer: {', '.join(missing[:10])}")
        if twice := [id for id, n in Counter(task.id for task in wanted).items() if n > 1]:
            faults.append(f"ids that come twice: {', '.join(twice[:10])}")
        if unknown := sorted(answers.keys() - {task.id for task in wanted}):
            faults.append(f"answers to tasks that are not asked for: {', '.join(unknown[:10])}")
        if counts is not None and dict(levels) != counts:
            faults.append(f"the leaderboard wants {_said(counts)}, and there are {_said(levels)}")
        return cls(
            lines=tuple((task.id, answer) for task, answer in given if answer),
            expected=len(wanted),
            levels=dict(sorted(levels.items())),
            ids=fingerprint(sorted(task.id for task in wanted)),
            faults=tuple(faults),
        )

    def write(self, folder: Path) -> Path:
        """Write the lines and the proof; a submission that is not complete has a name that says so.

        Returns:
            The file with the lines.
        """
        name = "leaderboard" if self.complete else "leaderboard.partial"
        for stale in ("leaderboard", "leaderboard.partial"):
            if stale != name:
                (folder / f"{stale}.jsonl").unlink(missing_ok=True)
        lines = [
            json.dumps({"task_id": id, "model_answer": answer}, ensure_ascii=False) for id, answer in self.lines
        ]
        atomic_write(folder / f"{name}.jsonl", "".join(line + "\n" for line in lines))
        proof = {
            "complete": self.complete,
            "tasks": self.expected,
            "answers": len(self.lines),
            "levels": self.levels,
            "ids": self.ids,
            "lines": fingerprint(list(self.lines)),
            "faults": list(self.faults),
        }
        atomic_write(folder / "leaderboard.proof.json", json.dumps(proof, ensure_ascii=False, indent=1) + "\n")
        return folder / f"{name}.jsonl"


def _said(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} of level {level or '?'}" for level, n in sorted(counts.items())) or "none"
