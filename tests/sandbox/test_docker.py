"""Docker as the second choice: what it is asked for. The `docker` here is a stand-in that records its arguments."""

from __future__ import annotations

import asyncio
import csv
import json
import sys
from pathlib import Path

import pytest

from agentmem.errors import SandboxError, SandboxUnavailable
from agentmem.sandbox import sandbox as room
from agentmem.sandbox.docker import Docker, _mount
from agentmem.sandbox.sandbox import Limits, find_sandbox

FAKE = f"""#!{sys.executable}
import json, os, sys, time
arguments, mode = sys.argv[1:], os.environ.get("DOCKER_FAKE", "")
with open(__file__ + ".log", "a") as log:
    log.write(json.dumps(arguments) + "\\n")
match arguments[0]:
    case "version":
        print("27.0") if mode != "no-daemon" else sys.exit("Cannot connect to the Docker daemon at unix:///x.")
    case "image":
        sys.exit("No such image" if mode == "no-image" else 0)
    case "inspect":
        print("true" if mode == "oom" else "false")
    case "run":
        if mode == "hang":
            time.sleep(60)
        if mode == "broken":
            print("docker: no space left.", file=sys.stderr)
            sys.exit(125)
        print("read", sys.stdin.read(), sorted(name for name in os.environ if "KEY" in name))
        sys.exit(137 if mode == "oom" else 3)
"""


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "docker"
    program.write_text(FAKE)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(room, "_found", {})
    return program


def asked(docker: Path) -> list[list[str]]:
    return [json.loads(line) for line in Path(f"{docker}.log").read_text().splitlines()]


async def test_it_is_the_second_choice(docker: Path) -> None:
    assert (await find_sandbox()).name == "docker"
    assert [arguments[0] for arguments in asked(docker)] == ["version", "image"]


async def test_a_program_is_confined_and_the_container_removed(
    docker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    folder = tmp_path / "a, b:c"
    folder.mkdir()
    shown = tmp_path / "shown.py"
    limits = Limits(memory_mb=300, processes=40, seconds=20)
    result = await Docker().run(["python", "x.py"], folder=folder, stdin="in", limits=limits, shown=(shown,))
    assert (result.stdout, result.exit_status, result.out_of_memory) == ("read in []\n", 3, False)
    run, _, remove = asked(docker)
    told = " ".join(run)
    for words in (
        *("--network none", "--read-only", "--cap-drop ALL", "--security-opt no-new-privileges", "--init"),
        *("--memory 300m", "--memory-swap 300m", "--pids-limit 40", "--pull never", "--workdir /task"),
        *("--ulimit core=0:0", "--ulimit nofile=256:256", "--tmpfs /tmp:rw,nosuid,nodev,size=512m"),
        f'--mount type=bind,"source={folder}",target=/task',
        f"--mount type=bind,source={shown},target={shown},readonly",
    ):
        assert words in told
    assert "--privileged" not in told
    assert "secret" not in told
    assert run[-3:] == ["python:3.12-slim", "python", "x.py"]
    name = run[run.index("--name") + 1]
    assert remove == ["rm", "--force", "--volumes", name]


@pytest.mark.parametrize("path", ["/a b", "/a,b", '/a"b', '/a",b:"'])
def test_any_path_can_be_mounted(path: str) -> None:
    (fields,) = csv.reader([_mount(path, "/task")])  # docker reads the value as a line of CSV
    assert fields == ["type=bind", f"source={path}", "target=/task"]


async def test_a_container_is_removed_when_time_is_up_and_on_cancellation(
    docker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_FAKE", "hang")
    result = await Docker().run(["x"], folder=tmp_path, limits=Limits(seconds=0.5))
    assert (result.timed_out, asked(docker)[-1][0]) == (True, "rm")
    task = asyncio.create_task(Docker().run(["x"], folder=tmp_path))
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    first, second = (arguments for arguments in asked(docker) if arguments[0] == "rm")
    assert first != second


async def test_memory_and_docker_s_own_failures_are_told_apart(
    docker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_FAKE", "oom")
    result = await Docker().run(["x"], folder=tmp_path)
    assert (result.out_of_memory, result.signal, result.exit_status) == (True, "SIGKILL", None)
    monkeypatch.setenv("DOCKER_FAKE", "broken")
    with pytest.raises(SandboxError, match=r"docker could not start the program: docker: no space left\."):
        await Docker().run(["x"], folder=tmp_path)


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (
            "no-daemon",
            r"its daemon does not answer \(Cannot connect to the Docker daemon at unix:///x\); start it",
        ),
        ("no-image", r"the image python:3\.12-slim is not here; run: docker pull python:3\.12-slim"),
    ],
)
async def test_why_it_does_not_work_is_said(
    docker: Path, monkeypatch: pytest.MonkeyPatch, mode: str, said: str
) -> None:
    monkeypatch.setenv("DOCKER_FAKE", mode)
    with pytest.raises(SandboxUnavailable, match=said):
        await find_sandbox("docker")
