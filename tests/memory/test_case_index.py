"""Whatever holds the vectors, and whatever happens to it, a read finds what the cases say."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from agentmem.domain.case import Case
from agentmem.errors import InputError, MemoryIndexError
from agentmem.memory import case_index, ivf_index
from agentmem.memory.case_bank import CaseBank
from agentmem.memory.case_index import CaseIndex, planned
from agentmem.memory.case_store import CaseStore
from agentmem.memory.chroma_build import BUSY, DONE, STOPPED, builder_lock, start_builder
from agentmem.memory.chroma_folder import ChromaFolder
from agentmem.memory.chroma_home import ChromaHome
from agentmem.memory.chroma_server import ChromaServer
from agentmem.memory.index_home import Stopping, Unusable
from agentmem.memory.vector_index import ExactIndex
from agentmem.testing.hash_embedder import HashEmbedder
from tests.memory.rows import DIMENSIONS, put, remove, unit

CASES = 240


@pytest.fixture(scope="session")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank with a sealed Chroma index, and nothing open in it."""
    path = tmp_path_factory.mktemp("index") / "bank"
    store = CaseStore(path)
    put(store, range(CASES))
    ChromaFolder(path).build(store)
    store.close()
    return path


@pytest.fixture
def bank(_built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(_built, tmp_path / "bank"))


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index is opened at the first read, and built for each change; IVF looks into all cells."""
    monkeypatch.setattr(case_index, "PATIENCE", 1)
    monkeypatch.setattr(case_index, "TAIL", 1)
    monkeypatch.setattr(ivf_index, "RECALL", 2)


@pytest.fixture(params=["ivf", "chroma"])
def kind(request: pytest.FixtureRequest) -> str:
    """What holds the bulk of the vectors."""
    return str(request.param)


class Opened:
    """A store and its index, and what an exact one says of the same."""

    def __init__(self, path: Path, index: str = "chroma") -> None:
        self.store = CaseStore(path)
        self.index = CaseIndex(self.store, index=index)
        self.exact = CaseIndex(self.store, index="exact")

    def settled(self) -> str:
        self.index.nearest(unit(0), 1)
        return self.index.settle()

    def assert_same(self, queries: range = range(900, 920), k: int = 10) -> None:
        for number in queries:
            found, right = self.index.nearest(unit(number), k), self.exact.nearest(unit(number), k)
            assert found.ids == right.ids
            assert found.cosines.tolist() == right.cosines.tolist()  # to the last bit
            assert np.array_equal(found.vectors, right.vectors)
            assert found.seq == right.seq

    def close(self) -> None:
        self.index.close()
        self.exact.close()
        self.store.close()


@pytest.fixture
def open_bank() -> Iterator[Callable[..., Opened]]:
    made: list[Opened] = []

    def make(path: Path, index: str = "chroma") -> Opened:
        made.append(Opened(path, index))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.usefixtures("eager")
class TestBase:
    def test_it_serves_and_says_the_same(self, kind: str, bank: Path, open_bank: Callable[..., Opened]) -> None:
        opened = open_bank(bank, kind)
        assert opened.settled() == kind
        assert opened.index.notes == []
        opened.assert_same()

    def test_a_write_is_found_at_once(
        self, kind: str, bank: Path, open_bank: Callable[..., Opened], monkeypatch
    ) -> None:
        opened = open_bank(bank, kind)
        monkeypatch.setattr(case_index, "TAIL", 1000)
        assert opened.settled() == kind
        for number in range(CASES, CASES + 20):
            (id,) = put(opened.store, [number])
            assert opened.index.nearest(unit(number), 1).ids == (id,)
        opened.assert_same()
        assert opened.index.serving == kind

    def test_a_removed_case_is_never_returned(
        self, kind: str, bank: Path, open_bank: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = open_bank(bank, kind)
        monkeypatch.setattr(case_index, "TAIL", 1000)
        opened.settled()
        for number in range(100):  # more than were asked for, so that what it finds first is all gone
            (id,) = opened.index.nearest(unit(number), 1).ids
            remove(opened.store, id)
            assert id not in opened.index.nearest(unit(number), 100).ids
        opened.assert_same(range(0, 20), k=120)
        assert opened.index.serving == kind

    def test_a_moved_case_is_compared_as_it_is_now(
        self, kind: str, bank: Path, open_bank: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = open_bank(bank, kind)
        monkeypatch.setattr(case_index, "TAIL", 1000)
        opened.settled()
        (id,) = opened.index.nearest(unit(3), 1).ids
        put(opened.store, [3], vector=-unit(3))
        assert opened.index.nearest(-unit(3), 1).ids == (id,)
        assert id not in opened.index.nearest(unit(3), 50).ids

    def test_the_builder_takes_the_tail_in(self, kind: str, bank: Path, open_bank: Callable[..., Opened]) -> None:
        opened = open_bank(bank, kind)
        opened.settled()
        doomed = opened.index.nearest(unit(5), 3).ids
        put(opened.store, range(CASES, CASES + 30))
        remove(opened.store, *doomed)
        opened.settled()
        assert opened.index.serving == kind
        assert opened.index._changed == set()
        opened.assert_same()

    def test_reading_goes_on_while_it_is_built(
        self, kind: str, bank: Path, open_bank: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        draw = ivf_index._centroids
        monkeypatch.setattr(ivf_index, "_centroids", lambda *given: (time.sleep(0.5), draw(*given))[1])
        shutil.rmtree(bank / "chroma")
        opened = open_bank(bank, kind)
        opened.index.nearest(unit(0), 1)
        reads = 0
        while opened.index._tending is not None and opened.index._tending.is_alive():
            put(opened.store, [1000 + reads])
            assert opened.index.nearest(unit(1000 + reads), 1).cosines[0] > 0.999
            reads += 1
            time.sleep(0.02)
        assert reads > 5
        assert opened.index.serving == kind
        opened.assert_same()

    def test_two_banks_in_one_process(self, kind: str, bank: Path, open_bank: Callable[..., Opened]) -> None:
        first, second = open_bank(bank, kind), open_bank(bank, kind)
        assert (first.settled(), second.settled()) == (kind, kind)
        first.close()
        second.assert_same()


@pytest.mark.usefixtures("eager")
def test_deleted_while_in_use(bank: Path, open_bank: Callable[..., Opened]) -> None:
    opened = open_bank(bank, "chroma")
    assert opened.settled() == "chroma"
    shutil.rmtree(bank / "chroma")
    opened.assert_same()


def _missing(chroma: Path) -> None:
    shutil.rmtree(chroma)


def _no_sqlite(chroma: Path) -> None:
    next(chroma.rglob("chroma.sqlite3")).unlink()


def _garbage_sqlite(chroma: Path) -> None:
    next(chroma.rglob("chroma.sqlite3")).write_bytes(os.urandom(8192))


def _rows_lost(chroma: Path) -> None:
    import sqlite3

    with sqlite3.connect(next(chroma.rglob("chroma.sqlite3"))) as db:
        db.execute("DELETE FROM embeddings WHERE id % 3 = 0")
    db.close()


def _truncated_graph(chroma: Path) -> None:
    os.truncate(next(chroma.rglob("data_level0.bin")), 1000)


def _garbage_graph(chroma: Path) -> None:
    next(chroma.rglob("link_lists.bin")).write_bytes(os.urandom(5000))


def _flipped_bit(chroma: Path) -> None:
    path = next(chroma.rglob("data_level0.bin"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 64
    path.write_bytes(content)


def _no_graph(chroma: Path) -> None:
    shutil.rmtree(next(chroma.rglob("data_level0.bin")).parent)


def _older_build(chroma: Path) -> None:
    seal = next(chroma.rglob("sealed.json"))
    seal.write_text(seal.read_text().replace('"chroma":"', '"chroma":"0.'))


def _no_seal(chroma: Path) -> None:
    next(chroma.rglob("sealed.json")).unlink()


def _garbage_seal(chroma: Path) -> None:
    next(chroma.rglob("sealed.json")).write_bytes(b"\xff{")


def _no_current(chroma: Path) -> None:
    (chroma / "current").unlink()


def _current_elsewhere(chroma: Path) -> None:
    (chroma / "current").write_text("g-../../..")


HARMS = [
    _missing, _no_sqlite, _garbage_sqlite, _rows_lost, _truncated_graph, _garbage_graph, _flipped_bit, _no_graph,
    _older_build, _no_seal, _garbage_seal, _no_current, _current_elsewhere,
]  # fmt: skip


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__.strip("_"))
def test_harm_changes_no_answer_and_is_said_once(
    harm: Callable[[Path], None],
    bank: Path,
    open_bank: Callable[..., Opened],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    harm(bank / "chroma")
    built = []

    def build(self: ChromaHome, stopping: Stopping, *, anew: bool = False) -> None:
        store = CaseStore(bank)
        built.append(ChromaFolder(bank).build(store, anew=anew))
        store.close()

    monkeypatch.setattr(ChromaHome, "build", build)  # in this process, which has Chroma loaded already
    opened = open_bank(bank)
    opened.assert_same()
    assert opened.settled() == "chroma"
    assert built == [None]
    assert len(opened.index.notes) == (harm is not _missing)
    assert [record.getMessage() for record in caplog.records] == opened.index.notes
    opened.assert_same()


def test_another_state_of_the_bank_is_noticed(bank: Path, tmp_path: Path) -> None:
    """`cases.sqlite` was replaced by another bank's, and the old index still lies beside it."""
    other = CaseStore(tmp_path / "other")
    put(other, range(500, 500 + CASES + 50))
    other.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    for path in bank.glob("cases.sqlite*"):
        path.unlink()
    shutil.copy(tmp_path / "other" / "cases.sqlite", bank)
    store = CaseStore(bank)
    with pytest.raises(Unusable, match="another state"):
        ChromaFolder(bank).open(store)
    store.close()


