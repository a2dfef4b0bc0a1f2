"""A small world for tests: sums in Zork are one too low unless the prompt says so. Scripted, not a model."""

from __future__ import annotations

import json
import random
import re

from agentmem.domain.seed import split_seed
from agentmem.domain.task import Task, TaskSet
from agentmem.models.model import Request
from agentmem.testing.scripted import ScriptedModel

LESSON = {"text": "Add one to every sum.", "when": "a sum is in Zork", "why": "the right attempts did"}
TASKS = TaskSet(
    [
        Task(id=f"{a}+{b}", input=f"How much is {a} and {b} in Zork?", answer=str(a + b + 1))
        for a in range(8)
        for b in range(4)
    ]
)
HEADS = {
    "Distil what one task teaches.": "distil",
    "Summarise one attempt.": "summarise",
    "Contrast the attempts at one task.": "contrast",
    "Map new lessons on the experience library.": "update",
    "Settle operations that concern each other.": "consolidate",
    "Give advice on a kind of task.": "tips",
    "Your earlier answer to the task below was not right.": "critique",
}


def role_of(request: Request) -> str:
    """What a request is for, by the first line of its prompt."""
    first = request.messages[0].content.splitlines()[0]
    return next((role for head, role in HEADS.items() if first.startswith(head)), "task")


class Zork:
    """Answers every role; `says` overrides single ones, `asked` counts them."""

    def __init__(self, p: float = 0.4, **says: object) -> None:
        self.p, self.says = p, says
        self.asked: list[tuple[str, Request]] = []
        self.model = ScriptedModel(self, name="scripted/zork")

    def count(self, role: str) -> int:
        """Requests in this role."""
        return sum(asked == role for asked, _ in self.asked)

    def prompts(self, role: str) -> list[str]:
        """What was asked in this role."""
        return [request.messages[-1].content for asked, request in self.asked if asked == role]

    def __call__(self, request: Request):
        role = role_of(request)
        self.asked.append((role, request))
        said = self.says.get(role, getattr(self, f"_{role}"))
        answer = said(request) if callable(said) else said
        return answer if isinstance(answer, str | Exception) else json.dumps(answer)

    def _task(self, request: Request) -> str:
        a, b = map(int, re.findall(r"\d+", request.messages[-1].content)[:2])
        told = any("Add one" in message.content for message in request.messages)
        lucky = random.Random(split_seed(request.seed or 0, "zork")).random() < self.p
        return str(a + b + 1) if told or lucky else str(a + b)

    def _distil(self, request: Request):
        return {"operations": [{"op": "add", **LESSON}]}

    def _summarise(self, request: Request) -> str:
        return "It added the numbers."

    def _contrast(self, request: Request):
        return {"lessons": [LESSON]}

    def _update(self, request: Request):
        known = "[e-" in request.messages[-1].content
        return {"operations": [] if known else [{"op": "add", **LESSON}]}

    def _consolidate(self, request: Request):
        clusters = re.findall(r"^Cluster (\d+)$", request.messages[-1].content, re.MULTILINE)
        known = re.findall(r"^\[(e-\w+)\]", request.messages[-1].content, re.MULTILINE)
        return {
            "clusters": [
                {"number": int(n), "operations": [] if known else [{"op": "add", **LESSON}]} for n in clusters
            ]
        }

    def _tips(self, request: Request):
        return {"lessons": []}

    def _critique(self, request: Request) -> str:
        a, b = map(int, re.findall(r"\d+", request.messages[-1].content)[:2])
        return str(a + b + 1)
