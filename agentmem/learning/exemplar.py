"""The `exemplar` extractor: a group's best own rollout is kept as a worked example; no model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentmem.domain.advantage import SemanticAdvantage
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add, Operation
from agentmem.domain.origin import Origin
from agentmem.domain.rollout import Group, Rollout
from agentmem.domain.trajectory import Message
from agentmem.learning.extractor import ExtractorContext


@dataclass(frozen=True)
class Exemplar:
    """Learn from own successes: for models too small to write lessons (2510.08191 has an extractor model instead).

    Args:
        most: worked examples proposed in one batch at most.
    """

    most: int = 4
    name: str = "exemplar"

    async def distil(
        self, group: Group, library: ExperienceLibrary, context: ExtractorContext
    ) -> SemanticAdvantage:
        """Propose the best rollout; of equals one that came to its end, then the shortest answer."""
        best = min(group.scored, key=lambda r: (-(r.score or 0.0), _cut_off(r), len(r.output or ""), r.index))
        origin = Origin(
            step=context.step,
            task_id=group.task.id,
            rollouts=(best.index,),
            rewards=group.rewards,
            extractor=self.name,
        )
        add = Add(
            kind="example",
            text=f"A worked example: {_short(group.task.input)}",
            turns=_turns(group, best),
            why=f"rewarded {best.score:g} where the group's mean was {group.mean:.2f}",
            origins=(origin,),
            gated=group.task.gated,
        )
        return SemanticAdvantage(origin=origin, operations=(add,) if _has_answer(best) else ())

    async def consolidate(
        self, advantages: Sequence[SemanticAdvantage], library: ExperienceLibrary, context: ExtractorContext
    ) -> Sequence[Operation]:
        """The examples of the hardest groups, those with the lowest mean; one for each answer before a second."""
        known = {origin.task_id for experience in library for origin in experience.origins}
        fresh = [a for a in advantages if a.operations and a.origin.task_id not in known]
        seen: dict[str, int] = {}

        def rank(advantage: SemanticAdvantage) -> tuple[int, float]:
            answer = _answer(advantage.operations[0])
            seen[answer] = seen.get(answer, -1) + 1
            return seen[answer], sum(advantage.origin.rewards) / len(advantage.origin.rewards)

        hardest_first = sorted(fresh, key=lambda a: sum(a.origin.rewards) / len(a.origin.rewards))
        ranked = [(rank(advantage), advantage) for advantage in hardest_first]
        chosen = [advantage for _, advantage in sorted(ranked, key=lambda pair: pair[0])[: self.most]]
        in_task_order = [advantage for advantage in advantages if advantage in chosen]
        return [operation for advantage in in_task_order for operation in advantage.operations]


def _turns(group: Group, rollout: Rollout) -> tuple[Message, ...]:
    """What was asked, and what was answered; the steps in between are left out, as a prior has little room."""
    return (
        Message(role="user", content=group.task.input),
        Message(role="assistant", content=(rollout.output or "").strip()),
    )


def _cut_off(rollout: Rollout) -> bool:
    """Whether the answer ends where its tokens did; such examples teach a model not to end."""
    steps = rollout.trajectory.steps
    return bool(steps) and steps[-1].finish_reason == "length"


def _has_answer(rollout: Rollout) -> bool:
    return bool((rollout.output or "").strip())


def _answer(operation: Operation) -> str:
    return operation.turns[-1].content.casefold() if isinstance(operation, Add) and operation.turns else ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."
