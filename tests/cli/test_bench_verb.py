"""`agentmem bench`: sets checked, agents run on them, killed and gone on with, and the experiment on learning."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from agentmem.memory.case_bank import CaseBank
from agentmem.testing.hash_embedder import HashEmbedder
from benchmarks.offline_gaia.generate import write
from tests.conftest import ROOT

SCRIPTS = ROOT / "benchmarks" / "offline_gaia" / "scripted.py"
ROW = {"task_id": "a", "Question": "What is 2 + 3?", "Level": "1", "Final answer": "5", "file_name": ""}


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("offline") / "set"
    write(path)
    return path


def own_set(path: Path, *rows: dict[str, object], card: str = 'name = "own"') -> Path:
    path.mkdir()
    (path / "files").mkdir()
    (path / "files" / "note.txt").write_text("The answer is 5.")
    (path / "dataset.toml").write_text(card)
    (path / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_validate_counts_and_names_every_fault(cli, offline: Path, tmp_path: Path) -> None:
    sound = cli("bench", "validate", offline)
    assert (sound.code, sound.err) == (0, "")
    assert "108 sound tasks, 0 faults" in sound.out
    broken = own_set(tmp_path / "s", ROW, ROW, ROW | {"task_id": "b", "file_name": "x.pdf"})
    found = cli("bench", "validate", broken)
    assert found.code == 1
    assert "tasks.jsonl, line 2" in found.out
    assert "give each task its own" in found.out
    assert "no file 'x.pdf'" in found.out
    facts = json.loads(cli("bench", "validate", broken, "--json").out)
    assert [fault["place"] for fault in facts["faults"]] == ["tasks.jsonl, line 2", "tasks.jsonl, line 3"]
    assert cli("bench", "validate", tmp_path / "none").code == 2


def test_faults_stop_a_run_before_anything_is_spent(cli, tmp_path: Path) -> None:
    broken = own_set(tmp_path / "s", ROW, ROW | {"task_id": "b", "Final answer": ""})
    done = cli("bench", "gaia", "--data", broken, "--model", "scripted/echo")
    assert done.code == 2
    assert "tasks.jsonl, line 2 (task 'b'): its 'Final answer' is ''" in done.sentence
    assert not Path("runs").exists()
    scorer = own_set(tmp_path / "t", ROW, card='name = "own"\nscorer = "gaja"')
    assert "No reward named 'gaja'. Did you mean 'gaia'?" in cli("bench", "validate", scorer).sentence
    assert "no task of level '9'" in cli("bench", "gaia", "--data", offline_like(tmp_path), "--level", 9).sentence


def offline_like(path: Path) -> Path:
    return own_set(path / "o", ROW)


def test_a_run_and_what_its_folder_gets(cli, tmp_path: Path) -> None:
    rows = [
        ROW | {"file_name": "note.txt"},
        ROW | {"task_id": "b", "Level": "2"},
        ROW | {"task_id": "c", "Level": "2", "Final answer": "17"},
    ]
    data = own_set(tmp_path / "s", *rows)
    asked = ("bench", "gaia", "--data", data, "--model", "scripted/say?text=FINAL ANSWER: 5", "--run", "r")
    done = cli(*asked)
    assert done.code == 0, done.err
    for words in (
        "level 1",
        "level 2",
        "all",
        "completed only",
        "no marker",
        "near misses",
        "steps",
        "tool calls",
    ):
        assert words in done.out
    report = json.loads(Path("r/bench.json").read_text())
    assert [outcome["score"] for outcome in report["report"]["outcomes"]] == [1.0, 1.0, 0.0]
    lines = [json.loads(line) for line in Path("r/leaderboard.jsonl").read_text().splitlines()]
    assert lines == [{"task_id": id, "model_answer": "5"} for id in "abc"]
    assert json.loads(Path("r/leaderboard.proof.json").read_text())["complete"]
    assert Path("r/urls.jsonl").read_text() == ""
    assert cli(*asked, "--resume").out == done.out, "nothing is done again"
    part = cli(*asked[:-1], "r2", "--limit", 1, "--samples", 2)
    assert "Mean@2" in part.out
    assert not json.loads(Path("r2/leaderboard.proof.json").read_text())["complete"]
    assert Path("r2/leaderboard.partial.jsonl").exists()
    assert "There is no run in" in cli(*asked[:-1], "r3", "--resume").sentence
    dry = cli(*asked[:-1], "r4", "--dry-run")
    assert "nothing was sent" in dry.out
    assert not Path("r4").exists()


def test_a_split_whose_answers_are_private_is_answered_and_not_scored(cli, tmp_path: Path) -> None:
    data = own_set(
        tmp_path / "s", ROW | {"split": "test", "Final answer": "?"}, card='name = "own"\nprivate = ["test"]'
    )
    done = cli("bench", "gaia", "--data", data, "--model", "scripted/say?text=FINAL ANSWER: 5", "--run", "r")
    assert done.code == 0, done.err
    assert "unverifiable (in no score): 1 of 1 attempt" in done.out
    assert json.loads(Path("r/leaderboard.jsonl").read_text()) == {"task_id": "a", "model_answer": "5"}


LOOKER = """
async def look(task, context):
    names = sorted(path.name for path in context.folder.iterdir())
    (context.folder / "note.txt").write_text("changed")
    return f"{task.input}\\nFINAL ANSWER: {len(names)} {' '.join(names)}"
