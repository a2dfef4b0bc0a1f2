"""Sets limits on itself and becomes the program that it is told to run: standard library only.

Arguments: address space in MB, CPU seconds, file size in MB, open files (each 0 for no limit), then the program.
The limits cannot be set between fork and exec in the parent, which has threads.
"""

from __future__ import annotations

import os
import resource
import signal
import sys


def main() -> None:
    """Limit, then exec."""
    memory_mb, cpu_seconds, file_mb, open_files = (int(value) for value in sys.argv[1:5])
    argv = sys.argv[5:]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, limit in (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, file_mb << 20),
        (resource.RLIMIT_NOFILE, open_files),
        (resource.RLIMIT_AS, memory_mb << 20),
    ):
        if limit:
            hard = resource.getrlimit(kind)[1]
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            # One second between the limits of CPU time lets the kernel say why (SIGXCPU) before it kills.
            soft = limit - 1 if kind == resource.RLIMIT_CPU and limit > 1 else limit
            resource.setrlimit(kind, (soft, limit))
    if sys.platform == "linux":
        _end_with_parent()
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        os._exit(127)


def _end_with_parent() -> None:
    """Ask the kernel to kill the program when the process that started it dies."""
    import ctypes

    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


if __name__ == "__main__":
    main()
