"""The seam between a group of rollouts and operations on the library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentmem.domain.advantage import SemanticAdvantage
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Operation
from agentmem.domain.rollout import Group


class Extractor(Protocol):
    """How groups become operations; one file per strategy."""

    @property
    def name(self) -> str:
        """What settings and origins call it."""
        ...

    async def distil(self, group: Group, library: ExperienceLibrary, *, step: int) -> SemanticAdvantage:
        """What one group teaches; called the moment the group is complete."""
        ...

    async def consolidate(
        self, advantages: Sequence[SemanticAdvantage], library: ExperienceLibrary
    ) -> Sequence[Operation]:
        """The operations of a whole batch, from its advantages in the order of the tasks."""
        ...
