"""A way of learning: which strategies. They are objects, so the loop has no forest of ifs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentmem.agents.group_plan import Adaptive, Fixed, GroupPlan
from agentmem.agents.prior import Full, PriorPolicy, Retrieved
from agentmem.domain.task import Task
from agentmem.learning.exemplar import Exemplar
from agentmem.learning.extractor import Extractor
from agentmem.learning.faithful import Faithful
from agentmem.learning.function_extractor import FunctionExtractor
from agentmem.learning.fused import Fused
from agentmem.learning.gate import Always, Gate, Paired
from agentmem.learning.targeted_gate import Targeted
from agentmem.learning.tips import Tips
from agentmem.memory.embedder import Embedder
from agentmem.settings import LearnSettings


@dataclass(frozen=True)
class Recipe:
    """The strategies of one learning run."""

    plan: GroupPlan
    extractor: Extractor
    gate: Gate
    prior: PriorPolicy

    @classmethod
    def of(
        cls,
        settings: LearnSettings,
        embedder: Embedder,
        *,
        gate_tasks: Sequence[Task] = (),
        extractor: Callable[..., Any] | None = None,
    ) -> Recipe:
        """The strategies that the settings name.

        Args:
            settings: the names.
            embedder: what compares texts by meaning.
            gate_tasks: what a gate may try.
            extractor: a function `(group, library) -> operations` of the caller's, instead of a named one.
        """
        s = settings
        named: dict[str, Extractor] = {
            "fused": Fused(),
            "faithful": Faithful(),
            "exemplar": Exemplar(most=s.examples_per_step),
            "tips": Tips(),
        }
        gates: dict[str, Gate] = {
            "always": Always(),
            "paired": Paired(rounds=s.gate_rounds, risk=s.gate_risk),
            "targeted": Targeted(gate_tasks, embedder, s.gate_nearest, s.gate_rounds, s.gate_risk),
        }
        # Credit compares attempts with their siblings, so of three it learns more an attempt than of two.
        first = 2 if s.inclusion >= 1 else 3
        adaptive = Adaptive(most=s.group_size, first=first, gap=s.gap, critique=s.critique)
        return cls(
            plan=adaptive if s.sampling == "adaptive" else Fixed(s.group_size),
            extractor=FunctionExtractor(extractor) if extractor else named[s.extractor],
            gate=gates[s.gate],
            prior=Retrieved(embedder, s.prior_core, s.prior_nearest) if s.prior == "retrieved" else Full(),
        )
