"""MCP servers: real processes, those that work and those that die, hang or never start."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from agentmem.domain.trajectory import ToolCall, ToolResult
from agentmem.errors import InputError
from agentmem.tools import mcp_session
from agentmem.tools.mcp import mcp
from agentmem.tools.tool import ToolContext
from agentmem.tools.toolbox import Toolbox
from tests.tools.processes import alive, gone

SERVER = Path(__file__).with_name("mcp_server.py")
COMMAND = f"{sys.executable} {SERVER}"


async def call(box: Toolbox, name: str, seconds: float = 30.0, **arguments: Any) -> ToolResult:
    made = ToolCall(id="c", name=name, arguments=json.dumps(arguments))
    return await box.call(made, ToolContext(folder=Path("."), seconds=seconds))


shared = pytest.mark.asyncio(loop_scope="module")
"""A server takes a second or two to start, so these tests use one."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def box() -> AsyncIterator[Toolbox]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "secret")
        toolbox = Toolbox(["calculator", f"mcp:{COMMAND}"])
        assert toolbox.names == ("calculator",)  # nothing is started before it is needed
        assert await toolbox.prepare() == ()
        yield toolbox
        await toolbox.close()


@shared
async def test_every_tool_of_a_server_is_offered_with_its_schema(box: Toolbox) -> None:
    assert box.names == ("calculator", "add", "fail", "die", "hang", "odd_name_x", "pid", "environment")
    add = next(spec for spec in box.specs if spec.name == "add")
    assert add.description == "Add two numbers."
    assert add.parameters["required"] == ["a"]
    assert add.parameters["properties"]["b"]["default"] == 1

    result = await call(box, "add", a=2, b=40)
    assert (result.status, result.content) == ("ok", "42")
    assert (result.source, result.untrusted) == ("mcp:mcp_server", True)
    assert (await call(box, "odd_name_x")).content == "odd"
    failed = await call(box, "fail")
    assert (failed.status, failed.error, failed.untrusted) == ("error", "tool", True)
    assert (await call(box, "add", a="x")).status == "error"
    bad = await box.call(ToolCall(id="c", name="add", arguments="[1]"), ToolContext(folder=Path(".")))
    assert (bad.status, bad.error) == ("error", "arguments")


@shared
async def test_attempts_share_a_server_without_mixing_their_answers(box: Toolbox) -> None:
    results = await asyncio.gather(*(call(box, "add", a=n, b=1000) for n in range(32)))
    assert [result.content for result in results] == [str(n + 1000) for n in range(32)]


@shared
async def test_a_server_sees_no_secrets(box: Toolbox) -> None:
    names = (await call(box, "environment")).content.split()
    assert "PATH" in names
    assert "OPENAI_API_KEY" not in names


@shared
async def test_a_server_that_dies_mid_call_is_a_typed_result_and_is_started_again(box: Toolbox) -> None:
    waiting = asyncio.create_task(call(box, "hang", seconds=20))
    pids = [int(word) for word in (await call(box, "pid")).content.split()]
    died = await call(box, "die")
    assert (died.status, died.error) == ("error", "no_server")
    assert (await waiting).error == "no_server"  # those that waited are told too, at once
    assert gone(pids)  # and so is what it had started
    assert (await call(box, "add", a=1)).content == "2"


@shared
async def test_a_call_that_hangs_ends_in_time_and_the_next_one_works(box: Toolbox) -> None:
    started = time.monotonic()
    result = await call(box, "hang", seconds=1)
    assert (result.status, result.error) == ("timeout", "timeout")
    assert time.monotonic() - started < 3
    assert (await call(box, "add", a=1)).content == "2"


@shared
async def test_cancelling_the_attempt_ends_its_call(box: Toolbox) -> None:
    task = asyncio.create_task(call(box, "hang"))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await call(box, "add", a=1)).content == "2"


async def test_the_end_takes_the_whole_group_along() -> None:
    box = Toolbox([f"mcp:{COMMAND}"])
    pids = [int(word) for word in (await call(box, "pid")).content.split()]
    assert all(alive(pid) for pid in pids)
    await box.close()
    assert gone(pids)


