"""A stream whose process is killed: started again with the same stream, it ends the same and buys nothing twice."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from agentmem.learning.online_result import OnlineResult
from agentmem.testing.server import ChatServer
from tests.conftest import ROOT
from tests.learning.paced import QUICK
from tests.learning.zork import Zork

TASKS = 48
IN_FLIGHT = 2 * QUICK["concurrency"]  # answers, and attempts behind them


def model(chat):
    return Zork(p=0.3)(chat.request)


def start(folder, server, pace):
    command = [sys.executable, "-m", "tests.learning.paced", str(folder), server.base_url, str(TASKS), pace]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": ""}
    return subprocess.Popen(command, env=environment, cwd=ROOT, text=True, stderr=subprocess.PIPE)


def finish(process):
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err


def rows(folder, sql):
    if not (folder / "journal.sqlite").exists():
        return []
    with closing(sqlite3.connect(folder / "journal.sqlite", timeout=30)) as db:
        try:
            return db.execute(sql).fetchall()
        except sqlite3.OperationalError:  # killed before the tables were made
            return []


CALLS = (
    "SELECT phase, step, task, rollout, purpose, ordinal, seq FROM steps"
    " WHERE purpose IN ('act', 'distil', 'consolidate')"
)
DECIDED = "SELECT step, purpose, result FROM steps WHERE purpose IN ('arrival', 'window', 'bench', 'decision')"


@pytest.mark.parametrize("pace", ["paced", "at once"])
def test_kill_9_and_again(tmp_path, pace):
    rng = random.Random(0)
    folder, kills, lost = tmp_path / "killed", 0, 0
    with ChatServer(model) as server:
        finish(start(tmp_path / "whole", server, pace))
        reference = len(rows(tmp_path / "whole", CALLS))
        assert reference == server.calls
    with ChatServer(model, latency=0.003) as server:
        for _ in range(4):
            before, decided, sent = set(rows(folder, CALLS)), set(rows(folder, DECIDED)), server.calls
            moment = rng.randint(5, reference // 4)
            process = start(folder, server, pace)
            while server.calls - sent < moment and process.poll() is None:
                time.sleep(0.001)
            if process.poll() is not None:
                break
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
            after = set(rows(folder, CALLS))
            assert before <= after  # nothing stored was lost or bought again
            assert decided <= set(rows(folder, DECIDED))  # nor decided otherwise
            in_flight = server.calls - sent - len(after - before)
            assert in_flight <= IN_FLIGHT + QUICK["batch_size"]
            lost += in_flight
        finish(start(folder, server, pace))
        assert kills >= 2
        calls, library = server.calls, (folder / "library.json").read_bytes()
        assert calls == len(rows(folder, CALLS)) + lost
        finish(start(folder, server, pace))  # all of it is replayed
        assert server.calls == calls
        assert (folder / "library.json").read_bytes() == library
    assert OnlineResult.of(folder).n == TASKS
    assert b"Add one" in library
    if pace == "paced":  # otherwise it depends on the time which library answers
        assert library == (tmp_path / "whole" / "library.json").read_bytes()
        assert OnlineResult.of(folder).arrivals == OnlineResult.of(tmp_path / "whole").arrivals
        assert calls == reference + lost
