"""Forgetting and transfer: the matrix of GEM, planted effects, and what is missing."""

from __future__ import annotations

import numpy as np
import pytest

from agentmem.errors import InputError
from agentmem.evaluation.combined import weighted
from agentmem.evaluation.comparison import compare
from agentmem.evaluation.forgetting import Forgetting, forgetting
from agentmem.evaluation.intervals import Interval, wilson
from agentmem.evaluation.report import EvaluationReport, Outcome
from agentmem.evaluation.transfer import transfer_matrix

DOMAINS = ("maths", "law", "cooking")


def report(scores: object, domain: str = "maths", **more: str) -> EvaluationReport:
    outcomes = (Outcome(task_id=f"{domain}-{n}", score=float(score)) for n, score in enumerate(scores))  # type: ignore[arg-type]
    return EvaluationReport(outcomes=tuple(outcomes), tasks_name=domain, **{"name": domain, **more})


def share(score: float, domain: str, n: int = 20) -> EvaluationReport:
    """Exactly this share of the tasks is solved, the first ones."""
    return report([float(k < round(score * n)) for k in range(n)], domain)


def stages(matrix: list[list[float]]) -> dict[str, dict[str, EvaluationReport]]:
    """Rows: before, and after each domain; columns: the domains."""
    return {
        stage: {domain: share(score, domain) for domain, score in zip(DOMAINS, row, strict=True)}
        for stage, row in zip(("before", *DOMAINS), matrix, strict=True)
    }


MATRIX = [[0.1, 0.2, 0.3], [0.8, 0.3, 0.3], [0.6, 0.9, 0.5], [0.5, 0.7, 1.0]]


def test_backward_and_forward_transfer_are_those_of_gem() -> None:
    found = forgetting(DOMAINS, stages(MATRIX))
    assert found.accuracy == pytest.approx((0.5 + 0.7 + 1.0) / 3)
    assert found.backward.value == pytest.approx(((0.5 - 0.8) + (0.7 - 0.9)) / 2)
    assert found.forward is not None
    assert found.forward.value == pytest.approx(((0.3 - 0.2) + (0.5 - 0.3)) / 2)
    assert found.backward.domains["law"][0] == pytest.approx(-0.2)
    assert found.cells["law"]["cooking"].score == pytest.approx(0.5)
    assert "BWT): -0.250" in str(found)
    assert Forgetting.model_validate_json(found.model_dump_json()) == found


def test_with_two_domains_it_is_the_paired_comparison() -> None:
    before, after = share(0.9, "maths"), share(0.4, "maths")
    learned = {"maths": {"maths": before}, "law": {"maths": after, "law": share(0.5, "law")}}
    found = forgetting(["maths", "law"], learned)
    assert found.backward.value == compare(before, after).difference
    assert found.backward.interval == compare(before, after).interval
    assert found.backward.verdict == "harm"
    assert found.forward is None
    assert "FWT): needs the stage 'before'" in str(found)


def simulated(seed: int, loss: float, *, domains: int = 3, n: int = 60) -> Forgetting:
    """Tasks whose chance of success falls by `loss` once another domain was learned."""
    rng = np.random.default_rng(seed)
    names = [f"d{k}" for k in range(domains)]
    hard = {name: rng.uniform(0.4, 0.9, n) for name in names}
    made: dict[str, dict[str, EvaluationReport]] = {}
    for stage in range(domains):
        for name in names[: stage + 1]:
            lost = loss if names.index(name) < stage else 0.0
            made.setdefault(names[stage], {})[name] = report(rng.random(n) < hard[name] - lost, name)
    return forgetting(names, made)


def test_planted_forgetting_is_negative_and_none_is_not_seen() -> None:
    """A loss of .25 on three domains of 60 tasks is called harm in 40 of 40; none in 8 of 200 (measured)."""
    lost = [simulated(seed, 0.25) for seed in range(40)]
    assert np.mean([each.backward.value for each in lost]) == pytest.approx(-0.25, abs=0.03)
    assert all(each.backward.value < 0 for each in lost)
    assert sum(each.backward.verdict == "harm" for each in lost) >= 36
    none = [simulated(seed, 0.0).backward for seed in range(200)]
    assert sum(each.verdict != "undecided" for each in none) <= 18
    assert sum(0.0 in each.interval for each in none) >= 182


