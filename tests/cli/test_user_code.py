"""Agents and rewards in files of the user's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from agentmem.cli.user_code import load_function
from agentmem.errors import InputError


def write(path: str, text: str) -> None:
    Path(path).write_text(text)


def test_an_agent_and_a_reward_from_one_file(cli, sums) -> None:
    write("helper.py", "def add(text):\n    a, b = text[8:-1].split(' + ')\n    return str(int(a) + int(b))\n")
    write(
        "mine.py",
        "from helper import add\nseen = []\n"
        "def agent(task, prior):\n    seen.append(task.id)\n    return add(task.input)\n"
        "def reward(task, trajectory):\n    return trajectory.output == task.answer and task.id in seen\n",
    )
    done = cli("eval", sums, "--agent", "mine.py:agent", "--reward", "mine.py:reward", "--limit", 9)
    assert done.code == 0, done.err
    assert "1.000" in done.out  # one module: the reward sees what the agent kept
    done = cli("eval", sums, "--agent", "mine.py:agent", "--limit", 9, "--json", "--progress", "none")
    report = json.loads(done.out)
    assert {outcome["score"] for outcome in report["outcomes"]} == {1.0}
    assert done.err == ""


def test_a_file_hides_no_module_of_the_same_name(cli, sums) -> None:
    write("json.py", "def agent(task, prior):\n    return '1'\n")
    assert cli("eval", sums, "--agent", "json.py:agent", "--limit", 2).code == 0
    assert sys.modules["json"] is json


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("agent", "'agent' names no function; write FILE.py:FUNCTION"),
        ("mine.py:", "names no function"),
        ("none.py:f", "There is no file 'none.py'"),
        ("mine.py:solv", "has no function 'solv'. Did you mean 'solve'? It has: Solver, solve"),
        ("broken.py:f", "broken.py raised SyntaxError when it was loaded"),
        ("quits.py:f", "quits.py raised SystemExit when it was loaded: 3. Try it: python quits.py"),
        ("needs.py:f", "No module named 'nothing_like_it'"),
    ],
)
def test_what_cannot_be_loaded_is_named(tmp_path, monkeypatch, spec, said) -> None:
    monkeypatch.chdir(tmp_path)
    write("mine.py", "from pathlib import Path\nclass Solver: ...\ndef solve(task, prior): ...\n_x = 1\n")
    write("broken.py", "def f(:\n")
    write("quits.py", "import sys\nsys.exit(3)\n")
    write("needs.py", "import nothing_like_it\n")
    with pytest.raises(InputError) as error:
        load_function(spec)
    assert said in str(error.value)


def test_a_class_is_no_agent(cli, sums) -> None:
    write("mine.py", "class Solver:\n    def __call__(self, task, prior):\n        return '1'\n")
    done = cli("eval", sums, "--agent", "mine.py:Solver")
    assert (done.code, "Solver is a class; an agent is an instance" in done.sentence) == (2, True)


def test_the_callables_folder_is_last_on_the_path(tmp_path) -> None:
    (tmp_path / "a.py").write_text("def f(): ...\n")
    load_function(f"{tmp_path}/a.py:f")
    assert sys.path[-1] == str(tmp_path)
