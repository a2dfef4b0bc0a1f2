"""Off-policy estimates agree with the truth where the log supports them, and are refused where it does not."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest

from agentmem.errors import NoSupport
from agentmem.memory.case_policy import reference
from agentmem.memory.kernel_q import KernelQ
from agentmem.memory.off_policy import LoggedSlate, off_policy
from agentmem.memory.slate import propensities
from agentmem.memory.ucb import UCB
from tests.memory.conftest import make_pool

BEHAVIOUR = np.array([0.5, 0.3, 0.2])
TARGET = np.array([0.2, 0.2, 0.6])
WORTH = np.array([0.2, 0.5, 0.8])


def log_of(n: int, rng: np.random.Generator) -> list[LoggedSlate]:
    chosen = rng.choice(3, size=n, p=BEHAVIOUR)
    rewards = rng.random(n) < WORTH[chosen]
    return [
        LoggedSlate(reward=float(r), propensity=float(BEHAVIOUR[c]), target=float(TARGET[c]))
        for c, r in zip(chosen, rewards, strict=True)
    ]


@pytest.mark.parametrize("method", ["ips", "self-normalised"])
def test_estimates_are_unbiased_and_their_intervals_hold(method: Literal["ips", "self-normalised"]) -> None:
    rng, truth = np.random.default_rng(0), float(TARGET @ WORTH)
    made = [off_policy(log_of(200, rng), method=method) for _ in range(400)]
    means = np.array([estimate.mean for estimate in made])
    assert abs(means.mean() - truth) < 4 * means.std() / math.sqrt(len(made)) + 0.002
    assert np.mean([estimate.low <= truth <= estimate.high for estimate in made]) > 0.92


def test_the_same_policy_is_estimated_by_the_plain_mean() -> None:
    log = [LoggedSlate(reward=r, propensity=0.3, target=0.3) for r in [0.0, 1.0] * 20]
    estimate = off_policy(log)
    assert estimate.mean == 0.5
    assert estimate.effective == 40
    assert str(estimate).startswith("0.500 [0.3")
    assert "40 effective" in str(estimate)


def test_slates_of_kernel_q_estimate_another_alpha() -> None:
    """The whole way: slates are drawn, their probabilities under another policy worked out, and the truth is known."""
    candidates = make_pool((0.42, 0.4, 0.38), uses=[(2, 1.0, 0.3, 1.0)] * 5, no_case=0.3)
    behaviour, target, n = KernelQ(alpha=0.5), KernelQ(alpha=0.2), 1500
    logits = np.log(target.choose(candidates, 1, seed=0).mu)
    rng, log = np.random.default_rng(1), []
    for seed in range(n):
        slate = behaviour.choose(candidates, 1, seed=seed)
        chances, ended = propensities(logits, -np.inf, slate.rows, 1)
        reward = float(rng.random() < (0.9 if slate.rows == (2,) else 0.3))
        propensity = math.prod(slate.propensities or ()) * (slate.ended or 0)
        log.append(LoggedSlate(reward=reward, propensity=propensity, target=math.prod(chances) * ended))
    truth = 0.3 + 0.6 * float(np.exp(logits[2]))
    estimate = off_policy(log)
    assert estimate.low < truth < estimate.high
    assert estimate.high - estimate.low < 0.15
    assert abs(truth - float(np.mean([attempt.reward for attempt in log]))) > 0.02, "the two policies differ"


def test_no_estimate_is_made_where_the_log_cannot_say_it() -> None:
    greedy = UCB().choose(make_pool(), 2, seed=0)
    assert greedy.propensities is None
    silent = [LoggedSlate(reward=1.0, propensity=None, target=0.5)] * 30
    with pytest.raises(NoSupport, match=r"30 of 30 slates were not drawn at random, .*log with kernel_q"):
        off_policy(silent)
    with pytest.raises(NoSupport, match=r"20 attempts are worth 1.0 of the other policy, and 10 are needed"):
        off_policy([LoggedSlate(reward=1.0, propensity=0.5, target=float(n == 0)) for n in range(20)])
    with pytest.raises(NoSupport, match=r"0 attempts are worth 0.0"):
        off_policy([])
    missing = [LoggedSlate(reward=1.0, propensity=0.5, target=0.1 + 0.001 * (n % 2)) for n in range(200)]
    with pytest.raises(NoSupport, match=r"mean 0.20 instead of 1: the log lacks slates"):
        off_policy(missing)
    with pytest.raises(NoSupport, match=r"propensity 0.0 and target 0.5"):
        off_policy([LoggedSlate(reward=1.0, propensity=0.0, target=0.5)] * 20)


def test_mu0_of_the_pool_is_supported_by_every_alpha_above_0() -> None:
    candidates = make_pool((0.42, 0.4, 0.38), uses=[(2, 1.0, -0.5, 1.0)] * 5)
    for alpha in (0.05, 0.5, math.inf):
        mu = KernelQ(alpha=alpha).choose(candidates, 2, seed=0).mu
        assert ((mu > 0) == (reference(candidates.cosines) > 0)).all()
