"""What the tasks of an evaluation share with what the agent learned from: questions and answers, by words or meaning.

A score on tasks that the memory holds measures the memory, not the agent. What is found is named, and a report then
shows clean and dirty tasks apart.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal

from agentmem.domain.case import Case
from agentmem.domain.experience import Experience
from agentmem.domain.task import Task
from agentmem.domain.value import Value
from agentmem.memory.embedder import Embedder

Kind = Literal["exact", "words", "answer", "meaning"]

RUN = 8
"""Consecutive words that count as a piece of a question."""
SHARE = 0.5
"""Share of a question's pieces in one text from which on it counts as overlap."""
NEAR = 0.9
"""Cosine from which on two questions are the same in other words."""
LETTERS, DIGITS = 6, 4
"""An answer is long enough to mean something from so many letters, or so many digits, on."""


class Source(Value):
    """A text that the agent could have learned from."""

    where: str
    """Such as `training task t-12`, `experience e-1a2b` or `case c-3c4d`."""
    question: str
    """What was asked; empty where there is no such thing."""
    text: str
    """All of it."""
    remembered: bool = True
    """Whether the agent is shown it. A training task is not: that two tasks have one answer is no leak."""


class Overlap(Value):
    """One task that shares something with one source."""

    task_id: str
    kind: Kind
    """`exact`: the question is in it. `words`: half of its runs of 8 words are. `answer`: the answer is, and what is
    remembered is shown to the agent. `meaning`: a question that is nearly the same."""
    where: str
    share: float = 1.0
    """Share of the question's pieces, or cosine."""


class Contamination(Value):
    """What was compared, and which tasks share something."""

    sources: int
    """Texts that were compared with."""
    by_meaning: bool = False
    """Whether questions were compared by meaning, too."""
    overlaps: tuple[Overlap, ...] = ()
    """The first of each kind for each task."""

    @property
    def dirty(self) -> tuple[str, ...]:
        """The tasks that share something, in order."""
        return tuple(dict.fromkeys(overlap.task_id for overlap in self.overlaps))

    def __str__(self) -> str:
        """In one line.

        Example:
            >>> str(Contamination(sources=3))
            'no task shares anything with 3 texts'
        """
        if not self.overlaps:
            return f"no task shares anything with {self.sources:,} texts"
        kinds = Counter(overlap.kind for overlap in self.overlaps)
        named = ", ".join(f"{kind} {n:,}" for kind, n in sorted(kinds.items()))
        tasks = len(self.dirty)
        first = self.overlaps[0]
        return (
            f"{tasks:,} {'task shares' if tasks == 1 else 'tasks share'} something with {self.sources:,} texts "
            f"({named}), "
            f"such as {first.task_id!r} with {first.where}"
        )


def contamination(
    tasks: Iterable[Task], sources: Iterable[Source], *, embedder: Embedder | None = None
) -> Contamination:
    """What these tasks share with these sources.

    An answer counts where it means something (6 letters or 4 digits), belongs to one task alone and is none of the
    offered choices; so labels of a classification never do, nor an answer that
    the question itself names.

    Args:
        tasks: of the evaluation.
        sources: see `sources_of`.
        embedder: compares questions by meaning as well.

    Example:
        >>> lesson = Source(where="experience e-1", question="", text="The author of Middlemarch is George Eliot.")
        >>> found = contamination([Task(id="t", input="Who wrote Middlemarch?", answer="George Eliot")], [lesson])
        >>> [(overlap.kind, overlap.where) for overlap in found.overlaps]
        [('answer', 'experience e-1')]
    """
    search = _Search(list(tasks), embedder)
    for batch in _batches(sources):
        search.look_in(batch)
    return Contamination(sources=search.sources, by_meaning=embedder is not None, overlaps=search.found())


def sources_of(
    *, training: Iterable[Task] = (), experiences: Iterable[Experience] = (), cases: Iterable[Case] = ()
) -> Iterator[Source]:
    """Training tasks, a library's experiences and a bank's cases as texts.

    Args:
        training: what was learned from.
        experiences: what the agent is shown of it; quarantined ones are left out.
        cases: what it may recall.
    """
    for t in training:
        yield Source(where=f"training task {t.id}", question=t.input, text=t.input, remembered=False)
    for e in experiences:
        if e.trust == "trusted":
            turns = [turn.content for turn in e.turns]
            question = next((turn.content for turn in e.turns if turn.role == "user"), "")
            text = "\n".join([e.text, e.when, e.when_not, *turns])
            yield Source(where=f"experience {e.id}", question=question, text=text)
    for c in cases:
        yield Source(where=f"case {c.id}", question=c.state, text="\n".join([c.state, c.action, *c.trace]))


