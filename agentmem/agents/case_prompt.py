"""What recalled cases become in a prompt, and which of them an answer says it used."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentmem.domain.case import Case, Recall
from agentmem.domain.clean_text import clean
from agentmem.domain.trajectory import Message
from agentmem.domain.usage import estimate_tokens
from agentmem.domain.value import Value
from agentmem.prompts import render
from agentmem.rewards.statement import normal
from agentmem.settings import MemorySettings

_CITATION = re.compile(r"^\W*cases used\W*(?P<ids>.*)$", re.IGNORECASE | re.MULTILINE)
_ID = re.compile(r"\bc-[0-9a-f]{6,}\b")


class ShownCases(Value):
    """Recalled cases as a prompt holds them: a quoted block, and turns of the conversation."""

    block: str = ""
    turns: tuple[Message, ...] = ()
    ids: tuple[str, ...] = ()
    """The cases that were shown; those that did not fit are not among them."""
    recall: Recall | None = None
    """The whole slate; None where the agent has no memory."""

    def __str__(self) -> str:
        said = [f"{'Question' if turn.role == 'user' else 'Answer'}: {turn.content}" for turn in self.turns]
        return "\n\n".join(part for part in (self.block, "\n".join(said)) if part)


def show_cases(recall: Recall, settings: MemorySettings, mark: str) -> ShownCases:
    """Successes and failures apart, within the token budget, as data between marks (ALGORITHMS: spotlighting).

    Args:
        recall: what was recalled.
        settings: `show="turns"` makes successes chat turns, the least similar first; failures are always quoted.
        mark: a random word of this run, which quoted text cannot know.
    """
    cases = _fitting([_quotable(item.case, mark) for item in recall.cases], settings.memory_tokens)
    worked = [case for case in cases if case.succeeded is not False]
    failed = [case for case in cases if case.succeeded is False]
    turns: tuple[Message, ...] = ()
    if settings.show == "turns":
        turns = tuple(turn for case in reversed(worked) for turn in _turns(case))
        worked = []
    block = ""
    if worked or failed:
        fields = {"worked": [_fields(case) for case in worked], "failed": [_fields(case) for case in failed]}
        block = render("cases", mark=mark, cite=settings.cite, **fields)
    return ShownCases(block=block, turns=turns, ids=tuple(case.id for case in cases), recall=recall)


def cited(answer: str, shown: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    r"""The answer without its line of citations, and those of the shown cases that it names.

    Example:
        >>> cited("IT desk\nCases used: c-1a2b3c4d5e6f", ["c-1a2b3c4d5e6f"])
        ('IT desk', ('c-1a2b3c4d5e6f',))
    """
    lines = list(_CITATION.finditer(answer))
    if not lines:
        return answer, ()
    named = {id for line in lines for id in _ID.findall(line["ids"])}
    return _CITATION.sub("", answer).strip(), tuple(id for id in shown if id in named)


def repeated(answer: str, shown: ShownCases) -> tuple[str, ...]:
    """The shown cases that gave this very answer: a model that repeats what a case says used it, cited or not.

    Cases that failed are shown as what not to do, and are not among them.
    """
    said = normal(answer)
    cases = (recalled.case for recalled in shown.recall.cases) if shown.recall else ()
    return tuple(
        case.id
        for case in cases
        if case.id in shown.ids and case.succeeded is not False and normal(case.action) == said
    )


def _fitting(cases: list[Case], max_tokens: int) -> list[Case]:
    """The first cases that fit together; the slate's order is that of preference."""
    kept, left = [], max_tokens
    for case in cases:
        cost = estimate_tokens("\n".join([case.state, *case.trace, case.action]))
        if cost <= left:
            kept.append(case)
            left -= cost
    return kept


def _quotable(case: Case, mark: str) -> Case:
    def quoted(text: str) -> str:
        return clean(text).replace(mark, "")

    trace = tuple(quoted(line) for line in case.trace)
    return case.model_copy(update={"state": quoted(case.state), "action": quoted(case.action), "trace": trace})


def _turns(case: Case) -> tuple[Message, Message]:
    return Message(role="user", content=case.state), Message(role="assistant", content=case.action)


def _fields(case: Case) -> dict[str, object]:
    return {"id": case.id, "state": case.state, "action": case.action, "trace": list(case.trace)}
