"""Undo: a revert takes back one operation exactly, a rollback all of them; ids stay what they were."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add, Delete, Keep, Merge, Modify, Restore, Unkeep
from agentmem.domain.origin import Origin
from agentmem.errors import InputError
from agentmem.learning.undo import find, one_by_one, revert, rollback

TEXTS = ["Check units.", "Read twice.", "Draw it.", "Guess."]
START = ExperienceLibrary().apply([Add(text=t, origins=(Origin(step=0, task_id=t),)) for t in TEXTS])
A, B, C, D = (e.id for e in START)
ids = st.sampled_from([A, B, C, D, "e-unknown"])
several = st.lists(ids, max_size=3).map(tuple)
origins = st.lists(st.builds(Origin, step=st.just(1), task_id=st.sampled_from("xyz")), max_size=2).map(tuple)
operations = st.lists(
    st.one_of(
        st.builds(Add, text=st.sampled_from([*TEXTS, "Ask."]), origins=origins),
        st.builds(
            Modify,
            id=ids,
            text=st.sampled_from([*TEXTS, "Ask."]),
            when=st.none() | st.just("x"),
            origins=origins,
            gated=st.booleans(),
        ),
        st.builds(Merge, ids=several, text=st.sampled_from(TEXTS), origins=origins, gated=st.booleans()),
        st.builds(Delete, id=ids),
        st.builds(Keep, ids=several),
        st.builds(Unkeep, ids=several),
        st.builds(Restore, id=ids, after=st.none() | st.just("") | ids),
    ),
    max_size=14,
)


def said(library):
    """The experiences without the count of their revisions, which only ever goes up."""
    return [e.model_copy(update={"revision": 0}) for e in library]


@given(operations)
def test_reverting_all_operations_gives_back_the_same_experiences_in_the_same_order(ops):
    done = one_by_one(START, ops)
    library = done[-1].after if done else START
    for applied in reversed(done):
        reverted = revert(library, applied)
        assert reverted.library.version == library.version + 1
        library = reverted.library
        assert said(library) == said(applied.before)
        assert sorted(library.distinct) == sorted(applied.before.distinct)
    every = [e.id for e in (*library, *library.retired)]
    assert len(every) == len(set(every))


@given(operations, operations)
def test_a_rollback_gives_back_the_very_version(first, second):
    target = START.apply(first)
    newest = target.apply(second)
    assume(said(newest) != said(target))
    back = rollback(newest, target)
    assert said(back.library) == said(target)
    assert back.library.version == newest.version + 1
    wanted = {e.id for e in target}
    distinct = [{p for p in lib.distinct if set(p) <= wanted} for lib in (back.library, target)]
    assert distinct[0] == distinct[1]
    assert {e.id for e in newest} <= {e.id for e in (*back.library, *back.library.retired)}
    assert all(d.operation.why == f"rollback to version {target.version}" for d in back.decisions)


@given(operations, st.data())
def test_one_revert_in_the_middle_leaves_the_others_alone_or_says_what_stands_in_the_way(ops, data):
    done = one_by_one(START, ops)
    assume(done)
    newest, applied = done[-1].after, data.draw(st.sampled_from(done))
    before = newest.to_json()
    with suppress(InputError):
        after = revert(newest, applied).library
        _assert_only_it_changed(newest, after, applied)
    assert newest.to_json() == before


@given(operations, st.lists(st.sampled_from([A, B, C, D, "new"]), unique=True), st.randoms(use_true_random=False))
def test_what_was_retired_stands_in_its_old_place_in_whatever_order_it_is_brought_back(ops, gone, rng):
    before = START.apply(ops)
    done = one_by_one(before, [Delete(id=id) for id in gone])
    library = done[-1].after if done else before
    rng.shuffle(done)
    for applied in done:
        library = revert(library, applied).library
    assert [e.id for e in library] == [e.id for e in before]


@given(st.permutations(range(3)))
def test_a_merge_and_deletions_around_it_are_undone_in_any_order(order):
    done = one_by_one(START, [Delete(id=B), Merge(ids=(A, C), text="Both."), Delete(id=D)])
    library = done[-1].after
    for place in order:
        library = revert(library, done[place]).library
    assert [e.id for e in library] == [A, B, C, D]


def _assert_only_it_changed(newest, after, applied):
    touched = {e.id for e in (*newest, *newest.retired, *after) if applied.touches(e.id)}
    assert [e for e in after if e.id not in touched] == [e for e in newest if e.id not in touched]


def test_each_kind_is_undone_in_its_own_way():
    done = one_by_one(
        START,
        [
            Add(text="Ask."),
            Modify(id=A, text="Check all units.", origins=(Origin(step=1, task_id="t"),)),
            Delete(id=B),
            Merge(ids=(C, D), text="Draw or guess."),
        ],
        version=7,
    )
    assert [each.name for each in done] == ["7.1", "7.2", "7.3", "7.4"]
    add, modify, delete, merge = done
    newest = merge.after
    assert find(revert(newest, add).library, add.created)[1] is False
    words = revert(newest, modify).library[A]
    assert (words.text, words.revision, words.origins) == ("Check units.", 3, START[A].origins)
    assert [e.id for e in revert(newest, delete).library][:2] == [A, B]
    parents = revert(newest, merge).library
    assert [e.id for e in parents] == [A, C, D, add.created]
    assert find(parents, merge.created)[1] is False


def test_what_was_restored_among_new_ones_stands_where_it_stood():
    deleted, _ = done = one_by_one(START, [Delete(id=C), Add(text="New.")])
    assert [e.text for e in revert(done[-1].after, deleted).library][2] == "Draw it."


def test_later_changes_stand_in_the_way_only_where_they_touch():
    text, when = one_by_one(START, [Modify(id=A, text="New words."), Modify(id=A, when="always")])
    reverted = revert(when.after, text).library[A]
    assert (reverted.text, reverted.when) == ("Check units.", "always")
    one, two = Origin(step=1, task_id="one"), Origin(step=2, task_id="two")
    text, when = one_by_one(
        START, [Modify(id=A, text="New.", origins=(one,)), Modify(id=A, when="x", origins=(two,))]
    )
    assert revert(when.after, text).library[A].origins == (*START[A].origins, two)
    first, second = one_by_one(START, [Modify(id=A, text="New words."), Modify(id=A, text="Newer words.")])
    with pytest.raises(InputError, match=rf"'{A}' was changed again since \(text\); undo that first"):
        revert(second.after, first)


def test_the_mark_of_a_gated_data_set_goes_with_the_words_that_it_gave():
    gated = Modify(id=A, text="New.", gated=True, origins=(Origin(step=1, task_id="g"),))
    later = Modify(id=A, when="x", origins=(Origin(step=2, task_id="t"),))
    first, second = one_by_one(START, [gated, later])
    assert [first.before[A].gated, first.after[A].gated, second.after[A].gated] == [False, True, True]
    assert revert(first.after, first).library[A].gated is False
    assert revert(second.after, first).library[A].gated is True  # who wrote the rest is not known
    assert rollback(second.after, START).library[A].gated is False


def test_a_revert_can_be_reverted():
    (delete,) = one_by_one(START, [Delete(id=B)])
    undone = revert(delete.after, delete)
    (again,) = one_by_one(delete.after, undone.accepted)
    assert revert(undone.library, again).library.experiences == delete.after.experiences


@pytest.mark.parametrize(
    ("operation", "then", "sentence"),
    [
        (Add(text="Ask."), lambda id: [Delete(id=id)], "is not in the library any more"),
        (
            Add(text="Ask."),
            lambda id: [Merge(ids=(id, A), text="Both.")],
            "was merged into 'e-.*' since; undo that",
        ),
        (Delete(id=B), lambda _: [Restore(id=B)], f"'{B}' is in the library again already"),
        (Merge(ids=(A, B), text="Both."), lambda _: [Restore(id=A)], f"'{A}' is in the library again already"),
        (Modify(id=A, when="x"), lambda _: [Modify(id=A, when="")], "changed again since"),
    ],
)
def test_what_stands_in_the_way_is_named(operation, then, sentence):
    (applied,) = one_by_one(START, [operation])
    newest = applied.after.apply(then(applied.created))
    with pytest.raises(InputError, match=sentence):
        revert(newest, applied)


def test_a_rollback_to_the_same_is_refused():
    with pytest.raises(InputError, match="Version 1 is what the library holds already"):
        rollback(START, START)
    with pytest.raises(InputError, match="has never held"):
        rollback(ExperienceLibrary(), START)
