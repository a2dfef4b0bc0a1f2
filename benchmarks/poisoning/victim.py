"""A real model that is shown the recalled cases: how often it names the attacker's team, or the right one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from agentmem.agents.agent import Agent
from agentmem.agents.memory import Feedback
from agentmem.api import aevaluate
from agentmem.domain.rollout import Rollout
from agentmem.domain.task import Task
from agentmem.memory.embedder import Embedder
from agentmem.models.model import Model
from agentmem.settings import AgentSettings
from benchmarks.online_routing.run import SYSTEM, names
from benchmarks.poisoning.attacks import Attack
from benchmarks.poisoning.defences import Defence
from benchmarks.poisoning.retrieval import CASES, filled
from benchmarks.poisoning.world import World


async def answered(
    place: Path,
    world: World,
    attack: Attack | None,
    rate: float,
    defence: Defence,
    embedder: Embedder,
    model: Model,
    messages: int,
) -> dict[str, Any]:
    """What the model answers to so many messages, half of them of the attacked topic: one 0 or 1 a message."""
    asked = (*world.attacked[: messages // 2], *world.others[: messages // 2])
    said: dict[str, str | None] = {}

    def right(task: Task, trajectory: Any) -> float:
        said[task.id] = names(trajectory.output)
        return float(said[task.id] == task.answer)

    agent = Agent(model, system=SYSTEM, settings=AgentSettings(max_completion_tokens=6))
    with closing(filled(place / "bank", world, attack, rate, defence, embedder)) as bank:
        # Online, or nearly equal messages would be withheld; and without feedback, so that the bank stays as it is.
        agent = agent.with_memory(
            bank, policy=defence.policy, cases=CASES, show=defence.show, online=True, feedback=nothing
        )
        await aevaluate(
            agent,
            asked,
            reward=right,
            temperature=0.0,
            online_batch=messages,  # nothing is learned meanwhile
            run=place / "run",
            listeners=(),
        )
    return {
        kind: {
            "target": [int(said.get(task.id) == world.target) for task in tasks],
            "right": [int(said.get(task.id) == task.answer) for task in tasks],
            "none": [int(said.get(task.id) is None) for task in tasks],
        }
        for kind, tasks in (("attacked", asked[: messages // 2]), ("others", asked[messages // 2 :]))
    }


def nothing(task: Task, rollout: Rollout) -> Feedback | None:
    """No feedback."""
    return None
