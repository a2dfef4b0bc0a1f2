"""The bandit over cases: its optimum is one, and learned values come nearer to it than similarity does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from agentmem.memory.case_policy import Candidates, CasePolicy, Slate
from agentmem.memory.kernel_q import KernelQ
from agentmem.memory.parametric_q import ParametricQ
from agentmem.memory.similarity import Similarity
from agentmem.memory.thompson import Thompson
from benchmarks.case_bandit import SETTINGS, NoCases, Setting, World, play

ONE = SETTINGS[0]
SMALL = Setting("small", 1, cases=72)
ROUNDS = 360
SEEDS = (0, 1)


def late(policy: CasePolicy, seed: int, *, wrong: float = 0.2) -> float:
    """Mean regret of the last third."""
    return float(play(policy, SMALL, rounds=ROUNDS, seed=seed, wrong=wrong)[2 * ROUNDS // 3 :].mean())


@pytest.fixture(scope="module")
def similar_regret() -> float:
    return float(np.mean([late(Similarity(), seed) for seed in SEEDS]))


@pytest.mark.parametrize("make", [KernelQ, ParametricQ, Thompson])
def test_learning_online_beats_similarity_where_a_fifth_of_the_cases_is_wrong(
    make: Callable[[], CasePolicy], similar_regret: float
) -> None:
    learned = [late(make(), seed) for seed in SEEDS]
    assert float(np.mean(learned)) < 0.75 * similar_regret, learned


def test_regret_is_never_negative_and_vanishes_for_who_knows_the_answers() -> None:
    for make in (Similarity, KernelQ, NoCases):
        assert (play(make(), ONE, rounds=30, seed=3) >= -1e-12).all()
    assert late(Similarity(), 0, wrong=0.0) < 0.03, "where no case is wrong, the nearest one is best"


def test_the_policies_meet_the_same_messages() -> None:
    """Also where they choose otherwise, so that their regrets may be compared in pairs."""

    class Watcher(Similarity):
        def choose(self, candidates: Candidates, k: int, *, seed: int) -> Slate:
            seen.append(candidates.state.tobytes())
            return super().choose(candidates, min(k, most), seed=seed)

    seen: list[bytes] = []
    for most in (0, 4):  # noqa: B007  # the watcher reads it
        play(Watcher(), SETTINGS[-1], rounds=40, seed=1)
    assert seen[:40] == seen[40:]


def test_a_fifth_of_what_is_written_is_wrong() -> None:
    world = World(0)
    wrong = np.mean([world.case(topic % 24) != world.right[topic % 24] for topic in range(4000)])
    assert wrong == pytest.approx(0.2, abs=0.02)
