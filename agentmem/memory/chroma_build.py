"""Builds a bank's Chroma index, as a process: `python -m agentmem.memory.chroma_build BANK [URL [anew]]`.

Chroma holds Python's global lock while it builds, and a reader in the same process would stand still for seconds. One
builder works on a bank at a time (`index.lock`); it stops when whoever started it closes its input, or ends.
"""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentmem.memory.case_store import CaseStore
from agentmem.memory.chroma_folder import ChromaFolder
from agentmem.memory.chroma_server import ChromaServer
from agentmem.memory.index_home import Stopped

DONE, FAILED, STOPPED, BUSY = 0, 1, 3, 4
"""How a builder ended: the exit status of the process."""


def home_of(bank: Path, url: str = "") -> ChromaFolder | ChromaServer:
    """Where the index of a bank is: beside it, or at the server with this address."""
    return ChromaServer(bank, url) if url else ChromaFolder(bank)


def start_builder(bank: Path, url: str = "", *, anew: bool = False) -> subprocess.Popen[str]:
    """Start a builder; it ends when its input is closed."""
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "agentmem.memory.chroma_build", str(bank.resolve()), url, "anew" * anew],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def builder_lock(bank: Path) -> Iterator[bool]:
    """Keep other builders out; False where one is at work."""
    handle = os.open(bank / "index.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


def main(bank: str, url: str = "", anew: str = "") -> int:
    """Build; returns how it ended, and says on standard error why it failed."""
    os.nice(5)  # whoever reads meanwhile goes first
    try:
        with builder_lock(Path(bank)) as mine:
            if not mine:
                return BUSY
            store = CaseStore(Path(bank))
            try:
                home_of(Path(bank), url).build(store, anew=bool(anew), stopping=_stop_if_alone)
            finally:
                store.close()
    except Stopped:
        return STOPPED
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return FAILED
    return DONE


def _stop_if_alone() -> None:
    ready, _, _ = select.select([sys.stdin], [], [], 0)
    if ready and not sys.stdin.read(1):
        raise Stopped


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
