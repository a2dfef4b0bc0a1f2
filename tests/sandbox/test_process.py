"""Programs in a killable process: limits hold, nothing is left behind, and whatever happens is data."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from agentmem.errors import SandboxError
from agentmem.sandbox.process import _Kept, run_script


async def test_output_status_and_input(tmp_path: Path) -> None:
    code = "import sys; print(sys.stdin.read().upper()); print('e', file=sys.stderr); sys.exit(3)"
    result = await run_script(code, cwd=tmp_path, stdin="héllo")
    assert (result.stdout, result.stderr, result.exit_status, result.signal) == ("HÉLLO\n", "e\n", 3, None)
    assert (result.ok, result.timed_out, result.truncated) == (False, False, False)
    assert (await run_script(["echo", "a b"], cwd=tmp_path)).stdout == "a b\n"


async def test_the_environment_is_nearly_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    code = (
        "import os, tempfile as t; print(sorted(os.environ), os.getcwd(), t.gettempdir(), os.path.expanduser('~'))"
    )
    result = await run_script(code, cwd=tmp_path, env={"MORE": "1"})
    names = "['HOME', 'LANG', 'MORE', 'PATH', 'PYTHONIOENCODING', 'TMPDIR']"
    assert result.stdout == f"{names} {tmp_path} {tmp_path} {tmp_path}\n"


async def test_it_has_a_session_of_its_own_and_the_limits(tmp_path: Path) -> None:
    code = """
        import os, resource as r
        kinds = (r.RLIMIT_AS, r.RLIMIT_FSIZE, r.RLIMIT_CORE)
        print(os.getsid(0) == os.getpid(), [r.getrlimit(kind)[0] for kind in kinds])
    """
    result = await run_script(textwrap.dedent(code), cwd=tmp_path, memory_mb=512)
    assert result.stdout == f"True [{512 << 20}, {256 << 20}, 0]\n"


async def test_time_memory_and_file_size_are_limited(tmp_path: Path) -> None:
    started = time.monotonic()
    result = await run_script("print('before', flush=True)\nwhile True: pass", cwd=tmp_path, seconds=0.5)
    assert time.monotonic() - started < 3
    assert (result.timed_out, result.signal, result.stdout) == (True, "SIGKILL", "before\n")
    hungry = await run_script("x = bytearray(1 << 30)", cwd=tmp_path, memory_mb=256)
    assert "MemoryError" in hungry.stderr
    assert hungry.exit_status == 1
    fat = await run_script("open('f', 'wb').truncate(300 << 20)", cwd=tmp_path)
    assert "File too large" in fat.stderr


async def test_cpu_time_is_limited_and_named(tmp_path: Path) -> None:
    argv = ["0", "2", "0", "0", sys.executable, "-c", "while True: pass"]
    launcher = Path(run_script.__code__.co_filename).with_name("launcher.py")
    ended = await asyncio.to_thread(subprocess.run, [sys.executable, str(launcher), *argv], timeout=20)
    assert ended.returncode == -signal.SIGXCPU


async def test_a_signal_is_named(tmp_path: Path) -> None:
    result = await run_script("import os; os.abort()", cwd=tmp_path)
    assert (result.exit_status, result.signal, result.timed_out) == (None, "SIGABRT", False)


async def test_endless_output_costs_bounded_memory_and_is_stopped(tmp_path: Path) -> None:
    before = psutil.Process().memory_info().rss
    result = await run_script("while True: print('x' * 999)", cwd=tmp_path, output_bytes=10_000, seconds=20)
    assert (result.flooded, result.truncated, result.timed_out) == (True, True, False)
    assert len(result.stdout) < 10_200
    assert psutil.Process().memory_info().rss - before < 30 << 20


def test_a_stream_is_kept_in_bounded_memory() -> None:
    kept = _Kept(1000)
    for n in range(500):
        kept.add(bytes([65 + n % 26]) * 65536)
        assert len(kept.head) + len(kept.tail) < 300_000
    assert kept.dropped == 500 * 65536 - 1000
    assert len(kept.text()) < 1100


async def test_long_output_keeps_head_and_tail(tmp_path: Path) -> None:
    result = await run_script(
        "print('first'); print('x' * 100_000); print('last')", cwd=tmp_path, output_bytes=1000
    )
    assert result.stdout.startswith("first\nxxx")
    assert result.stdout.endswith("xxx\nlast\n")
    assert f"[... {100_000 + 12 - 1000} bytes left out ...]" in result.stdout
    assert (result.truncated, result.flooded, result.ok) == (True, False, True)
    assert not (await run_script("print('x' * 999, end='')", cwd=tmp_path, output_bytes=1000)).truncated


async def test_children_die_with_the_program_and_hold_nobody_up(tmp_path: Path) -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid)"
    result = await run_script(code, cwd=tmp_path, seconds=20)
    assert (result.ok, result.timed_out) == (True, False)
    assert result.seconds < 5
    assert _is_gone(int(result.stdout))


async def test_a_child_that_escaped_its_group_holds_nobody_up(tmp_path: Path) -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '60'], start_new_session=True).pid)"
    result = await run_script(code, cwd=tmp_path, seconds=20)
    os.kill(int(result.stdout), signal.SIGKILL)
    assert result.ok
    assert result.seconds < 5


async def test_cancellation_kills_and_leaves_no_zombie(tmp_path: Path) -> None:
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); os.rename('pid', 'done'); time.sleep(60)"
    task = asyncio.create_task(run_script(code, cwd=tmp_path, seconds=60))
    await asyncio.to_thread(_wait_for, tmp_path / "done")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(task), 5)
    assert _is_gone(int((tmp_path / "done").read_text()))
    assert not [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_the_program_dies_with_a_killed_parent(tmp_path: Path) -> None:
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); os.rename('pid', 'done'); time.sleep(60)"
    parent = (
        f"import asyncio; from agentmem.sandbox.process import run_script as r; asyncio.run(r({code!r}, cwd='.'))"
    )
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", parent], cwd=tmp_path, env={**os.environ, "PYTHONPATH": root}
    )
    _wait_for(tmp_path / "done")
    process.kill()
    process.wait()
    assert _is_gone(int((tmp_path / "done").read_text()))


async def test_what_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="does not exist; create it first"):
        await run_script("1", cwd=tmp_path / "nowhere")
    missing = await run_script(["no-such-program"], cwd=tmp_path)
    assert (missing.exit_status, missing.stderr) == (127, "no-such-program: No such file or directory\n")


def test_it_works_in_a_loop_away_from_the_main_thread(tmp_path: Path) -> None:
    results = []

    async def threaded() -> None:
        results.append(await asyncio.to_thread(lambda: asyncio.run(run_script("print(1)", cwd=tmp_path))))

    asyncio.run(threaded())
    assert results[0].stdout == "1\n"


def _wait_for(path: Path) -> None:
    started = time.monotonic()
    while not path.exists():
        assert time.monotonic() - started < 30
        time.sleep(0.02)


def _is_gone(pid: int) -> bool:
    for _ in range(100):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.03)
    return False
