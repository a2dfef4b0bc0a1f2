"""What an extractor is shown of a group, and what it leaves behind as a semantic advantage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentmem.domain.advantage import SemanticAdvantage
from agentmem.domain.experience import Experience
from agentmem.domain.operation import Operation
from agentmem.domain.origin import Origin
from agentmem.domain.rollout import Failure, Group
from agentmem.errors import AgentMemError
from agentmem.learning.proposals import Unreadable, with_origin
from agentmem.learning.transcript import transcripts
from agentmem.settings import LearnSettings


def evidence(group: Group, settings: LearnSettings) -> dict[str, Any]:
    """What all prompts about a group share. Without references neither an answer nor a grade is in it."""
    graded = settings.reference == "use"
    return {
        "task": group.task.input,
        "answer": group.task.answer if graded else None,
        "agent_objective": settings.agent_objective,
        "learning_objective": settings.learning_objective,
        "graded": graded,
    }


def shown_attempts(group: Group, settings: LearnSettings) -> list[dict[str, Any]]:
    """The scored attempts, each with its number, reward, feedback, the experiences it had seen, and a transcript."""
    scored = group.scored
    texts = transcripts(scored, max_tokens=settings.transcript_tokens)
    return [
        {
            "number": rollout.index + 1,
            "reward": f"{rollout.score:g}",
            # A verifier's words may name the answer; without references nothing of it may come through.
            "feedback": rollout.reward.feedback if settings.reference == "use" else "",
            "seen": list(rollout.mask),
            "transcript": text + (" (refined after a critique)" if rollout.off_policy else ""),
        }
        for rollout, text in zip(scored, texts, strict=True)
    ]


def tools_used(group: Group) -> list[str]:
    """The tools that its attempts called, by name."""
    steps = (step for rollout in group.rollouts for step in rollout.trajectory.steps)
    return sorted(
        {result.call.name for step in steps for result in step.results if result.error != "unknown_tool"}
    )


def entries(experiences: Sequence[Experience]) -> list[dict[str, str]]:
    """Experiences as prompts show them, each on one line: a line break could pass for another entry."""
    return [
        {"id": e.id, "text": _line(e.text), "when": _line(e.when), "when_not": _line(e.when_not)}
        for e in experiences
    ]


def _line(text: str) -> str:
    return " ".join(text.split())


def origin_of(group: Group, step: int, extractor: str) -> Origin:
    """Where what this group teaches comes from."""
    scored = group.scored
    return Origin(
        step=step,
        task_id=group.task.id,
        rollouts=tuple(rollout.index for rollout in scored),
        rewards=group.rewards,
        extractor=extractor,
    )


def advantage_of(
    group: Group, step: int, extractor: str, operations: Sequence[Operation], unreadable: Sequence[Unreadable]
) -> SemanticAdvantage:
    """What the group teaches, with its evidence."""
    origin = origin_of(group, step, extractor)
    return SemanticAdvantage(
        origin=origin,
        operations=with_origin(operations, origin, gated=group.task.gated),
        unreadable=tuple(f"{item.reason}: {item.content}" for item in unreadable),
    )


def failed_advantage(group: Group, step: int, extractor: str, error: AgentMemError) -> SemanticAdvantage:
    """A group whose distillation failed: it teaches nothing this time, and says why."""
    return SemanticAdvantage(origin=origin_of(group, step, extractor), operations=(), failure=Failure.of(error))
