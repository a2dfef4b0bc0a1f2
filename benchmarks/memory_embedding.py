"""What MiniLM costs, and what the indexes find of its vectors of real text; see `benchmarks.memory`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

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
