"""Settling the operations of one batch: a model is asked only about those that concern each other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from agentmem.domain.advantage import SemanticAdvantage
from agentmem.domain.experience import Experience, ExperienceLibrary
from agentmem.domain.operation import (
    Add,
    Delete,
    Keep,
    Merge,
    Modify,
    Operation,
    Promote,
    Quarantine,
    Restore,
    Unkeep,
)
from agentmem.domain.trajectory import Message
from agentmem.errors import AgentMemError, StructuredOutputError
from agentmem.events import Noted
from agentmem.learning.extractor import ExtractorContext
from agentmem.learning.proposals import Consolidation, touched, with_origin
from agentmem.learning.relevant import words_of
from agentmem.models.structured import structured
from agentmem.prompts import render

ALIKE = 0.85
"""Cosine from which two lessons count as nearly the same."""


@dataclass(frozen=True)
class Cluster:
    """Operations that concern each other, and the experiences that they touch or nearly repeat."""

    operations: tuple[Operation, ...]
    entries: tuple[Experience, ...]

    @property
    def in_conflict(self) -> bool:
        """Whether there is anything to settle."""
        if len(self.operations) > 1:
            return True
        return isinstance(self.operations[0], Add) and bool(self.entries)


async def consolidate(
    advantages: Sequence[SemanticAdvantage], library: ExperienceLibrary, context: ExtractorContext
) -> list[Operation]:
    """All operations of a batch, in order; those in conflict are settled by one call, cluster by cluster.

    If that call fails, the first operation on each experience stands, exact repetitions are dropped, and the rest is
    left as proposed: nothing is lost.
    """
    operations = [operation for advantage in advantages for operation in advantage.operations]
    clusters = await clustered(operations, library, context)
    return await _settle(clusters, context)


async def consolidate_whole(
    advantages: Sequence[SemanticAdvantage], library: ExperienceLibrary, context: ExtractorContext
) -> list[Operation]:
    """The paper's way: one call sees all operations of the batch and all that they touch."""
    operations = [operation for advantage in advantages for operation in advantage.operations]
    if not operations:
        return []
    lessons = tuple(experience for experience in library if experience.kind == "lesson")
    return await _settle([Cluster(tuple(operations), lessons)], context)


async def clustered(
    operations: Sequence[Operation], library: ExperienceLibrary, context: ExtractorContext
) -> list[Cluster]:
    """Operations joined where they touch the same experience, or say nearly the same (cosine >= 0.85).

    Pairs that the library remembers as distinct do not join.
    """
    lessons = {experience.id: experience for experience in library if experience.kind == "lesson"}
    said = [said_by(operation) for operation in operations]
    texts = [*said, *(words_of(lesson) for lesson in lessons.values())]
    ids = list(lessons)
    parent = list(range(len(texts)))
    rows = {id: len(operations) + place for place, id in enumerate(lessons)}

    def root(node: int) -> int:
        while parent[node] != node:
            node = parent[node]
        return node

    def distinct(place: int, other: int) -> bool:
        entry = ids[other - len(operations)] if other >= len(operations) else None
        return any(tuple(sorted((id, entry))) in library.distinct for id in touched(operations[place]) if entry)

    for place, operation in enumerate(operations):
        for id in touched(operation):
            if id in rows:
                parent[root(place)] = root(rows[id])
    if any(said):
        vectors = await asyncio.to_thread(context.embedder.embed, texts)
        alike = vectors[: len(operations)] @ vectors.T >= ALIKE
        for place, other in zip(*alike.nonzero(), strict=True):
            if place != other and said[place] and texts[other] and not distinct(place, other):
                parent[root(place)] = root(other)
    members: dict[int, list[int]] = {}
    for place in range(len(operations)):
        members.setdefault(root(place), []).append(place)
    return [
        Cluster(
            tuple(operations[place] for place in places),
            tuple(lesson for id, lesson in lessons.items() if root(rows[id]) == node),
        )
        for node, places in members.items()
    ]


