"""What holds of the generated set without a model.

python -m benchmarks.offline_gaia.check             replays plans through the real tools, then lets a script learn
python -m benchmarks.offline_gaia.check --learning  the latter alone
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentmem.cli.gaia_learn import Experiment
from agentmem.cli.gaia_run import Bench
from agentmem.cli.gaia_set import opened
from agentmem.cli.options import AgentOptions
from agentmem.cli.output import OutputOptions
from agentmem.domain.task import TaskSet
from agentmem.evaluation.by_level import LevelReport
from agentmem.settings import AgentSettings, Budget, EvalSettings, MemorySettings, ModelSettings
from benchmarks.offline_gaia.generate import write
from benchmarks.results_file import write_result

SCRIPTS = Path(__file__).with_name("scripted.py")
AT_ONCE = 8
SAMPLES = 2
"""Attempts at each task in the experiment on learning."""


def run(data: Path, script: str, run_folder: Path, only: Sequence[str] = ()) -> LevelReport:
    """Run a script on the set, eight attempts at once.

    Args:
        data: the set.
        script: `replay`, `slip` or `skilled`.
        run_folder: where the run is kept.
        only: the ids of some tasks; by default all.
    """
    folder = opened(data)
    chosen = [task for task in folder.tasks if not only or task.id in only]
    options = AgentOptions(model=f"scripted/{SCRIPTS}:{script}")
    attempt = AgentSettings(max_steps=20, tool_seconds=120.0)
    output = OutputOptions(progress="none")
    with Bench.of(folder, options, attempt, ModelSettings(), output) as bench:
        tasks = TaskSet(chosen, name=folder.dataset.name)
        plan = bench.plan(bench.agent(options), tasks, EvalSettings(concurrency=AT_ONCE))
        return bench.carry_out(plan, run_folder, Budget())


def learned(data: Path, run_folder: Path) -> dict[str, Any]:
    """The experiment on learning with the script that has skills: what its memory is worth, off, on and shuffled."""
    folder = opened(data)
    options = AgentOptions(model=f"scripted/{SCRIPTS}:skilled", memory_policy="similarity")
    attempt = AgentSettings(max_steps=20, tool_seconds=120.0)
    output = OutputOptions(progress="none")
    with Bench.of(folder, options, attempt, ModelSettings(), output) as bench:
        experiment = Experiment.of(
            bench,
            folder.chosen(),
            split=None,
            settings=EvalSettings(concurrency=AT_ONCE, samples=SAMPLES),
            memory=MemorySettings(),
            options=options,
        )
        found: dict[str, Any] = json.loads(experiment.carry_out(run_folder, Budget()).to_json())
        return found


def facts(report: LevelReport) -> list[tuple[Any, ...]]:
    """What two runs must agree on: everything but the clock."""
    pairs = zip(report.attempts, report.report.outcomes, strict=True)
    return [(a.task_id, a.answer, a.marked, a.steps, a.tool_calls, a.visits, o.score, o.status) for a, o in pairs]


def wrong(report: LevelReport) -> list[str]:
    """The tasks that were not solved, each with what was answered."""
    pairs = zip(report.attempts, report.report.outcomes, strict=True)
    return [f"{a.task_id}: {a.answer}" for a, o in pairs if o.score != 1.0]


def main() -> None:
    """Replay and compare, then learn; each is written when it is known."""
    with tempfile.TemporaryDirectory() as place:
        data, runs = Path(place) / "set", Path(place) / "runs"
        digest = write(data)
        if "--learning" not in sys.argv:
            replayed(data, runs, digest)
        found = learned(data, runs / "learned")
    what = "a scripted agent with planted skills learns from the training split; it says nothing about any model"
    write_result("offline_gaia_learning", {"what": what, "digest": digest, "samples": SAMPLES, **found})


def replayed(data: Path, runs: Path, digest: str) -> None:
    """Follow the plans twice, and once with every result misread."""
    first, second = (run(data, "replay", runs / name) for name in ("first", "second"))
    slipped = run(data, "slip", runs / "slip")
    write_result(
        "offline_gaia",
        {
            "what": "plans replayed through the real tools, sandbox and scorer; no model",
            "digest": digest,
            "tasks": first.report.n,
            "at_once": AT_ONCE,
            "replayed": first.report.score,
            "wrong": wrong(first),
            "same_twice": facts(first) == facts(second),
            "with_slips": slipped.report.score,
            "tool_calls": sum(attempt.tool_calls for attempt in first.attempts),
        },
    )


if __name__ == "__main__":
    main()
