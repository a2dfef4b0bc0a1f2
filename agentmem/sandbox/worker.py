"""A persistent helper process that answers one request at a time, and is killed when it takes too long."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

from agentmem.errors import SandboxError
from agentmem.sandbox.thread import in_thread

START_SECONDS = 120.0
"""Seconds that loading the worker's code may take; importing SymPy on a busy machine is slow."""


class Worker:
    """Runs `handle(payload)` of a Python file in a process of its own, for code that may hang or crash.

    The process is started on first use and serves one request after another. It is killed, with its children,
    when a request takes too long or is cancelled, and started again with the next one. It ends with this process
    at the latest. It bounds time and memory; it is no security boundary.

    Args:
        code: the file; it may import what is installed, and defines `handle(payload) -> result`, JSON both ways.
        memory_mb: address space that the process may take.

    Example:
        >>> worker = Worker("/path/to/code.py")                                    # doctest: +SKIP
        >>> await worker.call({"x": 1}, seconds=5)                                 # doctest: +SKIP
    """

    def __init__(self, code: str | Path, *, memory_mb: int = 4096) -> None:
        self._code = str(code)
        self._memory_mb = memory_mb
        self._turn = threading.Lock()
        self._process: _Process | None = None
        self.waiting = 0
        """Requests under way and in line."""

    async def call(self, payload: Any, *, seconds: float) -> Any:
        """The result of `handle(payload)`.

        Args:
            payload: a JSON value.
            seconds: how long the answer may take, from when the process turns to it.

        Raises:
            TimeoutError: there was no answer in time; the process was killed.
            SandboxError: the process could not be started or ended by itself, or `handle` raised.
        """
        request = (json.dumps(payload) + "\n").encode()
        given_up = threading.Event()
        self.waiting += 1
        try:
            reply = await in_thread(lambda: self._serve(request, seconds, given_up), name="agentmem-worker")
        finally:
            self.waiting -= 1
            given_up.set()  # a thread cannot be cancelled: it watches this flag
        if "error" in reply:
            raise SandboxError(f"The worker {Path(self._code).name} failed: {reply['error']}")
        return reply["result"]

    def close(self) -> None:
        """End the process. A later call starts a new one."""
        with self._turn:
            self._end()

    @property
    def pid(self) -> int | None:
        """The process's id, while there is one."""
        return self._process.popen.pid if self._process else None

    def _serve(self, request: bytes, seconds: float, given_up: threading.Event) -> dict[str, Any]:
        with self._turn:
            if given_up.is_set():
                return {"result": None}
            try:
                if self._process is None or self._process.popen.poll() is not None:
                    self._end()
                    self._start(given_up)
                assert self._process is not None
                return self._process.exchange(request, time.monotonic() + seconds, given_up)
            except TimeoutError:
                self._end()
                raise TimeoutError(f"no answer within {seconds:g} s; the process was killed") from None
            except BaseException:
                self._end()
                raise

    def _start(self, given_up: threading.Event) -> None:
        self._process = _Process(self._code, self._memory_mb)
        self._finalizer = weakref.finalize(self, self._process.end)  # also at the interpreter's exit
        try:
            ready = self._process.exchange(b"", time.monotonic() + START_SECONDS, given_up)
        except TimeoutError:
            raise SandboxError(
                f"The worker {Path(self._code).name} was not ready within {START_SECONDS:g} s; "
                "is the machine overloaded?"
            ) from None
        if "error" in ready:
            raise SandboxError(f"The worker {Path(self._code).name} could not be loaded: {ready['error']}")

    def _end(self) -> None:
        if self._process is not None:
            self._finalizer()
            self._process = None


class _Process:
    """The child and its two pipes."""

    def __init__(self, code: str, memory_mb: int) -> None:
        theirs_in, self.requests = os.pipe()
        self.replies, theirs_out = os.pipe()
        main = Path(__file__).with_name("worker_main.py")
        env = {k: v for k in ("PATH", "HOME", "PYTHONPATH", "VIRTUAL_ENV") if (v := os.environ.get(k))}
        try:
            self.popen = subprocess.Popen(
                [sys.executable, "-P", str(main), code, str(memory_mb), str(theirs_in), str(theirs_out)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=env | {"LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"},
                pass_fds=(theirs_in, theirs_out),
                start_new_session=True,
            )
        except OSError as error:
            os.close(self.requests)
            os.close(self.replies)
            raise SandboxError(f"The worker {Path(code).name} could not be started: {error}.") from error
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(self.requests, False)
        self.code, self.buffer = code, b""

    def exchange(self, request: bytes, deadline: float, given_up: threading.Event) -> dict[str, Any]:
        """Send a request (none: wait until it is ready) and read one line."""
        left = memoryview(request)
        while b"\n" not in self.buffer:
            if given_up.is_set() or time.monotonic() >= deadline:
                raise TimeoutError
            pause = min(0.25, max(0.0, deadline - time.monotonic()))
            readable, writable, _ = select.select([self.replies], [self.requests] if left else [], [], pause)
            try:
                if writable:
                    left = left[os.write(self.requests, left[:65536]) :]
                if readable:
                    piece = os.read(self.replies, 65536)
                    if not piece:
                        raise BrokenPipeError
                    self.buffer += piece
            except BrokenPipeError:
                raise SandboxError(f"The worker {Path(self.code).name} {self._fate()}.") from None
        line, _, self.buffer = self.buffer.partition(b"\n")
        reply = json.loads(line)
        assert isinstance(reply, dict)
        return reply

    def end(self) -> None:
        """Kill the process and its children, and close the pipes."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()
        os.close(self.requests)
        os.close(self.replies)

    def _fate(self) -> str:
        try:
            status = self.popen.wait(1.0)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        if status < 0:
            return (
                f"was killed by signal {-status} ({signal.Signals(-status).name}); perhaps it took too much memory"
            )
        return f"ended by itself with exit status {status}"
