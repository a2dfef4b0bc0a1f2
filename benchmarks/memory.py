"""How fast a case bank is: reads, durable writes, bulk, opening; beside encoding the bank anew for every query.

    python -m benchmarks.memory                writes benchmarks/results/memory.json (about half an hour)
    python -m benchmarks.memory --quick        1,000 and 10,000 cases, prints only
    python -m benchmarks.memory --million      a million vectors too (6 GB of memory)

A read is the whole of `CaseBank.recall` but for the embedder: vectors are given, and MiniLM is measured beside. The
vectors are drawn: clusters of 100 and of 5,000 around random directions, 384 numbers each. Queries are further draws
from the same clusters. What is right is computed by comparing all.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentmem.domain.case import Case
from agentmem.domain.reward import Reward
from agentmem.domain.write_rules import WriteRules
from agentmem.memory.case_bank import CaseBank
from agentmem.memory.case_policy import POOL
from agentmem.memory.chroma_folder import COLLECTION
from agentmem.memory.chroma_index import close_client, folder_client
from agentmem.memory.ivf_index import IvfIndex
from agentmem.memory.vector_index import ExactIndex, VectorIndex
from benchmarks.results_file import RESULTS, machine, today

DIMENSIONS = 384
SIZES = (1_000, 10_000, 100_000)
CLUSTERS = (100, 5_000)
QUERIES = 500
CREDITED = 200
RULES = WriteRules(capacity=2_000_000)


def main() -> None:
    sizes = SIZES[:2] if "--quick" in sys.argv else SIZES
    figures: dict[str, Any] = {"load_at_start": load(), "n": f"{QUERIES} reads each, after 100 that warm up"}
    with tempfile.TemporaryDirectory() as folder:
        figures["banks"] = [
            one_bank(Path(folder) / f"{size}-{cluster}", size, cluster) for cluster in CLUSTERS for size in sizes
        ]
        figures["writes"] = writes(Path(folder) / "writes")
    figures["minilm"] = minilm(sizes)
    figures["sentences"] = sentences()
    if "--million" in sys.argv:
        figures["million_vectors"] = million()
    figures["load_at_end"] = load()
    result = {"benchmark": "memory", "date": today(), "machine": machine(), **figures}
    text = json.dumps(result, indent=1)
    if "--quick" not in sys.argv:
        (RESULTS / "memory.json").write_text(text + "\n", encoding="utf-8")
    print(text)


class Drawn:
    """Vectors by number, from clusters of a size; as an embedder, a text is its number."""

    name = "drawn-384"

    def __init__(self, cases: int, cluster: int) -> None:
        rng = np.random.default_rng(cluster)
        centres = rng.standard_normal((max(1, cases // cluster), DIMENSIONS)).astype(np.float32)
        rows = []
        for start in range(0, cases + QUERIES + 100, 10_000):
            n = min(10_000, cases + QUERIES + 100 - start)
            row = centres[rng.integers(0, len(centres), n)]
            row = row + 0.6 * rng.standard_normal((n, DIMENSIONS)).astype(np.float32)
            rows.append(row / np.linalg.norm(row, axis=1, keepdims=True))
        self.vectors = np.concatenate(rows).astype(np.float32)
        self.queries = range(cases, cases + QUERIES + 100)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors that these texts number."""
        return self.vectors[[int(text) for text in texts]]


def cases(numbers: range) -> Iterator[Case]:
    """Cases of ordinary length, whose state is their number."""
    for number in numbers:
        yield Case.of(
            str(number), f"{number}: {'what was done, in a few words. ' * 10}", reward=float(number % 3 == 0)
        )


def one_bank(path: Path, size: int, cluster: int) -> dict[str, Any]:
    """Bulk, opening, and reads by each index; `auto` takes `exact` for 1,000 cases and `ivf` for the others."""
    print(f"{size} cases, {cluster} a cluster", file=sys.stderr)
    drawn = Drawn(size, cluster)
    with closing(CaseBank(path, embedder=drawn, rules=RULES, index="exact")) as bank:
        made = list(cases(range(size)))
        started = time.perf_counter()
        bank.add_many(made)
        bulk = size / (time.perf_counter() - started)
        for query in drawn.queries[:CREDITED]:
            bank.credit(bank.recall(str(query)), Reward.of(1.0), key=f"credit {query}")
        found: dict[str, Any] = {"cases": size, "vectors_a_cluster": cluster, "bulk_cases_per_s": round(bulk)}
        found["exact"] = reads(bank, drawn)
    found["open_and_first_read_s"] = opening(path)
    if size >= 10_000:
        with closing(CaseBank(path, embedder=drawn, rules=RULES, index="ivf")) as bank:
            found["while_ivf_is_built"] = reads_while_built(bank, drawn)
    for index in ("ivf", "chroma") if size >= 10_000 else ():
        with closing(CaseBank(path, embedder=drawn, rules=RULES, index=index)) as bank:
            started = time.perf_counter()
            assert bank.reindex() == index, bank.index.notes
            built = round(time.perf_counter() - started, 1)
            found[index] = {"build_s": built, **reads(bank, drawn)}
            assert bank.index.serving == index
    if "chroma" in found:
        found["chroma"]["query_of_chroma_alone"] = chroma_alone(path, drawn)
    return found


