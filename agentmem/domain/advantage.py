"""What a group teaches in words."""

from __future__ import annotations

from agentmem.domain.operation import Operation
from agentmem.domain.origin import Origin
from agentmem.domain.rollout import Failure
from agentmem.domain.value import Value


class SemanticAdvantage(Value):
    """What a group of rollouts teaches: operations on the library, with the evidence that they rest on.

    The analogue of the numerical advantage of GRPO (2510.08191, section 2.2).
    """

    origin: Origin
    """The group: its task, step and rewards."""
    operations: tuple[Operation, ...]
    """What an extractor proposes to do; nothing is applied before the whole batch is in."""
    unreadable: tuple[str, ...] = ()
    """Proposals that were no operations, each with the reason."""
    failure: Failure | None = None
    """Why the group could not be distilled."""

    @property
    def spread(self) -> float:
        """Best minus worst reward of the group."""
        return max(self.origin.rewards) - min(self.origin.rewards) if self.origin.rewards else 0.0
