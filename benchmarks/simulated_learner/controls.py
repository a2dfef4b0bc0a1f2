"""A SIMULATION: what each control of an evaluation shows in the simulated world, where what is true is known.

    python -m benchmarks.simulated_learner.controls            writes results/simulated_learner_controls.json
    python -m benchmarks.simulated_learner.controls --seeds 1 --show

A library is learned, and the validation tasks are answered with it and under each control: only the lessons as they
were learned may help. A lesson that holds the answers of three tasks is planted, and has to be named. Two halves of the
tasks are learned one after the other with calls enough for the first alone, so that the order matters by construction;
with calls enough for both it must not. No language model is involved.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentmem.agents.agent import Agent
from agentmem.api import aevaluate, alearn
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add
from agentmem.domain.task import Task
from agentmem.errors import BudgetExceeded
from agentmem.evaluation.comparison import compare
from agentmem.evaluation.contamination import contamination, sources_of
from agentmem.evaluation.controls import controlled, raw_trajectories
from agentmem.evaluation.order import OrderSensitivity, order_sensitivity
from agentmem.evaluation.report import EvaluationReport
from agentmem.events import Event, StepFinished
from agentmem.settings import Budget, EvalSettings, LearnSettings, ModelSettings
from agentmem.testing.hash_embedder import HashEmbedder
from benchmarks.results_file import write_result
from benchmarks.simulated_learner.ours import ARMS
from benchmarks.simulated_learner.server import Simulation, serve
from benchmarks.simulated_learner.world import FAMILIES, SYSTEM, World, reward

SETTINGS = LearnSettings.model_validate(ARMS["ours"])
ENOUGH, FOR_ONE_HALF = 900, 350
"""Calls: for all families, and for about half of them."""
CONTROLS = ("shuffled", "irrelevant", "filler", "raw")
LEAKED = 3
AGAIN = 4
"""Learnings of each order: with three, no permutation test can reach 5 %."""


class Laboratory:
    """One simulated world behind its server.

    Args:
        world: its tasks.
        base_url: where the server answers.
        folder: runs are kept there.
    """

    def __init__(self, world: World, base_url: str, folder: Path) -> None:
        self.world = world
        self.folder = folder
        calls = ModelSettings(retry_wait=0.01)
        self.agent = Agent("openai/simulated", base_url=base_url, system=SYSTEM, calls=calls, max_steps=1)

    async def learned(
        self, name: str, tasks: Sequence[Task], *, calls: int, seed: int, start: ExperienceLibrary | None = None
    ) -> ExperienceLibrary:
        """What is learned from these tasks with so many calls, or until the epochs are over."""
        libraries = [start or ExperienceLibrary()]

        def follow(event: Event) -> None:
            if isinstance(event, StepFinished):
                libraries.append(event.library)

        with suppress(BudgetExceeded):  # what was accepted by then is what was learned
            await alearn(
                self.agent.with_experience(start),
                tasks,
                reward=reward,
                validation=self.world.validation,
                settings=SETTINGS.model_copy(update={"seed": seed}),
                embedder=HashEmbedder(),
                budget=Budget(max_calls=calls),
                run=self.folder / name,
                listeners=[follow],
            )
        return libraries[-1]

    async def judged(self, name: str, agent: Agent, tasks: Sequence[Task]) -> EvaluationReport:
        """The score of an agent, four answers a task."""
        settings = EvalSettings(samples=4, contamination="none")
        where = self.folder / name
        return await aevaluate(agent, tasks, reward=reward, settings=settings, run=where, listeners=())


async def measure(seed: int) -> dict[str, Any]:
    """All controls in one world."""
    world = World(seed, validation_per_family=8)
    async with serve(Simulation(world), seed=seed) as server:
        with tempfile.TemporaryDirectory() as folder:
            laboratory = Laboratory(world, server.base_url, Path(folder))
            return {
                "seed": seed,
                **await controls(laboratory, seed),
                "order_planted": shown(await orders(laboratory, seed, calls=FOR_ONE_HALF, then=40)),
                "order_not_planted": shown(await orders(laboratory, seed, calls=ENOUGH, then=ENOUGH)),
            }


async def controls(laboratory: Laboratory, seed: int) -> dict[str, Any]:
    """The library, each control against no memory, and the planted leak."""
    agent, tasks = laboratory.agent, laboratory.world.validation
    library = await laboratory.learned("learn", laboratory.world.train, calls=ENOUGH, seed=seed)
    taught = agent.with_experience(library)
    without = await laboratory.judged("none", controlled(taught, "none"), tasks)
    arms = {"library": taught}
    for name in CONTROLS:
        raw = name == "raw"
        arms[name] = (
            raw_trajectories(taught, laboratory.folder / "learn", embedder=HashEmbedder())
            if raw
            else controlled(taught, name, seed=seed)
        )
    found: dict[str, Any] = {"none": round(without.score or 0.0, 3)}
    for name, arm in arms.items():
        report = await laboratory.judged(name, arm, tasks)
        paired = compare(without, report)
        found[name] = {
            "score": round(report.score or 0.0, 3),
            "difference": round(paired.difference, 3),
            "interval": [round(paired.interval.low, 3), round(paired.interval.high, 3)],
        }
    return {"controls": found, "leak": leak(library, tasks)}


def leak(library: ExperienceLibrary, tasks: Sequence[Task]) -> dict[str, Any]:
    """Which tasks are named in the library as it was learned, and after the answers of three were planted in it."""
    planted = tasks[:LEAKED]
    known = "; ".join(f"{task.id} gives {task.answer}" for task in planted)
    leaky = library.apply([Add(text=f"Known results: {known}.")])
    return {
        "planted": [task.id for task in planted],
        "named": list(contamination(tasks, sources_of(experiences=leaky)).dirty),
        "named_before": list(contamination(tasks, sources_of(experiences=library)).dirty),
    }


async def orders(laboratory: Laboratory, seed: int, *, calls: int, then: int) -> OrderSensitivity:
    """Two orders of two halves, each learned four times; scored on the tasks of the first half."""
    halves = [
        [task for task in laboratory.world.train if (task.metadata["family"] < len(FAMILIES) // 2) == first]
        for first in (True, False)
    ]
    asked = [task for task in laboratory.world.validation if task.metadata["family"] < len(FAMILIES) // 2]
    found: dict[str, list[EvaluationReport]] = {}
    for name, (one, other) in {"first half first": halves, "second half first": halves[::-1]}.items():
        for again in range(AGAIN):
            place = f"{name} {calls} {again}".replace(" ", "-")
            start = await laboratory.learned(f"{place}-a", one, calls=calls, seed=10 * seed + again)
            library = await laboratory.learned(
                f"{place}-b", other, calls=then, seed=10 * seed + again, start=start
            )
            agent = laboratory.agent.with_experience(library)
            found.setdefault(name, []).append(await laboratory.judged(f"{place}-eval", agent, asked))
    return order_sensitivity(found)


def shown(result: OrderSensitivity) -> dict[str, Any]:
    """An order effect in few figures."""
    scores = {order.name: round(order.score, 3) for order in result.orders}
    return {"scores": scores, "p": round(result.p, 4), "found": result.found}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all seeds and write the result."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.simulated_learner.controls", description=main.__doc__
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--show", action="store_true", help="write no result")
    given = parser.parse_args(arguments)
    runs = [asyncio.run(measure(seed)) for seed in range(given.seeds)]
    figures = {
        "simulation": True,
        "what": "no language model is involved; see benchmarks/simulated_learner/README.md",
        "n": f"{given.seeds} worlds; {len(World(0, validation_per_family=8).validation)} tasks, 4 answers each",
        "runs": runs,
    }
    if given.show:
        print(figures)
    else:
        write_result("simulated_learner_controls", figures)


if __name__ == "__main__":
    main()
