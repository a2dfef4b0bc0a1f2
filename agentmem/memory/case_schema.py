"""The tables of a bank, and what must be true of a file before it is used as one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from agentmem.errors import InputError, MemoryStoreError

SCHEMA = 1
APPLICATION = 0x616D6362
"""Says in the file's header that it is a case bank (`amcb`)."""
FILE = "cases.sqlite"

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE log (
    seq INTEGER PRIMARY KEY, key TEXT, verb TEXT NOT NULL, case_id TEXT NOT NULL, why TEXT NOT NULL,
    notes TEXT NOT NULL DEFAULT '', written_at REAL NOT NULL);
CREATE UNIQUE INDEX log_by_key ON log (key) WHERE key IS NOT NULL;

CREATE TABLE vectors (
    id INTEGER PRIMARY KEY, hash BLOB NOT NULL, model TEXT NOT NULL, text TEXT NOT NULL, vector BLOB NOT NULL);
CREATE UNIQUE INDEX vectors_by_hash ON vectors (hash, model);

CREATE TABLE cases (
    id TEXT PRIMARY KEY, seq INTEGER NOT NULL, born INTEGER NOT NULL, gone INTEGER NOT NULL DEFAULT 0,
    trust TEXT NOT NULL, source TEXT NOT NULL, action INTEGER NOT NULL, vector INTEGER NOT NULL, body TEXT NOT NULL);
CREATE INDEX cases_by_seq ON cases (seq);
CREATE INDEX cases_by_born ON cases (born);
CREATE INDEX cases_by_action ON cases (action);
CREATE INDEX cases_by_vector ON cases (vector);

CREATE TABLE uses (
    id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, place INTEGER NOT NULL, case_id TEXT NOT NULL,
    vector INTEGER NOT NULL, value REAL NOT NULL, reward REAL NOT NULL, propensity REAL,
    share REAL NOT NULL DEFAULT 1, void INTEGER NOT NULL DEFAULT 0);
CREATE INDEX uses_by_case ON uses (case_id, seq);
CREATE INDEX uses_by_seq ON uses (seq);

CREATE TABLE policies (name TEXT PRIMARY KEY, last INTEGER NOT NULL, weights BLOB NOT NULL) WITHOUT ROWID;

CREATE TABLE edits (
    seq INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, gone INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (kind, id, seq)) WITHOUT ROWID;
CREATE INDEX edits_by_seq ON edits (seq);

CREATE TABLE sources (source TEXT PRIMARY KEY, living INTEGER NOT NULL) WITHOUT ROWID;
CREATE TRIGGER case_born AFTER INSERT ON cases WHEN NOT NEW.gone BEGIN
    INSERT INTO sources VALUES (NEW.source, 1) ON CONFLICT DO UPDATE SET living = living + 1;
END;
CREATE TRIGGER case_moved AFTER UPDATE OF gone ON cases WHEN NEW.gone != OLD.gone BEGIN
    UPDATE sources SET living = living + OLD.gone - NEW.gone WHERE source = NEW.source;
END;

CREATE TABLE totals (name TEXT PRIMARY KEY, n INTEGER NOT NULL, total REAL NOT NULL) WITHOUT ROWID;
INSERT INTO totals VALUES ('attempts', 0, 0), ('without_case', 0, 0), ('values', 0, 0);
CREATE TRIGGER use_born AFTER INSERT ON uses BEGIN
    UPDATE totals SET n = n + 1, total = total + NEW.reward WHERE name = 'attempts' AND NEW.place = 0;
    UPDATE totals SET n = n + 1, total = total + NEW.reward WHERE name = 'without_case' AND NEW.case_id = '';
    UPDATE totals SET n = n + 1, total = total + NEW.value WHERE name = 'values';
END;
CREATE TRIGGER use_moved AFTER UPDATE OF void ON uses WHEN (NEW.void = 1) != (OLD.void = 1) BEGIN
    UPDATE totals SET n = n + (OLD.void = 1) - (NEW.void = 1),
        total = total + ((OLD.void = 1) - (NEW.void = 1)) * NEW.reward
        WHERE name = 'attempts' AND NEW.place = 0;
    UPDATE totals SET n = n + (OLD.void = 1) - (NEW.void = 1),
        total = total + ((OLD.void = 1) - (NEW.void = 1)) * NEW.reward
        WHERE name = 'without_case' AND NEW.case_id = '';
    UPDATE totals SET n = n + (OLD.void = 1) - (NEW.void = 1),
        total = total + ((OLD.void = 1) - (NEW.void = 1)) * NEW.value
        WHERE name = 'values';
END;
"""
# `log` has a row for each change, and its number is the change's. `key` names the attempt that wrote, so that one that
# is replayed does not write twice. `edits` holds what a change found where it wrote over something: a case's (gone,
# body) or a use's (void, case_id). What a change made new needs no row there, for it has the number in `born` or `seq`.
# So every earlier state can be worked out, and every change undone. `void` of a use: 0 it counts; 1 it was undone; 2 it
# was of what the case said before a correction, and counts for the running means alone.
# A use's `value` is its reward minus what tasks like it had brought, and `share` the part of it that is the case's.
# `policies` holds the weights that were trained on the uses up to `last`; they can be trained anew.
# `sources` and `totals` are sums that triggers keep, because counting 100,000 rows takes longer than a write may.


def create(db: sqlite3.Connection) -> None:
    """Make the tables, where there are none."""
    db.execute("BEGIN IMMEDIATE")  # of several processes that open a new bank, one makes it
    try:
        if not db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            for statement in _statements():
                db.execute(statement)
            db.execute(f"PRAGMA application_id={APPLICATION}")
            db.execute(f"PRAGMA user_version={SCHEMA}")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def check_folder(path: Path, *, create: bool) -> None:
    """Refuse a place that is no bank and must not become one.

    Raises:
        InputError: it is a file, or a folder with other things in it; or there is nothing, and nothing is to be made.
    """
    if path.is_file():
        raise InputError(f"{path} is a file; a case bank is a folder with a {FILE} in it. Name the folder.")
    if (path / FILE).is_file():
        return
    held = sorted(p.name for p in path.iterdir() if not p.name.startswith(FILE)) if path.is_dir() else []
    if held:
        shown = ", ".join(held[:3]) + (" ..." if len(held) > 3 else "")
        raise InputError(f"{path} is no case bank: it holds {shown} but no {FILE}. Name a new or an empty folder.")
    if not create:
        raise InputError(f"There is no case bank at {path}. Check the name, or write a first case to make one.")


def check_file(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a database that is not ours, or is newer.

    Raises:
        InputError: it is another program's database.
        MemoryStoreError: a newer agentmem wrote it.
    """
    # In this order: another process may be making the bank, and what has tables has had its number since then.
    made = db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    application = db.execute("PRAGMA application_id").fetchone()[0]
    if made and application != APPLICATION:
        raise InputError(f"{path} is a database, but no case bank's. Name another folder.")
    found = db.execute("PRAGMA user_version").fetchone()[0]
    if found > SCHEMA:
        raise MemoryStoreError(
            f"{path} has schema {found}, newer than this agentmem reads ({SCHEMA}); upgrade agentmem."
        )


def _statements() -> list[str]:
    """One by one, because `executescript` would commit by itself."""
    statements: list[str] = []
    part = ""
    for line in _TABLES.splitlines():
        part += line + "\n"
        if sqlite3.complete_statement(part):
            statements.append(part)
            part = ""
    return statements
