"""A program run in a killable process with limits on time, memory, files and output."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentmem.domain.value import Value
from agentmem.errors import SandboxError

FILE_MB = 256
"""The size that one written file may have."""
OPEN_FILES = 256
"""Files that a program may have open at once."""
FLOOD_FACTOR = 64
"""A program is stopped when it writes more than this many times what is kept of its output, and 16 MB."""
GRACE_SECONDS = 1.0
"""Seconds for which its output is read after a program's end, where an escaped process holds the pipe open."""


class ProcessResult(Value):
    """What became of a program."""

    exit_status: int | None
    """Its exit status; None where a signal ended it."""
    signal: str | None = None
    """The signal that ended it, such as `SIGKILL`; None where it ended by itself."""
    timed_out: bool = False
    """Whether it was killed because its time was over."""
    flooded: bool = False
    """Whether it was killed because it wrote without end."""
    out_of_memory: bool = False
    """Whether it was killed because it took more memory than it may."""
    too_many_processes: bool = False
    """Whether it was killed because it started more processes than it may."""
    truncated: bool = False
    """Whether a middle part of its output was dropped."""
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0
    """Wall-clock seconds."""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit status 0."""
        return self.exit_status == 0


async def run_script(
    script: str | Sequence[str],
    *,
    cwd: str | Path,
    stdin: str = "",
    seconds: float = 30.0,
    memory_mb: int = 2048,
    output_bytes: int = 65536,
    env: Mapping[str, str] | None = None,
) -> ProcessResult:
    r"""Run a program, or Python code, and wait for its end.

    This is a guard of resources, not a security boundary. Covered: wall-clock and CPU time, address space per
    process, size of each written file, open files, kept output, core dumps; the whole process group is killed at
    the end, at the time limit and on cancellation. The environment holds nothing of the parent's but PATH. Not
    covered: the program sees the network and every file that its user may read or write, can start many
    processes, and can leave the group by starting a session of its own.

    Args:
        script: Python code (a str), or a program with its arguments.
        cwd: the working folder; it must exist. HOME and TMPDIR point to it.
        stdin: what the program can read.
        seconds: wall-clock seconds that it may take.
        memory_mb: address space of each process.
        output_bytes: how much of standard output and of standard error is kept: the first and the last half.
        env: more environment variables.

    Returns:
        Its fate as data: a program that fails, hangs or is killed is no error here.

    Raises:
        SandboxError: the process could not be started (no such folder, no processes left).

    Example:
        >>> import asyncio
        >>> result = asyncio.run(run_script("print(6 * 7)", cwd="."))
        >>> result.stdout, result.exit_status
        ('42\n', 0)
    """
    argv = [sys.executable, "-I", "-c", script] if isinstance(script, str) else list(script)
    limits = (memory_mb, cpu_seconds(seconds), FILE_MB, OPEN_FILES)
    folder = existing(cwd)
    # Without site-packages the launcher costs about 10 ms.
    launcher = (sys.executable, "-I", "-S", str(Path(__file__).with_name("launcher.py")))
    started = Started(
        argv=(*launcher, *map(str, limits), *argv), cwd=folder, env=_environment(folder) | dict(env or {})
    )
    return await run_started(started, stdin=stdin, seconds=seconds, output_bytes=output_bytes)


def existing(folder: str | Path) -> str:
    """The absolute path of a working folder.

    Raises:
        SandboxError: there is none.
    """
    path = os.path.abspath(folder)
    if not os.path.isdir(path):
        raise SandboxError(f"The working folder {str(folder)!r} does not exist; create it first.")
    return path


def cpu_seconds(seconds: float) -> int:
    """Seconds of CPU time that a process may take which may run for so many seconds on all cores."""
    return math.ceil(seconds * (os.cpu_count() or 1)) + 1


def kill_group(pid: int) -> None:
    """Kill a process and all that are in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