class _Search:
    """The tasks by their words, so that sources of any number can pass by, one batch after the other."""

    def __init__(self, tasks: Sequence[Task], embedder: Embedder | None) -> None:
        self.sources = 0
        self._tasks = tasks
        self._embedder = embedder
        self._vectors = embedder.embed([task.input for task in tasks]) if embedder and tasks else None
        self._questions: defaultdict[str, list[str]] = defaultdict(list)
        self._pieces: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        self._answers: defaultdict[str, list[tuple[list[str], str]]] = defaultdict(list)
        self._size: dict[str, int] = {}
        self._found: dict[tuple[str, Kind], Overlap] = {}
        for task in tasks:
            words = words_of(task.input)
            if words:
                self._questions[" ".join(words)].append(task.id)
            pieces = set(_runs(words))
            self._size[task.id] = len(pieces)
            for piece in pieces:
                self._pieces[piece].append(task.id)
        for id, answer in _telling(tasks).items():
            words = answer.split()
            self._answers[words[0]].append((words, id))

    def look_in(self, batch: Sequence[Source]) -> None:
        """Compare all tasks with some sources."""
        self.sources += len(batch)
        for source in batch:
            words = words_of(source.text)
            for id in self._questions.get(" ".join(words_of(source.question)), ()):
                self._note(id, "exact", source)
            shared = Counter(id for piece in set(_runs(words)) for id in self._pieces.get(piece, ()))
            for id, count in shared.items():
                if (share := count / self._size[id]) >= SHARE:
                    self._note(id, "exact" if share == 1 else "words", source, share)
            if source.remembered:
                for place, word in enumerate(words):
                    for answer, id in self._answers.get(word, ()):
                        if words[place : place + len(answer)] == answer:
                            self._note(id, "answer", source)
        self._by_meaning([source for source in batch if source.question.strip()])

    def found(self) -> tuple[Overlap, ...]:
        """All that was found, in the order of the tasks; where a question stands whole, its pieces are no news."""
        kinds: tuple[Kind, ...] = ("exact", "words", "answer", "meaning")
        places = ((task.id, kind) for task in self._tasks for kind in kinds)
        return tuple(
            self._found[place]
            for place in places
            if place in self._found and not (place[1] == "words" and (place[0], "exact") in self._found)
        )

    def _by_meaning(self, batch: Sequence[Source]) -> None:
        if self._embedder is None or self._vectors is None or not batch:
            return
        known = self._embedder.embed([source.question for source in batch])
        for task, cosines in zip(self._tasks, self._vectors @ known.T, strict=True):
            best = int(cosines.argmax())
            if float(cosines[best]) >= NEAR:
                self._note(task.id, "meaning", batch[best], min(1.0, float(cosines[best])))

    def _note(self, task_id: str, kind: Kind, source: Source, share: float = 1.0) -> None:
        before = self._found.get((task_id, kind))
        if before is None or share > before.share:
            self._found[task_id, kind] = Overlap(task_id=task_id, kind=kind, where=source.where, share=share)


def _batches(sources: Iterable[Source], size: int = 512) -> Iterator[list[Source]]:
    left = iter(sources)
    while batch := list(islice(left, size)):
        yield batch


def words_of(text: str) -> list[str]:
    """The words of a text, as they are compared: without case and punctuation."""
    return re.findall(r"\w+", text.casefold())


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1))


def _telling(tasks: Sequence[Task]) -> dict[str, str]:
    """The answers that say something of their task: long enough, its own, and not offered as a choice."""
    answers = {task.id: " ".join(words_of(task.answer)) for task in tasks if task.answer}
    shared = Counter(answers.values())
    choices = {" ".join(words_of(str(c))) for task in tasks for c in task.metadata.get("choices", ())}

    def tells(task: Task, answer: str) -> bool:
        long = sum(c.isalpha() for c in answer) >= LETTERS or sum(c.isdigit() for c in answer) >= DIGITS
        asked = (
            f" {answer} " in f" {' '.join(words_of(task.input))} "
        )  # who quotes the question gives nothing away
        return long and shared[answer] == 1 and answer not in choices and not asked

    return {task.id: answers[task.id] for task in tasks if task.id in answers and tells(task, answers[task.id])}
