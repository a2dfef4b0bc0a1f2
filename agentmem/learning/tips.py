"""The `tips` extractor: advice without experience, the paper's ablation (2510.08191, "directly generated tips")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentmem.domain.advantage import SemanticAdvantage
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add, Operation
from agentmem.domain.origin import Origin
from agentmem.domain.rollout import Group
from agentmem.domain.trajectory import Message
from agentmem.learning.evidence import advantage_of
from agentmem.learning.extractor import ExtractorContext
from agentmem.learning.proposals import Lessons
from agentmem.models.structured import structured
from agentmem.prompts import render

SHOWN, MOST = 20, 16
"""Tasks that the model is shown, and lessons that it may give."""


@dataclass(frozen=True)
class Tips:
    """Asks a model once for advice on the training tasks; rollouts teach nothing. A control, not a way to learn."""

    name: str = "tips"

    async def distil(
        self, group: Group, library: ExperienceLibrary, context: ExtractorContext
    ) -> SemanticAdvantage:
        """Nothing."""
        return advantage_of(group, context.step, self.name, (), ())

    async def consolidate(
        self, advantages: Sequence[SemanticAdvantage], library: ExperienceLibrary, context: ExtractorContext
    ) -> Sequence[Operation]:
        """The advice, in the first step.

        Raises:
            StructuredOutputError: the model gave none that can be read.
        """
        if context.step > 0:
            return []
        prompt = render(
            "tips",
            tasks=[task.input for task in context.tasks[:SHOWN]],
            agent_objective=context.settings.agent_objective,
            learning_objective=context.settings.learning_objective,
            most=MOST,
            words=context.settings.lesson_words,
        )
        answer = await structured(context.model("tips"), [Message(role="user", content=prompt)], Lessons)
        origin = Origin(step=context.step, task_id="", extractor=self.name)
        gated = any(task.gated for task in context.tasks[:SHOWN])
        return [Add(**lesson.model_dump(), origins=(origin,), gated=gated) for lesson in answer.lessons[:MOST]]
