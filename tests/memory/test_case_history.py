"""Undo, rollback and diff, against a model that keeps every state of the bank whole."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentmem.domain.case import Case
from agentmem.domain.reward import Reward
from agentmem.domain.write_rules import WriteRules
from agentmem.errors import InputError
from agentmem.memory.case_bank import CaseBank
from agentmem.testing.hash_embedder import HashEmbedder

STATES = ("red fox", "blue whale", "green tree")
numbers = st.integers(0, 6)
actions = st.sampled_from("xyz")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(STATES), actions, st.sampled_from([None, 0.0, 1.0])),
        st.tuples(st.just("credit"), st.sampled_from(STATES), st.sampled_from([0.0, 0.5, 1.0])),
        st.tuples(st.just("correct"), numbers, actions),
        st.tuples(st.just("remove"), numbers),
        st.tuples(st.just("quarantine"), numbers),
        st.tuples(st.just("merge"), numbers, numbers),
        st.tuples(st.just("undo"), numbers),
        st.tuples(st.just("rollback"), numbers),
    ),
    min_size=3,
    max_size=14,
)


def state_of(bank) -> tuple[dict[str, str], dict[int, tuple[int, str]]]:
    """The whole bank: living cases, and whether each use counts and whose it is."""
    cases = {case.id: case.model_dump_json() for case in bank}
    uses = bank.store.rows("SELECT id, void, case_id FROM uses")
    return cases, {id: (void, case_id) for id, void, case_id in uses}


def undone(states, seq):
    """What `undo` must give: each thing that the change touched as it was before, all else as it is now."""
    result = []
    blocked = touched = False
    for before, after, now in zip(states[seq - 1], states[seq], states[-1], strict=True):
        absent = (1, "") if now is states[-1][1] else None
        wanted = dict(now)
        for id in before.keys() | after.keys():
            was, became, holds = before.get(id), after.get(id), now.get(id)
            if absent and was is None:
                was = (1, became[1])
            if was == became or holds == was:
                continue
            touched = True
            blocked |= holds != became
            if was is None:
                wanted.pop(id, None)
            else:
                wanted[id] = was
        result.append(wanted)
    return None if blocked or not touched else tuple(result)


@settings(max_examples=80)
@given(steps, st.sampled_from([None, 2]))
@example([("add", "red fox", "x", None), ("credit", "red fox", 0.0), ("correct", 0, "y"), ("rollback", 0)], None)
def test_every_state_can_be_had_again(plan, capacity):
    with tempfile.TemporaryDirectory() as folder:
        rules = WriteRules(capacity=capacity)
        with closing(CaseBank(Path(folder) / "b", embedder=HashEmbedder(64), rules=rules)) as bank:
            bank.store._writer.execute(
                "PRAGMA synchronous=OFF"
            )  # nothing is killed here, and it is ten times as fast
            play(bank, plan)


def play(bank, plan):
    states = [state_of(bank)]
    for number, (verb, *given_) in enumerate(plan):
        ids = list(states[-1][0]) or ["c-none"]
        expected = None
        try:
            match verb:
                case "add":
                    bank.add(Case.of(given_[0], given_[1], reward=given_[2]))
                case "credit":
                    bank.credit(bank.recall(given_[0]), Reward.of(given_[1]), key=str(number))
                case "correct":
                    bank.correct(ids[given_[0] % len(ids)], action=given_[1])
                case "remove":
                    bank.remove(ids[given_[0] % len(ids)])
                case "quarantine":
                    bank.quarantine(ids[given_[0] % len(ids)])
                case "merge":
                    bank.merge([ids[n % len(ids)] for n in given_])
                case "undo":
                    seq = given_[0] % len(states)
                    expected = undone(states, seq) if seq else None
                    bank.undo(seq)
                    assert state_of(bank) == expected
                case "rollback":
                    seq = given_[0] % len(states)
                    bank.rollback(seq)
                    cases, uses = state_of(bank)
                    assert cases == states[seq][0]
                    assert {id: use for id, use in uses.items() if id in states[seq][1]} == states[seq][1]
                    assert all(uses[id][0] == 1 for id in uses if id not in states[seq][1])
        except InputError:
            assert expected is None
            assert state_of(bank) == states[-1]  # what is refused changes nothing
            continue
        states.append(state_of(bank))
        assert bank.seq == len(states) - 1
    for before in range(len(states)):
        diff = bank.diff(before)
        old, new = states[before][0], states[-1][0]
        assert {case.id for case in diff.added} == new.keys() - old.keys()
        assert {case.id for case in diff.removed} == old.keys() - new.keys()
        assert {case.id for case, _ in diff.changed} == {
            id for id in old.keys() & new.keys() if old[id] != new[id]
        }
        counting = [sum(void == 0 for void, _ in states[moment][1].values()) for moment in (before, -1)]
        assert diff.uses == counting[1] - counting[0]
    living = {id for id, body in states[-1][0].items() if '"trust":"trusted"' in body}
    for text in STATES:  # and the index follows
        assert set(bank.recall(text, k=50).ids) <= living
    alive = [
        reward for reward, void in bank.store.rows("SELECT reward, void FROM uses WHERE place = 0") if void != 1
    ]
    mean = bank.store.mean_reward()
    assert mean == (pytest.approx(sum(alive) / len(alive)) if alive else None)
    assert bank.stats().cases == len(bank) == len(states[-1][0])


@pytest.fixture
def bank(tmp_path):
    with closing(CaseBank(tmp_path / "b", embedder=HashEmbedder(64))) as bank:
        yield bank


def test_an_undo_that_is_stood_in_the_way_of_says_by_what(bank):
    case = bank.add(Case.of("s", "a"))
    bank.correct(case.id, action="b")
    with pytest.raises(InputError, match="Change 1 cannot be undone alone: change 2 wrote over"):
        bank.undo(1)
    bank.undo(2)
    bank.undo(1)
    assert len(bank) == 0
    with pytest.raises(InputError, match="Change 1 is undone already"):
        bank.undo(1)
    with pytest.raises(InputError, match="There is no change 9; the last one is 4"):
        bank.undo(9)
    with pytest.raises(InputError, match="There is no change 9"):
        bank.rollback(9)
    bank.undo(4)  # an undo can be undone
    assert bank.list() == (case,)


def test_an_undo_with_a_key_happens_once(bank):
    bank.add(Case.of("s", "a"))
    first = bank.undo(1, key="u")
    assert bank.undo(1, key="u") == first == bank.seq


def test_history_tells_what_was_done_to_a_case(bank):
    case = bank.add(Case.of("s", "a", reward=1.0), why="seen")
    bank.add(Case.of("other", "b"))
    bank.credit(bank.recall("s"), Reward.of(1.0), key="t1")
    bank.quarantine(case.id, why="odd")
    history = bank.show(case.id)
    assert [(change.seq, change.verb, change.why, change.key) for change in history.log] == [
        (4, "quarantine", "odd", None),
        (3, "use", "", "t1"),
        (1, "add", "seen", None),
    ]
    assert [change.seq for change in bank.log(since=1, limit=2)] == [4, 3]
    assert len(bank.diff(1).added) == 1
    assert bank.diff(4, 3).changed[0][1].trust == "trusted"
