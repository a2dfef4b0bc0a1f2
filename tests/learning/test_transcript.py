"""Rollouts as text for an extractor: within tokens, the answer kept, what is shared named once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Rollout
from agentmem.domain.trajectory import Message, Step, ToolCall, ToolResult, Trajectory
from agentmem.domain.usage import estimate_tokens
from agentmem.learning.transcript import elide, transcripts


def rollout(*steps: tuple[str, str], answer: str = "42") -> Rollout:
    made = []
    for said, result in steps:
        call = ToolCall(id="c", name="python", arguments='{"code": "x"}')
        reply = Message(role="assistant", content=said, tool_calls=(call,))
        made.append(Step(reply=reply, results=(ToolResult(call=call, content=result),)))
    made.append(Step(reply=Message(role="assistant", content=answer)))
    return Rollout(task_id="t", trajectory=Trajectory(steps=tuple(made), output=answer), reward=Reward.of(1.0))


def test_a_plain_answer_is_its_own_transcript():
    assert transcripts([rollout(answer="It is 42.")], max_tokens=100) == ["It is 42."]


def test_shared_steps_are_named_once_and_the_rest_is_told():
    one = rollout(("look", "same"), ("try a", "1"))
    other = rollout(("look", "same"), ("try b", "2"), answer="41")
    first, second = transcripts([one, other], max_tokens=200)
    assert "first 1 steps are the same in all attempts" in first
    assert "look" not in first
    assert "try a" in first
    assert "try b" in second
    assert second.endswith("Final answer: 41")


def test_a_long_tool_result_loses_its_middle_first():
    (text,) = transcripts([rollout(("compute", "begin " + "x" * 40_000 + " end"))], max_tokens=200)
    assert "begin" in text
    assert "end" in text
    assert "characters left out" in text
    assert text.endswith("Final answer: 42")


@given(
    st.lists(st.tuples(st.text(max_size=300), st.text(max_size=3000)), max_size=8),
    st.text(min_size=1, max_size=500),
    st.integers(100, 1000),
)
def test_the_tokens_hold_and_the_answer_is_there(steps, answer, most):
    (text,) = transcripts([rollout(*steps, answer=answer)], max_tokens=most)
    assert estimate_tokens(text) <= 2 * most + 100  # each part keeps a few words at least
    assert elide(answer.strip() or "(no answer)", most // 2) in text or answer.strip() in text


@given(st.text(max_size=2000), st.integers(20, 200))
def test_eliding_fits_and_keeps_both_ends(text, most):
    short = elide(text, most)
    if short != text:
        assert short.startswith(text[:3])
        assert short.endswith(text[-2:])
        assert len(short) < len(text) + 60
