"""The gate: its posterior, its decisions, and that what is undecided stays out."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add, Operation
from agentmem.learning.gate import Always, Paired, choose
from agentmem.learning.verdict import EFFECT_SD, chance, decide, posterior


def library(*texts: str) -> ExperienceLibrary:
    return ExperienceLibrary().apply([Add(text=text) for text in texts])


def trial_of(effect, *, tasks=24, base=0.3, seed=0):
    """A simulated bench: each task is solved with probability base + the effects of the texts that a library holds."""
    calls: list[tuple[int, int]] = []

    async def trial(lib, number, only=None, *, hear=None):
        p = base + sum(effect.get(e.text, 0.0) for e in lib)
        calls.append((len(lib), number))
        return {f"t{i}": float(random.Random(f"{seed}/{number}/{i}").random() < p) for i in range(tasks)}

    trial.calls = calls
    return trial


def test_the_posterior_is_the_integral():
    differences = [0.5, 0.0, 0.25, -0.25, 0.5, 0.0]
    n, mean = len(differences), sum(differences) / len(differences)
    variance = (sum((d - mean) ** 2 for d in differences) + 0.25) / n

    def density(effect):
        return stats.norm.pdf(mean, effect, (variance / n) ** 0.5) * stats.norm.pdf(effect, 0, EFFECT_SD)

    harm = integrate.quad(density, -0.5, 0)[0] / integrate.quad(density, -0.5, 0.5)[0]
    assert posterior(differences) == pytest.approx((mean, harm), abs=1e-6)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.integers(1, 7))
def test_the_chance_to_be_accepted_grows_with_what_was_seen(differences, rounds):
    chances = [chance([d + more for d in differences], rounds, of=8, risk=0.1) for more in (-0.5, 0.0, 0.5)]
    assert 0 <= chances[0] <= chances[1] <= chances[2] <= 1
    last = decide(differences, 8, risk=0.1).outcome == "accepted"
    assert chance(differences, 8, of=8, risk=0.1) == float(last)  # when nothing is left, it is the decision


def test_the_chance_is_how_often_it_happens():
    rng, said, accepted = random.Random(0), [], []
    for _ in range(1500):
        effect = rng.gauss(0, 0.25)
        rounds = [[effect + rng.gauss(0, 0.6) for _ in range(8)] for _ in range(8)]
        means = [[sum(task) / k for task in zip(*rounds[:k], strict=True)] for k in (2, 8)]
        said.append(chance(means[0], 2, of=8, risk=0.1, effect_sd=0.25))
        accepted.append(decide(means[1], 8, risk=0.1, effect_sd=0.25).outcome == "accepted")
    for low, high in ((0.0, 0.2), (0.2, 0.6), (0.6, 1.01)):
        inside = [(s, a) for s, a in zip(said, accepted, strict=True) if low <= s < high]
        assert sum(a for _, a in inside) / len(inside) == pytest.approx(
            sum(s for s, _ in inside) / len(inside), abs=0.1
        )


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60))
def test_the_posterior_is_symmetric(differences):
    mean, harm = posterior(differences)
    mirrored, gain = posterior([-d for d in differences])
    assert mirrored == pytest.approx(-mean)
    assert harm == pytest.approx(1 - gain)


async def test_a_large_gain_is_accepted_soon_and_a_large_harm_rejected():
    trial = trial_of({"good": 0.6, "bad": -0.3})
    accepted = await Paired().judge(library(), library("good"), trial)
    assert (accepted.outcome, accepted.p_harm < 0.1) == ("accepted", True)
    assert accepted.rounds < 8
    rejected = await Paired().judge(library(), library("bad"), trial_of({"bad": -0.3}))
    assert rejected.outcome == "rejected"
    assert "held-out tasks" in rejected.reason


async def test_no_effect_is_undecided_and_keeps_the_incumbent():
    # Common random numbers: without an effect both sides answer alike, however often they are asked.
    kept, verdict = await choose(Paired(rounds=3), library(), library().revise([Add(text="idle")]), trial_of({}))
    assert verdict.outcome == "undecided"
    assert not verdict.accepted
    assert kept.library == library()


async def test_failed_attempts_are_left_out_on_both_sides():
    async def trial(lib, number, only=None, *, hear=None):
        return {"a": None, "b": 0.0, "c": 0.0} if not len(lib) else {"a": 1.0, "b": None, "c": 1.0}

    verdict = await Paired(rounds=1).judge(library(), library("x"), trial)
    assert (verdict.tasks, verdict.difference) == (1, 1.0)


async def test_nothing_scored_decides_nothing():
    async def trial(lib, number, only=None, *, hear=None):
        return {"a": None}

    verdict = await Paired(rounds=2).judge(library(), library("x"), trial)
    assert verdict.outcome == "undecided"


async def test_of_a_rejected_candidate_the_half_that_passes_is_kept():
    ops: list[Operation] = [Add(text="good"), Add(text="bad")]
    trial = trial_of({"good": 0.5, "bad": -0.9}, base=0.4)
    kept, verdict = await choose(Paired(), library(), library().revise(ops), trial)
    assert [e.text for e in kept.library] == ["good"]
    assert verdict.accepted
    assert "half of a rejected candidate" in verdict.reason


async def test_always_takes_everything_and_tries_nothing():
    trial = trial_of({})
    kept, verdict = await choose(Always(), library(), library().revise([Add(text="x")]), trial)
    assert verdict.accepted
    assert len(kept.library) == 1
    assert trial.calls == []


async def test_no_operation_costs_no_trial():
    trial = trial_of({})
    kept, _ = await choose(Paired(), library("a"), library("a").revise([]), trial)
    assert trial.calls == []
    assert kept.library == library("a")
