"""The journal: durable, grouped, honest about a full disk and a newer schema."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from agentmem.errors import JournalError
from agentmem.runs.journal import Journal, Stored
from agentmem.runs.slot import Slot


@pytest.fixture
def journal(tmp_path):
    journal = Journal(tmp_path / "journal.sqlite")
    yield journal
    journal.close()


async def test_what_is_stored_is_read_back_at_its_place_only(journal):
    await journal.store(Slot("learn", 1, "t", 2, "act", 3), Stored("asked", None, '"x"'))
    assert journal.read(Slot("learn", 1, "t", 2, "act", 3)) == Stored("asked", None, '"x"')
    assert journal.read(Slot("learn", 2, "t", 2, "act", 3)) is None


async def test_an_acknowledged_result_is_on_disk(journal):
    await journal.store(Slot("learn"), Stored("", None, "1"))
    other = sqlite3.connect(journal.path)
    try:
        assert other.execute("SELECT result FROM steps").fetchall() == [("1",)]
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    finally:
        other.close()


async def test_concurrent_results_share_commits(journal):
    slots = [Slot("learn", 0, f"t{n}") for n in range(300)]
    await asyncio.gather(*(journal.store(slot, Stored("", None, "1")) for slot in slots))
    assert journal.count() == 300


async def test_a_full_disk_is_said_and_what_was_acknowledged_stays(tmp_path):
    journal = Journal(tmp_path / "journal.sqlite")
    await journal.store(Slot("learn", 0, "first"), Stored("", None, "1"))
    # SQLite's own page limit gives the same SQLITE_FULL as a disk without room.
    journal.post("PRAGMA max_page_count=1", ())
    with pytest.raises(JournalError, match=r"full.*free some disk space"):
        await journal.store(Slot("learn", 0, "second"), Stored("", None, "x" * 1_000_000))
    with pytest.raises(JournalError):  # and it says so again, rather than losing results in silence
        await journal.store(Slot("learn", 0, "third"), Stored("", None, "1"))
    journal.close()
    reopened = Journal(tmp_path / "journal.sqlite")
    assert [row[0] for row in reopened.rows("SELECT task FROM steps")] == ["first"]
    await reopened.store(Slot("learn", 0, "second"), Stored("", None, "1"))
    reopened.close()


def test_a_newer_schema_is_refused(tmp_path):
    path = tmp_path / "journal.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(JournalError, match="schema 99, newer than this agentmem reads"):
        Journal(path)


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"this is no database, and long enough to be looked at" * 50)
    with pytest.raises(JournalError, match="cannot be used"):
        Journal(path)
