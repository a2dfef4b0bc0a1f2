"""The first process inside bubblewrap: starts the program under limits, watches over all that comes of it, and says
how it ended. Standard library only, started by its path; it is process 1 of its namespace, so that when it ends,
the kernel kills every other process there, however it was started.

Arguments: the descriptor to report on, by how much the program's priority is below this one's, address space in MB,
CPU seconds, file size in MB, open files, processes; then the program. Reports a line `ready`, then `exit N` or
`signal N`, or why it killed: `memory` or `processes`.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import sys

LOOK_SECONDS = 0.02
"""Between two looks at memory and processes; an allocation fills some 50 MB in that time."""
PR_SET_DUMPABLE = 4
SIGPIPE, SIG_DFL = 13, 0
COUNTS_BY_NAMESPACE = (5, 14)
"""Since this kernel the limit of processes counts those of the namespace; before, all of the user on the machine."""


def main() -> int:
    """Start the program, and watch until it ends or takes too much."""
    report = int(sys.argv[1])
    lower, memory_mb, cpu, file_mb, open_files, processes = (int(value) for value in sys.argv[2:8])
    os.set_inheritable(report, False)
    _be_the_first_to_go()
    libc = ctypes.CDLL(None)
    # The program runs as the same user, and could otherwise trace this process and stop its watching.
    libc.prctl(PR_SET_DUMPABLE, 0)
    os.write(report, b"ready\n")
    child = os.fork()
    if child == 0:
        libc.signal(SIGPIPE, SIG_DFL)  # Python ignores it, and what is executed would too
        os.nice(lower)
        _become(sys.argv[8:], memory_mb, cpu, file_mb, open_files, processes)
    said = _watch(child, memory_mb << 20, processes)
    os.write(report, said.encode())
    return 0


def _watch(child: int, memory: int, processes: int) -> str:
    ends = os.pidfd_open(child)
    while True:
        select.select([ends], [], [], LOOK_SECONDS)
        # Orphans are children of process 1, and are reaped here too; but so many at most between two looks, because
        # what forks without end may die as fast as it is reaped.
        for _ in range(processes):
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                return f"exit {code}" if code >= 0 else f"signal {-code}"
            if pid == 0:
                break
        too_much = _too_much(memory, processes)
        if too_much:
            return too_much


def _too_much(memory: int, processes: int) -> str:
    tasks = pages = 0
    pids = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
    if len(pids) > processes:
        return "processes"  # at once: there may be thousands in the time that looking at each takes
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:  # it has just ended
            continue
        tasks += int(fields[17])
        pages += int(fields[21])
    if tasks > processes:
        return "processes"
    if pages * os.sysconf("SC_PAGE_SIZE") > memory and sum(map(_proportional, pids)) > memory:
        return "memory"
    return ""


def _proportional(pid: str) -> int:
    """Bytes of one process, with what it shares divided among those who share it."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            return sum(int(line.split()[1]) << 10 for line in file if line.startswith(b"Pss:"))
    except OSError:
        pass
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _be_the_first_to_go() -> None:
    """When the machine runs out of memory, the kernel shall end this and not the trainer."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass


def _become(argv: list[str], memory_mb: int, cpu: int, file_mb: int, open_files: int, processes: int) -> None:
    limits = [
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_CPU, max(1, cpu - 1), cpu),  # between them the kernel says why, with SIGXCPU
        (resource.RLIMIT_FSIZE, file_mb << 20, file_mb << 20),
        (resource.RLIMIT_NOFILE, open_files, open_files),
        (resource.RLIMIT_AS, memory_mb << 20, memory_mb << 20),
    ]
    kernel = os.uname().release.partition("-")[0].split(".")[:2]
    if tuple(int("".join(filter(str.isdigit, part)) or 0) for part in kernel) >= COUNTS_BY_NAMESPACE:
        limits.append((resource.RLIMIT_NPROC, processes, processes))
    for kind, soft, hard in limits:
        most = resource.getrlimit(kind)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(kind, (soft, hard))
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    os._exit(127)


if __name__ == "__main__":
    os._exit(main())
