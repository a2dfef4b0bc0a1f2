"""A conversation with an agent as a script sees it: which task it is about, and what its plan asks for next."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from agentmem.domain.trajectory import Message, ToolCall
from agentmem.models.model import Request
from benchmarks.offline_gaia.generate import Written, tasks
from benchmarks.offline_gaia.template import filled


@dataclass(frozen=True)
class Episode:
    """What was said so far, at a task of the set of seed 0."""

    task: Written
    results: tuple[str, ...]
    """What the tools said so far."""

    @classmethod
    def of(cls, request: Request) -> Episode:
        """The episode that a request belongs to; its task is the last that a user asked for."""
        place, task = next(
            (place, task)
            for place, message in reversed(list(enumerate(request.messages)))
            if message.role == "user"
            for question, task in _by_question().items()
            if message.content.startswith(question)
        )
        return cls(task, tuple(m.content for m in request.messages[place:] if m.role == "tool"))

    def next(self, taken: Callable[[str], str] = str) -> Message | str:
        """The plan's next call, or the answer.

        Args:
            taken: what becomes of a value that was found.
        """
        calls, known = self.task.made.calls, dict[str, str]()
        for number, (call, said) in enumerate(zip(calls, self.results, strict=False), start=1):
            for name, pattern in call.find.items():
                found = re.search(filled(pattern, known, pattern=True), said, re.MULTILINE)
                if found is None:
                    return f"Step {number} shows no {name}.\nFINAL ANSWER: unknown"
                known[name] = taken(found[1])
        if len(self.results) >= len(calls):
            return f"That was the plan.\nFINAL ANSWER: {filled(self.task.made.final, known)}"
        call = calls[len(self.results)]
        arguments = json.dumps(filled(call.arguments, known))
        made = ToolCall(id=f"c{len(self.results)}", name=call.tool, arguments=arguments)
        return Message(role="assistant", tool_calls=(made,))


def way_of(task: Written) -> tuple[str, ...]:
    """The tools of a plan, those that run code with the skill that the code is for."""
    return tuple(_step(call.tool, json.dumps(dict(call.arguments))) for call in task.made.calls)


def ways_shown(request: Request) -> set[tuple[str, ...]]:
    """The ways of those cases in the prompt that worked, read off their traces."""
    text = "\n".join(m.content for m in request.messages if m.role == "system")
    blocks = re.findall(r"^This worked\. Case .*?(?=^This worked\.|^This did not work|\Z)", text, re.DOTALL | re.M)
    return {tuple(_step(*line) for line in re.findall(r"^- (\w+) (\{.*)$", block, re.M)) for block in blocks}


def slipped(value: str) -> str:
    """Each digit one further, each letter the next."""
    digits, letters = "0123456789", "abcdefghijklmnopqrstuvwxyz"
    turned = [signs[1:] + signs[:1] for signs in (digits, letters, letters.upper())]
    return value.translate(str.maketrans(digits + letters + letters.upper(), "".join(turned)))


def _step(tool: str, arguments: str) -> str:
    skill = re.search(r"# skill (\w+)", arguments)
    return f"{tool}#{skill[1]}" if skill else tool


@cache
def _by_question() -> dict[str, Written]:
    return {task.made.question: task for task in tasks(seed=0)}
