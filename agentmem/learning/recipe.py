"""A way of learning: which extractor, which gate. Strategies are objects, so the loop has no forest of ifs."""

from __future__ import annotations

from dataclasses import dataclass

from agentmem.learning.exemplar import Exemplar
from agentmem.learning.extractor import Extractor
from agentmem.learning.gate import Always, Gate, Paired
from agentmem.settings import LearnSettings


@dataclass(frozen=True)
class Recipe:
    """The strategies of one learning run."""

    extractor: Extractor
    gate: Gate

    @classmethod
    def of(cls, settings: LearnSettings) -> Recipe:
        """The strategies that the settings name."""
        gate: Gate = Always()
        if settings.gate == "paired":
            gate = Paired(rounds=settings.gate_rounds, risk=settings.gate_risk)
        return cls(extractor=Exemplar(most=settings.examples_per_step), gate=gate)