async def _settle(clusters: Sequence[Cluster], context: ExtractorContext) -> list[Operation]:
    conflicts = [cluster for cluster in clusters if cluster.in_conflict]
    settled: dict[int, Sequence[Operation]] = {}
    if conflicts:
        try:
            settled = await _ask(conflicts, context)
        except AgentMemError as error:
            if error.stops_run:
                raise
            context.run.events.emit(
                Noted(
                    f"step {context.step + 1}: consolidation failed, so operations stand as proposed: {error}",
                    "warning",
                )
            )
    result: list[Operation] = []
    for cluster in clusters:
        answer = settled.get(conflicts.index(cluster) + 1) if cluster in conflicts else None
        result.extend(answer if answer is not None else _as_proposed(cluster))
    return result


async def _ask(conflicts: Sequence[Cluster], context: ExtractorContext) -> dict[int, Sequence[Operation]]:
    prompt = render(
        "consolidate",
        clusters=[
            {
                "number": number,
                "operations": [{"text": describe(operation)} for operation in cluster.operations],
                "entries": [{"id": entry.id, "text": words_of(entry)} for entry in cluster.entries],
            }
            for number, cluster in enumerate(conflicts, start=1)
        ],
        words=context.settings.lesson_words,
    )
    answer = await structured(context.model("consolidate"), [Message(role="user", content=prompt)], Consolidation)
    by_number = {settled.number: settled.proposals for settled in answer.clusters}
    if missing := [n for n in range(1, len(conflicts) + 1) if n not in by_number]:
        raise StructuredOutputError(f"The consolidation left out cluster {missing[0]}.")
    return {
        number: _within(by_number[number].operations, cluster, context)
        for number, cluster in enumerate(conflicts, start=1)
    }


def _within(operations: Sequence[Operation], cluster: Cluster, context: ExtractorContext) -> tuple[Operation, ...]:
    """What a model made of a cluster, with the evidence of the cluster; it may touch the cluster's entries only."""
    origins = dict.fromkeys(origin for operation in cluster.operations for origin in operation.origins)
    # A model that saw words of a gated data set may have used them in any of its answers on this cluster.
    gated = any(isinstance(o, Add | Modify | Merge) and o.gated for o in cluster.operations)
    gated = gated or any(entry.gated for entry in cluster.entries)
    stamped = operations
    for origin in origins:
        stamped = with_origin(stamped, origin, gated=gated)
    known = {entry.id for entry in cluster.entries}
    inside = []
    for operation in stamped:
        if set(touched(operation)) <= known:
            inside.append(operation)
        else:
            context.reject(operation, "consolidation may only touch the experiences of its cluster")
    return tuple(inside)


def _as_proposed(cluster: Cluster) -> list[Operation]:
    """The first operation on each experience, without exact repetitions."""
    result: list[Operation] = []
    taken: set[str] = set()
    said: set[str] = set()
    for operation in cluster.operations:
        ids = set(touched(operation))
        text = said_by(operation).casefold()
        if (ids & taken and not isinstance(operation, Keep)) or (text and text in said):
            continue
        taken |= ids
        said.add(text)
        result.append(operation)
    return result


def describe(operation: Operation) -> str:
    """An operation in words, as a model reads it."""
    because = f" (because: {operation.why})" if operation.why else ""
    match operation:
        case Add():
            return f"add: {said_by(operation)}{because}"
        case Modify(id=id):
            return f"modify {id}: {said_by(operation)}{because}"
        case Merge(ids=ids):
            return f"merge {', '.join(ids)}: {said_by(operation)}{because}"
        case Delete(id=id):
            return f"delete {id}{because}"
        case Keep(ids=ids):
            return f"keep apart {', '.join(ids)}{because}"
        case Restore(id=id):
            return f"bring back {id}{because}"
        case Unkeep(ids=ids):
            return f"no longer keep apart {', '.join(ids)}{because}"
        case Promote(id=id):
            return f"promote {id}{because}"
        case Quarantine(id=id):
            return f"quarantine {id}{because}"


def said_by(operation: Operation) -> str:
    """The words that an operation brings; empty where it brings none."""
    if not isinstance(operation, Add | Modify | Merge):
        return ""
    return " ".join(part for part in (operation.when, operation.text, operation.when_not) if part)