def test_a_killed_parent_leaves_no_server_behind(tmp_path: Path) -> None:
    code = (
        "import asyncio, pathlib, os\n"
        "from agentmem.domain.trajectory import ToolCall\n"
        "from agentmem.tools.tool import ToolContext\n"
        "from agentmem.tools.toolbox import Toolbox\n"
        "async def main():\n"
        f"    box = Toolbox(['mcp:{COMMAND}'])\n"
        "    call = ToolCall(id='c', name='pid')\n"
        "    at = ToolContext(folder=pathlib.Path('.'))\n"
        "    print((await box.call(call, at)).content, flush=True)\n"
        # It hangs, and so does not notice that nobody reads its pipes any more.
        "    waiting = asyncio.create_task(box.call(ToolCall(id='c', name='hang'), at))\n"
        "    await asyncio.sleep(0.5)\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2, done.stderr
    assert gone(pids)


async def test_a_server_that_says_nothing_or_nonsense_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_session, "START_SECONDS", 0.5)
    mute = mcp([sys.executable, "-c", "import time; time.sleep(60)"], name="mute")
    speak = "import time; print('garbage', flush=True); time.sleep(60)"
    garbled = mcp([sys.executable, "-c", speak], name="garbled")
    box = Toolbox([mute, garbled])
    try:
        assert [" ".join(told.split()[3:9]) for told in await box.prepare()] == [
            "'mute' gave no answer within 0.5",
            "'garbled' gave no answer within 0.5",
        ]
    finally:
        await box.close()


async def test_defect_25_one_dead_server_stops_nobody() -> None:
    """In Memento one server that fails to start ends the client."""
    box = Toolbox(
        [
            "calculator",
            mcp("no-such-program"),
            mcp([sys.executable, "-c", "import sys; sys.exit('a key is missing')"], name="keyless"),
            mcp("http://127.0.0.1:9/mcp"),
            f"mcp:{COMMAND}",
        ]
    )
    try:
        news = await box.prepare()
        assert len(news) == 3
        assert "no-such-program: No such file or directory" in news[0]
        assert "a key is missing ended with exit status 1" in news[1]
        assert (await call(box, "add", a=1)).content == "2"
        missing = await call(box, "weather")
        assert (missing.status, missing.error) == ("error", "no_server")
        assert "a key is missing" in missing.content
        started = time.monotonic()
        assert await box.prepare() == ()  # known, and not tried again at once
        assert time.monotonic() - started < 2
    finally:
        await box.close()


async def test_names_that_two_servers_have_are_told_apart() -> None:
    def add(a: int) -> int:
        """Mine."""
        return a

    box = Toolbox([add, mcp(COMMAND, name="left"), mcp(COMMAND, name="my right!")])
    try:
        await box.prepare()
        assert {"add", "left_add", "my_right_add", "left_pid", "my_right_pid"} <= set(box.names)
        assert len(set(box.names)) == len(box.names) == 15
        assert [spec.name for spec in box.specs] == list(box.names)
        assert (await call(box, "add", a=7)).content == "7"
        assert (await call(box, "left_add", a=7)).content == "8"
        assert (await call(box, "my_right_add", a=7)).source == "mcp:my right!"
    finally:
        await box.close()


async def test_a_server_behind_an_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(SERVER), "http", str(port)), stderr=subprocess.DEVNULL
    )
    box = Toolbox([f"mcp:http://127.0.0.1:{port}/mcp"])
    try:
        for _ in range(200):
            try:
                (await asyncio.open_connection("127.0.0.1", port))[1].close()
                break
            except OSError:
                await asyncio.sleep(0.1)
        assert (await call(box, "add", a=1, b=2)).content == "3"
        died = await call(box, "die")
        assert (died.status, died.untrusted) == ("error", True)
    finally:
        await box.close()
        if process.returncode is None:
            process.kill()
        await process.wait()


def test_the_same_toolbox_serves_one_loop_after_the_other() -> None:
    box = Toolbox([f"mcp:{COMMAND}"])

    async def once() -> str:
        result = await call(box, "add", a=1)
        await box.close()
        return result.content

    assert [asyncio.run(once()) for _ in range(2)] == ["2", "2"]


@pytest.mark.parametrize("command", ["", "   ", "python 'unclosed", []])
def test_a_command_that_is_none_is_refused(command: Any) -> None:
    with pytest.raises(InputError):
        mcp(command)


def test_names_hold_no_secrets() -> None:
    assert mcp("http://user:word@host.test/mcp?key=secret").name == "host.test"
    assert mcp("python -m weather --key secret", name="weather").name == "weather"
    assert mcp("npx -y some-server.js --token abc").name == "some-server"
