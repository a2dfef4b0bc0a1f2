"""A conversation with tools within its limit: the oldest calls go, always together with their results."""

from __future__ import annotations

from collections.abc import Sequence

from agentmem.domain.trajectory import Message
from agentmem.domain.usage import estimate_tokens
from agentmem.prompts import render

PER_MESSAGE = 4
"""Tokens that a chat template puts around a message."""


def trimmed(prompt: Sequence[Message], turns: Sequence[Message], *, max_tokens: int) -> tuple[Message, ...]:
    """The conversation without its oldest turns, where it is longer than `max_tokens` (estimated).

    What stands before the first turn (system text, examples, the task) is kept whole, and so is the newest turn, with
    all of its results: without them nothing could be answered. A turn is what the model said with whatever answers
    it, so no result is ever without its call, and no call without its results. The last message of the prompt says
    how many turns are missing.

    Args:
        prompt: system text and task.
        turns: what came after it.
        max_tokens: of the whole; prompt and newest turn are kept even where they alone are longer.
    """
    groups = _grouped(turns)
    costs = [sum(map(tokens_of, group)) for group in groups]
    room = max_tokens - sum(map(tokens_of, prompt))
    if sum(costs) <= room or len(groups) < 2:
        return (*prompt, *turns)
    room -= estimate_tokens(render("left_out", turns=len(groups)))
    first = 0
    while first < len(groups) - 1 and sum(costs[first:]) > room:
        first += 1
    said = render("left_out", turns=first)
    kept = [message for group in groups[first:] for message in group]
    # In the task's own message: templates of some models refuse two user messages in a row.
    *before, task = prompt
    return (*before, task.model_copy(update={"content": f"{task.content}\n\n{said}"}), *kept)


def tokens_of(message: Message) -> int:
    """About how many tokens a message is, its tool calls and pictures included."""
    calls = sum(estimate_tokens(call.name + call.arguments) + PER_MESSAGE for call in message.tool_calls)
    media = sum(media.tokens for media in message.media)
    return PER_MESSAGE + estimate_tokens(message.content) + calls + media


def _grouped(turns: Sequence[Message]) -> list[list[Message]]:
    """The turns, each begun by what the model said."""
    groups: list[list[Message]] = []
    for message in turns:
        if message.role == "assistant" or not groups:
            groups.append([])
        groups[-1].append(message)
    return groups
