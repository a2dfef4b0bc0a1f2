"""How far the intervals and tests of `agentmem.evaluation` keep their promises, by simulation.

Measures, for the default and for what it was chosen over: the coverage and width of 95 % intervals of a mean and
of a paired difference; how often each paired test rejects at 5 % where nothing changed; and their power beside the
unpaired z-test that others use. Prints a summary and writes `benchmarks/results/statistics_calibration.json`.

    python benchmarks/statistics_calibration.py            # about seven minutes of one core
    python benchmarks/statistics_calibration.py --quick    # a look, not written
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from agentmem.evaluation.intervals import mean_interval, paired_interval
from agentmem.evaluation.statistics import mcnemar, sign_flip, smallest_detectable
from agentmem.format import Table, percent

RESULT = Path(__file__).parent / "results" / "statistics_calibration.json"
TASKS = (24, 48, 165)
SAMPLES = (1, 4)
RATES = (0.1, 0.3, 0.5, 0.9)
SPREADS = {"alike": None, "mixed": 2.0}
"""How hard tasks differ: not at all, or by a Beta distribution of this concentration."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the work; nothing is written")
    quick = parser.parse_args().quick
    scale = 100 if quick else 1
    began = time.perf_counter()
    rng = np.random.default_rng(0)
    result: dict[str, Any] = {
        "benchmark": "statistics_calibration",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
        "seed": 0,
        "means": mean_coverage(rng, 4000 // scale, 1000 // scale),
        "differences": difference_coverage(rng, 4000 // scale, 1000 // scale),
        "tests": null_rates(rng, 20_000 // scale),
        "power": power(rng, 4000 // scale),
    }
    result["seconds"] = round(time.perf_counter() - began, 1)
    for table in summary(result):
        print(table, end="\n\n")
    if not quick:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(f"Written to {RESULT.relative_to(Path.cwd())} after {result['seconds']} s.")


def mean_coverage(rng: np.random.Generator, draws: int, bootstrap_draws: int) -> list[dict[str, Any]]:
    rows = []
    for n in TASKS:
        for k in SAMPLES:
            for spread, concentration in SPREADS.items():
                for p in RATES:
                    data = [sampled(rng, rates(rng, n, p, concentration), k) for _ in range(draws)]
                    for method in ("auto", "t", "bca", "studentised"):
                        used = data if method in ("auto", "t") else data[:bootstrap_draws]
                        made = [mean_interval(x, method=method, resamples=1000) for x in used]
                        rows.append({"n": n, "k": k, "tasks": spread, "p": p, "method": method, **held(made, p)})
    return rows


def difference_coverage(rng: np.random.Generator, draws: int, bootstrap_draws: int) -> list[dict[str, Any]]:
    rows = []
    for n in TASKS:
        for k in SAMPLES:
            for spread, concentration in SPREADS.items():
                for p in RATES:
                    for gain in (0.0, 0.1, 0.2):
                        if p + gain > 1:
                            continue
                        data = [pair(rng, n, p, concentration, gain, k) for _ in range(draws)]
                        for method in ("auto", "t", "bca", "studentised"):
                            used = data if method in ("auto", "t") else data[: bootstrap_draws // 2]
                            made = [paired_interval(x, method=method, resamples=1000) for x in used]
                            row = {"n": n, "k": k, "tasks": spread, "p": p, "gain": gain, "method": method}
                            rows.append({**row, **held(made, gain)})
    return rows


def null_rates(rng: np.random.Generator, draws: int) -> list[dict[str, Any]]:
    """How often each test rejects at 5 % where both arms are the same; tasks differ in difficulty."""
    rows = []
    for n in (26, 53, 165):
        for k in (1, 8):
            reject: dict[str, int] = {}
            for _ in range(draws):
                change = pair(rng, n, 0.5, 2.0, 0.0, k)
                found = tests(change, k)
                for name, rejected in found.items():
                    reject[name] = reject.get(name, 0) + rejected
            rows += [
                {"n": n, "k": k, "test": name, "rate": count / draws, "draws": draws}
                for name, count in reject.items()
            ]
    return rows


def power(rng: np.random.Generator, draws: int) -> list[dict[str, Any]]:
    """How often a gain is shown: paired, and by the z-test that forgets that the tasks are the same."""
    rows = []
    for n in (26, 53, 165):
        for k in (1, 8):
            for gain in (0.05, 0.1, 0.2):
                shown: dict[str, int] = {}
                for _ in range(draws):
                    rate = rates(rng, n, 0.4, 2.0)
                    one = sampled(rng, rate, k)
                    two = sampled(rng, raised(rate, 0.4, gain), k)
                    found = {**tests(two - one, k), "unpaired z": unpaired(one, two)}
                    for name, rejected in found.items():
                        shown[name] = shown.get(name, 0) + rejected
                rows += [
                    {"n": n, "k": k, "gain": gain, "test": name, "rate": count / draws, "draws": draws}
                    for name, count in shown.items()
                ]
    return rows


def tests(change: np.ndarray, k: int) -> dict[str, bool]:
    interval = paired_interval(change)
    found = {"interval excludes 0": not interval.low <= 0 <= interval.high}
    if k == 1:
        made = mcnemar(int((change > 0).sum()), int((change < 0).sum()))
        return {**found, "McNemar exact": made.p <= 0.05, "McNemar mid-p": made.mid_p <= 0.05}
    flipped = sign_flip(change)
    return {**found, "sign-flip": flipped.p <= 0.05, "sign-flip mid-p": flipped.mid_p <= 0.05}


def unpaired(one: np.ndarray, two: np.ndarray) -> bool:
    error = np.sqrt(one.var(ddof=1) / len(one) + two.var(ddof=1) / len(two))
    return bool(abs(two.mean() - one.mean()) > 1.96 * error)


def rates(rng: np.random.Generator, n: int, p: float, concentration: float | None) -> np.ndarray:
    return np.full(n, p) if concentration is None else rng.beta(p * concentration, (1 - p) * concentration, n)


def raised(rate: np.ndarray, p: float, gain: float) -> np.ndarray:
    """Rates of the same tasks, on average `gain` higher."""
    return np.clip(rate + gain * (1 - rate) / (1 - p), 0, 1)


def sampled(rng: np.random.Generator, rate: np.ndarray, k: int) -> np.ndarray:
    return rng.binomial(k, rate) / k


def pair(
    rng: np.random.Generator, n: int, p: float, concentration: float | None, gain: float, k: int
) -> np.ndarray:
    rate = rates(rng, n, p, concentration)
    return sampled(rng, raised(rate, p, gain), k) - sampled(rng, rate, k)


def held(made: list[Any], truth: float) -> dict[str, Any]:
    return {
        "coverage": float(np.mean([i.low <= truth <= i.high for i in made])),
        "width": round(float(np.mean([i.high - i.low for i in made])), 4),
        "draws": len(made),
    }


def summary(result: dict[str, Any]) -> list[Table]:
    tables = []
    for part, name in (("means", "mean"), ("differences", "paired difference")):
        rows = []
        for n in TASKS:
            for k in SAMPLES:
                for method in ("auto", "t", "bca", "studentised"):
                    cells = [r for r in result[part] if (r["n"], r["k"], r["method"]) == (n, k, method)]
                    coverage = [r["coverage"] for r in cells]
                    low, high = percent(min(coverage)), percent(max(coverage))
                    width = np.mean([r["width"] for r in cells])
                    rows.append((f"{n}", f"{k}", method, percent(np.mean(coverage)), low, high, f"{width:.3f}"))
        columns = ("n", "k", "method", "mean coverage", "least", "most", "width")
        note = "Over base rates, task spreads and gains; auto is what reports and comparisons use."
        tables.append(Table(f"95 % interval of a {name}", tuple((c, "right") for c in columns), tuple(rows), note))
    for part, title in (("tests", "rejections at 5 % where nothing changed"), ("power", "gains shown")):
        rows = [
            (f"{r['n']}", f"{r['k']}", f"{r.get('gain', 0):.2f}", r["test"], percent(r["rate"]))
            for r in result[part]
        ]
        columns = ("n", "k", "gain", "test", "rate")
        tables.append(Table(title, tuple((c, "right") for c in columns), tuple(rows)))
    rows = [(f"{n}", f"{smallest_detectable(n) or 1:.3f}") for n in (24, 30, 48, 165, 500)]
    tables.append(Table("smallest detectable difference", (("n", "right"), ("k = 1", "right")), tuple(rows)))
    return tables


if __name__ == "__main__":
    main()
