"""A run that is killed at any moment and started again: nothing stored is bought twice, and it ends the same."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from agentmem.runs.journal import Journal
from agentmem.testing.faults import Faults
from agentmem.testing.scripted import load_script
from agentmem.testing.server import ChatServer
from tests.conftest import start

CONCURRENCY = 8
OPTIONS = (
    "--model openai/m --reward numeric --extractor exemplar"
    " --epochs 2 --group-size 4 --gate-min-tasks 10 --gate-rounds 2"
    f" --examples-per-step 3 --concurrency {CONCURRENCY} --retry-wait 0.01 --run runs/r"
).split()


IMPATIENT = ("--timeout", 1)
"""Where a server may hang. Elsewhere a busy machine would have calls sent again that nobody lost."""


def learner(chat):
    """The scripted learner of `scripted/learner`, behind the server: it depends on the request alone."""
    return load_script("learner?p=0.3")(chat.request)


def learn(agentmem, server, tasks, *more):
    return agentmem("learn", tasks, "--base-url", server.base_url, *OPTIONS, *more)


def finish(process) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def stored_calls(folder: Path) -> dict[str, tuple[object, ...]]:
    """Every stored reply, by its place, with its row's number: a reply that is bought again gets another."""
    if not (folder / "journal.sqlite").exists():
        return {}
    with closing(sqlite3.connect(folder / "journal.sqlite", timeout=30)) as db:
        try:
            rows = db.execute("SELECT phase, step, task, rollout, ordinal, seq FROM steps WHERE purpose='act'")
            return {str(row[:-1]): row[-1] for row in rows}
        except sqlite3.OperationalError:  # killed before the tables were made
            return {}


@pytest.fixture(scope="module")
def reference(sums, tmp_path_factory):
    """The library and the number of calls of a run that nobody disturbs."""
    folder = tmp_path_factory.mktemp("reference")
    with ChatServer(learner) as server:
        finish(learn(lambda *arguments: start(folder, *arguments), server, sums))
    calls = len(stored_calls(folder / "runs" / "r"))
    library = (folder / "runs" / "r" / "library.json").read_bytes()
    assert b'"kind": "example"' in library
    return library, calls


def test_kill_9_at_30_random_moments(agentmem, sums, tmp_path, reference):
    library, calls = reference
    folder = tmp_path / "runs" / "r"
    rng = random.Random(0)
    kills = lost = 0
    with ChatServer(learner, latency=0.01) as server:
        while kills < 30:
            before, sent = stored_calls(folder), server.calls
            moment = rng.randint(0, 2 * calls // 31)
            process = learn(agentmem, server, sums)
            while server.calls - sent < moment and process.poll() is None:
                time.sleep(0.001)
            if process.poll() is not None:
                break
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
            after = stored_calls(folder)
            assert before.items() <= after.items()  # nothing stored was lost or bought again
            in_flight = server.calls - sent - (len(after) - len(before))
            assert in_flight <= CONCURRENCY
            lost += in_flight
        finish(learn(agentmem, server, sums))
        assert kills >= 25
        assert server.calls == calls + lost
    assert (folder / "library.json").read_bytes() == library


def test_faults_within_the_cap_change_nothing(agentmem, sums, tmp_path, reference):
    library, calls = reference
    faults = Faults(share=0.3, per_request_cap=4)  # attempts are 5
    with ChatServer(learner, faults=faults) as server:
        finish(learn(agentmem, server, sums, *IMPATIENT))
        assert server.calls > calls * 1.3
        assert len(server.outcomes) >= 10  # the kinds of fault that were met
    assert (tmp_path / "runs" / "r" / "library.json").read_bytes() == library
    with closing(sqlite3.connect(tmp_path / "runs" / "r" / "journal.sqlite")) as db:
        rollouts = "FROM steps WHERE purpose='rollout'"
        assert db.execute(f"SELECT count(*) {rollouts}").fetchone()[0] == calls
        assert (
            db.execute(f"SELECT count(*) {rollouts} AND json_extract(result,'$.status')!='ok'").fetchone()[0] == 0
        )


def test_faults_beyond_the_cap_are_typed_and_the_run_is_still_useful(agentmem, sums, tmp_path):
    faults = Faults(share=0.25, per_request_cap=9, always=True, kinds=("server_error", "malformed_json", "drop"))
    with ChatServer(learner, faults=faults) as server:
        finish(learn(agentmem, server, sums, "--attempts", 2, *IMPATIENT))
    with closing(sqlite3.connect(tmp_path / "runs" / "r" / "journal.sqlite")) as db:
        rows = db.execute(
            "SELECT json_extract(result,'$.status'), json_extract(result,'$.reward.score'),"
            " json_extract(result,'$.failure.kind') FROM steps WHERE purpose='rollout'"
        ).fetchall()
    failed = [row for row in rows if row[0] == "failed"]
    assert 0.1 < len(failed) / len(rows) < 0.4
    assert all(score is None for _, score, _ in failed)  # nothing became a reward of 0
    assert {kind for _, _, kind in failed} == {"model_unavailable", "malformed_reply"}
    assert b'"kind": "example"' in (tmp_path / "runs" / "r" / "library.json").read_bytes()


def test_sigint_stops_in_good_order_and_says_how_to_go_on(agentmem, sums, tmp_path, reference):
    library, _ = reference
    with ChatServer(learner, latency=0.02) as server:
        process = learn(agentmem, server, sums)
        while server.calls < 60 and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130, err
        assert "start the same command again:\n  agentmem learn" in err
        assert "Traceback" not in err
        finish(learn(agentmem, server, sums, "--resume"))
    assert (tmp_path / "runs" / "r" / "library.json").read_bytes() == library


def test_a_full_disk_is_said_and_the_journal_is_whole(agentmem, sums, tmp_path, reference):
    library, _ = reference
    with ChatServer(learner) as server:
        learn_here = learn(agentmem, server, sums, "--max-calls", 0)  # makes the run directory, sends nothing
        learn_here.communicate(timeout=60)
        assert learn_here.returncode == 4
        # A page limit gives SQLite the very error of a full disk (SQLITE_FULL), as any user and on any system.
        script = (
            "import sqlite3, sys, agentmem.runs.journal as j\n"
            "connect = j.Journal._connect\n"
            "def limited(self):\n"
            "    connection = connect(self)\n"
            "    connection.execute('PRAGMA max_page_count=60')\n"
            "    return connection\n"
            "j.Journal._connect = limited\n"
            "from agentmem.cli import main\n"
            f"main({['learn', str(sums), '--base-url', server.base_url, *OPTIONS]!r})\n"
        )
        (tmp_path / "full.py").write_text(script)
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        full = subprocess.run(
            [sys.executable, tmp_path / "full.py"], cwd=tmp_path, env=environment, text=True, capture_output=True
        )
        assert full.returncode == 1
        assert "database or disk is full" in full.stderr
        assert "free some disk space" in full.stderr
        assert "Traceback" not in full.stderr
        journal = Journal(tmp_path / "runs" / "r" / "journal.sqlite")
        stored = journal.count()
        assert stored > 20
        assert next(journal.rows("PRAGMA integrity_check")) == ("ok",)
        journal.close()
        finish(learn(agentmem, server, sums))
    assert (tmp_path / "runs" / "r" / "library.json").read_bytes() == library
