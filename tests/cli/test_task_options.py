"""Tasks on the command line: columns, tables, the Hub and benchmarks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
GSM8K = ROOT / "benchmarks" / "tasks" / "gsm8k.py"
SUMS = "no,ask,gold\n" + "".join(f"s{n},What is {n} + 2?,{n + 2}\n" for n in range(4))
COLUMNS = ("--columns", "id=no,input=ask", "--columns", "answer=gold")


@pytest.fixture
def sums_csv(tmp_path: Path) -> Path:
    (tmp_path / "sums.csv").write_text(SUMS)
    return tmp_path / "sums.csv"


def report(run: str) -> dict:
    return json.loads((Path(run) / "report.json").read_text())


def test_a_table_is_judged_by_its_columns(cli, sums_csv: Path) -> None:
    done = cli("eval", sums_csv, *COLUMNS, "--model", "scripted/learner?p=1", "--run", "r")
    assert done.code == 0, done.err
    made = report("r")
    assert [outcome["task_id"] for outcome in made["outcomes"]] == ["s0", "s1", "s2", "s3"]
    assert [outcome["score"] for outcome in made["outcomes"]] == [1.0] * 4
    assert (made["tasks_name"], made["reward"]) == ("sums", "exact")


def test_what_does_not_fit_is_said_before_anything_is_spent(cli, sums_csv: Path) -> None:
    wrong = cli("eval", sums_csv, "--columns", "input=asks", "--model", "scripted/coin", "--run", "r")
    assert wrong.code == 2
    assert (
        "sums.csv, line 2: no 'asks', the column of 'input'; there is 'no', 'ask', 'gold', did you"
        in wrong.sentence
    )
    none = cli("eval", sums_csv, "--model", "scripted/coin", "--run", "r")
    assert "or say which column it is: columns={'input': ...}, --columns input=" in none.sentence
    (Path("twice.csv")).write_text(SUMS + "s3,a,b\n")
    assert (
        "line 6: the id 's3' was used in line 5 already"
        in cli("eval", "twice.csv", *COLUMNS, "--model", "scripted/coin", "--run", "r").sentence
    )
    assert not Path("r").exists()


def test_a_benchmark_brings_its_reward_and_its_fixture(cli) -> None:
    done = cli("eval", GSM8K, "--fixture", "--limit", 3, "--model", "scripted/coin", "--run", "r")
    assert done.code == 0, done.err
    assert (report("r")["reward"], report("r")["tasks_name"]) == ("numeric", "gsm8k fixture")
    assert len(report("r")["outcomes"]) == 3
    other = cli("eval", GSM8K, "--fixture", "--model", "scripted/coin", "--reward", "f1", "--run", "s")
    assert other.code == 0, other.err
    assert report("s")["reward"] == "f1"


def test_an_open_ended_benchmark_is_judged_by_its_rubric(cli) -> None:
    path = ROOT / "benchmarks" / "tasks" / "open_ended.py"
    dry = cli("eval", path, "--limit", 6, "--model", "scripted/coin", "--dry-run")
    assert dry.code == 0, dry.err
    bare = cli("eval", path, "--limit", 6, "--model", "scripted/coin", "--reward", "exact", "--dry-run")
    assert "cannot score task 'tides-child'" in bare.sentence


def test_a_benchmark_can_be_checked_and_learned_from(cli) -> None:
    looked = cli("check", GSM8K, "--fixture", "--json")
    (found,) = [each for each in json.loads(looked.out) if each["check"] == "tasks"]
    assert found["said"] == "5 are well-formed, and the reward 'numeric' can score them"
    learned = cli("learn", GSM8K, "--fixture", "--model", "scripted/coin", "--extractor", "exemplar", "--dry-run")
    assert learned.code == 0, learned.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("t.jsonl", "--fixture"), "--fixture belongs to a benchmark, a .py file, and t.jsonl is none"),
        ((GSM8K, "--columns", "input=x"), "says itself which column is what; leave --columns out"),
        (("none.py",), "There is no file 'none.py'"),
        (("mine.py",), "mine.py has no BENCHMARK, so it names no tasks; write BENCHMARK = Benchmark(...)"),
        (("t.jsonl", "--columns", "input"), "columns: 'input' is not FIELD=COLUMN, such as input=question."),
        (("hub:a/b?split=test",), "names no revision"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(cli, arguments: tuple, said: str) -> None:
    Path("t.jsonl").write_text('{"input": "a", "answer": "b"}\n')
    Path("mine.py").write_text("TASKS = 3\n")
    done = cli("eval", *arguments, "--model", "scripted/coin", "--run", "r")
    assert done.code == 2
    assert said in done.sentence
    assert not Path("r").exists()


def test_a_revision_that_may_move_is_said_on_standard_error(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentmem.task_sources.hub import Hub

    monkeypatch.setattr(Hub, "_loaded", lambda self: iter([{"question": "2 + 3?", "answer": "5"}]))
    name = "hub:owner/sums@main?split=test"
    done = cli("eval", name, "--model", "scripted/coin", "--run", "r")
    assert done.code == 0, done.err
    assert f"agentmem: {name}: 'main' is no commit, so the tasks may be others tomorrow" in done.err
    assert report("r")["tasks_name"] == "sums"