def reads(bank: CaseBank, drawn: Drawn) -> dict[str, Any]:
    """Milliseconds of a whole recall, and recall@10 of the index behind it."""
    warm, queries = drawn.queries[:100], drawn.queries[100:]
    for query in warm:
        bank.recall(str(query))
    seconds, processor = [], []
    for query in queries:
        started, busy = time.perf_counter(), time.process_time()
        bank.recall(str(query))
        processor.append(time.process_time() - busy)
        seconds.append(time.perf_counter() - started)
    held = drawn.vectors[: drawn.queries.start]
    hits = 0
    for query in queries[:200]:
        right = np.argpartition(-(held @ drawn.vectors[query]), 10)[:10]
        near = bank.index.nearest(drawn.vectors[query], POOL)
        hits += len({case.state for case in bank.store.cases(near.ids[:10])} & {str(row) for row in right})
    used = quantiles(processor)["p50_ms"]  # says more than the clock where others use the machine
    return {**quantiles(seconds), "processor_p50_ms": used, "recall_at_10": round(hits / 2000, 4), "load": load()}


def reads_while_built(bank: CaseBank, drawn: Drawn) -> dict[str, Any]:
    """Milliseconds of the recalls that are answered while a new process builds its index."""
    seconds: list[float] = []
    for query in cycle(drawn.queries):
        started = time.perf_counter()
        bank.recall(str(query))
        if bank.index.serving == "ivf":
            break
        seconds.append(time.perf_counter() - started)
    return {"n": f"{len(seconds)} reads", **quantiles(seconds)}


def chroma_alone(path: Path, drawn: Drawn) -> dict[str, float]:
    """Milliseconds of Chroma's own query on the same files: what no reader of it can be faster than."""
    client = folder_client(str(path / "chroma" / (path / "chroma" / "current").read_text().strip()))
    collection = client.get_collection(COLLECTION, embedding_function=None)
    seconds = []
    for query in drawn.queries:
        started = time.perf_counter()
        collection.query(query_embeddings=drawn.vectors[query][None, :], n_results=POOL, include=[])
        seconds.append(time.perf_counter() - started)
    close_client(client)
    return quantiles(seconds[100:])


def quantiles(seconds: Sequence[float]) -> dict[str, float]:
    """p50 and p99, in milliseconds."""
    cuts = statistics.quantiles(seconds, n=100)
    return {"p50_ms": round(cuts[49] * 1000, 2), "p99_ms": round(cuts[98] * 1000, 2)}


OPENING = """
import sys, time
import numpy as np
from pathlib import Path
from agentmem.memory.case_bank import CaseBank
class Given:
    name = "drawn-384"
    def embed(self, texts): return np.full((len(texts), 384), 384 ** -0.5, np.float32)
started = time.perf_counter()
bank = CaseBank(Path(sys.argv[1]), embedder=Given())
bank.recall("a new state")
print(time.perf_counter() - started)
bank.close()
"""


def opening(path: Path) -> float:
    """Seconds from opening to the first answer, in a process of its own; the best of 3."""
    command = [sys.executable, "-c", OPENING, str(path)]
    seconds = [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(3)]
    return round(min(seconds), 2)


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
    CaseBank(path, embedder=Drawn(1, 1)).close()
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
            "p99_range_ms": p99s[:: rounds - 1],
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


LOADING = """
import json, time
started = time.perf_counter()
from agentmem.memory.embedder import MiniLM
minilm = MiniLM()
minilm.embed(["warm"])
loaded = time.perf_counter() - started
states = [f"{i}: my laptop does not connect to the printer on the second floor since this morning" for i in range(256)]
started = time.perf_counter()
minilm.embed(states)
batch = (time.perf_counter() - started) / 256
single = []
for i in range(30):
    started = time.perf_counter()
    minilm.embed([f"{states[i]} again"])
    single.append(time.perf_counter() - started)
print(json.dumps([loaded, batch, sorted(single)[15]]))
"""


