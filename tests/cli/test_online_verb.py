"""`agentmem learn --online`: tasks as they come, answers as they are given."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

QUICK = ("--reward", "numeric", "--extractor", "exemplar", "--batch-size", 4, "--gate-min-tasks", 4, "--run", "r")


class Stdin:
    def __init__(self, text: str) -> None:
        self.buffer = io.BytesIO(text.encode())


def test_each_answer_is_a_json_line_and_the_result_the_last(cli, sums, learner) -> None:
    done = cli("learn", sums, "--online", *QUICK, *learner, "--json", "--limit", 20)
    assert done.code == 0
    *answers, result = [json.loads(line) for line in done.out.splitlines()]
    assert sorted(answer["position"] for answer in answers) == list(range(1, 21))
    assert {answer["score"] for answer in answers} <= {0.0, 1.0}
    assert all(answer["output"] for answer in answers)
    assert result["n"] == 20
    assert result["interval"]["low"] <= result["score"] <= result["interval"]["high"]
    assert sum(result["roles"].values()) == 20
    assert result["curve"][0]["first"] == 1
    heard = [json.loads(line)["event"] for line in done.err.splitlines()]
    assert heard.count("Answered") == 20

    again = cli("learn", sums, "--online", *QUICK, *learner, "--json", "--limit", 20, "--resume")
    assert json.loads(again.out.splitlines()[-1]) == result  # nothing was left to do


def test_standard_input_is_read_as_it_is_written(sums, tmp_path) -> None:
    """The second task is written only when the first is answered."""
    command = [sys.executable, "-m", "agentmem", "learn", "-", "--online", *map(str, QUICK)]
    with subprocess.Popen(
        [*command, "--model", "scripted/learner", "--json", "--progress", "none"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin
        assert process.stdout
        for number, line in enumerate(sums.read_text().splitlines()[:3], start=1):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["position"] == number
        process.stdin.close()
        assert json.loads(process.stdout.readline())["n"] == 3
    assert process.returncode == 0


def test_a_line_that_is_no_task_is_named_and_the_rest_is_kept(cli, learner, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin('{"input": "What is 1 + 2?", "answer": "3"}\n{broken\n'))
    done = cli("learn", "-", "--online", *QUICK, *learner)
    assert done.code == 2
    assert done.sentence.startswith("agentmem: standard input, line 2: broken JSON")
    monkeypatch.setattr(sys, "stdin", Stdin('{"input": "What is 1 + 2?", "answer": "3"}\n'))
    done = cli("learn", "-", "--online", *QUICK, *learner)
    assert done.code == 0
    assert "1 task of 'stream'" in done.out
    assert done.out.splitlines()[-1] == "library: r/library.json"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("-",), "add --online"),
        (("-", "--online", "--dry-run"), "how long standard input is"),
        (("missing.jsonl", "--online"), "There is no task file 'missing.jsonl'"),
    ],
)
def test_what_cannot_be_is_said(cli, arguments, sentence) -> None:
    done = cli("learn", *arguments, "--model", "scripted/echo")
    assert done.code == 2
    assert sentence in done.sentence


def test_a_spent_budget_says_how_to_go_on(cli, sums, learner) -> None:
    done = cli("learn", sums, "--online", *QUICK, *learner, "--max-calls", 30)
    assert done.code == 4
    assert "agentmem learn" in done.err
    assert cli("learn", sums, "--online", *QUICK, *learner).code == 0


def test_a_dry_run_counts_the_file(cli, sums, learner) -> None:
    done = cli("learn", sums, "--online", *QUICK, *learner, "--dry-run")
    assert done.code == 0
    assert "held out for the gate" in done.out
