"""The persistent helper process: one request at a time, killed when it hangs, started again, never left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from agentmem.errors import SandboxError
from agentmem.sandbox.thread import in_thread
from agentmem.sandbox.worker import Worker

CODE = """
import os, sys, time
count = 0
def handle(payload):
    global count
    count += 1
    print("stray")
    os.write(1, b'{"result": "stray"}\\n')
    match payload:
        case ["sleep", seconds]:
            time.sleep(seconds)
        case "hang":
            while True: pass
        case "crash":
            os._exit(7)
        case "abort":
            os.abort()
        case "raise":
            raise ValueError("bad")
        case "eat":
            bytearray(8 << 30)
        case "child":
            import subprocess
            return subprocess.Popen(["sleep", "60"]).pid
    return [payload, count, os.getpid()]
"""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    path = tmp_path / "code.py"
    path.write_text(CODE)
    worker = Worker(path, memory_mb=1024)
    yield worker
    worker.close()


async def test_it_starts_on_use_keeps_its_state_and_ignores_stray_prints(worker: Worker) -> None:
    assert worker.pid is None
    first, second = [await worker.call({"n": n}, seconds=5) for n in (1, 2)]
    assert first == [{"n": 1}, 1, worker.pid]
    assert second == [{"n": 2}, 2, worker.pid]


async def test_requests_come_one_after_another_and_do_not_mix(worker: Worker) -> None:
    replies = await asyncio.gather(*(worker.call(n, seconds=5) for n in range(30)))
    assert [reply[0] for reply in replies] == list(range(30))
    assert sorted(reply[1] for reply in replies) == list(range(1, 31))


async def test_waiting_in_line_costs_no_time_of_its_own(worker: Worker) -> None:
    await worker.call(0, seconds=5)
    replies = await asyncio.gather(*(worker.call(["sleep", 0.2], seconds=0.9) for _ in range(6)))
    assert len(replies) == 6


async def test_a_hanging_request_is_killed_and_the_next_one_served(worker: Worker) -> None:
    pid = (await worker.call(1, seconds=5))[2]
    started = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.3 s"):
        await worker.call("hang", seconds=0.3)
    assert time.monotonic() - started < 2
    assert not psutil.pid_exists(pid)
    again = await worker.call(1, seconds=5)
    assert again[1] == 1
    assert again[2] != pid


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ("crash", "ended by itself with exit status 7"),
        ("abort", "was killed by signal 6 \\(SIGABRT\\)"),
        ("raise", "failed: ValueError: bad"),
        ("eat", "failed: MemoryError"),
    ],
)
async def test_a_failing_request_is_a_named_error_and_the_next_one_is_served(
    worker: Worker, payload: str, message: str
) -> None:
    with pytest.raises(SandboxError, match=rf"The worker code.py .*{message}"):
        await worker.call(payload, seconds=5)
    assert (await worker.call(1, seconds=5))[0] == 1


async def test_cancelling_kills_the_request_but_not_those_in_line(worker: Worker) -> None:
    await worker.call(0, seconds=5)
    hanging = asyncio.create_task(worker.call("hang", seconds=60))
    await asyncio.sleep(0.1)
    waiting = [asyncio.create_task(worker.call(n, seconds=5)) for n in range(3)]
    given_up = asyncio.create_task(worker.call("given up", seconds=5))
    await asyncio.sleep(0.1)
    hanging.cancel()
    given_up.cancel()
    assert [reply[0] for reply in await asyncio.wait_for(asyncio.gather(*waiting), 5)] == [0, 1, 2]
    assert worker.waiting == 0
    assert (await worker.call("count", seconds=5))[1] == 4  # nobody computed what was given up


async def test_large_requests_and_replies(worker: Worker) -> None:
    payload = "é" * 1_000_000
    assert (await worker.call(payload, seconds=10))[0] == payload


async def test_children_die_with_it(worker: Worker) -> None:
    child = await worker.call("child", seconds=5)
    worker.close()
    for _ in range(100):
        if not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the child lives")


def test_it_serves_one_event_loop_after_another(worker: Worker) -> None:
    pids = {asyncio.run(worker.call(n, seconds=5))[2] for n in range(3)}
    assert len(pids) == 1


def test_it_ends_when_forgotten_and_leaves_no_open_pipe(tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    path.write_text(CODE)
    before = len(os.listdir("/proc/self/fd"))
    forgotten = Worker(path)
    pid = asyncio.run(forgotten.call(1, seconds=5))[2]
    del forgotten
    for _ in range(100):  # the thread of the call may be about to end, and knows the worker until then
        gc.collect()
        if not psutil.pid_exists(pid):
            break
        time.sleep(0.02)
    assert not psutil.pid_exists(pid)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_it_dies_with_a_killed_parent_even_while_it_computes(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    parent = (
        "import asyncio; from agentmem.sandbox.worker import Worker\n"
        "async def main():\n"
        "    worker = Worker('code.py'); await worker.call(1, seconds=9)\n"
        "    print(worker.pid, flush=True); await worker.call('hang', seconds=60)\n"
        "asyncio.run(main())\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(
        [sys.executable, "-c", parent], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    pid = int(process.stdout.readline())
    time.sleep(0.2)
    process.kill()
    process.wait()
    process.stdout.close()
    started = time.monotonic()
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() - started < 8
        time.sleep(0.1)


async def test_code_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module")
    with pytest.raises(SandboxError, match=r"The worker broken\.py could not be loaded: ModuleNotFoundError"):
        await Worker(tmp_path / "broken.py").call(1, seconds=5)


async def test_a_thread_that_nobody_waits_for_harms_nobody() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await in_thread(lambda: time.sleep(0.2))
    await asyncio.sleep(0.3)  # its late result is dropped
    assert await in_thread(lambda: 5) == 5
