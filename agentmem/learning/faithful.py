"""The `faithful` extractor: the calls of the paper (2510.08191): summaries, contrast, group update, consolidation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentmem.domain.advantage import SemanticAdvantage
from agentmem.domain.experience import Experience, ExperienceLibrary
from agentmem.domain.operation import Operation
from agentmem.domain.rollout import Group
from agentmem.domain.trajectory import Message
from agentmem.errors import AgentMemError
from agentmem.learning.consolidation import consolidate_whole
from agentmem.learning.evidence import (
    advantage_of,
    entries,
    evidence,
    failed_advantage,
    shown_attempts,
    tools_used,
)
from agentmem.learning.extractor import ExtractorContext
from agentmem.learning.proposals import Lessons, Proposals, limited
from agentmem.learning.relevant import relevant
from agentmem.models.structured import structured
from agentmem.prompts import render


@dataclass(frozen=True)
class Faithful:
    """One summary call a rollout, then one contrast and one update call a group, then one call for the batch."""

    name: str = "faithful"

    async def distil(
        self, group: Group, library: ExperienceLibrary, context: ExtractorContext
    ) -> SemanticAdvantage:
        """What one group teaches. A failed call is a typed failure of this group; no summary drops a rollout."""
        try:
            return await self._distil(group, library, context)
        except AgentMemError as error:
            if error.stops_run:
                raise
            return failed_advantage(group, context.step, self.name, error)

    async def _distil(
        self, group: Group, library: ExperienceLibrary, context: ExtractorContext
    ) -> SemanticAdvantage:
        settings, task = context.settings, group.task.id
        about = evidence(group, settings)
        attempts = shown_attempts(group, settings)
        summaries = await asyncio.gather(
            *(self._summary(attempt, about, context, task, number) for number, attempt in enumerate(attempts))
        )
        for attempt, summary in zip(attempts, summaries, strict=True):
            attempt["summary"] = summary
        shown = await relevant(library, group, context.embedder)
        asked = render(
            "contrast",
            **about,
            attempts=attempts,
            tools=tools_used(group),
            library=entries(shown),
            most=settings.lessons_per_group,
            words=settings.lesson_words,
        )
        lessons = await structured(context.model("contrast", task=task), _ask(asked), Lessons)
        if not lessons.lessons:
            return advantage_of(group, context.step, self.name, (), ())
        proposals = await self._mapped(lessons, shown, context, task)
        operations = limited(proposals.operations, settings.lessons_per_group)
        return advantage_of(group, context.step, self.name, operations, proposals.unreadable)

    async def consolidate(
        self, advantages: Sequence[SemanticAdvantage], library: ExperienceLibrary, context: ExtractorContext
    ) -> Sequence[Operation]:
        """One call that reconciles all operations of the batch."""
        return await consolidate_whole(advantages, library, context)

    async def _summary(
        self, attempt: dict[str, Any], about: dict[str, Any], context: ExtractorContext, task: str, number: int
    ) -> str:
        asked = render("summarise", **about, attempt=attempt)
        reply = await context.model("summarise", task=task, rollout=number).complete(_ask(asked))
        return reply.text.strip() or attempt["transcript"]

    async def _mapped(
        self, lessons: Lessons, shown: Sequence[Experience], context: ExtractorContext, task: str
    ) -> Proposals:
        asked = render(
            "group_update",
            lessons=[lesson.model_dump() for lesson in lessons.lessons[: context.settings.lessons_per_group]],
            library=entries(shown),
            words=context.settings.lesson_words,
        )
        return await structured(context.model("update", task=task), _ask(asked), Proposals)


def _ask(prompt: str) -> list[Message]:
    return [Message(role="user", content=prompt)]
