"""agentmem in the simulated world, through its public API; each arm is a dict of settings."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from agentmem.agents.agent import Agent
from agentmem.api import alearn
from agentmem.errors import BudgetExceeded, InputError
from agentmem.events import Event, StepFinished
from agentmem.settings import Budget, LearnSettings, ModelSettings, settings_of
from benchmarks.simulated_learner.curve import Curve
from benchmarks.simulated_learner.server import Simulation, serve
from benchmarks.simulated_learner.world import SYSTEM, World, reward

ARMS: dict[str, dict[str, Any]] = {
    # The paper: 3 epochs, all tasks in one batch, G = 5, every candidate taken.
    "paper": {"sampling": "fixed", "extractor": "faithful", "gate": "always", "group_size": 5, "epochs": 3},
    # The same rule in small steps, in case they suit it better.
    "paper_small_steps": {
        "sampling": "fixed", "extractor": "faithful", "gate": "always", "group_size": 5, "epochs": 3, "batch_size": 8,
    },
    "ours": {
        "sampling": "adaptive", "extractor": "fused", "gate": "paired", "inclusion": 0.8, "group_size": 5,
        "epochs": 6, "batch_size": 16,
    },
    # No lessons are written here, so nothing can be learned: a check of the measurement.
    "exemplar": {"extractor": "exemplar", "gate": "always", "group_size": 5, "epochs": 1, "batch_size": 16},
}  # fmt: skip


async def learn(arm: str, seed: int, *, cap: int) -> dict[str, Any]:
    """One run of one arm.

    Args:
        arm: a name in `ARMS`.
        seed: of the world, of the server's draws and of the run.
        cap: calls at most.
    """
    world = World(seed)
    simulation = Simulation(world)
    curve = Curve(world, simulation.tally)
    settings, missing = available(ARMS[arm])
    ended = "done"

    def follow(event: Event) -> None:
        if isinstance(event, StepFinished):
            curve.now(prompt_of(agent.with_experience(event.library, prior_tokens=settings.prior_tokens)))

    async with serve(simulation, seed=seed) as server:
        calls = ModelSettings(retry_wait=0.01)
        agent = Agent("openai/simulated", base_url=server.base_url, system=SYSTEM, calls=calls, max_steps=1)
        curve.now(prompt_of(agent))
        with tempfile.TemporaryDirectory() as folder:
            try:
                await alearn(
                    agent,
                    world.train,
                    reward=reward,
                    validation=world.validation if settings.gate != "always" else None,
                    settings=settings.model_copy(update={"seed": seed}),
                    budget=Budget(max_calls=cap),
                    run=Path(folder) / "run",
                    listeners=[follow],
                )
            except BudgetExceeded:
                ended = "cap"
    return {"ended": ended, "settings_not_available": missing, **curve.figures()}


def available(arm: dict[str, Any]) -> tuple[LearnSettings, dict[str, Any]]:
    """The settings of an arm that this version has, and those that it has not."""
    settings, missing = LearnSettings(), {}
    for name, value in arm.items():
        try:
            settings = settings_of(LearnSettings, settings, {name: value})
        except InputError:
            missing[name] = value
    return settings, missing


def prompt_of(agent: Agent) -> str:
    """All that the agent reads before a task."""
    return f"{agent.system}\n\n{agent.prior}"