"""


def test_attachments_are_copied_and_named(cli, tmp_path: Path) -> None:
    data = own_set(tmp_path / "s", ROW | {"file_name": "note.txt", "Final answer": "1 note.txt"})
    Path("own.py").write_text(LOOKER)
    done = cli("bench", "gaia", "--data", data, "--agent", "own.py:look", "--run", "r")
    assert done.code == 0, done.err
    outcome = json.loads(Path("r/bench.json").read_text())["report"]["outcomes"][0]
    assert outcome["score"] == 1.0
    assert "The file note.txt belongs to this question" in outcome["output"]
    assert (data / "files" / "note.txt").read_text() == "The answer is 5.", "an agent writes to a copy"


CHEAT = """
import json
from agentmem.domain.trajectory import Message, ToolCall

def look(request):
    said = [message.content for message in request.messages if message.role == "tool"]
    if said:
        return "FINAL ANSWER: " + said[0]
    arguments = json.dumps({"url": "https://huggingface.co/datasets/gaia-benchmark/GAIA"})
    return Message(role="assistant", tool_calls=(ToolCall(id="c", name="fetch_page", arguments=arguments),))
"""


def test_the_set_itself_is_not_read_on_the_web_and_the_attempt_is_on_record(cli, tmp_path: Path) -> None:
    data = own_set(tmp_path / "s", ROW)
    Path("own.py").write_text(CHEAT)
    done = cli("bench", "gaia", "--data", data, "--model", "scripted/own.py:look", "--run", "r")
    assert done.code == 0, done.err
    visits = [json.loads(line) for line in Path("r/urls.jsonl").read_text().splitlines()]
    assert [(visit["task_id"], visit["tool"], visit["status"]) for visit in visits] == [
        ("a", "fetch_page", "denied")
    ]
    assert "refused as mirrors of the set: 1" in done.out


def test_agents_by_name(cli, tmp_path: Path) -> None:
    data = own_set(tmp_path / "s", ROW)
    planner = json.dumps({"answer": "5"})
    for agent, text in (("planner", planner), ("react", "FINAL ANSWER: 5")):
        Path(f"{agent}.py").write_text(f"def say(request): return {text!r}\n")
        model = ("--model", f"scripted/{agent}.py:say")
        done = cli("bench", "gaia", "--data", data, "--agent", agent, *model, "--run", agent)
        assert done.code == 0, done.err
        assert json.loads(Path(agent, "bench.json").read_text())["report"]["outcomes"][0]["score"] == 1.0


def rows(folder: Path) -> list[tuple[object, ...]]:
    """The stored attempts: task, attempt, and the row's number, which another purchase would change."""
    if not (folder / "journal.sqlite").exists():
        return []
    with closing(sqlite3.connect(folder / "journal.sqlite", timeout=30)) as db:
        try:
            return list(db.execute("SELECT task, rollout, seq FROM steps WHERE purpose='rollout' ORDER BY task"))
        except sqlite3.OperationalError:
            return []


