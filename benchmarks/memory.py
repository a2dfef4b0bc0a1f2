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
from benchmarks.memory_embedding import minilm, sentences
from benchmarks.memory_writes import writes
from benchmarks.quantiles import quantiles
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
