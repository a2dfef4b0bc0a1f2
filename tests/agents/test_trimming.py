"""Trimming: what is kept is whole, no result is without its call, and the limit holds where it can."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentmem.agents.trimming import tokens_of, trimmed
from agentmem.domain.trajectory import Message, ToolCall
from agentmem.testing.scripted import ScriptedModel
from agentmem.tools.tool import tool
from tests.agents.planning import TASK, attempt, call
from tests.agents.planning import Agent as Acting

SYSTEM = Message(role="system", content="Be brief.")
ASKED = Message(role="user", content="What is it?")


def pair(number: int, size: int = 40, calls: int = 1) -> list[Message]:
    made = tuple(ToolCall(id=f"c{number}.{n}", name="look", arguments="{}") for n in range(calls))
    said = Message(role="assistant", content="x" * size, tool_calls=made)
    return [said, *(Message(role="tool", content="y" * size, tool_call_id=one.id) for one in made)]


turns = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 3)), max_size=8).map(
    lambda sizes: [m for n, (size, calls) in enumerate(sizes) for m in pair(n, size, calls)]
)


@given(turns, st.integers(100, 4000), st.booleans())
def test_laws(said, limit, asked_last):
    if asked_last and said:
        said = [*said, Message(role="user", content="Answer now.")]
    kept = trimmed((SYSTEM, ASKED), said, max_tokens=limit)
    assert kept[0] == SYSTEM
    assert kept[1].role == "user"
    assert kept[1].content.startswith(ASKED.content)
    called = {one.id for m in kept for one in m.tool_calls}
    answered = {m.tool_call_id for m in kept if m.role == "tool"}
    assert called == answered
    rest = list(kept[2:])
    assert rest == said[len(said) - len(rest) :], "what is kept is the newest, in order"
    assert not said or rest, "the newest turn is always there"
    groups = sum(m.role == "assistant" for m in rest)
    if groups > 1:
        assert sum(map(tokens_of, kept)) <= limit
    if len(rest) < len(said):
        assert "left out here" in kept[1].content
    else:
        assert kept[1] == ASKED


def test_the_tokens_of_calls_count():
    long = Message(role="assistant", tool_calls=(ToolCall(id="c", name="look", arguments="x" * 4000),))
    assert tokens_of(long) > 1000
    kept = trimmed((ASKED,), [long, Message(role="tool", tool_call_id="c"), *pair(2)], max_tokens=500)
    assert len(kept) == 3


async def test_a_long_conversation_stays_within_its_limit_and_goes_on(tmp_path):
    @tool
    def look() -> str:
        """Look."""
        return "fog " * 200

    says = [call("look")] * 8
    model = ScriptedModel([*says, "42"])
    rollout = await attempt(Acting(model, tools=[look], context_tokens=1000), tmp_path, task=TASK)
    assert rollout.score == 1.0
    assert all(sum(map(tokens_of, request.messages)) <= 1000 for request in model.requests)
    assert "7 earlier turns" not in model.requests[1].messages[0].content
    assert "earlier turns" in model.requests[-1].messages[0].content
    assert len(rollout.trajectory.steps) == 9, "the record keeps what the prompt left out"
