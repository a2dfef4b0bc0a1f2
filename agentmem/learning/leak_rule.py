"""A lesson must not carry answers or pieces of the tasks that taught it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from agentmem.domain.operation import Add, Merge, Modify, Operation
from agentmem.domain.task import Task

LONGEST_COPY = 12
"""Consecutive words of a task that a lesson may repeat."""
LETTERS, DIGITS = 6, 4
"""An answer is long enough to mean something from so many characters, or so many digits, on."""


@dataclass(frozen=True)
class LeakRule:
    """Says whether an operation leaks.

    Worked examples are exempt: they are training data in plain sight, marked so, and what is judged on them is the
    contamination guard's business.

    Example:
        >>> rule = LeakRule.of([Task(id="t", input="Who wrote Middlemarch?", answer="George Eliot")])
        >>> rule(Add(text="When asked for an author, say George Eliot."))
        "it holds the answer of task 't'"
        >>> rule(Add(text="When asked for an author, recall the title page."))
        ''
    """

    answers: tuple[tuple[str, str], ...]
    """Normalised answer and task id, of answers that are unique to a task and long enough."""
    passages: frozenset[tuple[str, ...]]
    """All runs of `LONGEST_COPY + 1` words of the tasks."""

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> LeakRule:
        """The rule for these tasks."""
        tasks = list(tasks)
        normal = {task.id: " ".join(_words(task.answer)) for task in tasks if task.answer}
        shared = Counter(normal.values())
        labels = {" ".join(_words(str(c))) for task in tasks for c in task.metadata.get("choices", ())}
        unique = [
            (answer, id)
            for id, answer in normal.items()
            if shared[answer] == 1 and answer not in labels and _means_something(answer)
        ]
        passages = {run for task in tasks for run in _runs(_words(task.input), LONGEST_COPY + 1)}
        return cls(tuple(unique), frozenset(passages))

    def __call__(self, operation: Operation) -> str:
        """Why the operation leaks; empty where it does not."""
        if not isinstance(operation, Add | Modify | Merge) or (
            isinstance(operation, Add) and operation.kind == "example"
        ):
            return ""
        words = _words(f"{operation.text or ''} . {operation.when or ''} . {operation.when_not or ''}")
        text = f" {' '.join(words)} "
        for answer, id in self.answers:
            if f" {answer} " in text:
                return f"it holds the answer of task {id!r}"
        if any(run in self.passages for run in _runs(words, LONGEST_COPY + 1)):
            return f"it copies more than {LONGEST_COPY} consecutive words of a task"
        return ""


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _runs(words: list[str], length: int) -> Iterable[tuple[str, ...]]:
    return (tuple(words[start : start + length]) for start in range(len(words) - length + 1))


def _means_something(answer: str) -> bool:
    digits = sum(char.isdigit() for char in answer)
    letters = len(answer.replace(" ", "")) if not answer.replace(" ", "").isdigit() else 0
    return letters >= LETTERS or digits >= DIGITS
