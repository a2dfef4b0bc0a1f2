"""A SIMULATION: which settings suit gepa best in the simulated world, so that it is compared at its best.

python -m benchmarks.simulated_learner.sweep        writes results/simulated_learner_gepa_settings.json
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmarks.results_file import write_result
from benchmarks.simulated_learner.curve import quartiles
from benchmarks.simulated_learner.peers import optimise

SEEDS = range(100, 110)
"""Others than those of the comparison, so that nothing is chosen on what it is judged by."""
CAP = 3000


def main() -> None:
    """Try every combination on every seed."""
    grid = [
        {"reflection_minibatch_size": size, "candidate_selection_strategy": parent, "every_failure": every}
        for every, size, parent in itertools.product((False, True), (3, 5, 8), ("pareto", "current_best"))
    ]
    asked = [(settings, seed) for settings in grid for seed in SEEDS]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        calls = list(pool.map(_one, asked))
    rows: list[dict[str, Any]] = []
    for settings in grid:
        reached = [found for (tried, _), found in zip(asked, calls, strict=True) if tried == settings]
        known = sum(found is not None for found in reached)
        rows.append({**settings, "reached": known, "calls_to_target": quartiles(reached)})
    write_result(
        "simulated_learner_gepa_settings",
        {"simulation": True, "n_seeds": len(SEEDS), "cap_calls": CAP, "settings": rows},
    )


def _one(asked: tuple[dict[str, Any], int]) -> int | None:
    settings, seed = asked
    found = optimise("gepa", seed, cap=CAP, settings=settings)["calls_to_target"]
    return None if found is None else int(found)


if __name__ == "__main__":
    main()
