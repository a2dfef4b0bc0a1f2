"""Typed values out of replies: strict, repaired, asked again once, then a typed failure."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field

from agentmem.domain.trajectory import Message
from agentmem.errors import StructuredOutputError
from agentmem.models.model import Reply
from agentmem.models.structured import parse, structured


class Verdict(BaseModel):
    reasoning: str
    score: float = Field(ge=0, le=1)


class Says:
    """A handle that gives these replies and remembers what it was asked."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[Message, ...]] = []

    async def complete(self, messages, *, temperature=None, json_schema=None):
        self.asked.append(tuple(messages))
        return Reply(message=Message(role="assistant", content=self.replies.pop(0)))


ASK = (Message(role="user", content="Judge."),)


@pytest.mark.parametrize(
    "text",
    [
        '{"reasoning": "fine", "score": 1}',
        'Sure! ```json\n{"reasoning": "fine", "score": 1.0}\n```',
        "{'reasoning': 'fine', 'score': 1,}",
        '{"reasoning": "fine", "score": 1',
        'Here it is: {"reasoning": "fine", "score": 1} Good luck!',
    ],
)
def test_what_is_meant_is_understood(text):
    assert parse(text, Verdict) == Verdict(reasoning="fine", score=1)


@pytest.mark.parametrize(
    "text", ["", "I cannot.", '{"reasoning": "fine"}', '{"reasoning": "fine", "score": 7}', "[1, 2]", '"score: 1"']
)
def test_what_is_not_there_is_not_made_up(text):
    with pytest.raises(ValueError, match=r"."):
        parse(text, Verdict)


async def test_one_re_ask_shows_the_error():
    model = Says('{"reasoning": "x", "score": 9}', '{"reasoning": "x", "score": 0.9}')
    assert (await structured(model, ASK, Verdict)).score == 0.9
    assert len(model.asked) == 2
    assert "less than or equal to 1" in model.asked[1][-1].content
    assert model.asked[1][-2].content == '{"reasoning": "x", "score": 9}'


async def test_then_it_is_a_typed_failure():
    model = Says("no", "never")
    with pytest.raises(StructuredOutputError, match=r"No valid Verdict, also after one re-ask.*'never'"):
        await structured(model, ASK, Verdict)
    assert len(model.asked) == 2
