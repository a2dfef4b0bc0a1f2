"""The relevant part of a library for an extractor: what is near the task, and what the rollouts had seen."""

from __future__ import annotations

import asyncio

from agentmem.domain.experience import Experience, ExperienceLibrary
from agentmem.domain.rollout import Group
from agentmem.memory.embedder import Embedder, nearest

NEAREST = 12
"""Entries by similarity; those that the group's rollouts had seen come on top."""


def words_of(experience: Experience) -> str:
    """What an experience says, as one text to be compared."""
    return " ".join(f"{experience.when} {experience.text} {experience.when_not}".split())


async def relevant(library: ExperienceLibrary, group: Group, embedder: Embedder) -> tuple[Experience, ...]:
    """The lessons that matter for one group, in the library's order.

    Worked examples are left out, and what is in quarantine: an extractor's model is a prompt's reader, too.
    """
    lessons = [experience for experience in library.trusted if experience.kind == "lesson"]
    if len(lessons) <= NEAREST:
        return tuple(lessons)
    texts = [words_of(lesson) for lesson in lessons]
    vectors = await asyncio.to_thread(embedder.embed, [group.task.input, *texts])
    near = {lessons[row].id for row in nearest(vectors[0], vectors[1:], NEAREST)}
    seen = {id for rollout in group.rollouts for id in rollout.mask}
    return tuple(lesson for lesson in lessons if lesson.id in near | seen)