def table(folder: Path) -> list[tuple[object, ...]]:
    """The table without its clock."""
    report = json.loads((folder / "bench.json").read_text())
    kept = [(o["task_id"], o["score"], o["status"], o["output"]) for o in report["report"]["outcomes"]]
    return [*kept, *((a["task_id"], a["answer"], a["steps"], a["tool_calls"]) for a in report["attempts"])]


ADDER = """
import json
from agentmem.domain.trajectory import Message, ToolCall

def add(request):
    if any(message.role == "tool" for message in request.messages):
        return "FINAL ANSWER: " + request.messages[-1].content
    call = ToolCall(id="c", name="calculator", arguments=json.dumps({"expression": "2 + 3"}))
    return Message(role="assistant", tool_calls=(call,))
"""


def test_kill_9_and_resume_make_no_task_twice_and_the_same_table(agentmem, tmp_path: Path) -> None:
    data = own_set(tmp_path / "s", *(ROW | {"task_id": f"t{n}", "Level": str(n % 3 + 1)} for n in range(12)))
    (tmp_path / "own.py").write_text(ADDER)
    asked = ("bench", "gaia", "--data", data, "--bare", "--tool", "calculator", "--concurrency", "2")
    model = ("--model", "scripted/own.py:add?latency=0.1")
    process = agentmem(*asked, *model, "--run", "whole")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    process = agentmem(*asked, *model, "--run", "killed")
    while len(rows(tmp_path / "killed")) < 3 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = rows(tmp_path / "killed")
    assert 3 <= len(before) < 12
    process = agentmem(*asked, *model, "--run", "killed", "--resume")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    after = rows(tmp_path / "killed")
    assert set(before) <= set(after), "what was stored stays as it was"
    assert len(after) == len({row[:2] for row in after}) == 12
    assert table(tmp_path / "killed") == table(tmp_path / "whole")
    assert {row[1] for row in table(tmp_path / "whole")[:12]} == {1.0}


def test_the_experiment_with_a_scripted_agent_of_planted_skills(
    cli, offline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The real embedder is slow on a busy machine, and nothing here depends on it.
    monkeypatch.setattr("agentmem.memory.case_bank.open_embedder", lambda embedder: HashEmbedder())
    monkeypatch.setattr("agentmem.memory.case_embedding.own", lambda store: HashEmbedder())
    gated = tmp_path / "gated"
    shutil.copytree(offline, gated)
    card = gated / "dataset.toml"
    card.write_text(card.read_text().replace("gated = false", "gated = true"))
    lines = (gated / "tasks.jsonl").read_text().splitlines(keepends=True)
    few = ("letter", "harbour", "gallery", "program")
    (gated / "tasks.jsonl").write_text("".join(line for line in lines if json.loads(line)["cluster"] in few))
    asked = ("bench", "gaia", "--data", gated, "--learn", "--run", "x")
    model = ("--model", f"scripted/{SCRIPTS}:skilled", "--memory-policy", "similarity")
    done = cli(*asked, *model)
    assert done.code == 0, done.err
    for words in ("off → on", "off → shuffled", "shuffled → on", "split transfer", "difference, 95 %"):
        assert words in done.out
    said = cli(*asked, *model, "--resume", "--json", "--progress", "none")
    facts = json.loads(said.out)
    scores = facts["scores"]
    assert scores["on"] > scores["off"]
    assert scores["on"] > scores["shuffled"]
    assert [row["contrast"] for row in facts["contrasts"]][:3] == ["off → on", "off → shuffled", "shuffled → on"]
    assert facts["gated"]
    with closing(CaseBank(Path("x", "memory"))) as opened:
        assert len(opened) == facts["cases"]
        assert all(case.gated for case in opened), "the mark follows what was learned"
    assert "--allow-gated" in cli("memory", "export", "x/memory", "out.jsonl").sentence
    assert "leave --memory out" in cli(*asked, *model, "--memory", "m").sentence
    one = own_set(tmp_path / "s", ROW)
    assert (
        "1 task to learn from and 0 tasks to be tried on"
        in cli("bench", "gaia", "--data", one, "--learn", *model).sentence
    )
