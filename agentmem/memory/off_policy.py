"""What another policy would have brought, from the log of this one: only where the log can say it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from agentmem.domain.value import Value
from agentmem.errors import NoSupport

LEAST = 10.0
"""Effective attempts below which an estimate is refused."""


class LoggedSlate(Value):
    """One attempt of the log, with how likely its slate was under the policy that ran and under the one in question."""

    reward: float
    propensity: float | None
    """Of the whole slate and its end, under the policy that ran; None where it draws nothing."""
    target: float
    """Of the same slate, under the policy in question."""


class OffPolicyEstimate(Value):
    """What a policy would have brought a task, on average."""

    mean: float
    low: float
    high: float
    """A 95 % interval."""
    effective: float
    """How many attempts of the policy itself it is worth: (sum w)^2 / sum w^2."""
    n: int
    method: Literal["ips", "self-normalised"]

    def __str__(self) -> str:
        return (
            f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}] "
            f"({self.method}, {self.n} attempts, {self.effective:.0f} effective)"
        )


def off_policy(
    log: Sequence[LoggedSlate], *, method: Literal["ips", "self-normalised"] = "self-normalised"
) -> OffPolicyEstimate:
    """The mean reward of another policy, by inverse propensity scores.

    Args:
        log: attempts of a policy that draws.
        method: `ips` is unbiased; `self-normalised` divides by the sum of weights, which costs a bias of order 1/n
            and saves much variance.

    Raises:
        NoSupport: the log cannot say it; the sentence says why.
    """
    weights = _supported(log)
    n = len(log)
    rewards = [attempt.reward for attempt in log]
    weighted = [w * r for w, r in zip(weights, rewards, strict=True)]
    if method == "ips":
        mean = math.fsum(weighted) / n
        squares = math.fsum((x - mean) ** 2 for x in weighted)
        error = math.sqrt(squares / (n - 1) / n)
    else:
        mean = math.fsum(weighted) / math.fsum(weights)
        squares = math.fsum((w * (r - mean)) ** 2 for w, r in zip(weights, rewards, strict=True))
        error = math.sqrt(squares * n / (n - 1)) / math.fsum(weights)
    effective = _effective(weights)
    half = _student(effective - 1) * error
    return OffPolicyEstimate(mean=mean, low=mean - half, high=mean + half, effective=effective, n=n, method=method)


def _supported(log: Sequence[LoggedSlate]) -> list[float]:
    """The weights, or why there are none to trust."""
    silent = sum(attempt.propensity is None for attempt in log)
    if silent:
        raise NoSupport(
            f"{silent} of {len(log)} slates were not drawn at random, so nothing says how another policy would have "
            "fared; log with kernel_q, parametric_q or thompson (alpha above 0) instead."
        )
    bad = next((a for a in log if not 0 < (a.propensity or 0) <= 1 or not 0 <= a.target <= 1), None)
    if bad is not None:
        raise NoSupport(
            f"A slate has propensity {bad.propensity} and target {bad.target}; the first must lie above 0, "
            "and neither may exceed 1."
        )
    weights = [attempt.target / (attempt.propensity or 1) for attempt in log]
    effective = _effective(weights)
    if effective < LEAST:
        raise NoSupport(
            f"{len(log)} attempts are worth {effective:.1f} of the other policy, and {LEAST:g} are needed: it mostly "
            "recalls what was not tried. Log more, or ask for a policy nearer to the one that ran."
        )
    mean = math.fsum(weights) / len(weights)
    # Weights have mean 1 wherever the log covers what the other policy does. Around 1, because of skewed weights a
    # mean that is too low by chance comes with a spread that is too low.
    error = math.sqrt(math.fsum((w - 1) ** 2 for w in weights)) / len(weights)
    if abs(mean - 1) > 5 * error + 1e-6:
        raise NoSupport(
            f"The weights have mean {mean:.2f} instead of 1: the log lacks slates that the other policy would choose, "
            "or its propensities are wrong. Log with a policy that draws among them (a larger alpha)."
        )
    return weights


def _effective(weights: Sequence[float]) -> float:
    squares = math.fsum(w * w for w in weights)
    return math.fsum(weights) ** 2 / squares if squares else 0.0


def _student(degrees: float) -> float:
    from scipy.special import stdtrit  # scipy.stats has it too, and takes over a second to import

    return float(stdtrit(degrees, 0.975))
