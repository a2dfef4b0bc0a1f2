"""Cells of vectors: what they find, what changes them, and what it takes to have them drawn anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from agentmem.memory import ivf_index
from agentmem.memory.case_store import CaseStore
from agentmem.memory.index_home import Stopped, Unusable
from agentmem.memory.ivf_index import FEWEST, IvfHome, IvfIndex
from tests.memory.rows import DIMENSIONS, put, remove, unit

Vectors = NDArray[np.float32]


def directions(rng: np.random.Generator, n: int, dimensions: int) -> Vectors:
    rows = rng.standard_normal((n, dimensions))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def clusters(n: int, each: int, *, dimensions: int = 64) -> tuple[Vectors, Vectors]:
    """Vectors around random directions, and queries that are further draws."""
    rng = np.random.default_rng(each)
    centres = directions(rng, max(1, n // each), dimensions)
    rows = centres[rng.integers(len(centres), size=n + 50)] + 0.1 * rng.standard_normal((n + 50, dimensions))
    rows = np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)
    return rows[:n], rows[n:]


def index_of(vectors: Vectors) -> IvfIndex:
    return IvfIndex([str(row) for row in range(len(vectors))], vectors, seq=1)


def recall(index: IvfIndex, vectors: Vectors, queries: Vectors, k: int = 10) -> float:
    hits = 0
    for query in queries:
        right = np.argsort(-(vectors @ query), kind="stable")[:k]
        hits += len(set(index.nearest(query, k)) & {str(row) for row in right})
    return hits / (k * len(queries))


@pytest.mark.parametrize(("each", "least", "most"), [(50, 0.0, 0.1), (2000, 0.1, 0.5), (6000, 0.5, 1.0)])
def test_as_many_cells_as_the_vectors_need(each: int, least: float, most: float) -> None:
    """Of small clusters a few cells hold all neighbours; where there are no clusters, it takes most of the cells."""
    vectors, queries = clusters(6000, each)
    index = index_of(vectors)
    assert least * index.cells <= index.probes <= most * index.cells
    assert recall(index, vectors, queries) >= 0.98


def test_what_is_added_counts_for_how_many_cells_are_looked_at() -> None:
    """A bank that began with small clusters, and goes on without any."""
    easy, _ = clusters(2000, 50)
    hard, queries = clusters(2000, 2000)
    index = index_of(easy)
    assert index.probes == FEWEST
    index = index.changed({f"h{row}": vector for row, vector in enumerate(hard)}, [], seq=2)
    assert index.probes > 2 * FEWEST
    found = [len({f"h{row}" for row in np.argsort(-(hard @ q))[:10]} & set(index.nearest(q, 10))) for q in queries]
    assert sum(found) >= 0.97 * 10 * len(queries)


def test_half_precision_decides_nothing_among_a_few() -> None:
    """Neighbours nearer to each other than half precision can tell are given in the order of what they are."""
    rng = np.random.default_rng(3)
    base = directions(rng, 1, 64)
    close = np.asarray(base + 1e-4 * rng.standard_normal((6, 64)), np.float32)
    rows = np.concatenate([close, clusters(500, 50)[0]])
    index = index_of(rows)
    for _ in range(20):
        query = np.asarray(base[0] + 0.1 * rng.standard_normal(64), np.float32)
        right = [str(row) for row in np.argsort(-np.vecdot(rows, query), kind="stable")[:3]]
        assert index.nearest(query, 3) == right


def test_few_cells_are_widened_to_as_many_as_it_takes() -> None:
    vectors, _ = clusters(600, 50)
    index = index_of(vectors)
    index.probes = 1
    query = vectors[0]
    right = [str(row) for row in np.argsort(-np.vecdot(vectors, query), kind="stable")]
    assert index.nearest(query, 600) == right
    assert index.nearest(query, 590, without={right[0]}) == right[1:591]
    index.probes = index.cells
    assert index.nearest(query, 1, without=set(right[:60])) == right[60:61]  # more than were asked for at first


def test_the_measured_recall_is_what_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, queries = clusters(6000, 6000)
    monkeypatch.setattr(ivf_index, "RECALL", 0.0)
    index = index_of(vectors)
    assert index.probes == FEWEST
    assert recall(index, vectors, queries) < 0.9


def test_equal_vectors_do_not_count_as_missed() -> None:
    """Any of them will do; a bank may hold one state a thousand times, with other actions."""
    vectors, _ = clusters(3000, 50)
    index = index_of(np.concatenate([vectors, np.repeat(vectors[:1], 3000, axis=0)]))
    assert index.probes < index.cells / 4


@given(st.lists(st.tuples(st.sampled_from("aaar"), st.integers(0, 12)), max_size=40), st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_like_a_sorted_dictionary(steps: list[tuple[str, int]], k: int) -> None:
    held = {str(number): unit(number) for number in range(100, 130)}
    index = IvfIndex(list(held), np.stack(list(held.values())), seq=0)
    index.probes = index.cells
    for seq, (verb, number) in enumerate(steps, 1):
        if verb == "a":
            held[str(number)] = unit(1000 + 31 * seq + number)
            index = index.changed({str(number): held[str(number)]}, [], seq=seq)
        else:
            held.pop(str(number), None)
            index = index.changed({}, [str(number)], seq=seq)
    query, out = unit(77), {"3", "4", "99", "101", "102"}
    right = sorted((id for id in held if id not in out), key=lambda id: -float(held[id] @ query))[:k]
    assert index.nearest(query, k, without=out) == right
    assert np.array_equal(index.vectors(right), np.stack([held[id] for id in right]))
    assert index.count == len(held)
    assert index.seq == len(steps)


def test_a_change_leaves_the_index_that_is_being_read() -> None:
    vectors, _ = clusters(500, 50)
    index = index_of(vectors)
    other = index.changed({"new": -vectors[3]}, ["3", "never there"], seq=2)
    assert (index.nearest(vectors[3], 1), other.nearest(-vectors[3], 1)) == (["3"], ["new"])
    assert "3" not in other.nearest(vectors[3], 100)
    assert (index.count, other.count, other.churn) == (500, 500, 3)


def test_one_vector_and_none() -> None:
    index = IvfIndex(["a"], unit(1)[None, :], seq=1)
    assert index.nearest(unit(2), 5) == ["a"]
    empty = index.changed({}, ["a"], seq=2)
    assert empty.nearest(unit(2), 5) == []
    assert empty.vectors([]).shape == (0, DIMENSIONS)


class TestHome:
    @pytest.fixture
    def store(self, tmp_path: Path) -> CaseStore:
        return CaseStore(tmp_path / "bank")

    def test_it_takes_in_what_changed(self, store: CaseStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ivf_index, "BATCH", 20)
        home = IvfHome(store.path.parent)
        home.build(lambda: None)
        assert home.open(store) is None  # an empty bank has nothing to index
        ids = put(store, range(100))
        home.build(lambda: None)
        put(store, range(100, 110))
        remove(store, ids[5])
        home.build(lambda: None)
        index = home.open(store)
        assert index is not None
        assert (index.count, index.churn, index.seq) == (109, 11, store.seq)
        put(store, range(110, 210))  # as many as it was built from
        home.build(lambda: None)
        index = home.open(store)
        assert index is not None
        assert (index.count, index.churn) == (209, 0)
        with store.writing() as db:  # as in a bank that was restored from a copy and went on
            db.execute("UPDATE log SET written_at = written_at + 1 WHERE seq = ?", (index.seq,))
        put(store, [300])
        home.build(lambda: None)
        other = home.open(store)
        assert other is not None
        assert (other.count, other.churn) == (210, 0)
        home.close()
        assert home.open(store) is None
        store.close()

    def test_it_leaves_the_threads_of_others_alone(self, store: CaseStore) -> None:
        import faiss

        put(store, range(50))
        before = faiss.omp_get_max_threads()
        IvfHome(store.path.parent).build(lambda: None)
        assert faiss.omp_get_max_threads() == before
        store.close()

    def test_what_faiss_cannot_do_is_said(self, store: CaseStore, monkeypatch: pytest.MonkeyPatch) -> None:
        put(store, range(50))

        def fails(*_: object) -> None:
            raise RuntimeError("out of something")

        monkeypatch.setattr(ivf_index, "_centroids", fails)
        with pytest.raises(Unusable, match=r"FAISS failed \(RuntimeError: out of something\)"):
            IvfHome(store.path.parent).build(lambda: None)
        store.close()

    def test_it_can_be_stopped_and_keeps_what_it_had(self, store: CaseStore) -> None:
        home = IvfHome(store.path.parent)
        put(store, range(50))
        home.build(lambda: None)
        before = home.open(store)
        asked = []

        def stopping() -> None:
            asked.append(1)
            if len(asked) > 2:
                raise Stopped

        with pytest.raises(Stopped):
            home.build(stopping, anew=True)
        assert home.open(store) is before
        store.close()
