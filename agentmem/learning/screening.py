"""Before operations are settled with each other, each must stand by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentmem.domain.advantage import SemanticAdvantage
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Operation
from agentmem.learning.extractor import ExtractorContext


def screened(
    advantages: Sequence[SemanticAdvantage],
    library: ExperienceLibrary,
    refuse: Callable[[Operation], str],
    context: ExtractorContext,
) -> list[SemanticAdvantage]:
    """The advantages without operations that cannot be applied: unknown ids, leaks, what is known already.

    Each that is turned down is noted with its reason. It must not reach a consolidation, in whose answer it would
    vanish without a word, or be laundered into another lesson.
    """
    result = []
    for advantage in advantages:
        standing = []
        for operation in advantage.operations:
            decision = library.revise([operation], refuse=refuse).decisions[0]
            if decision.accepted:
                standing.append(operation)
            else:
                context.reject(operation, decision.reason)
        result.append(advantage.model_copy(update={"operations": tuple(standing)}))
    return result
