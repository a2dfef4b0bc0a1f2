"""The first choice of a sandbox: bubblewrap, with namespaces of its own and nothing writable but the working folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentmem.errors import SandboxError
from agentmem.sandbox.process import ProcessResult, Started, cpu_seconds, existing, kill_group, run_started
from agentmem.sandbox.sandbox import Limits

INSIDE = "/task"
"""The working folder, as it is called inside; also the home."""
TMP_MB, SHM_MB = 512, 64
"""Sizes of the private /tmp and /dev/shm, which lie in memory."""
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
"""Folders that are shown, read-only, where the machine has them."""
ETC = (
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "localtime",
    "mime.types",
    "ssl/certs",
    "fonts",
)
"""What is shown of /etc; passwd and group are our own, and nothing else of it is there."""
HERE = Path(__file__).parent
WARDEN, PASSWD, GROUP = HERE / "warden.py", HERE / "etc" / "passwd", HERE / "etc" / "group"
PROBE_SECONDS = 30.0
LOWER = 19
"""By how much a program's priority is below the warden's where the kernel does not count its processes, which is so for
root: else a thousand that fork would leave the warden no time to stop them."""


class Bubblewrap:
    """Runs programs in namespaces of their own: user, processes, network, IPC, host name, mounts, cgroups.

    Inside there are the system and this interpreter, read-only, a private /tmp, and the working folder as /task.
    There is no network, no other process, no capability and nothing of the home. A first process inside
    (`warden.py`) sets the limits; with it all others die.

    Not covered: the disk that many files may fill, and flaws of the kernel.
    """

    name = "bubblewrap"
    about = "no network, no other files or processes, the system read-only"

    def __init__(self) -> None:
        self.program = shutil.which("bwrap")
        self.prefix: tuple[str, ...] = ()
        """Starts all this with a higher priority, where that is permitted, so that the program's is the usual one."""
        self.options: tuple[str, ...] = ("--disable-userns",)
        """Left out where bubblewrap is too old for them."""

    @property
    def python(self) -> str:
        """This interpreter, which is shown inside at its own path."""
        return sys.executable

    def trouble(self) -> str | None:
        """See `Sandbox.trouble`."""
        if self.program is None:
            if sys.platform != "linux":
                return "it exists for Linux only."
            return "it is not installed; run: apt-get install bubblewrap (or dnf, pacman, apk, zypper)."
        for option in self.options:
            if option not in _said([self.program, "--help"]):
                self.options = tuple(other for other in self.options if other != option)
        higher = (shutil.which("nice") or "", "-n", str(-LOWER))
        if os.geteuid() == 0 and higher[0] and not _said([*higher, "true"]):
            self.prefix = higher
        with tempfile.TemporaryDirectory() as folder, _pipe() as (reads, writes):
            try:
                argv = self.command([self.python, "-I", "-c", "print(6 * 7)"], folder, Limits(), writes, ())
                said = _said(argv, pass_fds=(writes,), env=environment())
            except SandboxError as error:
                return str(error)
            if "ready" in _report(reads) and said.strip() == "42":
                return None
        why = next(iter(said.strip().splitlines()[-1:]), "it said nothing").removeprefix("bwrap: ").rstrip(".")
        return f"it is installed but cannot make a sandbox here ({why}); {_repair(why)}."

    async def run(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        stdin: str = "",
        limits: Limits = Limits(),  # noqa: B008  # frozen
        shown: Sequence[Path] = (),
    ) -> ProcessResult:
        """See `Sandbox.run`."""
        with _pipe() as (reads, writes):
            started = Started(
                argv=self.command(argv, existing(folder), limits, writes, shown),
                cwd="/",
                env=environment(),
                pass_fds=(writes,),
                kill=_kill_inside,
            )
            result = await run_started(
                started, stdin=stdin, seconds=limits.seconds, output_bytes=limits.output_bytes
            )
            return _fate(result, _report(reads))

    def command(
        self, argv: Sequence[str], folder: str, limits: Limits, report: int, shown: Sequence[Path]
    ) -> list[str]:
        """What is started: bubblewrap, in it the warden, in it the program."""
        mounts = [
            *("--proc", "/proc", "--dev", "/dev"),
            *("--size", str(SHM_MB << 20), "--tmpfs", "/dev/shm", "--size", str(TMP_MB << 20), "--tmpfs", "/tmp"),
            *_system(),
            *_interpreter(),
            *("--bind", folder, INSIDE, "--ro-bind", str(WARDEN), "/run/warden.py"),
            *(word for path in shown for word in ("--ro-bind", str(path.absolute()), str(path.absolute()))),
            # Both are in memory, and without limit.
            *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", INSIDE),
        ]
        lower = LOWER if os.geteuid() == 0 else 0
        warden = (report, lower, limits.memory_mb, cpu_seconds(limits.seconds), limits.file_mb, limits.open_files)
        return [
            *self.prefix,
            self.program or "bwrap",
            *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
            *("--unshare-cgroup-try", *self.options, "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
            *("--cap-drop", "ALL", "--new-session", "--die-with-parent", "--as-pid-1"),
            *mounts,
            *("--", self.python, "-I", "-S", "/run/warden.py", *map(str, warden), str(limits.processes)),
            *argv,
        ]


def environment() -> dict[str, str]:
    """All that a program inside sees of variables; nothing is the host's but the interpreter's place."""
    return {
        "PATH": f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
        "HOME": INSIDE,
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONIOENCODING": "utf-8",
    }


def _system() -> Iterator[str]:
    for path in SYSTEM:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.isdir(path):
            yield from ("--ro-bind", path, path)
    yield from ("--ro-bind", str(PASSWD), "/etc/passwd", "--ro-bind", str(GROUP), "/etc/group")
    for name in ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _interpreter() -> Iterator[str]:
    """This interpreter and what is installed in it, at their own paths, where they are not the system's."""
    roots: list[str] = []
    for prefix in (sys.base_prefix, sys.prefix):
        for root in (prefix, os.path.realpath(prefix)):
            if root not in roots and not _lies_in(root, ["/usr"]):
                roots.append(root)
    for root in roots:
        home = os.path.realpath(os.path.expanduser("~"))
        if _lies_in(home, [os.path.realpath(root)]):
            raise SandboxError(
                f"it cannot show the interpreter in {root!r} alone, because your files lie there too; "
                "install agentmem into a virtual environment in a folder of its own."
            )
        yield from ("--ro-bind", root, root)
    # A virtual environment calls its interpreter by links, which may lead through other folders.
    link, seen = sys.executable, 0
    while os.path.islink(link) and seen < 16:
        target = os.readlink(link)
        if not _lies_in(link, [*roots, *SYSTEM]):
            yield from ("--symlink", target, link)
        link, seen = os.path.normpath(os.path.join(os.path.dirname(link), target)), seen + 1


def _lies_in(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _kill_inside(pid: int) -> None:
    """Kill the first process inside, with which all others there die; bubblewrap waits for them, and ends."""
    with contextlib.suppress(OSError, ValueError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        for child in map(int, children.split()):
            os.kill(child, signal.SIGKILL)
            return
    kill_group(pid)


def _fate(result: ProcessResult, report: list[str]) -> ProcessResult:
    """The result, with what the warden says of the program's end instead of what bubblewrap makes of it."""
    if "ready" not in report and not result.timed_out and not result.flooded:
        why = " ".join(result.stderr.split()).removeprefix("bwrap: ") or f"exit status {result.exit_status}"
        raise SandboxError(f"bubblewrap could not start the program: {why[:500]}")
    word, _, number = (report[-1] if report else "").partition(" ")
    ended: dict[str, object] = {"exit_status": None, "signal": "SIGKILL"}
    match word:
        case "exit":
            ended = {"exit_status": int(number), "signal": None}
        case "signal":
            ended["signal"] = _signal_name(int(number))
        case "memory":
            ended["out_of_memory"] = True
        case "processes":
            ended["too_many_processes"] = True
        case _ if not result.timed_out and not result.flooded:
            ended["out_of_memory"] = True  # nobody else kills the warden than a kernel without memory
    ended["timed_out"] = result.timed_out or ended["signal"] == "SIGXCPU"
    return result.model_copy(update=ended)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    reads, writes = os.pipe()
    os.set_blocking(reads, False)
    try:
        yield reads, writes
    finally:
        os.close(reads)
        os.close(writes)


def _report(reads: int) -> list[str]:
    try:
        return os.read(reads, 4096).decode("ascii", "replace").splitlines()
    except BlockingIOError:
        return []


def _said(argv: Sequence[str], **how: object) -> str:
    """Both streams of a short command; what cannot be run says why."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PROBE_SECONDS,
            start_new_session=True,
            **how,  # type: ignore[call-overload]  # descriptors and environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return str(done.stdout.decode("utf-8", "replace"))


def _repair(why: str) -> str:
    """What most often helps, by what this machine forbids."""
    settings = {
        "kernel/unprivileged_userns_clone": ("0", "kernel.unprivileged_userns_clone=1"),
        "kernel/apparmor_restrict_unprivileged_userns": ("1", "kernel.apparmor_restrict_unprivileged_userns=0"),
        "user/max_user_namespaces": ("0", "user.max_user_namespaces=10000"),
    }
    for name, (bad, good) in settings.items():
        with contextlib.suppress(OSError):
            if Path("/proc/sys", name).read_text().strip() == bad and (os.geteuid() or name.startswith("user")):
                return f"user namespaces are forbidden; allow them: sudo sysctl -w {good}"
    if "proc" in why:
        return "in a container, start it with --security-opt systempaths=unconfined"
    return "if this is a container, start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
