"""A SIMULATION: a stream of the simulated world's tasks, answered with and without learning behind the answers.

    python -m benchmarks.simulated_learner.online            writes results/simulated_learner_online.json
    python -m benchmarks.simulated_learner.online --seeds 1 --show

Tasks come one after the other, each when the one before it is answered. Every answer is scored before anything is
learned from its task. No language model is involved, so the figures say nothing about any real task.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from agentmem.agents.agent import Agent
from agentmem.api import aevaluate, alearn_online
from agentmem.domain.task import Task
from agentmem.evaluation.comparison import compare
from agentmem.learning.online_result import OnlineResult
from agentmem.learning.stream import Answer
from agentmem.settings import EvalSettings, LearnSettings, ModelSettings
from agentmem.testing.hash_embedder import HashEmbedder
from benchmarks.results_file import write_result
from benchmarks.simulated_learner.server import Simulation, serve
from benchmarks.simulated_learner.world import SYSTEM, World, harmful_lessons, reward, true_lessons

PER_FAMILY = 60
"""Tasks of each of the eight families in the stream."""
WINDOWS = 8
SETTINGS = LearnSettings(
    group_size=5, batch_size=8, sampling="adaptive", gate="targeted", gate_nearest=3, gate_rounds=2, concurrency=8
)
"""As the arm `ours` of the comparison; the gate's tasks are held out of the stream."""


class OneByOne:
    """The tasks, each when the one before it was answered, and after a moment that leaves learning some time."""

    def __init__(self, tasks: Sequence[Task], *, pause: float) -> None:
        self._tasks, self._pause = tasks, pause
        self._answered = asyncio.Semaphore(1)

    def on_answer(self, answer: Answer) -> None:
        """The next may come."""
        self._answered.release()

    async def __aiter__(self) -> AsyncIterator[Task]:
        for task in self._tasks:
            await self._answered.acquire()
            await asyncio.sleep(self._pause)
            yield task


async def measure(seed: int) -> dict[str, Any]:
    """One stream, with and without learning."""
    world = World(seed, train_per_family=PER_FAMILY)
    simulation = Simulation(world)
    async with serve(simulation, seed=seed) as server:
        calls = ModelSettings(retry_wait=0.01)
        agent = Agent("openai/simulated", base_url=server.base_url, system=SYSTEM, calls=calls, max_steps=1)
        stream = OneByOne(world.train, pause=0.05)
        with tempfile.TemporaryDirectory() as folder:
            learned = await alearn_online(
                agent,
                stream,
                reward=reward,
                settings=SETTINGS.model_copy(update={"seed": seed}),
                embedder=HashEmbedder(),
                run=Path(folder) / "online",
                on_answer=stream.on_answer,
                listeners=(),
            )
            spent = simulation.tally.calls
            plain = await aevaluate(
                agent,
                world.train,
                reward=reward,
                settings=EvalSettings(temperature=SETTINGS.temperature, seed=seed),
                run=Path(folder) / "plain",
                listeners=(),
            )
        prior = str(agent.with_experience(learned.library).prior)
    paired = compare(plain, learned.report)
    return {
        "seed": seed,
        "tasks": learned.n,
        "score": learned.score,
        "interval": [round(learned.interval.low, 3), round(learned.interval.high, 3)],
        "score_without_learning": plain.score,
        "difference": round(paired.difference, 3),
        "difference_interval": [round(paired.interval.low, 3), round(paired.interval.high, 3)],
        "curve": [round(point.score or 0.0, 3) for point in learned.points(WINDOWS)],
        "curve_without_learning": _curve(plain.task_scores().values()),
        "true_lessons": true_lessons(prior),
        "harmful_lessons": harmful_lessons(prior),
        "steps": len(learned.steps),
        "roles": _roles(learned),
        "calls": spent,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all seeds and write the result."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.simulated_learner.online", description=main.__doc__
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--show", action="store_true", help="write no result")
    given = parser.parse_args(arguments)
    runs = [asyncio.run(measure(seed)) for seed in range(given.seeds)]
    figures = {
        "simulation": True,
        "what": "no language model is involved; see benchmarks/simulated_learner/README.md",
        "settings": SETTINGS.model_dump(),
        "n_seeds": given.seeds,
        "tasks": runs[0]["tasks"],
        "mean_curve": _mean([run["curve"] for run in runs]),
        "mean_curve_without_learning": _mean([run["curve_without_learning"] for run in runs]),
        "runs": runs,
    }
    if given.show:
        print(figures)
    else:
        write_result("simulated_learner_online", figures)


def _curve(scores: Any) -> list[float]:
    values = list(scores)
    size = -(-len(values) // WINDOWS)
    return [round(fmean(values[start : start + size]), 3) for start in range(0, len(values), size)]


def _mean(curves: Sequence[Sequence[float]]) -> list[float]:
    return [round(fmean(points), 3) for points in zip(*curves, strict=True)]


def _roles(result: OnlineResult) -> dict[str, int]:
    roles = [arrival.role for arrival in result.arrivals]
    return {role: roles.count(role) for role in ("teaches", "held out", "skipped")}


if __name__ == "__main__":
    main()