def test_a_restored_copy_that_went_on_is_noticed(bank: Path) -> None:
    """The bank is an older copy again and was written since, so that it has as many changes as the index knows."""
    store = CaseStore(bank)
    with store.writing() as db:
        db.execute("UPDATE log SET written_at = written_at + 1 WHERE seq = ?", (store.seq,))
    with pytest.raises(Unusable, match="another state"):
        ChromaFolder(bank).open(store)
    store.close()


def test_auto_leaves_small_banks_alone(bank: Path, open_bank: Callable[..., Opened], eager: None) -> None:
    opened = open_bank(bank, "auto")
    assert opened.settled() == "exact"
    assert opened.index._tending is None


def test_auto_takes_an_index_for_large_ones(
    kind: str, bank: Path, open_bank: Callable[..., Opened], eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chroma on macOS, where FAISS cannot share a process with torch."""
    monkeypatch.setattr(case_index, "EXACT_BELOW", {kind: CASES})
    monkeypatch.setattr(case_index, "LARGE", kind)
    assert open_bank(bank, "auto").settled() == kind
    assert planned("auto", CASES) == kind
    assert planned("auto", CASES - 1) == "exact"


def test_a_short_process_loads_no_index(kind: str, bank: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from agentmem.memory.case_index import CaseIndex;"
        "from agentmem.memory.case_store import CaseStore; from tests.memory.rows import unit;"
        f"index = CaseIndex(CaseStore(Path({str(bank)!r})), index={kind!r}); index.nearest(unit(0), 3); index.close();"
        "assert not {'chromadb', 'faiss'} & set(sys.modules)"
    )
    root = Path(__file__).parents[2]
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(root)}, timeout=60
    )


@pytest.mark.usefixtures("eager")
def test_an_index_that_most_has_changed_of_is_not_asked(
    kind: str, bank: Path, open_bank: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after all was embedded anew: it would scan all that it has, and keep little."""
    opened = open_bank(bank, kind)
    opened.settled()
    monkeypatch.setattr(case_index, "PATIENCE", 10**6)
    put(opened.store, range(CASES // 2 + 1), vector=unit(7))
    opened.assert_same()
    assert opened.index.serving == "exact"


@pytest.mark.usefixtures("eager")
def test_an_index_that_fails_is_built_anew(
    bank: Path, open_bank: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_bank(bank, "ivf")
    opened.settled()
    failed = opened.index._base
    monkeypatch.setattr(failed, "nearest", lambda *_, **__: 1 / 0)
    opened.assert_same(range(900, 902))
    assert opened.index.serving == "exact"
    opened.index._retry_at = 0.0
    assert opened.settled() == "ivf"
    assert opened.index._base is not failed
    assert "ZeroDivisionError" in opened.index.notes[0]
    opened.assert_same()


def test_without_faiss_there_is_one_sentence(
    bank: Path, open_bank: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    opened = open_bank(bank, "ivf")
    with pytest.raises(MemoryIndexError, match=r"pip install faiss-cpu\. All cases are compared instead"):
        opened.index.reindex()
    opened.assert_same()


class TestBuilder:
    def test_one_at_a_time(self, bank: Path, open_bank: Callable[..., Opened], eager: None) -> None:
        shutil.rmtree(bank / "chroma")
        with builder_lock(bank) as mine:
            assert mine
            opened = open_bank(bank)
            assert opened.settled() == "exact"
            assert "another process builds it" in opened.index.notes[0]
            opened.assert_same()
            assert _end_of(start_builder(bank)) == BUSY

    def test_stops_when_nobody_waits(self, bank: Path) -> None:
        builder = start_builder(bank, anew=True)
        assert builder.stdin is not None
        builder.stdin.close()
        assert builder.wait(timeout=60) == STOPPED
        assert builder.stderr is not None
        builder.stderr.close()
        assert len(list((bank / "chroma").glob("g-*"))) == 1  # nothing half-built is left
        store = CaseStore(bank)
        index = ChromaFolder(bank).open(store)
        assert index is not None
        index.close()
        store.close()

    def test_failure_is_one_sentence(self, bank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        store = CaseStore(bank)
        index = CaseIndex(store, index="chroma")
        monkeypatch.setattr("agentmem.memory.chroma_build.DONE", -1)
        with pytest.raises(MemoryIndexError, match=r"builder ended with 0: .* All cases are compared instead"):
            index.reindex()
        index.close()
        store.close()

    def test_reindex_builds_anew(self, bank: Path) -> None:
        before = ChromaFolder(bank).newest()
        store = CaseStore(bank)
        index = CaseIndex(store, index="chroma")
        assert index.reindex() == "chroma"
        assert ChromaFolder(bank).newest() != before
        index.close()
        store.close()

    def test_a_generation_in_use_is_kept(self, bank: Path) -> None:
        store = CaseStore(bank)
        home = ChromaFolder(bank)
        reader = home.open(store)
        assert reader is not None
        put(store, range(CASES, CASES + 5))
        home.build(store)
        assert len(list((bank / "chroma").glob("g-*"))) == 2
        assert len(reader.nearest(unit(1), 5)) == 5
        reader.close()
        put(store, range(CASES + 5, CASES + 9))
        home.build(store)
        assert len(list((bank / "chroma").glob("g-*"))) == 1
        store.close()

    def test_much_change_is_built_from_nothing(self, bank: Path) -> None:
        store = CaseStore(bank)
        home = ChromaFolder(bank)
        for start in range(0, 1200, 300):
            put(store, range(300), vector=unit(5000 + start))
            home.build(store)
        assert home.verified(home.newest(), store).churn <= 1000
        store.close()


def _end_of(builder: subprocess.Popen[str]) -> int:
    builder.communicate(timeout=60)
    return builder.returncode


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`chroma run` on a free port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("server")
    command = [str(Path(sys.executable).with_name("chroma")), "run", "--path", str(folder), "--port", str(port)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([*command, "--host", "127.0.0.1"], stdout=log, stderr=log)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.mark.usefixtures("eager")
class TestServer:
    def test_it_serves_follows_and_says_the_same(
        self, server: str, bank: Path, open_bank: Callable[..., Opened]
    ) -> None:
        opened = open_bank(bank, server)
        assert opened.settled() == "chroma"
        assert opened.index.notes == []
        opened.assert_same()
        (new,) = put(opened.store, [CASES])
        assert opened.index.nearest(unit(CASES), 1).ids == (new,)
        remove(opened.store, new)
        assert new not in opened.index.nearest(unit(CASES), CASES).ids
        opened.settled()
        opened.assert_same()
        # Another process of the same bank finds what is there, and needs no builder.
        home = ChromaServer(bank, server)
        index = home.open(opened.store)
        assert index is not None
        assert index.count == CASES
        index.close()

    def test_a_collection_that_is_lost_changes_no_answer(
        self, server: str, bank: Path, open_bank: Callable[..., Opened]
    ) -> None:
        from agentmem.memory.chroma_index import close_client, server_client

        opened = open_bank(bank, server)
        assert opened.settled() == "chroma"
        client = server_client(server, timeout=10)
        for collection in client.list_collections():
            client.delete_collection(collection.name)
        close_client(client)
        opened.assert_same(range(900, 902))
        assert opened.index.serving == "exact"
        assert len(opened.index.notes) == 1
        opened.index._retry_at = 0.0
        assert opened.settled() == "chroma"
        opened.assert_same()

    def test_a_copy_of_the_bank_has_a_collection_of_its_own(self, server: str, bank: Path, tmp_path: Path) -> None:
        store = CaseStore(bank)
        ChromaServer(bank, server).build(store)
        store.close()
        shutil.copytree(bank, tmp_path / "copy")
        copy = CaseStore(tmp_path / "copy")
        assert ChromaServer(tmp_path / "copy", server).open(copy) is None
        copy.close()


@pytest.mark.usefixtures("eager")
def test_the_bank_recalls_through_it(kind: str, tmp_path: Path) -> None:
    bank = CaseBank(tmp_path / "b", embedder=HashEmbedder(32), index=kind)
    bank.add_many(Case.of(f"the {i} th question of {i % 7}", f"action {i}", reward=1.0) for i in range(60))
    query = "the 17 th question"
    exact = bank.recall(query, k=10)
    assert bank.index.settle() == kind
    assert bank.recall(query, k=10) == exact
    bank.remove(exact.ids[0])
    assert bank.recall(query, k=10).ids[:9] == exact.ids[1:]
    for other in (HashEmbedder(48), Negated(48)):  # vectors of another length, and of the same
        bank.index.settle()  # an index that is built meanwhile would be thrown away, and not be tried again at once
        bank.reembed(other)
        found = bank.recall(query, k=10)
        assert exact.ids[0] not in found.ids
        assert bank.index.settle() == kind
        assert bank.index.notes == []
        assert bank.recall(query, k=10) == found
        with closing(CaseBank(tmp_path / "b", embedder=other, index="exact")) as right:
            assert right.recall(query, k=10) == found
    bank.close()


class Negated(HashEmbedder):
    """Another embedder of the same length."""

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self.name = "negated"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return -super().embed(texts)


@pytest.mark.usefixtures("eager")
def test_a_server_out_of_reach_changes_no_answer(bank: Path, open_bank: Callable[..., Opened]) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        opened = open_bank(bank, f"http://127.0.0.1:{nobody.getsockname()[1]}")
        assert opened.settled() == "exact"
        assert "cannot be reached" in opened.index.notes[0]
        opened.assert_same()


@pytest.mark.parametrize("index", ["", "faiss", "localhost:8000", "ftp://host", "http://"])
def test_an_index_that_is_none(index: str, bank: Path) -> None:
    store = CaseStore(bank)
    with pytest.raises(InputError, match="Known: auto, exact, ivf, chroma"):
        CaseIndex(store, index=index)
    store.close()


class TestExactIndex:
    @given(st.lists(st.tuples(st.sampled_from("aaar"), st.integers(0, 12)), max_size=60), st.integers(1, 8))
    @settings(max_examples=60)
    def test_like_a_sorted_dictionary(self, steps: list[tuple[str, int]], k: int) -> None:
        index, held = ExactIndex(DIMENSIONS), {}
        for seq, (verb, number) in enumerate(steps, 1):
            if verb == "a":
                held[str(number)] = unit(31 * seq + number)
                index.update({str(number): held[str(number)]}, [], seq=seq)
            else:
                held.pop(str(number), None)
                index.update({}, [str(number)], seq=seq)
        query = unit(77)
        out = {"3", "4", "99"}
        right = sorted((id for id in held if id not in out), key=lambda id: -float(held[id] @ query))[:k]
        assert index.nearest(query, k, without=out) == right
        assert len(index) == len(held)

    def test_of_equals_the_earlier_one(self) -> None:
        index = ExactIndex(2)
        same = np.array([1, 0], np.float32)
        index.update({str(i): same for i in range(5)}, [], seq=1)
        assert index.nearest(same, 5) == ["0", "1", "2", "3", "4"]


def test_many_writers_and_readers_agree(bank: Path, open_bank: Callable[..., Opened]) -> None:
    """Three processes write while this one reads; in the end each case is there."""
    root = Path(__file__).parents[2]
    code = (
        "import sys; from pathlib import Path; from agentmem.memory.case_store import CaseStore;"
        "from tests.memory.rows import put;"
        f"store = CaseStore(Path({str(bank)!r})); first = int(sys.argv[1]);"
        "[put(store, [number]) for number in range(first, first + 40)]"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(first)], env={**os.environ, "PYTHONPATH": str(root)})
        for first in (1000, 2000, 3000)
    ]
    opened = open_bank(bank, "exact")
    while any(writer.poll() is None for writer in writers):
        opened.index.nearest(unit(1000), 5)
    assert [writer.returncode for writer in writers] == [DONE] * 3
    for number in (1000, 1039, 2020, 3039):
        assert opened.index.nearest(unit(number), 1).ids == (Case.of(f"state {number}", "a").id,)
