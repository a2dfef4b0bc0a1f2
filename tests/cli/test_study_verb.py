"""`agentmem study`: what stored runs say, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentmem.evaluation.report import EvaluationReport, Outcome


def stored(name: str, scores: list[float], domain: str = "sums", **more: str) -> str:
    """A finished evaluation's folder."""
    outcomes = (Outcome(task_id=f"t{n}", score=score) for n, score in enumerate(scores))
    made = EvaluationReport(name=name, outcomes=tuple(outcomes), tasks_name=domain, **more)
    Path(name).mkdir()
    (Path(name) / "report.json").write_text(made.to_json())
    return name


def test_a_curve_is_drawn_from_a_learning_run(cli, taught: Path) -> None:
    done = cli("study", "curve", taught, "--windows", 3)
    assert done.code == 0, done.err
    assert done.out.startswith("score against tasks: taught\n")
    assert "1 to 20" in done.out
    told = json.loads(cli("study", "curve", taught, taught, "--axis", "tokens", "--json").out)
    assert told["axis"] == "tokens"
    assert len(told["points"]) == 8
    assert told["points"][0]["runs"] == 2


def test_orders_forgetting_and_transfer_are_read_from_evaluations(cli) -> None:
    low, high = [0.0] * 20 + [1.0] * 20, [1.0] * 40
    a, b = stored("a", low), stored("b", high)
    done = cli("study", "order", f"up={a}", f"down={b}")
    assert done.code == 0, done.err
    assert "the order matters: p < 0.001" in done.out

    one = [stored("m1", high, "maths"), stored("m2", low, "maths"), stored("l2", high, "law")]
    done = cli("study", "forgetting", f"maths={one[0]}", f"law={one[1]}", f"law={one[2]}")
    assert done.code == 0, done.err
    assert "backward transfer (BWT): -0.500" in done.out
    told = json.loads(
        cli("study", "forgetting", f"maths={one[0]}", f"law={one[1]}", f"law={one[2]}", "--json").out
    )
    assert told["backward"]["value"] == -0.5

    with_memory = stored("w", low, "maths", prior_hash="abc")
    done = cli("study", "transfer", one[0], with_memory)
    assert done.code == 0, done.err
    assert "negative transfer (1): abc" in done.out
    assert "negative transfer (1): tips" in cli("study", "transfer", one[0], f"tips={with_memory}").out


def test_credit_says_what_a_run_cannot_tell(cli, taught: Path) -> None:
    done = cli("study", "credit", taught)
    assert done.code == 2
    assert "nothing tells what one is worth: learn with --inclusion 0.8" in done.sentence


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("curve",), "Name at least one RUN"),
        (("curve", "nowhere"), "nowhere does not exist; name the folder of a run"),
        (("curve", "nowhere", "--windows", "0"), "Must be >= 1"),
        (("order",), "Name at least one ORDER=RUN."),
        (("order", "nowhere"), "'nowhere' is not ORDER=RUN, such as first=runs/eval-1a2b3c4d."),
        (("order", "a=nowhere"), "There is no evaluation report 'nowhere'"),
        (("forgetting", "x"), "'x' is not DOMAIN=RUN"),
        (("transfer",), "Name at least one MEMORY=RUN or RUN"),
        (("credit", "nowhere"), "nowhere does not exist"),
    ],
)
def test_what_cannot_be_studied_is_one_sentence(cli, arguments: tuple[str, ...], said: str) -> None:
    done = cli("study", *arguments)
    assert done.code == 2
    assert said in done.sentence


def test_two_evaluations_of_one_cell_are_refused(cli) -> None:
    a, b = stored("a", [1.0]), stored("b", [1.0])
    assert (
        "Two evaluations of 'sums' are on 'sums'; leave one out"
        in cli("study", "forgetting", f"sums={a}", f"sums={b}").sentence
    )