def minilm(sizes: Sequence[int]) -> dict[str, Any]:
    """Loading and encoding; and, extrapolated from 256 texts, what encoding the bank for each query would take."""
    done = subprocess.run([sys.executable, "-c", LOADING], check=True, capture_output=True, text=True)
    loaded, batch, single = json.loads(done.stdout.splitlines()[-1])
    return {
        "import_load_first_encode_s": round(loaded, 1),
        "encode_one_ms": round(single * 1000, 1),
        "encode_in_batches_ms": round(batch * 1000, 2),
        "reencoding_the_bank_per_query_s_extrapolated": {str(size): round(batch * size, 1) for size in sizes},
    }


SENTENCES = """
import json, pydoc_data.topics, re, sys, time
import numpy as np
from agentmem.memory.embedder import MiniLM
from agentmem.memory.ivf_index import IvfIndex
from agentmem.memory.vector_index import ExactIndex
from pathlib import Path
texts = list(pydoc_data.topics.topics.values())
texts += [path.read_text("utf-8", "replace") for path in sorted(Path(json.__file__).parents[1].glob("*.py"))]
pieces = dict.fromkeys(" ".join(p.split()) for text in texts for p in re.split(r"(?<=[.!?])\\s+|\\n\\s*\\n", text))
found = [piece for piece in pieces if 40 <= len(piece) <= 300 and piece.count(" ") >= 6]
rng = np.random.default_rng(0)
found = [found[row] for row in rng.permutation(len(found))[: int(sys.argv[1]) + 300]]
vectors = MiniLM().embed(found)
held, queries = vectors[:-300], vectors[-300:]
ids = [str(row) for row in range(len(held))]
ivf, exact = IvfIndex(ids, held, seq=1), ExactIndex(held.shape[1])
exact.update(dict(zip(ids, held)), [], seq=1)
def timed(index):
    taken, found = [], []
    for q in queries:
        started = time.perf_counter()
        found.append(index.nearest(q, 50)[:10])
        taken.append(time.perf_counter() - started)
    return found, {"p50_ms": round(sorted(taken)[len(taken) // 2] * 1000, 2)}
(right, of_exact), (near, of_ivf) = timed(exact), timed(ivf)
hits = sum(len(set(a) & set(b)) for a, b in zip(right, near))
about = {"cases": len(held), "cells": ivf.cells, "probes": ivf.probes, "recall_at_10": round(hits / 3000, 4)}
print(json.dumps({**about, "exact": of_exact, "ivf": of_ivf}))
"""


def sentences(*, cases: int = 10_000) -> dict[str, Any]:
    """What the indexes alone find of MiniLM's vectors of pieces of Python's own documentation and source."""
    command = [sys.executable, "-c", SENTENCES, str(cases)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {"n": "300 queries", **json.loads(done.stdout.splitlines()[-1])}


def million(*, n: int = 1_000_000) -> dict[str, Any]:
    """Finding the nearest of a million vectors, by comparing all and by IVF; the indexes alone, without a bank."""
    drawn = Drawn(n, 5_000)
    ids = [str(row) for row in range(n)]
    exact = ExactIndex(DIMENSIONS)
    exact.update({id: drawn.vectors[row] for row, id in enumerate(ids)}, [], seq=1)
    queries = [drawn.vectors[query] for query in drawn.queries[:60]]
    seconds, right = _found(exact, queries)
    del exact
    started = time.perf_counter()
    ivf = IvfIndex(ids, drawn.vectors[:n], seq=1)
    built = time.perf_counter() - started
    of_ivf, found = _found(ivf, queries)
    hits = sum(len(set(a[:10]) & set(b[:10])) for a, b in zip(found, right, strict=True))
    return {
        "n": f"{len(queries)} queries",
        "exact": quantiles(seconds),
        "ivf": {"build_s": round(built, 1), **quantiles(of_ivf), "recall_at_10": hits / (10 * len(queries))},
    }


def _found(index: VectorIndex, queries: Sequence[NDArray[np.float32]]) -> tuple[list[float], list[list[str]]]:
    seconds, found = [], []
    for query in queries:
        started = time.perf_counter()
        found.append(index.nearest(query, POOL))
        seconds.append(time.perf_counter() - started)
    return seconds, found


def load() -> float:
    """Processes that want the processor, averaged over a minute: figures taken under load are too high."""
    import os

    return round(os.getloadavg()[0], 1)


if __name__ == "__main__":
    main()
