"""Whether the statistics of `agentmem.evaluation` keep what is promised of them, by simulation.

At 165 tasks, with 1 and with 8 attempts each, where both arms are the same: each bootstrap rejects at 5 % in 4 to 6 %
of 20,000 pairs, every other test in at most 5.5 %. Intervals of a mean cover within 2 points of 95 % on average over
rates from .05 to .95. Intervals over learning seeds, and of the calibration error, cover too. The power of the
paired tests stands beside that of the unpaired z-test. Prints a summary, and writes
`benchmarks/results/statistics_acceptance.json`.

    python -m benchmarks.statistics_acceptance            # some ten minutes of one core
    python -m benchmarks.statistics_acceptance --quick    # a look, not written
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import scipy

from agentmem.evaluation.calibration import Answer, calibration
from agentmem.evaluation.intervals import mean_interval, paired_interval
from agentmem.evaluation.seeds import seed_interval
from agentmem.format import Table, percent
from benchmarks.results_file import RESULTS, machine, today
from benchmarks.statistics_calibration import pair, power, rates, sampled, tests

RESULT = RESULTS / "statistics_acceptance.json"
N = 165
SAMPLES = (1, 8)
RATES = tuple(round(0.05 * step, 2) for step in range(1, 20))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the work; nothing is written")
    quick = parser.parse_args().quick
    scale = 100 if quick else 1
    rng = np.random.default_rng(0)
    result: dict[str, Any] = {
        "benchmark": "statistics_acceptance",
        "date": today(),
        "machine": {**machine(), "numpy": np.__version__, "scipy": scipy.__version__},
        "seed": 0,
        "null": null_rates(rng, 20_000 // scale),
        "means": coverage(rng, 4_000 // scale),
        "seeds": seed_coverage(rng, 4_000 // scale),
        "calibration_error": ece_coverage(rng, 1_000 // scale),
        "power": power(rng, 2_000 // scale),
    }
    result["kept"] = kept(result)
    for table in summary(result):
        print(table, end="\n\n")
    if not quick:
        RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(f"Written to {RESULT.name}.")


def null_rates(rng: np.random.Generator, draws: int) -> list[dict[str, Any]]:
    """How often each test rejects at 5 % where both arms are the same, and tasks differ in difficulty."""
    rows = []
    for k in SAMPLES:
        reject: dict[str, int] = {}
        for _ in range(draws):
            change = pair(rng, N, 0.5, 2.0, 0.0, k)
            found = tests(change, k)
            for method in ("studentised", "bca"):
                made = paired_interval(change, method=method, resamples=1000)
                found[f"{method} bootstrap"] = not made.low <= 0 <= made.high
            for name, rejected in found.items():
                reject[name] = reject.get(name, 0) + rejected
        rows += [{"n": N, "k": k, "test": name, "rate": n / draws, "draws": draws} for name, n in reject.items()]
    return rows


def coverage(rng: np.random.Generator, draws: int) -> list[dict[str, Any]]:
    """How often the interval of a mean that reports print holds the truth, over rates from .05 to .95."""
    rows = []
    for k in SAMPLES:
        for p in RATES:
            made = [mean_interval(sampled(rng, rates(rng, N, p, 2.0), k)) for _ in range(draws)]
            share = float(np.mean([i.low <= p <= i.high for i in made]))
            rows.append({"n": N, "k": k, "p": p, "coverage": share, "draws": draws})
    return rows


def seed_coverage(rng: np.random.Generator, draws: int) -> list[dict[str, Any]]:
    """How often the interval over learning seeds and tasks holds what the method brings on average."""
    rows = []
    for seeds in (2, 3, 5, 10):
        for spread in (0.0, 0.05, 0.15):
            held = 0
            for _ in range(draws):
                by_seed, by_task = rng.normal(0, spread, (seeds, 1)), rng.normal(0, 0.3, (1, N))
                table = 0.05 + by_seed + by_task + rng.normal(0, 0.4, (seeds, N))
                made = seed_interval(table.tolist(), bounds=None)
                held += made.low <= 0.05 <= made.high
            rows.append({"seeds": seeds, "spread": spread, "coverage": held / draws, "draws": draws})
    return rows


def ece_coverage(rng: np.random.Generator, draws: int) -> list[dict[str, Any]]:
    """How often the interval of the calibration error holds the true one; answers are right less often than said."""
    rows = []
    for shift in (0.0, 0.05, 0.1, 0.2):
        held = 0
        for _ in range(draws):
            said = rng.choice([0.3, 0.5, 0.7, 0.9], N)
            answers = [Answer(str(i), float(p), bool(rng.random() < p - shift)) for i, p in enumerate(said)]
            made = calibration(answers, bins=4).ece_interval
            held += made.low <= shift + 1e-9 <= made.high
        rows.append({"n": N, "error": shift, "coverage": held / draws, "draws": draws})
    return rows


def kept(result: dict[str, Any]) -> dict[str, bool]:
    """Each promise, and whether it was kept."""
    null = result["null"]
    boots = [row["rate"] for row in null if "bootstrap" in row["test"]]
    others = [row["rate"] for row in null if "bootstrap" not in row["test"]]
    promises = {
        "bootstraps reject 4 to 6 %": all(0.04 <= rate <= 0.06 for rate in boots),
        "other tests reject at most 5.5 %": all(rate <= 0.055 for rate in others),
    }
    for k in SAMPLES:
        mean = np.mean([row["coverage"] for row in result["means"] if row["k"] == k])
        promises[f"mean coverage within 2 points of 95 %, k = {k}"] = bool(abs(mean - 0.95) <= 0.02)
    return promises


def summary(result: dict[str, Any]) -> list[Table]:
    """What was found, as tables."""
    null = tuple((f"{r['k']}", r["test"], percent(r["rate"])) for r in result["null"])
    tables = [Table(f"rejections at 5 %, n = {N}, nothing changed", _columns("k", "test", "rate"), null)]
    means = []
    for k in SAMPLES:
        found = [row["coverage"] for row in result["means"] if row["k"] == k]
        means.append((f"{k}", percent(float(np.mean(found))), percent(min(found)), percent(max(found))))
    tables.append(
        Table("95 % interval of a mean, p from .05 to .95", _columns("k", "mean", "least", "most"), tuple(means))
    )
    seeds = tuple((f"{r['seeds']}", f"{r['spread']:.2f}", percent(r["coverage"])) for r in result["seeds"])
    tables.append(Table("95 % interval over learning seeds", _columns("seeds", "spread", "coverage"), seeds))
    errors = tuple((f"{r['error']:.2f}", percent(r["coverage"])) for r in result["calibration_error"])
    tables.append(Table("95 % interval of the calibration error", _columns("true error", "coverage"), errors))
    gains = tuple(
        (f"{r['n']}", f"{r['k']}", f"{r['gain']:.2f}", r["test"], percent(r["rate"])) for r in result["power"]
    )
    tables.append(Table("gains shown", _columns("n", "k", "gain", "test", "rate"), gains))
    told = tuple((promise, "kept" if true else "NOT KEPT") for promise, true in result["kept"].items())
    tables.append(Table("promises", _columns("promise", ""), told))
    return tables


def _columns(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, "right") for name in names)


if __name__ == "__main__":
    main()