def test_what_is_missing_is_named() -> None:
    whole = stages(MATRIX)
    with pytest.raises(InputError, match="There is no evaluation on 'law' after 'cooking' was learned; make it"):
        forgetting(DOMAINS, {**whole, "cooking": {k: v for k, v in whole["cooking"].items() if k != "law"}})
    with pytest.raises(InputError, match="no evaluation on 'maths' after 'maths'"):
        forgetting(DOMAINS, {**whole, "maths": {}})
    with pytest.raises(InputError, match="needs two or more different domains, and there are: maths"):
        forgetting(["maths"], whole)
    with pytest.raises(InputError, match="'art' is no stage; the stages are 'before' and maths, law, cooking"):
        forgetting(DOMAINS, {**whole, "art": {}})
    other = {**whole, "cooking": {**whole["cooking"], "maths": report([1, 0], "maths")}}
    with pytest.raises(InputError, match="are on different tasks"):
        forgetting(DOMAINS, other)


def test_independent_intervals_are_combined_side_by_side() -> None:
    """Against simulation: the difference of two proportions near the edges, where symmetric intervals fail."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(2000):
        a, b = rng.binomial(40, 0.95), rng.binomial(30, 0.8)
        found = weighted([(1.0, a / 40, wilson(a, 40)), (-1.0, b / 30, wilson(b, 30))])
        covered += 0.95 - 0.8 in found
    assert 0.93 <= covered / 2000 <= 0.98
    one = Interval(low=0.2, high=0.7, confidence=0.95, method="x", n=9)
    assert weighted([(1.0, 0.4, one)]) == one
    turned = weighted([(-1.0, 0.4, one)])
    assert (turned.low, turned.high) == pytest.approx((-0.7, -0.2))
    with pytest.raises(InputError, match="2 intervals of 2 confidences cannot be combined"):
        weighted([(1.0, 0.4, one), (1.0, 0.4, one.model_copy(update={"confidence": 0.9}))])


# Transfer


def arm(scores: list[float], domain: str, model: str, memory: str) -> tuple[str, EvaluationReport]:
    prior = "" if memory == "none" else f"hash of {memory}"
    return memory, report(scores, domain, model=model, prior_hash=prior, name=f"{model}-{domain}-{memory}")


def test_the_transfer_matrix_flags_what_harms() -> None:
    n = 30
    evaluations = [
        arm([0] * n, "maths", "small", "none"), arm([1] * n, "maths", "small", "sums"),
        arm([1] * n, "law", "small", "none"), arm([0] * n, "law", "small", "sums"),
        arm([k % 2 for k in range(n)], "maths", "large", "none"),
        arm([(k + 1) % 2 for k in range(n)], "maths", "large", "sums"),
        arm([1] * n, "cooking", "small", "sums"),
    ]  # fmt: skip
    found = transfer_matrix(evaluations)
    verdicts = {(each.model, each.domain): each.verdict for each in found.effects}
    assert verdicts == {("small", "maths"): "helps", ("small", "law"): "harms", ("large", "maths"): "undecided"}
    assert [(each.domain, each.difference) for each in found.negative] == [("law", -1)]
    assert found.unpaired == ("small-cooking-sums",)
    assert "negative transfer (1): sums with small on law" in str(found)


def test_more_cells_need_more_evidence() -> None:
    """Six of 30 tasks broken and none fixed: p = .031 alone, .094 as one of three cells."""
    base, worse = [1.0] * 30, [0.0] * 6 + [1.0] * 24
    alone = [arm(base, "a", "m", "none"), arm(worse, "a", "m", "x")]
    assert transfer_matrix(alone).effects[0].verdict == "harms"
    more = [each for d in ("b", "c") for each in (arm(base, d, "m", "none"), arm(base, d, "m", "x"))]
    assert transfer_matrix([*alone, *more]).effects[0].verdict == "undecided"


def test_memories_without_effect_are_seldom_flagged() -> None:
    """Of 100 matrices of 6 null cells, at most 5 % (up to chance) have any cell that is not undecided."""
    rng = np.random.default_rng(1)
    false = 0
    for _ in range(100):
        made = []
        for cell in range(6):
            p = rng.uniform(0.2, 0.8, 50)
            made += [arm(list(rng.random(50) < p), str(cell), "m", name) for name in ("none", "x")]
        false += any(each.verdict != "undecided" for each in transfer_matrix(made).effects)
    assert false <= 10


def test_what_cannot_be_held_against_anything_is_one_sentence() -> None:
    with pytest.raises(InputError, match="Nothing can be compared: give, for some model and task set"):
        transfer_matrix([arm([1, 0], "a", "m", "x")])
    with pytest.raises(
        InputError, match="are both of 'm' on 'a' with the memory 'x'; leave one out, or give each"
    ):
        transfer_matrix([arm([1, 0], "a", "m", "x"), arm([1, 0], "a", "m", "x")])
    with pytest.raises(InputError, match="saw the memory h, so it is none without; name it"):
        transfer_matrix([("none", report([1], prior_hash="h"))])
