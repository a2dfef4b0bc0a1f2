"""Plans: whatever a model proposes is sound or refused with a sentence, and what is sound can be done to the end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agentmem.domain.plan import MOST_SUBTASKS, Move

IDS = st.sampled_from(["a", "b", "c", "d", "p1.x", "p9.y"])
PROPOSED = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["a", "b", "c", "d"]),
        "description": st.just("Do it."),
        "needs": st.lists(IDS, max_size=3),
    }
)


@given(st.lists(PROPOSED, max_size=10))
def test_what_is_accepted_can_be_done_to_the_end(proposed):
    try:
        move = Move.model_validate({"plan": proposed}, context={"solved": ("p1.x",)})
    except ValidationError:
        return
    done, left = {"p1.x"}, list(move.as_plan(2).subtasks)
    assert 1 <= len(left) <= MOST_SUBTASKS
    assert len({subtask.id for subtask in left}) == len(left)
    while left:
        ready = [subtask for subtask in left if set(subtask.needs) <= done]
        assert ready, "somebody can always begin"
        done |= {subtask.id for subtask in ready}
        left = [subtask for subtask in left if subtask.id not in done]


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda x: (
            st.lists(x) | st.dictionaries(st.sampled_from(["plan", "answer", "id", "needs", "description"]), x)
        ),
    )
)
def test_no_json_raises_anything_else(said):
    try:
        Move.model_validate(said)
    except ValidationError:
        return


@pytest.mark.parametrize(
    ("said", "needs"),
    [(None, ()), ("a", ("a",)), (["a", "a", "p1.x"], ("p2.a", "p1.x"))],
)
def test_needs_are_read_leniently(said, needs):
    plan = [{"id": "a", "description": "x"}, {"id": 7, "description": "y", "needs": said, "why": "because"}]
    second = (
        Move.model_validate({"plan": plan, "thought": "hm"}, context={"solved": ["p1.x"]}).as_plan(2).subtasks[1]
    )
    assert second.id == "p2.7"
    assert second.needs == tuple(f"p2.{need}" if need == "a" else need for need in needs)


def test_a_number_is_an_answer():
    assert Move.model_validate({"answer": 42}).answer == "42"
