"""agentmem in the simulated world, through its public API; each arm is a dict of settings."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from agentmem.agents.agent import Agent
from agentmem.api import alearn
from agentmem.domain.experience import ExperienceLibrary
from agentmem.errors import BudgetExceeded, InputError
from agentmem.events import Event, StepFinished
from agentmem.memory.embedder import Embedder, open_embedder
from agentmem.settings import Budget, LearnSettings, ModelSettings, settings_of
from benchmarks.simulated_learner.curve import Curve
from benchmarks.simulated_learner.server import Simulation, serve
from benchmarks.simulated_learner.world import SYSTEM, World, lesson_of, read, reward

EXPOSURES = 40
"""From so many rollouts that saw it on, the sign of an experience's measured effect should be right."""

ARMS: dict[str, dict[str, Any]] = {
    # The paper: 3 epochs, all tasks in one batch, G = 5, every candidate taken.
    "paper": {"sampling": "fixed", "extractor": "faithful", "gate": "always", "group_size": 5, "epochs": 3},
    # The same rule in small steps, in case they suit it better.
    "paper_small_steps": {
        "sampling": "fixed", "extractor": "faithful", "gate": "always", "group_size": 5, "epochs": 3, "batch_size": 8,
    },
    # Chosen on seeds 100-119; the comparison runs on others.
    "ours": {
        "sampling": "adaptive", "critique": True, "extractor": "fused", "gate": "targeted", "gate_nearest": 3,
        "gate_rounds": 4, "group_size": 5, "epochs": 6, "batch_size": 8,
    },
    # The same, while the effect of each experience is measured by randomised inclusion.
    "ours_with_credit": {
        "sampling": "adaptive", "critique": True, "extractor": "fused", "gate": "targeted", "gate_nearest": 3,
        "gate_rounds": 4, "inclusion": 0.8, "group_size": 5, "epochs": 6, "batch_size": 8,
    },
    # The gate that judges a candidate as a whole.
    "ours_paired_gate": {
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
    libraries = [ExperienceLibrary()]
    ended = "done"

    def follow(event: Event) -> None:
        if isinstance(event, StepFinished):
            libraries.append(event.library)
            curve.now(prompt_of(agent, event.library, settings))

    async with serve(simulation, seed=seed) as server:
        calls = ModelSettings(retry_wait=0.01)
        agent = Agent("openai/simulated", base_url=server.base_url, system=SYSTEM, calls=calls, max_steps=1)
        curve.now(prompt_of(agent, libraries[0], settings))
        with tempfile.TemporaryDirectory() as folder:
            try:
                await alearn(
                    agent,
                    world.train,
                    reward=reward,
                    validation=world.validation if settings.gate != "always" else None,
                    settings=settings.model_copy(update={"seed": seed}),
                    embedder=_embedder(settings.embedder),
                    budget=Budget(max_calls=cap),
                    run=Path(folder) / "run",
                    listeners=[follow],
                )
            except BudgetExceeded:
                ended = "cap"
    return {"ended": ended, "settings_not_available": missing, **curve.figures(), **credit(libraries[-1])}


def credit(library: ExperienceLibrary) -> dict[str, int]:
    """Whether the measured effects have the right sign: above 0 for true lessons, below 0 for wrong ones.

    Counted are lessons with at least 40 exposures, those that were evicted included. Advice against a lesson is left
    out, because what it does depends on what else stands in the prompt.
    """
    measured = right = 0
    for experience in (*library.experiences, *library.retired):
        held = read(experience.text)
        if experience.effect is None or experience.effect.exposures < EXPOSURES or held.denied or not held.advised:
            continue
        measured += 1
        right += (experience.effect.mean < 0) == lesson_of(min(held.advised)).wrong
    return {"credit_measured": measured, "credit_right": right}


@cache
def _embedder(name: str) -> Embedder:
    """One for all runs of a process, because loading its weights takes seconds."""
    return open_embedder(name)


def available(arm: dict[str, Any]) -> tuple[LearnSettings, dict[str, Any]]:
    """The settings of an arm that this version has, and those that it has not."""
    settings, missing = LearnSettings(), {}
    for name, value in arm.items():
        try:
            settings = settings_of(LearnSettings, settings, {name: value})
        except InputError:
            missing[name] = value
    return settings, missing


def prompt_of(agent: Agent, library: ExperienceLibrary, settings: LearnSettings) -> str:
    """All that the agent reads before a task when it has the whole library."""
    prior = agent.with_experience(library, prior_tokens=settings.prior_tokens).prior
    return f"{agent.system}\n\n{prior}"
