"""A model on the whole set, with the honest score: `python -m benchmarks.offline_gaia.model --folder F`.

By default `local/smollm2`, which can call no tool and sees no file: it answers from the question alone. The run is kept
in the folder, and the same command goes on with it. Writes `benchmarks/results/offline_gaia_model.json`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from agentmem.cli.gaia_run import Bench
from agentmem.cli.gaia_set import opened
from agentmem.cli.options import AgentOptions
from agentmem.cli.output import OutputOptions
from agentmem.evaluation.report import EvaluationReport
from agentmem.settings import AgentSettings, Budget, EvalSettings, ModelSettings
from benchmarks.offline_gaia.generate import write
from benchmarks.results_file import write_result


def main() -> None:
    """Generate the set, run the model on it, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="local/smollm2")
    parser.add_argument(
        "--tools", action="store_true", help="give it the set's tools; it has to be able to call them"
    )
    parser.add_argument("--folder", type=Path, required=True)
    asked = parser.parse_args()
    if not (asked.folder / "set").exists():
        write(asked.folder / "set")
    folder = opened(asked.folder / "set")
    options = AgentOptions(model=asked.model)
    attempt = AgentSettings(max_steps=20, tool_seconds=60.0, max_completion_tokens=128)
    output = OutputOptions(progress="none")
    with Bench.of(folder, options, attempt, ModelSettings(), output, bare=not asked.tools) as bench:
        plan = bench.plan(bench.agent(options), folder.chosen(), EvalSettings(concurrency=32))
        found = bench.carry_out(plan, asked.folder / "run", Budget())
    levels = {level: figures(found.level(level)) for level in sorted(set(found.levels.values()))}
    write_result(
        "offline_gaia_model",
        {
            "model": asked.model,
            "tools": asked.tools,
            "seconds": round(found.report.seconds),
            "all": figures(found.report),
            "levels": levels,
            "without_marker": sum(not attempt.marked for attempt in found.attempts),
            "near_misses": sum(bool(attempt.near_miss) for attempt in found.attempts),
        },
    )


def figures(report: EvaluationReport) -> dict[str, Any]:
    """A score with its n, its interval, and what failed."""
    interval = report.interval
    errors = sum(report.errors.values())
    return {"n": report.n, "score": report.score, "low": interval.low, "high": interval.high, "errors": errors}


if __name__ == "__main__":
    main()
