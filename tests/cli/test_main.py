"""Exit codes, and one sentence for what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentmem.cli.main import VERBS
from agentmem.errors import AgentMemError, JournalError
from agentmem.testing.server import ChatServer

ROOT = Path(__file__).parent.parent.parent
ECHO = ("--model", "scripted/echo")


def test_the_help_page_names_every_verb_and_loads_no_vendor() -> None:
    script = (
        "import sys; from agentmem.cli.main import run; run(['--help']);"
        "print(sorted({m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {script}"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    page, modules = done.stdout.rsplit("\n[", 1)
    for verb, (_, line) in VERBS.items():
        assert f"{verb} " in page
        assert line in page
    vendors = set(json.loads(f"[{modules}".replace("'", '"')))
    allowed = {"agentmem", "attr", "attrs", "cyclopts", "docstring_parser", "rich", "__main__"}
    assert {name for name in vendors if not name.startswith("_")} <= allowed


@pytest.mark.parametrize(
    "verb", sorted(VERBS.keys() - {"bench", "library", "memory", "study"})
)  # its own verbs are tested beside it
def test_every_verb_explains_itself_and_takes_json(cli, verb) -> None:
    done = cli(verb, "--help")
    assert (done.code, done.err) == (0, "")
    assert "--json" in done.out
    assert "--no-" not in done.out
    assert "[default: ()]" not in done.out


@pytest.mark.parametrize("verb", ["learn", "eval"])
def test_every_verb_that_spends_can_be_limited(cli, verb) -> None:
    page = cli(verb, "--help").out
    flags = "dry-run limit max-cost max-tokens max-calls max-seconds resume run config judge-model rubric"
    assert [flag for flag in flags.split() if f"--{flag} " not in page] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evl"], "Did you mean \"eval\"? Available commands: quickstart, learn, eval, rescore, compare, study, "
                  "library, memory, ... See `agentmem --help`."),
        (["eval"], "TASKS is missing. See `agentmem eval --help`."),
        (["eval", "SUMS", "--model"], "--model needs a value."),
        (["eval", "SUMS", "more", *ECHO], "more is more than was asked for."),
        (["eval", "SUMS", "--rewrad", "exact"], "Unknown option: --rewrad. Did you mean --reward?"),
        (["eval", "SUMS", "--samples", "0"], "--samples '0': Input should be greater than or equal to 1."),
        (["eval", "SUMS", "--limit", "-3", *ECHO], "\"-3\" for --limit. Must be >= 1."),
        (["eval", "SUMS", "--progress", "loud"], '"loud" for --progress. Choose from: "auto"'),
        (["eval", "SUMS"], "Name the agent: --model openai/NAME, --model local/smollm2, or --agent"),
        (["eval", "SUMS", "--model", "gpt-4"], "No model named 'gpt-4'; write 'openai/gpt-4'."),
        (["eval", "SUMS", "--model", "openai/gpt-4.1"], "There is no key for openai/gpt-4.1: set OPENAI_API_KEY"),
        (["eval", "SUMS", *ECHO, "--reward", "maths"], "No reward named 'maths'. Did you mean 'math'?"),
        (["eval", "SUMS", *ECHO, "--executor", "scripted/echo"], "Only a planner has an executor"),
        (["eval", "SUMS", *ECHO, "--tool", "pyhton"], "No tool named 'pyhton'. Did you mean 'python'?"),
        (["eval", "SUMS", *ECHO, "--rubric", "short"], "--rubric belongs to --reward judge"),
        (["eval", "SUMS", *ECHO, "--reward", "judge", "--judge-model", "gpt-4"], "write 'openai/gpt-4'"),
        (["eval", "SUMS", *ECHO, "--reward", "judge", "--judge-base-url", "http://h"], "needs --judge-model"),
        (["eval", "SUMS", *ECHO, "--resume"], "to be resumed; leave --resume out"),
        (["eval", "SUMS", *ECHO, "--run", "SUMS"], "is a file; name a directory"),
        (["eval", "SUMS", *ECHO, "--run", "/proc/nope"], "/proc/nope cannot be made"),
        (["eval", "SUMS", *ECHO, "--library", "lib.json"], "There is no experience library 'lib.json'."),
        (["eval", ".", *ECHO], "is a folder; name the task file in it"),
        (["eval", "sums.json", *ECHO], "There is no task file 'sums.json'."),
        (["learn", "SUMS", *ECHO, "--extractor", "none"], "Input should be 'fused', 'faithful', 'exemplar' or 'tips'."),
        (["compare", "a", "b"], "There is no evaluation report 'a'."),
        (["compare", "SUMS", "SUMS"], "is no evaluation report"),
        (["compare", ".", "."], "There is no finished evaluation in .; name an evaluation's run."),
        (["prompts", "show"], "Name the prompt to show: answer_now, attached, cases, confidence, "),
        (["prompts", "show", "prio"], "There is no prompt 'prio'. Did you mean 'prior'?"),
        (["prompts", "list", "judge"], "agentmem prompts show judge"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_sentence_with_the_repair(cli, sums, arguments, said) -> None:
    done = cli(*(sums if argument == "SUMS" else argument for argument in arguments))
    assert said in done.sentence
    assert (done.code, done.out) == (2, "")
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty: it needs one JSON object a line"),
        (b'{"id":"a","input":"x","answer":"1"}\n{"id":"a","input":"y","answer":"1"}\n', "line 2: the id 'a'"),
        (b'{"id":"a","input":"x","answer":"1"}\n{"input":"y","answer":"1"}\n', "line 2: no id, but line 1"),
        (b'{"id":"a","input":"x","answer":""}\n', "line 1: 'answer' is empty"),
        (b'{"input":"x"}\n' * 4, "no reference answer. Mend the tasks"),
        (b'{"input":"x","answer":NaN}\n', "line 1: NaN is no JSON number"),
        (b'{"input":"' + b"x" * 10_000_001 + b'"}\n', "line 1: 10.0 MB in one line"),
        ('{"input":"é"}\n'.encode("latin-1"), "line 1, byte 11: 0xe9 is not UTF-8"),
        ('{"input":"é"}\n'.encode("utf-16"), "this is UTF-16, not UTF-8"),
        (b'{"input":"x"\n', "line 1: broken JSON at column"),
    ],
    ids=["empty", "twice", "no id", "no answer", "unscorable", "nan", "long", "latin", "utf-16", "broken"],
)
@pytest.mark.parametrize("verb", ["learn", "eval"])
def test_a_faulty_task_file_is_refused_before_anything_is_spent(cli, verb, content, said) -> None:
    Path("tasks.jsonl").write_bytes(content)
    done = cli(verb, "tasks.jsonl", *ECHO)
    assert said in done.sentence
    assert done.code == 2
    assert not Path("runs").exists()


def test_a_broken_template_is_found_before_the_first_call(cli, sums, monkeypatch) -> None:
    Path("own").mkdir()
    Path("own/judge.md").write_text("---\npurpose: p\n---\n{% for %}\n")
    monkeypatch.setenv("AGENTMEM_PROMPTS", "own")
    with ChatServer("4") as server:
        done = cli("eval", sums, "--model", "openai/m", "--base-url", server.base_url)
        assert server.calls == 0
    assert "own/judge.md, line 4: Expected an expression" in done.sentence
    assert done.code == 2


def test_a_run_of_something_else_is_left_alone(cli, sums, learner) -> None:
    assert cli("eval", sums, *learner, "--limit", 4, "--run", "r").code == 0
    other_tasks = cli("eval", sums, *learner, "--limit", 5, "--run", "r")
    assert (other_tasks.code, "fingerprints.tasks was" in other_tasks.sentence) == (2, True)
    other_verb = cli("learn", sums, *learner, "--extractor", "exemplar", "--run", "r")
    assert other_verb.sentence == "agentmem: r holds a run of `eval`, not of `learn`; name another run."
    Path("r/run.toml").write_text("[[[")
    assert "r/run.toml is damaged" in cli("eval", sums, *learner, "--limit", 4, "--run", "r").sentence


@pytest.mark.parametrize("damage", ["noise", "torn", "newer"])
def test_a_damaged_journal_is_named(cli, sums, learner, damage) -> None:
    assert cli("eval", sums, *learner, "--run", "r").code == 0
    journal = Path("r/journal.sqlite")
    content = journal.read_bytes()
    if damage == "noise":
        journal.write_bytes(b"noise" * 1000)
    elif damage == "torn":
        journal.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
    else:
        connection = sqlite3.connect(journal)
        connection.execute("PRAGMA user_version=9")
        connection.close()
    done = cli("eval", sums, *learner, "--run", "r")
    wanted = "newer than this agentmem" if damage == "newer" else "It is damaged; restore it from a copy"
    assert wanted in done.sentence
    assert "journal.sqlite" in done.sentence
    assert done.code == 2


def test_a_library_of_a_newer_schema_is_refused(cli, sums) -> None:
    Path("library.json").write_text('{"schema": 7}')
    done = cli("eval", sums, *ECHO, "--library", "library.json")
    assert "schema 7, newer than this agentmem reads (1); upgrade agentmem" in done.sentence
    assert done.code == 2


@pytest.mark.parametrize("verb", ["learn", "eval"])
def test_a_budget_stops_in_time_with_4_and_the_command_that_goes_on(cli, sums, verb) -> None:
    with ChatServer("4") as server:
        asked = (verb, sums, "--model", "openai/m", "--base-url", server.base_url, "--run", "my run")
        done = cli(*asked, "--max-calls", 7)
        assert server.calls == 7
        assert done.code == 4
        assert "7 of 7 calls are spent" in done.sentence
        assert done.err.endswith(f"--base-url {server.base_url} --run 'my run' --max-calls 7\n")
        if verb == "eval":
            assert cli(*asked, "--max-calls", 40).code == 0
            assert server.calls == 40


@pytest.mark.parametrize("limit", [("--max-tokens", 10), ("--max-seconds", 0)])
def test_the_other_budgets_stop_too(cli, sums, learner, limit) -> None:
    done = cli("learn", sums, *learner, "--extractor", "exemplar", *limit)
    assert (done.code, "The budget is spent" in done.sentence) == (4, True)


@pytest.mark.parametrize("judge", [False, True])
def test_dollars_without_a_price_are_refused_before_the_first_call(cli, sums, learner, judge) -> None:
    with ChatServer("4") as server:
        if judge:
            model = (
                *learner,
                "--reward",
                "judge",
                "--judge-model",
                "openai/m",
                "--judge-base-url",
                server.base_url,
            )
        else:
            model = ("--model", "openai/m", "--base-url", server.base_url)
        done = cli("eval", sums, *model, "--max-cost", 1)
        assert server.calls == 0
    assert (done.code, "none is known for 'openai/m'" in done.sentence) == (2, True)


def test_too_many_errors_stop_with_5(cli, sums) -> None:
    Path("r.py").write_text("def nan(task, trajectory):\n    return float('nan')\n")
    done = cli("eval", sums, *ECHO, "--reward", "r.py:nan")
    assert done.code == 5
    assert "returned nan (float)" in done.sentence
    assert done.err.endswith("agentmem eval " + f"{sums} --model scripted/echo --reward r.py:nan\n")


def test_a_refused_key_fails_with_1(cli, sums) -> None:
    with ChatServer("4", api_key="right") as server:
        done = cli("learn", sums, "--model", "openai/m", "--base-url", server.base_url)
    assert done.code == 1
    assert "does not accept the key" in done.sentence


def test_a_full_disk_is_no_wrong_usage(cli, sums, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise JournalError("the disk is full") from sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("agentmem.runs.run.Journal", full)
    assert cli("eval", sums, *ECHO).code == 1


def test_code_that_exits_does_not_choose_our_exit_code(cli, sums) -> None:
    Path("a.py").write_text("import sys\ndef agent(task, prior):\n    sys.exit(3)\n")
    done = cli("eval", sums, "--agent", "a.py:agent")
    assert done.code == 1
    assert "called exit(3)" in done.sentence


def test_what_a_server_says_cannot_drive_the_terminal(cli, monkeypatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise AgentMemError("red \x1b[31m and\nmore")

    monkeypatch.setattr(sys.modules["agentmem.cli.main"], "_app", lambda: fails)
    done = cli("eval")
    assert done.err.splitlines()[0].startswith("agentmem: red [31m and more ")


def test_an_interrupt_says_how_to_go_on(agentmem: Callable[..., subprocess.Popen[str]], tmp_path, sums) -> None:
    (tmp_path / "a.py").write_text("import time\ndef agent(task, prior):\n    time.sleep(30)\n")
    process = agentmem("eval", sums, "--agent", "a.py:agent", "--run", "my run", "--progress", "none")
    while not (tmp_path / "my run" / "journal.sqlite").exists():
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.3)
    busy = agentmem("eval", sums, "--agent", "a.py:agent", "--run", "my run")
    assert "Another process works in my run" in busy.communicate(timeout=30)[1]
    assert busy.returncode == 2
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines() == [
        "agentmem: Interrupted. What was paid for is stored; start the same command again:",
        f"  agentmem eval {sums} --agent a.py:agent --run 'my run' --progress none",
    ]


@pytest.mark.parametrize(
    "arguments", ["eval SUMS --model scripted/echo --json", "learn --help", "prompts show judge"]
)
def test_a_reader_that_goes_away_is_no_error(tmp_path, sums, arguments) -> None:
    command = (
        f"{sys.executable} -m agentmem {arguments.replace('SUMS', str(sums))} | head -1; exit ${{PIPESTATUS[0]}}"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0
    assert "Broken" not in done.stderr
    assert len(done.stdout.splitlines()) == 1
