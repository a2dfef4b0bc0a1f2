"""The `fused` extractor: one call per teaching group sees all attempts side by side and returns typed operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentmem.domain.advantage import SemanticAdvantage
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Operation
from agentmem.domain.rollout import Group
from agentmem.domain.trajectory import Message
from agentmem.errors import AgentMemError
from agentmem.learning.consolidation import consolidate
from agentmem.learning.evidence import (
    advantage_of,
    entries,
    evidence,
    failed_advantage,
    shown_attempts,
    tools_used,
)
from agentmem.learning.extractor import ExtractorContext
from agentmem.learning.proposals import Proposals, limited
from agentmem.learning.relevant import relevant
from agentmem.models.structured import structured
from agentmem.prompts import render


@dataclass(frozen=True)
class Fused:
    """Summary, contrast and update in one call (2510.08191 makes three); consolidation only where there is conflict."""

    name: str = "fused"

    async def distil(
        self, group: Group, library: ExperienceLibrary, context: ExtractorContext
    ) -> SemanticAdvantage:
        """What one group teaches; a model that fails or cannot be understood gives a typed failure."""
        settings = context.settings
        shown = await relevant(library, group, context.embedder)
        prompt = render(
            "distil",
            **evidence(group, settings),
            attempts=shown_attempts(group, settings),
            tools=tools_used(group),
            library=entries(shown),
            most=settings.lessons_per_group,
            words=settings.lesson_words,
        )
        model = context.model("distil", task=group.task.id)
        try:
            proposals = await structured(model, [Message(role="user", content=prompt)], Proposals)
        except AgentMemError as error:
            if error.stops_run:
                raise
            return failed_advantage(group, context.step, self.name, error)
        operations = limited(proposals.operations, settings.lessons_per_group)
        return advantage_of(group, context.step, self.name, operations, proposals.unreadable)

    async def consolidate(
        self, advantages: Sequence[SemanticAdvantage], library: ExperienceLibrary, context: ExtractorContext
    ) -> Sequence[Operation]:
        """Settle what concerns each other; everything else passes as it is."""
        return await consolidate(advantages, library, context)
