"""The seam between a group of rollouts and operations on the library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from agentmem.domain.advantage import SemanticAdvantage
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Decision, Operation
from agentmem.domain.rollout import Group
from agentmem.domain.seed import split_seed
from agentmem.domain.task import Task
from agentmem.errors import InputError
from agentmem.memory.embedder import Embedder
from agentmem.models.gateway import Gateways
from agentmem.models.handle import ModelHandle
from agentmem.models.model import Model
from agentmem.runs.run import Run
from agentmem.settings import LearnSettings


@dataclass(frozen=True)
class ExtractorContext:
    """What an extractor may use, in one learning step."""

    run: Run
    step: int
    gateways: Gateways
    extractor_model: str | Model | None
    """The model that distils; None where the agent is a callable without a model."""
    settings: LearnSettings
    embedder: Embedder
    seed: int
    tasks: tuple[Task, ...] = ()
    """The training tasks; without references they carry no answers."""
    rejected: list[Decision] = field(default_factory=list)
    """What was turned down on the way to the candidate; the step's record keeps it."""

    def at(self, step: int, tasks: Sequence[Task]) -> ExtractorContext:
        """The context of another step, which is about these tasks."""
        seed = split_seed(self.seed, "step", step)
        return replace(self, step=step, seed=seed, tasks=tuple(tasks), rejected=[])

    def reject(self, operation: Operation, reason: str) -> None:
        """Note that an operation was turned down, and why."""
        self.rejected.append(Decision(operation=operation, accepted=False, reason=reason))

    def model(self, purpose: str, *, task: str = "", rollout: int = 0) -> ModelHandle:
        """A handle to the extractor model; its calls are journaled at this step, task and rollout.

        Raises:
            InputError: there is no model.
        """
        if self.extractor_model is None:
            raise InputError(
                "Distilling needs a model, and the agent has none: set extractor_model, or extractor='exemplar'."
            )
        return ModelHandle(
            self.gateways.to(self.extractor_model),
            self.run.at("learn", step=self.step, task=task, rollout=rollout),
            purpose=purpose,
            seed=split_seed(self.seed, task, rollout),
            temperature=self.settings.extractor_temperature,
            max_tokens=self.settings.extractor_tokens,
        )


class Extractor(Protocol):
    """How groups become operations; one file per strategy."""

    @property
    def name(self) -> str:
        """What settings and origins call it."""
        ...

    async def distil(
        self, group: Group, library: ExperienceLibrary, context: ExtractorContext
    ) -> SemanticAdvantage:
        """What one group teaches; called the moment the group is complete."""
        ...

    async def consolidate(
        self, advantages: Sequence[SemanticAdvantage], library: ExperienceLibrary, context: ExtractorContext
    ) -> Sequence[Operation]:
        """The operations of a whole batch, from its advantages in the order of the tasks."""
        ...
