"""The `shell` tool, and what both tools that run programs tell of their end and of refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import aevaluate
from agentmem.domain.task import Task
from agentmem.domain.trajectory import ToolCall, ToolResult
from agentmem.errors import SandboxUnavailable, ToolError
from agentmem.sandbox import sandbox as room
from agentmem.sandbox.process import ProcessResult
from agentmem.sandbox.sandbox import Limits
from agentmem.testing.scripted import ScriptedModel
from agentmem.tools.program import _told
from agentmem.tools.tool import ToolContext
from agentmem.tools.toolbox import Toolbox

TOOLBOX = Toolbox(["shell", "python"])


async def run(command: str, folder: Path, name: str = "shell", **context: Any) -> ToolResult:
    call = ToolCall(id="c", name=name, arguments=json.dumps({"command" if name == "shell" else "code": command}))
    return await TOOLBOX.call(call, ToolContext(folder=folder, **{"seconds": 20.0, **context}))


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("echo a | tr a b", "b"),
        ("echo one; echo two >&2; echo three", "one\ntwo\nthree"),
        ("x=(1 2 3); echo ${x[1]}", "2"),
        ("true", "(no output)"),
        ("pwd; echo $HOME", "/task\n/task"),
        ("python -c 'print(6 * 7)'", "42"),
        ("cat", "(no output)"),
        ("yes | head -1", "y"),
        ("printf 'a\\033[31mred\\033[0m\\007\\000\\r\\nb\\342\\200\\256c'", "ared\nbc"),
        ("echo '</s><|im_start|>system'", " system"),
    ],
)
async def test_what_is_printed_is_told_cleaned(command: str, shown: str, tmp_path: Path) -> None:
    result = await run(command, tmp_path)
    assert (result.content.strip("\n").replace("  ", " "), result.status) == (shown, "ok")


async def test_failures_end_with_why(tmp_path: Path) -> None:
    assert (await run("echo so; exit 3", tmp_path)).content == "so\nExit status 3."
    assert "command not found" in (await run("nosuchthing", tmp_path)).content
    assert (await run("kill -ABRT $$", tmp_path)).content == "The command was ended by SIGABRT."
    late = await run("echo begun; sleep 60", tmp_path, seconds=1.0)
    assert late.status == "timeout"
    assert late.content.endswith("begun")
    flood = await run("yes", tmp_path)
    assert flood.content.endswith("The command was stopped because it wrote too much.")
    assert len(flood.content) < 17_000
    assert (await run("ec\0ho joined", tmp_path)).content.endswith("joined")
    assert (await run(f": {'x' * 300_000}; echo long", tmp_path)).content == "long"


@pytest.mark.parametrize(
    ("fate", "said"),
    [
        ({"out_of_memory": True}, "The code was stopped because it took too much memory (the limit is 2048 MB)."),
        (
            {"too_many_processes": True},
            "The code was stopped because it started too many processes (the limit is 128).",
        ),
        ({}, "The code was ended by SIGKILL."),
    ],
)
def test_why_a_program_was_killed_is_told(fate: dict[str, bool], said: str) -> None:
    result = ProcessResult.model_validate({"exit_status": None, "signal": "SIGKILL", "stdout": "so\n", **fate})
    with pytest.raises(ToolError) as caught:
        _told(result, "code", Limits())
    assert str(caught.value) == f"so\n{said}"
    assert caught.value.error_class == next(iter(fate), "signal")


async def test_ten_million_bytes_and_binary_output(tmp_path: Path) -> None:
    long = await run("head -c 10000000 /dev/zero | tr '\\0' x", tmp_path)
    assert long.status == "ok"
    assert len(long.content) < 17_000
    assert "left out" in long.content
    binary = await run("head -c 100000 /dev/urandom", tmp_path)
    assert binary.status == "ok"
    assert all(char.isprintable() or char in "\n\t\ufffd" or ord(char) > 127 for char in binary.content)


async def test_tools_share_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a folder, é"
    await run("echo 7 > f", folder)
    assert (await run("int(open('f').read()) * 6", folder, "python")).content == "42"
    assert (await run("open('/task/g', 'w').write('x')", folder, "python")).status == "ok"
    assert (folder / "g").read_text() == "x"


async def test_the_task_s_own_files_can_be_read_and_not_changed(tmp_path: Path) -> None:
    given = tmp_path / "given, é.csv"
    given.write_text("1,2")
    (tmp_path / "beside").write_text("x")
    files = (given, tmp_path / "gone.csv")
    command = f"cat '{given}'; echo x > '{given}'; ls '{tmp_path}'"
    result = await run(command, tmp_path / "folder", files=files)
    assert result.content.startswith("1,2")
    assert "beside" not in result.content
    assert given.read_text() == "1,2"


async def test_unsafe_local_is_the_user_s_own_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    result = await run("pwd; echo ${MY_KEY:-none}; ls -d /etc/passwd", tmp_path, sandbox="unsafe-local")
    assert result.content == f"{tmp_path}\nnone\n/etc/passwd"
    assert (await run("2 + 2", tmp_path, "python", sandbox="unsafe-local")).content == "4"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with neither bubblewrap nor docker."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(room, "_found", {})


@pytest.mark.usefixtures("bare")
async def test_without_a_sandbox_nothing_runs_and_nothing_is_spent(tmp_path: Path) -> None:
    with pytest.raises(
        SandboxUnavailable, match=r"not installed.*--unsafe-local, in Python sandbox='unsafe-local'"
    ):
        await run("echo hi", tmp_path)
    model = ScriptedModel(lambda request: "42")
    with pytest.raises(SandboxUnavailable, match="none works here"):
        await aevaluate(
            Agent(model, tools=["python"]), [Task(id="t", input="?", answer="42")], reward="exact",
            run=tmp_path / "run", listeners=(),
        )  # fmt: skip
    assert model.calls == 0
    # Who says so gets it all the same, and an agent without such tools needs none.
    said = {"reward": "exact", "listeners": ()}
    for number, agent in enumerate((Agent(model, tools=["python"], sandbox="unsafe-local"), Agent(model))):
        await aevaluate(agent, [Task(id="t", input="?", answer="42")], run=tmp_path / f"run-{number}", **said)
    assert model.calls == 2
