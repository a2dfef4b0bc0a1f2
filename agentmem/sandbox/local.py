"""No sandbox: a killable process of this user, for who asks for it by name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from agentmem.sandbox.process import ProcessResult, run_script
from agentmem.sandbox.sandbox import Limits


class UnsafeLocal:
    """Runs programs as this user, with this user's files and network. Only time, memory and output are limited."""

    name = "unsafe-local"
    about = "no protection: a process of this user, with its files and its network"

    @property
    def python(self) -> str:
        """This interpreter."""
        return sys.executable

    def trouble(self) -> str | None:
        """None: a process can always be started."""
        return None

    async def run(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        stdin: str = "",
        limits: Limits = Limits(),  # noqa: B008  # frozen
        shown: Sequence[Path] = (),
    ) -> ProcessResult:
        """See `Sandbox.run` and `run_script`, which says what is not covered."""
        return await run_script(
            list(argv),
            cwd=folder,
            stdin=stdin,
            seconds=limits.seconds,
            memory_mb=limits.memory_mb,
            output_bytes=limits.output_bytes,
        )
