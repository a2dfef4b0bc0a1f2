"""Several processes, several threads, and kill -9: nothing acknowledged is lost, and nothing is half there."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import psutil
import pytest

from agentmem.domain.case import Case
from agentmem.errors import MemoryStoreError
from agentmem.memory import case_store
from agentmem.memory.case_bank import CaseBank
from agentmem.memory.case_store import CaseStore
from agentmem.testing.hash_embedder import HashEmbedder
from tests.conftest import ROOT

EMBEDDER = HashEmbedder(64)

NURSERY = """
import os, signal, sys
from agentmem.domain.case import Case
from agentmem.domain.write_rules import WriteRules
from agentmem.memory.case_bank import CaseBank
from agentmem.testing.hash_embedder import HashEmbedder

def write(folder, name, first, n, said):
    bank = CaseBank(folder, embedder=HashEmbedder(64), rules=WriteRules(merge_at=None))
    for i in range(int(first), int(first) + int(n)):
        used = bank.recall(f"state {i % 10}", k=2) if i % 10 == 0 else None
        bank.retain(Case.of(f"state {name} {i}", f"did {name} {i}", reward=1.0), used=used, key=f"{name}-{i}")
        said.write(f"{i}\\n")
    said.write("done\\n")

signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
HashEmbedder(64).embed(["import all that is imported at use"])
for line in sys.stdin:
    folder, name, first, n, said = line.rstrip().split("\\t")
    pid = os.fork()
    if not pid:
        with open(said, "w", buffering=1) as said:
            try:
                write(folder, name, first, n, said)
            except BaseException as error:
                said.write(f"failed: {error!r}")
                said.flush()  # what comes next does not
            os._exit(0)
    print(pid, flush=True)
"""


@pytest.fixture
def write(tmp_path):
    """Starts processes that write; what they acknowledged is in files. None of them outlives the test.

    They are forked from one that has imported everything, because imports take longer than these tests may.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen([sys.executable, "-c", NURSERY], env=environment, **pipes) as nursery:

        def start(name, *, first=0, n):
            said = tmp_path / f"{name}-{first}.txt"
            said.touch()
            nursery.stdin.write(f"{tmp_path / 'b'}\t{name}\t{first}\t{n}\t{said}\n")
            return int(nursery.stdout.readline())

        yield start
        # Not by number: those that have ended are gone, and their numbers may be somebody else's by now.
        for child in psutil.Process(nursery.pid).children():
            child.kill()


def running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def acknowledged(tmp_path, name, first=0):
    """What a writer said so far; a line that is not finished counts not."""
    said = (tmp_path / f"{name}-{first}.txt").read_text()
    assert "failed" not in said
    return [f"{name}-{line}" for line in said.split("\n")[:-1] if line != "done"]


def whole(bank):
    """That the file is sound, each attempt is all there, and the index holds what the file does."""
    assert bank.store.rows("PRAGMA integrity_check") == [("ok",)]
    keys = {key for (key,) in bank.store.rows("SELECT key FROM log")}
    states = [case.state for case in bank]
    assert sorted(f"{name}-{i}" for _, name, i in map(str.split, states)) == sorted(keys)
    credited = bank.store.rows("SELECT l.key FROM uses u JOIN log l ON l.seq = u.seq WHERE u.place = 0")
    assert {key for (key,) in credited} == {key for key in keys if key.endswith("0")}
    assert bank.stats().sources.get("", 0) == len(states)
    assert bank.stats().attempts == len(credited)
    bank.recall("state")
    assert sorted(bank.index._tail._ids) == sorted(case.id for case in bank)
    return keys


def test_many_may_make_a_bank_at_once(tmp_path):
    """One makes it; the others find it whole, or not there yet, and never take it for somebody else's."""
    failed = []

    def opened(path, together):
        together.wait()
        try:
            CaseStore(path).close()
        except Exception as error:
            failed.append(error)

    for number in range(150):
        together = threading.Barrier(4)
        threads = [threading.Thread(target=opened, args=(tmp_path / str(number), together)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []


def test_four_processes_write_a_thousand_each_and_nothing_is_lost(tmp_path, write):
    pids = [write(name, n=1000) for name in "abcd"]
    with closing(CaseBank(tmp_path / "b", embedder=EMBEDDER)) as reader:
        while any(map(running, pids)):
            before = len(reader)
            reader.recall("state a 1")
            assert len(reader) >= before
            time.sleep(0.1)
        said = {key for name in "abcd" for key in acknowledged(tmp_path, name)}
        assert whole(reader) == said == {f"{name}-{i}" for name in "abcd" for i in range(1000)}
        assert reader.seq == 4000


def test_kill_9_at_30_random_moments_loses_nothing_acknowledged(tmp_path, write):
    rng = random.Random(0)
    known: set[str] = set()
    kills = first = 0
    while kills < 30:
        names = "abc"
        pids = [write(name, first=first, n=10_000) for name in names]
        for pid, name in zip(pids, names, strict=True):
            enough = rng.randint(0, 12)
            while len(acknowledged(tmp_path, name, first)) < enough:
                assert running(pid)
                time.sleep(0.002)
            time.sleep(rng.random() * 0.004)
            os.kill(pid, signal.SIGKILL)
            kills += 1
        while any(map(running, pids)):
            time.sleep(0.002)
        known |= {key for name in names for key in acknowledged(tmp_path, name, first)}
        first += 10_000
    with closing(CaseBank(tmp_path / "b", embedder=EMBEDDER)) as bank:
        keys = whole(bank)
        assert known <= keys
        assert len(keys - known) <= kills  # what was in flight
        assert len(known) > 100
        bank.add(Case.of("state z 1", "and it goes on"), key="z-1")


def test_threads_of_one_process_share_a_bank(tmp_path):
    with closing(CaseBank(tmp_path / "b", embedder=EMBEDDER)) as bank:
        failures = []

        def work(name):
            try:
                for i in range(50):
                    bank.add(Case.of(f"thread {name} {i}", f"{name} {i}"), key=f"{name}-{i}")
                    bank.recall(f"thread {name} {i}")
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(bank) == bank.seq == 200


def test_a_reader_never_sees_half_a_change(tmp_path):
    with closing(CaseBank(tmp_path / "b", embedder=EMBEDDER)) as bank:
        bank.add(Case.of("s", "a"))

        def interrupted():
            with bank.store.writing() as db:
                db.execute("UPDATE cases SET gone = 1")
                assert len(bank.list()) == 1
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert len(bank.list()) == 1


def test_a_writer_that_does_not_let_go_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(case_store, "_PATIENCE", 0.2)
    with closing(CaseBank(tmp_path / "b", embedder=EMBEDDER)) as bank:
        with closing(sqlite3.connect(tmp_path / "b" / "cases.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(
                MemoryStoreError, match=r"is being written by another process for 0.2 seconds already"
            ):
                bank.add(Case.of("s", "a"))
        bank.add(Case.of("s", "a"))


def test_all_of_many_cases_reach_the_index(tmp_path, monkeypatch):
    monkeypatch.setattr(case_store, "_PAGE", 7)
    with closing(CaseBank(tmp_path / "b", embedder=EMBEDDER)) as bank:
        bank.add_many(Case.of(f"state {i}", f"action {i}") for i in range(50))
        bank.add(Case.of("one more", "x"))
        found = [(id, gone) for id, gone, _ in bank.store.changes(0)]
        assert len(found) == len({id for id, _ in found}) == 51
        assert [id for id, _, _ in bank.store.changes(1)] == [bank.list()[-1].id]
