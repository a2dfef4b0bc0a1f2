"""A SIMULATION: calls and tokens until each system's prompt reaches 90 % of the best score of the simulated world.

    python -m benchmarks.simulated_learner.run                          writes results/simulated_learner.json
    python -m benchmarks.simulated_learner.run --seeds 3 --show         a look, without writing
    python -m benchmarks.simulated_learner.run --systems ours gepa      some systems

gepa and dspy need the extra `bench`. No language model is involved, so the figures say how ways of learning compare
in this world, and nothing about any real task.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from agentmem.format import Table, count, number
from benchmarks.results_file import write_result
from benchmarks.simulated_learner.curve import TARGET, quartiles
from benchmarks.simulated_learner.ours import ARMS, learn
from benchmarks.simulated_learner.peers import SETTINGS, optimise
from benchmarks.simulated_learner.world import FAMILIES, HARM, WITH, WITHOUT, WRONG, World

MEASURED = (
    "calls_to_target",
    "tokens_to_target",
    "calls_to_any_candidate",
    "calls",
    "tokens",
    "final_score",
    "true_lessons",
    "harmful_lessons",
)
"""What is summarised by quartiles over the seeds."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the systems, show the table, and write the result."""
    known = [*ARMS, *SETTINGS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulated_learner.run", description=main.__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="seeds 0, 1, ... for every system")
    parser.add_argument(
        "--systems", nargs="+", choices=known, default=known, metavar="SYSTEM", help=", ".join(known)
    )
    parser.add_argument("--cap", type=int, default=3000, help="calls of one run at most")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--show", action="store_true", help="write no result")
    given = parser.parse_args(arguments)

    figures = measure(given.systems, seeds=range(given.seeds), cap=given.cap, jobs=given.jobs)
    if not given.show:
        write_result("simulated_learner", figures)
    print(table(figures))


def measure(systems: Sequence[str], *, seeds: Sequence[int], cap: int, jobs: int) -> dict[str, Any]:
    """All systems on all seeds, as the figures of the result."""
    runs: dict[str, list[dict[str, Any]]] = {system: [] for system in systems}
    asked = [(system, seed, cap) for system in systems for seed in seeds]
    # Fresh processes: a peer's threads and settings must not meet the next run.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        for run in pool.map(_one, asked):
            runs[run["system"]].append(run)
    world = World()
    return {
        "simulation": True,
        "what": "no language model is involved; see benchmarks/simulated_learner/README.md",
        "world": {
            "families": len(FAMILIES),
            "wrong_lessons": len(WRONG),
            "p_without": WITHOUT,
            "p_with": WITH,
            "harm": HARM,
            "train": len(world.train),
            "validation": len(world.validation),
        },
        "target": TARGET,
        "cap_calls": cap,
        "n_seeds": len(seeds),
        "systems": {system: summary(system, held) for system, held in runs.items()},
    }


def summary(system: str, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One system: its settings, quartiles over the seeds (None is "never"), and every run."""
    roles = sorted({role for run in runs for role in run["by_role"]})
    return {
        "settings": ARMS.get(system) or SETTINGS[system],
        "settings_not_available": runs[0]["settings_not_available"],
        "n": len(runs),
        "reached": sum(run["calls_to_target"] is not None for run in runs),
        "seeds_with_all_true_lessons": sum(run["true_lessons"] == len(FAMILIES) for run in runs),
        "seeds_without_harmful_lessons": sum(run["harmful_lessons"] == 0 for run in runs),
        **{name: quartiles([run[name] for run in runs]) for name in MEASURED},
        "median_calls_by_role": {
            role: quartiles([run["by_role"].get(role, {}).get("calls", 0) for run in runs])["median"]
            for role in roles
        },
        **({"credit": _credit(runs)} if "credit_measured" in runs[0] else {}),
        "runs": [{name: run[name] for name in ("seed", "ended", "best_score", *MEASURED)} for run in runs],
    }


def table(figures: dict[str, Any]) -> Table:
    """The figures as a table."""
    rows = []
    for system, of in figures["systems"].items():
        marked = f"{system} (incomplete)" if of["settings_not_available"] else system
        rows.append(
            (
                marked,
                f"{of['reached']} of {of['n']}",
                _span(of["calls_to_target"]),
                _span(of["tokens_to_target"]),
                number(of["final_score"]["median"]),
                _plain(of["true_lessons"]["median"]),
                _plain(of["harmful_lessons"]["median"]),
                _plain(of["calls"]["median"]),
            )
        )
    columns = ("system", "reached", "calls to target", "tokens to target", "score", "true", "harmful", "calls")
    return Table(
        "SIMULATION: until the prompt's true score is 90 % of the best",
        tuple((name, "left" if name == "system" else "right") for name in columns),
        tuple(rows),
        f"Median [quartiles] over {figures['n_seeds']} seeds; 'never' within {count(figures['cap_calls'], 'call')}. "
        "score, true and harmful lessons and calls: medians at the end of the run. "
        "incomplete: this version lacks settings of the arm, so the row says nothing about it.",
    )


def _one(asked: tuple[str, int, int]) -> dict[str, Any]:
    system, seed, cap = asked
    run = asyncio.run(learn(system, seed, cap=cap)) if system in ARMS else optimise(system, seed, cap=cap)
    return {"system": system, "seed": seed, **run}


def _credit(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Over all seeds: lessons with enough exposures, and the share of them whose effect has the right sign."""
    measured, right = (sum(run[name] for run in runs) for name in ("credit_measured", "credit_right"))
    return {"lessons": measured, "share_with_right_sign": round(right / measured, 3) if measured else None}


def _span(of: dict[str, float | None]) -> str:
    return f"{_plain(of['median'])} [{_plain(of['q1'])}, {_plain(of['q3'])}]"


def _plain(value: float | None) -> str:
    return "never" if value is None else f"{value:,.0f}"


if __name__ == "__main__":
    main()
