"""Runs an MCP server and cleans up behind it: standard library only, started by its path.

Arguments: the server's command. Its input and output are passed on as they are. It, and all that it started, ends when
it does, and when the process that wanted it is gone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import IO

KEPT_BYTES = 65536
"""How much of its standard error is passed on; a server may log for days."""


def main(command: list[str]) -> None:
    """Run the command to its end."""
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    try:
        child = subprocess.Popen(command, stderr=subprocess.PIPE)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror or error}")
    assert child.stderr is not None
    reader = threading.Thread(target=_pass_on, args=(child.stderr,), daemon=True)
    reader.start()
    status = child.wait()
    reader.join(0.5)
    sys.stderr.write(f"\nended with exit status {status}\n")
    sys.stderr.flush()
    os.killpg(0, signal.SIGKILL)  # what it left behind, and this process


def _pass_on(errors: IO[bytes]) -> None:
    left = KEPT_BYTES
    while piece := os.read(errors.fileno(), 4096):
        os.write(2, piece[:left])
        left = max(0, left - len(piece))


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
