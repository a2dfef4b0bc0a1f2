"""A plan of subtasks that need each other's results, and the planner's move: such a plan, or the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, ValidationInfo, field_validator, model_validator

from agentmem.domain.case import Recall
from agentmem.domain.value import Value, encodable

MOST_SUBTASKS = 8
"""Of one plan; whoever needs more plans again when these are done."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,24}")

Status = Literal["open", "solved", "failed", "limit", "skipped"]
"""`limit`: it ran out of turns or tokens. `skipped`: it was not begun, because it needs one that was not solved."""


class Subtask(Value):
    """One step of a plan, and what came of it.

    Example:
        >>> Subtask(id="p1.a", description="Find the year.").status
        'open'
    """

    id: str
    """`p2.a` is subtask `a` of the second plan."""
    description: str
    needs: tuple[str, ...] = ()
    """The subtasks whose results it is given."""
    status: Status = "open"
    result: str = ""
    """What it found out; where it was not solved, why."""
    untrusted: bool = False
    """Whether text from outside (the web, a file, a server) had a part in the result."""
    recall: Recall | None = None
    """The solved subtasks of earlier episodes that it recalled; None where there is no such memory."""


class Plan(Value):
    """Subtasks in the order in which the planner named them."""

    subtasks: tuple[Subtask, ...]
    unplanned: bool = False
    """Whether the planner wrote none that could be read, and its one subtask is the task itself."""

    def __str__(self) -> str:
        return "\n".join(_in_words(subtask) for subtask in self.subtasks)


class Proposed(Value):
    """A subtask as a model writes it; what else it says of it is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    description: str
    needs: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _lenient(cls, said: Any) -> Any:
        if not isinstance(said, Mapping):
            return said
        needs = said.get("needs")
        needs = [] if needs is None else [needs] if isinstance(needs, str | int) else needs
        listed = [str(need).strip() for need in needs] if isinstance(needs, list | tuple) else needs
        id = said.get("id")
        return {**said, "id": str(id).strip() if isinstance(id, int) else id, "needs": listed}

    @field_validator("id")
    @classmethod
    def _short(cls, id: str) -> str:
        if not _ID.fullmatch(id):
            raise ValueError(f"the id {id[:40]!r} must be 1 to 24 letters, digits, - or _")
        return id

    @field_validator("description")
    @classmethod
    def _said(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("a subtask needs a description")
        return encodable(text.strip())


class Move(Value):
    """What a planner decides: the answer, or a plan. It is validated as a whole, each fault with a sentence.

    The validation's context may hold `solved`: the ids of earlier plans' subtasks that this plan may need.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    answer: str = ""
    plan: tuple[Proposed, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _lenient(cls, said: Any) -> Any:
        if not isinstance(said, Mapping):
            return said
        answer, plan = said.get("answer"), said.get("plan")
        number = isinstance(answer, int | float) and not isinstance(answer, bool)
        if isinstance(plan, list) and len(plan) > MOST_SUBTASKS:  # before each of a thousand is looked at
            raise ValueError(
                f"a plan has at most {MOST_SUBTASKS} subtasks, and this one has {len(plan)}; "
                "name the first ones, and plan again when their results are there"
            )
        return {"answer": "" if answer is None else str(answer) if number else answer, "plan": plan or ()}

    @model_validator(mode="after")
    def _sound(self, info: ValidationInfo) -> Move:
        if bool(self.answer.strip()) == bool(self.plan):
            raise ValueError("give either an 'answer' or a 'plan' with 1 to 8 subtasks")
        ids = [subtask.id for subtask in self.plan]
        if double := next((id for id in ids if ids.count(id) > 1), None):
            raise ValueError(f"two subtasks have the id {double!r}; each needs one of its own")
        known = {*ids, *((info.context or {}).get("solved") or ())}
        for subtask in self.plan:
            if unknown := next((need for need in subtask.needs if need not in known), None):
                raise ValueError(
                    f"subtask {subtask.id!r} needs {unknown!r}, which is neither in this plan nor solved earlier; "
                    f"known: {', '.join(sorted(known))}"
                )
        if circle := _circle({subtask.id: subtask.needs for subtask in self.plan}):
            raise ValueError(f"the subtasks {', '.join(circle)} need each other in a circle")
        return self

    def as_plan(self, number: int) -> Plan:
        """The plan that is the episode's `number`-th, from 1; its subtasks are named after it."""
        own = {subtask.id: f"p{number}.{subtask.id}" for subtask in self.plan}
        return Plan(
            subtasks=tuple(
                Subtask(
                    id=own[subtask.id],
                    description=subtask.description,
                    needs=tuple(dict.fromkeys(own.get(need, need) for need in subtask.needs)),
                )
                for subtask in self.plan
            )
        )


def _circle(needs: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The ids that can never begin, because they wait for each other; empty where there are none."""
    left = {id: {need for need in wanted if need in needs} for id, wanted in needs.items()}
    while free := [id for id, wanted in left.items() if not wanted]:
        left = {id: wanted - set(free) for id, wanted in left.items() if id not in free}
    return tuple(left)


def _in_words(subtask: Subtask) -> str:
    needs = f" (needs {', '.join(subtask.needs)})" if subtask.needs else ""
    return f"{subtask.id}: {subtask.description}{needs}"
