"""Chroma as the index of a bank, beside it or at a server, kept by a process of its own."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from agentmem.memory.case_store import CaseStore
from agentmem.memory.index_home import Busy, Stopping, Unusable
from agentmem.memory.vector_index import VectorIndex

GRACE_SECONDS = 5.0
"""For a builder to come to the end of its batch."""


class ChromaHome:
    """The Chroma index of one bank.

    Args:
        bank: the bank's folder.
        url: the address of a Chroma server; empty for a folder in the bank's.
    """

    name = "chroma"

    def __init__(self, bank: Path, url: str = "") -> None:
        self._bank = bank
        self._url = url

    def open(self, store: CaseStore) -> VectorIndex | None:
        """What was built last; None where nothing was."""
        from agentmem.memory.chroma_build import home_of

        return home_of(self._bank, self._url).open(store)

    def build(self, stopping: Stopping, *, anew: bool = False) -> None:
        """Have a process build, and wait for it."""
        from agentmem.memory.chroma_build import BUSY, DONE, STOPPED, start_builder

        builder = start_builder(self._bank, self._url, anew=anew)
        assert builder.stderr is not None
        try:
            while builder.poll() is None:
                stopping()
                time.sleep(0.05)
            match builder.returncode:
                case code if code == DONE:
                    return
                case code if code in (BUSY, STOPPED):
                    raise Busy("another process builds it")
                case code:
                    raise Unusable(f"its builder ended with {code}: {builder.stderr.read().strip()[-300:]}")
        finally:
            _end(builder)

    def clear(self) -> None:
        """Delete what lies beside the bank; what a server has is replaced when it is built anew."""
        if not self._url:
            shutil.rmtree(self._bank / "chroma", ignore_errors=True)

    def close(self) -> None:
        """Nothing is held in memory but what `open` gave."""


def _end(builder: subprocess.Popen[str]) -> None:
    """Close its input, at which it stops; then its other pipes, once it has."""
    assert builder.stdin is not None
    assert builder.stderr is not None
    builder.stdin.close()
    try:
        builder.wait(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:  # a batch of a large index may take longer
        builder.kill()
        builder.wait()
    builder.stderr.close()
