"""The library: operations as one transaction, stable ids, nothing lost, nothing applied twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add, Delete, Keep, Merge, Modify, Restore, Unkeep
from agentmem.domain.origin import Origin
from agentmem.errors import InputError

texts = st.sampled_from(["Check units.", "Read twice.", "Draw it.", "Guess.", "Ask."])
ids = st.sampled_from(
    [e.id for e in ExperienceLibrary().apply([Add(text=t) for t in ("Check units.", "Read twice.", "Draw it.")])]
    + ["e-unknown"]
)
operations = st.lists(
    st.one_of(
        st.builds(Add, text=texts, when=st.sampled_from(["", "in physics"])),
        st.builds(Modify, id=ids, text=texts),
        st.builds(Merge, ids=st.lists(ids, max_size=3).map(tuple), text=texts),
        st.builds(Delete, id=ids),
        st.builds(Keep, ids=st.lists(ids, max_size=3).map(tuple)),
        st.builds(Restore, id=ids, after=st.none() | st.just("") | ids, text=st.none() | texts),
        st.builds(Unkeep, ids=st.lists(ids, max_size=3).map(tuple)),
    ),
    max_size=12,
)


@given(operations)
def test_no_operation_is_lost_and_no_id_is_used_twice(ops):
    revision = ExperienceLibrary().revise(ops)
    assert [decision.operation for decision in revision.decisions] == ops
    assert all(bool(decision.reason) != decision.accepted for decision in revision.decisions)
    every_id = [e.id for e in (*revision.library.experiences, *revision.library.retired)]
    assert len(every_id) == len(set(every_id))
    created = sum(isinstance(d.operation, Add | Merge) for d in revision.decisions if d.accepted)
    assert len(every_id) == created


@given(operations, operations)
def test_two_batches_are_one_batch(first, second):
    apart = ExperienceLibrary().apply(first).apply(second)
    together = ExperienceLibrary().apply(first + second)
    assert apart.experiences == together.experiences
    assert apart.retired == together.retired
    assert apart.distinct == together.distinct


@given(operations)
def test_json_round_trip_keeps_every_byte(ops):
    library = ExperienceLibrary().apply(ops)
    again = ExperienceLibrary.from_json(library.to_json())
    assert again == library
    assert again.to_json() == library.to_json()


@given(operations)
def test_the_old_version_is_untouched(ops):
    before = ExperienceLibrary().apply([Add(text="Check units.")])
    copy = before.to_json()
    before.apply(ops)
    assert before.to_json() == copy


def test_an_unknown_id_is_rejected_and_never_an_addition():
    revision = ExperienceLibrary().revise(
        [
            Modify(id="e-1", text="x"),
            Delete(id="e-1"),
            Merge(ids=("e-1", "e-2"), text="x"),
            Keep(ids=("e-1", "e-2")),
            Restore(id="e-1"),
            Unkeep(ids=("e-1", "e-2")),
        ]
    )
    assert [d.reason for d in revision.decisions] == ["no experience 'e-1'"] * 6
    assert revision.library == ExperienceLibrary()
    assert revision.library.version == 0


def test_an_id_is_kept_through_changes_and_not_given_again():
    library = ExperienceLibrary().apply([Add(text="Check units.")])
    id = library.experiences[0].id
    changed = library.apply([Modify(id=id, text="Check units twice.")])
    assert (changed.experiences[0].id, changed.experiences[0].revision) == (id, 2)
    back = changed.apply([Delete(id=id), Add(text="Check units.")])
    assert back.experiences[0].id != id
    assert [e.id for e in back.retired] == [id]


def test_a_merge_keeps_parents_and_origins():
    one, two = Origin(step=0, task_id="a"), Origin(step=1, task_id="b")
    library = ExperienceLibrary().apply([Add(text="A", origins=(one,)), Add(text="B", origins=(two,), gated=True)])
    a, b = library.experiences
    merged = library.apply([Merge(ids=(a.id, b.id), text="A and B")]).experiences[0]
    assert merged.parents == (a.id, b.id)
    assert merged.origins == (one, two)
    assert merged.gated


def test_the_same_addition_twice_is_applied_once():
    revision = ExperienceLibrary().revise([Add(text="A"), Add(text="A")])
    assert [d.accepted for d in revision.decisions] == [True, False]
    assert revision.decisions[1].reason == "already in the library"


def test_an_id_that_is_named_twice_is_merged_once():
    a, b = ExperienceLibrary().apply([Add(text="A"), Add(text="B")]).experiences
    library = ExperienceLibrary(experiences=(a, b))
    merged = library.revise([Merge(ids=(a.id, a.id, b.id), text="A and B")])
    assert merged.library.experiences[0].parents == (a.id, b.id)
    assert (
        library.revise([Merge(ids=(a.id, a.id), text="A")]).decisions[0].reason == "a merge needs two experiences"
    )


def test_a_restored_experience_is_what_it_was_and_stands_where_it_is_told():
    library = ExperienceLibrary().apply([Add(text="A"), Add(text="B"), Add(text="C")])
    a, b, c = library.experiences
    without = library.apply([Delete(id=b.id)])
    orders = {"": [b, a, c], a.id: [a, b, c], c.id: [a, c, b], None: [a, c, b], "e-gone": [a, c, b]}
    for after, order in orders.items():
        back = without.apply([Restore(id=b.id, after=after)])
        assert list(back) == order
        assert back.retired == ()
    words = library.apply([Restore(id=a.id, text="A again", taught_by=(Origin(step=1, task_id="t"),))])[a.id]
    assert (words.text, words.revision, words.origins[0].task_id) == ("A again", 2, "t")
    assert library.revise([Restore(id=a.id, text="A")]).decisions[0].reason == "changes nothing"


def test_a_pair_that_was_kept_can_be_looked_at_again():
    library = ExperienceLibrary().apply([Add(text="A"), Add(text="B")])
    ids = tuple(e.id for e in library)
    kept = library.apply([Keep(ids=ids)])
    assert kept.distinct == (tuple(sorted(ids)),)
    assert kept.apply([Unkeep(ids=ids)]).distinct == ()
    assert library.revise([Unkeep(ids=ids)]).decisions[0].reason == "changes nothing"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"schema": 99}', "schema 99, newer than this agentmem reads"),
        ('{"experiences": [{"id": 3}]}', r"no experience library: .* at experiences.0.id"),
        ("{", "no experience library"),
        ('{"experiences": [{"id":"e-1","text":"a"},{"id":"e-1","text":"b"}]}', "holds the id 'e-1' twice"),
    ],
)
def test_a_library_edited_by_hand_is_refused_in_a_sentence(text, sentence):
    with pytest.raises(InputError, match=sentence):
        ExperienceLibrary.from_json(text, source="my.json")
