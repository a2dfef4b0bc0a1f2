"""A rollout as text for an extractor: compacted by tokens, without the prior and without what all attempts share."""

from __future__ import annotations

from collections.abc import Sequence

from agentmem.domain.rollout import Rollout
from agentmem.domain.trajectory import Step
from agentmem.domain.usage import estimate_tokens

SHORTEST = 40
"""Tokens that a part of a transcript keeps at least, so that head and tail still say something."""


def transcripts(rollouts: Sequence[Rollout], *, max_tokens: int) -> list[str]:
    """Each rollout as text of at most about `max_tokens` tokens (estimated: 4 bytes a token).

    The final answer is always kept whole where it fits. Steps with which all rollouts begin alike are named once as
    shared; of the rest, long tool results lose their middle first, then middle steps are left out.
    """
    shared = _shared_beginning(rollouts) if len(rollouts) > 1 else 0
    return [_transcript(rollout, shared, max_tokens) for rollout in rollouts]


def _transcript(rollout: Rollout, shared: int, max_tokens: int) -> str:
    steps = rollout.trajectory.steps
    answer = (rollout.output or "").strip() or "(no answer)"
    if not steps or (len(steps) == 1 and not steps[0].results):
        return elide(answer, max_tokens)
    ending = f"Final answer: {elide(answer, max_tokens // 2)}"
    room = max_tokens - estimate_tokens(ending)
    said_last = steps[-1].reply.content.strip() == answer
    middle = steps[shared : -1 if said_last else None]
    parts = [_step(step, max(SHORTEST, room // max(1, len(middle)))) for step in middle]
    while len(parts) > 2 and sum(map(estimate_tokens, parts)) > room:
        # The first steps say which way was taken, and the last ones how it ended.
        parts[len(parts) // 2 : len(parts) // 2 + 1] = []
    left_out = len(middle) - len(parts)
    if left_out:
        parts.insert(len(parts) // 2, f"({left_out} steps left out)")
    opening = [f"(the first {shared} steps are the same in all attempts)"] if shared else []
    return "\n".join([*opening, *parts, ending])


def _step(step: Step, max_tokens: int) -> str:
    share = max(SHORTEST, max_tokens // (1 + 2 * len(step.results)))
    lines = [elide(step.reply.content.strip(), share)] if step.reply.content.strip() else []
    if step.subtask:
        lines.insert(0, f"({step.subtask})")
    for result in step.results:
        called = f"{result.call.name}({elide(result.call.arguments, share)})"
        lines.append(f"-> {called} {result.status}: {elide(result.content.strip(), share)}")
    return "\n".join(lines)


def elide(text: str, max_tokens: int) -> str:
    """The text, or its beginning and end with the number of characters left out between them."""
    if estimate_tokens(text) <= max_tokens:
        return text
    keep = max(8, max_tokens * 4 - 32)
    # Cut in bytes would split characters; a character has at most 4 bytes, so halve until it fits.
    while True:
        head, tail = text[: keep * 2 // 3], text[-(keep - keep * 2 // 3) :]
        short = f"{head} [... {len(text) - len(head) - len(tail)} characters left out ...] {tail}"
        if estimate_tokens(short) <= max_tokens or keep <= 8:
            return short
        keep = keep * 3 // 4


def _shared_beginning(rollouts: Sequence[Rollout]) -> int:
    """Steps with which all rollouts begin, word for word; never the last step of any."""
    shortest = min(len(rollout.trajectory.steps) for rollout in rollouts)
    for place in range(max(0, shortest - 1)):
        alike = {_key(rollout.trajectory.steps[place]) for rollout in rollouts}
        if len(alike) > 1:
            return place
    return max(0, shortest - 1)


def _key(step: Step) -> str:
    return step.model_dump_json(include={"reply", "results"}, exclude={"results": {"__all__": {"seconds"}}})
