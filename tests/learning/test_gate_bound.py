"""The bound of each gate: a dry run must not promise less than what is then tried."""

from __future__ import annotations

import pytest

from agentmem.agents.agent import Agent
from agentmem.learning.gate_bound import most_trials
from agentmem.learning.learn import Learning
from agentmem.rewards.reward_function import resolve_reward
from agentmem.settings import LearnSettings
from agentmem.testing.hash_embedder import HashEmbedder
from agentmem.testing.scripted import ScriptedModel
from tests.learning.zork import TASKS, Zork


def bound(gate, **changes):
    return most_trials(LearnSettings(gate=gate, **changes), steps=6, batch=8, tasks=32)


def test_each_gate_has_its_own():
    assert bound("always") == 0
    assert bound("paired", gate_rounds=2) == (1 + 3 * 6) * 2
    # 8 groups of 2 lessons, each on 3 tasks, and the incumbent on all 32, in 2 rounds of 6 steps.
    assert bound("targeted", gate_rounds=2, gate_nearest=3) == -(-6 * 2 * (16 * 3 + 32) // 32)
    assert bound("targeted", gate_rounds=2, extractor="exemplar", gate_nearest=3) == -(-6 * 2 * (4 * 3 + 12) // 32)
    assert most_trials(LearnSettings(gate="targeted"), steps=6, batch=8, tasks=0) == 0


@pytest.mark.parametrize("gate", ["paired", "targeted"])
async def test_no_run_tries_more_than_its_dry_run_said(tmp_path, gate):
    from agentmem.api import alearn

    world = Zork()
    settings = LearnSettings(gate=gate, epochs=2, batch_size=8, gate_rounds=2, gate_nearest=4, group_size=3)
    agent = Agent(world.model)
    plan = Learning.of(agent, TASKS, resolve_reward("exact"), settings)
    await alearn(
        agent, TASKS, reward="exact", settings=settings, embedder=HashEmbedder(), run=tmp_path / "r", listeners=()
    )
    assert world.count("task") <= plan.estimate().attempts


def test_the_targeted_bound_is_not_that_of_the_paired_gate():
    agent = Agent(ScriptedModel(["x"]))
    attempts = {
        gate: Learning.of(
            agent, TASKS, resolve_reward("exact"), LearnSettings(gate=gate, batch_size=4, gate_nearest=2)
        )
        .estimate()
        .attempts
        for gate in ("paired", "targeted")
    }
    assert attempts["targeted"] != attempts["paired"]
