"""Where the code of a model runs: the protocol, its limits, and which sandbox works on this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from agentmem.domain.value import Value
from agentmem.errors import SandboxUnavailable
from agentmem.sandbox.process import FILE_MB, OPEN_FILES, ProcessResult
from agentmem.sandbox.thread import in_thread
from agentmem.settings import SandboxName


class Limits(Value):
    """What a program may take."""

    seconds: float = 30.0
    """Wall-clock seconds; beyond them it is killed with all that it started."""
    memory_mb: int = 2048
    """Address space of each process, and memory of all together."""
    processes: int = 128
    """Processes and threads at once."""
    file_mb: int = FILE_MB
    """Size of each written file."""
    open_files: int = OPEN_FILES
    """Open files of each process."""
    output_bytes: int = 65536
    """How much of standard output and of standard error is kept: the first and the last half."""


class Sandbox(Protocol):
    """Runs a program that is not trusted."""

    @property
    def name(self) -> str:
        """What settings call it."""
        ...

    @property
    def about(self) -> str:
        """What it protects from, in one line for a person."""
        ...

    @property
    def python(self) -> str:
        """The interpreter, as it is called inside."""
        ...

    def trouble(self) -> str | None:
        """Try it out: None if it works here, else a sentence that says why not, and the repair. Takes a moment."""
        ...

    async def run(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        stdin: str = "",
        limits: Limits = Limits(),  # noqa: B008  # frozen
        shown: Sequence[Path] = (),
    ) -> ProcessResult:
        """Run a program and wait for its end, or for the time limit; nothing that it started is left then.

        Args:
            argv: the program with its arguments.
            folder: the working folder, which must exist; the one place of the host that it may write to.
            stdin: what it can read.
            limits: what it may take.
            shown: files of the host that it may read, at the same paths.

        Returns:
            Its fate as data: a program that fails, hangs or is killed is no error here.

        Raises:
            SandboxError: the sandbox could not be started.
        """
        ...


async def find_sandbox(name: SandboxName = "auto") -> Sandbox:
    """The sandbox of this name, tried out at its first use; `auto` is the first of bubblewrap and docker that works.

    Raises:
        SandboxUnavailable: it does not work here; the message says why, and what repairs it.
    """
    return _found[name] if name in _found else await in_thread(lambda: _find(name), name="agentmem-sandbox")


_found: dict[str, Sandbox] = {}
_turn = threading.Lock()


def _find(name: SandboxName) -> Sandbox:
    with _turn:  # many attempts begin at once, and one of them tries it out for all
        if name in _found:
            return _found[name]
        troubles = []
        for make in _candidates(name):
            sandbox = make()
            trouble = sandbox.trouble()
            if trouble is None:
                _found[name] = sandbox
                return sandbox
            troubles.append(f"{sandbox.name}: {trouble}")
    raise SandboxUnavailable(
        f"The tools python and shell run in a sandbox, and none works here (sandbox = {name!r}). "
        f"{' '.join(troubles)} Or let them run without protection, with your files and your network: "
        "--unsafe-local, in Python sandbox='unsafe-local'."
    )


def _candidates(name: SandboxName) -> Sequence[Callable[[], Sandbox]]:
    from agentmem.sandbox.bubblewrap import Bubblewrap
    from agentmem.sandbox.docker import Docker
    from agentmem.sandbox.local import UnsafeLocal

    match name:
        case "auto":
            return (Bubblewrap, Docker)
        case "bubblewrap":
            return (Bubblewrap,)
        case "docker":
            return (Docker,)
        case "unsafe-local":
            return (UnsafeLocal,)
