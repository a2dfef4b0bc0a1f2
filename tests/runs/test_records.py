"""Records: a run's journal is read at any time, by anyone, and what it is not is said in a sentence."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat

import pytest

from agentmem.errors import InputError, JournalError, RunBusy
from agentmem.runs.journal import Journal
from agentmem.runs.records import Records
from agentmem.runs.run import take_lock
from agentmem.runs.slot import Slot

COUNT = ("SELECT count(*) FROM steps", ())


def test_reading_changes_nothing_and_writing_is_refused(taught):
    before = (taught / "journal.sqlite").read_bytes()
    records = Records(taught)
    assert records.rows(COUNT)[0][0][0] > 100
    with pytest.raises(JournalError, match="readonly"):
        records.rows(("DELETE FROM steps", ()))
    assert (taught / "journal.sqlite").read_bytes() == before


async def test_it_is_read_while_another_connection_writes(taught):
    from agentmem.runs.journal import Stored

    journal = Journal(taught / "journal.sqlite")
    try:
        records = Records(taught)
        for n in range(3):
            await journal.store(Slot("learn", 9, f"t{n}"), Stored("", None, "{}"))
            assert records.rows(("SELECT count(*) FROM steps WHERE step=9", ()))[0] == [(n + 1,)]
    finally:
        journal.close()


def test_several_queries_are_of_one_moment(taught):
    one, two = Records(taught).rows(COUNT, ("SELECT DISTINCT phase FROM steps", ()))
    assert one[0][0]
    assert two == [("learn",)]


def test_a_folder_that_nobody_may_write_to_is_read(taught):
    with sqlite3.connect(taught / "journal.sqlite") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    names = {path.name for path in taught.iterdir()}
    os.chmod(taught, stat.S_IREAD | stat.S_IEXEC)
    try:
        assert Records(taught).rows(COUNT)[0][0][0] > 100
        if os.geteuid():  # root may write everywhere
            assert {path.name for path in taught.iterdir()} == names
    finally:
        os.chmod(taught, stat.S_IRWXU)


def test_a_read_only_medium_is_read_without_its_wal(taught, monkeypatch):
    """As on a medium that even root cannot write to: SQLite cannot make its shared memory there."""
    real, addresses = sqlite3.connect, []

    def connect(address, **options):
        addresses.append(address)
        if "immutable" not in address:
            raise sqlite3.OperationalError("unable to open database file")
        return real(address, **options)

    monkeypatch.setattr(sqlite3, "connect", connect)
    with pytest.raises(JournalError, match="unable to open"):
        Records(taught)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert Records(taught).rows(COUNT)[0][0][0] > 100
    assert "immutable=1" in addresses[-1]


def test_a_folder_with_odd_characters_in_its_name(taught, tmp_path):
    odd = shutil.copytree(taught, tmp_path / "a ?#%20 ü")
    assert Records(odd).rows(COUNT)[0][0][0] > 100


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda f: None, InputError, "does not exist; name the folder of a run"),
        (lambda f: f.write_text(""), InputError, "is a file; name the folder of a run"),
        (lambda f: f.mkdir(), InputError, r"holds no run \(no journal.sqlite\)"),
        (lambda f: _journal(f, "CREATE TABLE notes (x)"), InputError, "is no journal of agentmem"),
        (lambda f: _journal(f, "PRAGMA user_version=99"), JournalError, "schema 99, newer.*upgrade agentmem"),
        (lambda f: _bytes(f, b"not a database" * 100), JournalError, "cannot be read: file is not a database"),
        (lambda f: _bytes(f, b""), InputError, "is no journal of agentmem"),
    ],
)
def test_what_is_no_run_is_said(make, error, sentence, tmp_path):
    folder = tmp_path / "run"
    make(folder)
    with pytest.raises(error, match=sentence):
        Records(folder)


def test_a_damaged_page_is_said(taught):
    file = taught / "journal.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    content = bytearray(file.read_bytes())
    content[8192:] = bytes(len(content) - 8192)
    file.write_bytes(content)
    with pytest.raises(JournalError, match="If it is damaged, restore it from a copy"):
        Records(taught).rows(("SELECT * FROM steps", ()))


def test_a_run_under_way_keeps_others_out(taught):
    lock = take_lock(taught)
    try:
        with pytest.raises(RunBusy, match="Another process works in"), Records(taught).locked():
            pass
    finally:
        os.close(lock)
    with Records(taught).locked():
        pass


def test_a_revision_is_noted_also_in_a_journal_of_an_earlier_agentmem(taught):
    with sqlite3.connect(taught / "journal.sqlite") as connection:
        connection.execute("DROP TABLE revisions")
    connection.close()
    records = Records(taught)
    assert not records.has("revisions")
    records.revise(step=2, version=4, library="{}", record="{}")
    assert records.rows(("SELECT step, version FROM revisions", ()))[0] == [(2, 4)]


def _journal(folder, sql):
    folder.mkdir()
    with sqlite3.connect(folder / "journal.sqlite") as connection:
        connection.execute(sql)
    connection.close()


def _bytes(folder, content):
    folder.mkdir()
    (folder / "journal.sqlite").write_bytes(content)
