"""The quickstart from beginning to end, with a scripted model that learns one family and no other."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

# It knows every first letter and no other answer: before it has seen a worked example it mostly mumbles.
SCRIPT = """
from random import Random

def model(request):
    asked = request.messages[-1].content
    if not asked.startswith("What is the first letter"):
        return "I cannot tell."
    taught = any(message.role == "assistant" for message in request.messages)
    knows = Random(f"{request.seed}/{asked}").random() < (0.95 if taught else 0.3)
    return asked.split("'")[1][0] if knows else "Who knows?"

other = model
"""
LIMIT = 24


@pytest.fixture
def asked(cli) -> tuple[object, ...]:
    Path("m.py").write_text(SCRIPT)
    return ("quickstart", "--model", "scripted/m.py:model", "--limit", LIMIT, "--progress", "none")


def sent() -> int:
    """Requests of all parts together, by their journals."""
    total = 0
    for journal in Path("runs/quickstart").glob("*/journal.sqlite"):
        with closing(sqlite3.connect(journal)) as db:
            total += db.execute("SELECT count(*) FROM attempts").fetchone()[0]
    return total


def test_what_was_learned_is_compared_and_what_was_refused_is_not_measured_again(cli, asked) -> None:
    done = cli(*asked)
    assert done.code == 0, done.err
    assert "24 held-out tasks of each kind" in done.out
    assert re.search(r"   letter: \d examples kept", done.out)
    for refused in ("kind", "capital", "prime"):
        assert f"   {refused}: nothing passed the gate, so nothing is kept" in done.out
        assert re.search(rf"{refused}: nothing was kept, so nothing changed: .*n = 24 x 2", done.out)
        assert f"  {refused}: nothing; no candidate was better than no experience at all" in done.out
    assert re.search(r"  letter \[\S+\] What is the first letter of '(\w)\w+'\? -> \1\n", done.out)
    assert "Every call and decision is in runs/quickstart" in done.out
    parts = sorted(path.name.rpartition("-")[0] for path in Path("runs/quickstart").iterdir())
    learned = [f"{family}-{part}-0" for family in ("capital", "kind", "prime") for part in ("before", "learn")]
    assert parts == sorted([*learned, "letter-before-0", "letter-learn-0", "letter-after-0"])


def test_figures_for_a_program_and_nothing_is_bought_twice(cli, asked) -> None:
    first = cli(*asked, "--json")
    calls = sent()
    again = cli(*asked, "--json", "--resume")
    assert (again.code, sent()) == (0, calls)
    rows = {row["family"]: row for row in json.loads(again.out)["families"]}
    assert rows == {row["family"]: row for row in json.loads(first.out)["families"]}
    assert list(rows) == ["letter", "kind", "capital", "prime"]
    assert {name for name, row in rows.items() if "after" in row} == {"letter"}
    assert all((row["n"], row["samples"]) == (LIMIT, 2) for row in rows.values())
    assert rows["letter"]["difference"]["low"] > 0.2
    assert rows["letter"]["p_adjusted"] < 0.01
    assert rows["kind"]["experiences"] == 0


def test_the_budget_is_one_for_all_parts(cli, asked) -> None:
    stopped = cli(*asked, "--max-calls", 100)
    assert stopped.code == 4
    assert sent() == 100  # two evaluations of 48, and the beginning of the third: not 100 calls for each
    assert len(list(Path("runs/quickstart").iterdir())) == 3
    assert "calls are spent" in stopped.sentence


def test_another_model_does_not_meet_the_runs_of_this_one(cli, asked) -> None:
    assert cli(*asked, "--max-calls", 10).code == 4
    changed = [str(word).replace(":model", ":other") for word in asked]
    assert cli(*changed, "--max-calls", 10).code == 4
    names = [path.name for path in Path("runs/quickstart").iterdir()]
    assert len(names) == 2
    assert {name.rpartition("-")[0] for name in names} == {"letter-before-0"}


def test_a_dry_run_says_the_most_and_sends_nothing(cli, asked) -> None:
    shown = cli(*asked, "--dry-run")
    told = json.loads(cli(*asked, "--dry-run", "--json").out)
    assert shown.out.startswith("Dry run: nothing was sent\n")
    assert "4 families" in shown.out
    assert not Path("runs").exists()
    assert told["dollars"] == [0.0, 0.0]
    cli(*asked)
    assert 0 < sent() <= told["calls"][1]


def test_the_dollars_of_a_dry_run_are_those_of_all_parts(cli, asked) -> None:
    priced = cli(*asked, "--dry-run", "--json", "--prompt-price", 1, "--completion-price", 1)
    told = json.loads(priced.out)
    assert told["dollars"] == pytest.approx([tokens / 1e6 for tokens in told["tokens"]])


def test_nothing_can_be_resumed_where_nothing_was_begun(cli, asked) -> None:
    assert "There is no run in runs/quickstart to be resumed" in cli(*asked, "--resume").sentence
