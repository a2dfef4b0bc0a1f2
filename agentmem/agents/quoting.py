"""Text from outside as a prompt may hold it: between marks that it cannot know, without what a template would obey."""

from __future__ import annotations

from agentmem.domain.clean_text import clean
from agentmem.domain.trajectory import Message, ToolResult
from agentmem.prompts import render


def quoted(text: str, mark: str, *, source: str = "") -> str:
    """The text between marks, as data.

    Args:
        text: what a page, a file or a server says.
        mark: a random word of this run; see `Run.mark`.
        source: where it comes from.
    """
    place = " ".join(without_mark(source, mark).split())[:200]
    return render("quoted", mark=mark, source=place, text=without_mark(text, mark))


def without_mark(text: str, mark: str) -> str:
    """The text cleaned, and without the word that would close its quotation."""
    text = clean(text)
    while mark in text:  # what is left may close up to another one
        text = text.replace(mark, "")
    return text


def as_message(result: ToolResult, mark: str) -> Message:
    """The chat message with a tool's result: quoted where it is untrusted, else as it is."""
    if not result.untrusted:
        return result.as_message()
    said = quoted(result.content, mark, source=result.source)
    return Message(role="tool", content=said, tool_call_id=result.call.id)