@dataclass(frozen=True)
class Started:
    """How a process is started, and how it is killed."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    """All of its environment."""
    pass_fds: Sequence[int] = ()
    """Descriptors that it inherits."""
    kill: Callable[[int], None] = kill_group
    """Kills it and its children, given its id; also called after its end."""


async def run_started(
    started: Started, *, stdin: str = "", seconds: float = 30.0, output_bytes: int = 65536
) -> ProcessResult:
    """Start a process, in a session of its own, and see to its end: see `run_script`, whose limits are not set here.

    Raises:
        SandboxError: it could not be started.
    """
    watch = _Watch(output_bytes, stdin.encode("utf-8", "replace"), started.kill)
    try:
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: watch,
            *started.argv,
            cwd=started.cwd,
            env=started.env,
            pass_fds=tuple(started.pass_fds),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # ValueError: a null character in an argument
        raise SandboxError(f"The process could not be started: {error}.") from error
    try:
        return await watch.until_the_end(seconds)
    finally:
        if not watch.ended.is_set():  # cancelled: leave neither a process nor a zombie
            watch.kill()
            await asyncio.shield(watch.ended.wait())
        transport.close()


class _Watch(asyncio.SubprocessProtocol):
    """A running program: feeds it, reads it, and sees to its end.

    asyncio's own `Process.wait` waits for the pipes too, which a process that escaped may hold open for ever.
    """

    def __init__(self, output_bytes: int, stdin: bytes, kill: Callable[[int], None]) -> None:
        self.kept = {1: _Kept(output_bytes), 2: _Kept(output_bytes)}
        self.flood = max(FLOOD_FACTOR * output_bytes, 16 << 20)
        self.flooded = False
        self.stdin, self.end = stdin, kill
        self.ended, self.read = asyncio.Event(), asyncio.Event()
        self.open_pipes = {1, 2}
        self.started = time.monotonic()

    async def until_the_end(self, seconds: float) -> ProcessResult:
        timed_out = False
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            timed_out = True
        self.kill()  # also the children of a program that has ended
        await self.ended.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self.read.wait()
        status = self.transport.get_returncode()
        assert status is not None
        out, err = self.kept[1], self.kept[2]
        return ProcessResult(
            exit_status=status if status >= 0 else None,
            signal=signal.Signals(-status).name if status < 0 else None,
            timed_out=timed_out or status == -signal.SIGXCPU,
            flooded=self.flooded,
            truncated=out.dropped > 0 or err.dropped > 0,
            stdout=out.text(),
            stderr=err.text(),
            seconds=time.monotonic() - self.started,
        )

    def kill(self) -> None:
        self.end(self.transport.get_pid())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self.transport = transport
        pipe = transport.get_pipe_transport(0)
        assert isinstance(pipe, asyncio.WriteTransport)
        pipe.write(self.stdin)
        pipe.write_eof()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.kept[fd].add(data)
        if self.kept[fd].total > self.flood and not self.flooded:
            self.flooded = True
            self.kill()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self.open_pipes.discard(fd)
        if not self.open_pipes:
            self.read.set()

    def process_exited(self) -> None:
        self.ended.set()


class _Kept:
    """The first and the last half of a stream, in bounded memory."""

    def __init__(self, limit: int) -> None:
        self.half = max(1, limit // 2)
        self.head, self.tail, self.total = bytearray(), bytearray(), 0

    @property
    def dropped(self) -> int:
        return self.total - len(self.head) - min(len(self.tail), self.half)

    def add(self, piece: bytes) -> None:
        self.total += len(piece)
        room = self.half - len(self.head)
        self.head += piece[:room]
        self.tail += piece[max(0, room) :]
        if len(self.tail) > 4 * self.half + 65536:
            del self.tail[: -self.half]

    def text(self) -> str:
        tail = self.tail[-self.half :]
        middle = f"\n[... {self.dropped} bytes left out ...]\n".encode() if self.dropped else b""
        return bytes(self.head + middle + tail).decode("utf-8", "replace")


def _environment(folder: str) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": folder,
        "TMPDIR": folder,
        "LANG": "C.UTF-8",
        "PYTHONIOENCODING": "utf-8",
    }
