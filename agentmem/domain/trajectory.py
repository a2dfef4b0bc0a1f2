"""What an agent did in one attempt: messages, tool calls, tool results, usage and timing."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from agentmem.domain.media import Media
from agentmem.domain.plan import Plan
from agentmem.domain.usage import Usage
from agentmem.domain.value import Value, encodable


def _nothing(media: tuple[Media, ...]) -> bool:
    return not media  # so that messages of text alone are written, and hashed, as they always were


class ToolCall(Value):
    """A model's wish to use a tool. `arguments` is the model's own text, which may be no valid JSON."""

    id: str
    name: str
    arguments: str = "{}"


class Message(Value):
    """One chat message."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    """Only on assistant messages."""
    tool_call_id: str | None = None
    """On tool messages: the call that this answers."""
    media: tuple[Media, ...] = Field(default=(), exclude_if=_nothing)
    """Pictures and sounds after the content; only on user messages, and only for models that take them."""

    @field_validator("content")
    @classmethod
    def _encodable(cls, text: str) -> str:
        # A model's JSON may hold half a character (a lone surrogate), which no file and no request can carry.
        return encodable(text)


class ToolResult(Value):
    """What came of one tool call: its output, or why there is none."""

    call: ToolCall
    content: str
    """What the model is shown."""
    status: Literal["ok", "error", "timeout"] = "ok"
    error: str = ""
    """The class of the error, such as `unknown_tool`, `arguments` or `timeout`; empty where there is none."""
    source: str = ""
    """Where the content comes from, such as an address, a file or a server; empty for what the tool itself says."""
    untrusted: bool = False
    """Whether the content holds text from outside (the web, a file, a server): data, and no instructions."""
    media: tuple[Media, ...] = Field(default=(), exclude_if=_nothing)
    """Pictures and sounds that the model is shown after its results."""
    seconds: float = 0.0

    def as_message(self) -> Message:
        """The chat message that answers the call."""
        return Message(role="tool", content=self.content, tool_call_id=self.call.id)


class Step(Value):
    """One turn of the model, with the results of the tools that it called."""

    reply: Message
    results: tuple[ToolResult, ...] = ()
    usage: Usage = Usage()
    finish_reason: str = "stop"
    logprob: float | None = None
    """Sum of the log-probabilities of the sampled tokens (nats), where the model returns them."""
    subtask: str = ""
    """The subtask that it is a step of; empty for a planner's own turns, and where there is no plan."""


class Trajectory(Value):
    """The steps of one attempt.

    Example:
        >>> Trajectory.said("4").output
        '4'
    """

    prompt: tuple[Message, ...] = ()
    """What the model was shown before its first turn, the prior included."""
    steps: tuple[Step, ...] = ()
    output: str | None = None
    """The answer; None where the attempt ended without one."""
    ended_by: Literal["answer", "steps", "tokens"] = "answer"
    """Whether the agent came to its end, or to a limit."""
    plans: tuple[Plan, ...] = ()
    """What a planner planned, with what came of each subtask: the episode's record."""

    @classmethod
    def said(cls, answer: str) -> Trajectory:
        """The trajectory of an agent of which only the answer is known."""
        answer = encodable(answer)
        return cls(steps=(Step(reply=Message(role="assistant", content=answer)),), output=answer)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole conversation."""
        turns = list(self.prompt)
        for step in self.steps:
            turns.append(step.reply)
            turns.extend(result.as_message() for result in step.results)
        return tuple(turns)

    @property
    def untrusted(self) -> bool:
        """Whether something from outside (the web, a file, a server) had a part in it."""
        return any(result.untrusted for step in self.steps for result in step.results) or any(
            message.media for message in self.prompt
        )

    @property
    def usage(self) -> Usage:
        """The sum over the steps."""
        return sum((step.usage for step in self.steps), Usage())
