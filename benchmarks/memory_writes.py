"""Durable writes of several processes into one case bank, beside bare SQLite and the disk; see `benchmarks.memory`."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from agentmem.memory.case_bank import CaseBank
from agentmem.testing.hash_embedder import HashEmbedder
from benchmarks.quantiles import quantiles

WRITING = """
import json, sys, time
import numpy as np
from pathlib import Path
from agentmem.domain.case import Case
from agentmem.memory.case_bank import CaseBank
rng = np.random.default_rng(int(sys.argv[2]))
class Given:
    name = "drawn-384"
    def embed(self, texts):
        vectors = rng.standard_normal((len(texts), 384)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
bank = CaseBank(Path(sys.argv[1]), embedder=Given(), index="exact")
made = [Case.of(f"{sys.argv[2]} {time.time()} {i}", "what was done " * 20, reward=1.0) for i in range(int(sys.argv[3]))]
bank.add(Case.of(f"{sys.argv[2]} {time.time()} first", "x"))
sys.stdin.readline()
seconds = []
for case in made:
    started = time.perf_counter()
    bank.add(case)
    seconds.append(time.perf_counter() - started)
    time.sleep(0.02)  # a writer does other things between two attempts
print(json.dumps(seconds))
bank.close()
"""


BARE = """
import json, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1] + "/bare.sqlite", isolation_level=None, timeout=60)
db.execute("PRAGMA journal_mode=WAL")
db.execute("PRAGMA synchronous=FULL")
db.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, body TEXT, vector BLOB)")
sys.stdin.readline()
seconds = []
for _ in range(int(sys.argv[3])):
    started = time.perf_counter()
    db.execute("INSERT INTO t (body, vector) VALUES (?, ?)", ("what was done " * 20, bytes(1536)))
    seconds.append(time.perf_counter() - started)
    time.sleep(0.02)
print(json.dumps(seconds))
"""


DISK = """
import fcntl, json, os, sys, time
file = os.open(sys.argv[1] + "/disk.bin", os.O_RDWR | os.O_CREAT)
line = os.open(sys.argv[1] + "/disk.lock", os.O_RDWR | os.O_CREAT)
place = int(sys.argv[2]) << 24
sys.stdin.readline()
seconds = []
for _ in range(int(sys.argv[3])):
    started = time.perf_counter()
    fcntl.flock(line, fcntl.LOCK_EX)
    os.pwrite(file, bytes(16384), place)
    os.fdatasync(file)
    fcntl.flock(line, fcntl.LOCK_UN)
    seconds.append(time.perf_counter() - started)
    place += 16384
    time.sleep(0.02)
print(json.dumps(seconds))
"""


def writes(path: Path, *, writers: int = 4, each: int = 500, rounds: int = 3) -> dict[str, Any]:
    """Milliseconds of one durable write (on disk when it returns), with several processes that write.

    Beside it, in turns, because a shared disk has bad minutes: a bare insert by SQLite, and the bound of both, which
    is to wait for one's turn and to put four pages on the disk.
    """
    CaseBank(path, embedder=HashEmbedder()).close()  # the writers find it made
    programs = {"case_bank": WRITING, "bare_sqlite": BARE, "bare_disk": DISK}
    taken = [
        {name: quantiles(_written(path, program, writers, each)) for name, program in programs.items()}
        for _ in range(rounds)
    ]
    figures = {}
    for name in programs:
        p50s, p99s = (sorted(round_[name][key] for round_ in taken) for key in ("p50_ms", "p99_ms"))
        figures[name] = {
            "p50_ms": statistics.median(p50s),
            "p99_ms": statistics.median(p99s),
            "p99_range_ms": [p99s[0], p99s[-1]],
        }
    return {
        "n": f"{writers} processes x {each} writes, 20 ms apart; medians of {rounds} rounds in turns",
        **figures,
    }


def _written(path: Path, program: str, writers: int, each: int) -> list[float]:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path), str(number), str(each)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(writers)
    ]
    time.sleep(3)  # until all are ready
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [second for process in processes for second in json.loads(process.communicate()[0])]
