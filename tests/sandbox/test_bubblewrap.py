"""bubblewrap: what a hostile program tries, and that it stays inside, within its limits, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from agentmem.errors import SandboxError, SandboxUnavailable
from agentmem.sandbox import sandbox as room
from agentmem.sandbox.bubblewrap import Bubblewrap
from agentmem.sandbox.process import ProcessResult
from agentmem.sandbox.sandbox import Limits, find_sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap exists for Linux only")
ROOT = Path(__file__).parents[2]
BOX = Bubblewrap()
BOX.trouble()  # finds out about options


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "my task, é 你 'x'"
    path.mkdir()
    return path


async def shell(command: str, folder: Path, **limits: float) -> ProcessResult:
    return await BOX.run(["sh", "-c", command], folder=folder, limits=Limits.model_validate(limits))


async def python(code: str, folder: Path, **limits: float) -> ProcessResult:
    return await BOX.run([BOX.python, "-I", "-c", code], folder=folder, limits=Limits.model_validate(limits))


def left_behind(marker: str) -> list[int]:
    """Processes with the marker in their arguments, once the kernel had a moment to bury them."""
    for _ in range(20):
        found = [
            process.pid
            for process in psutil.process_iter(["cmdline"])
            if any(marker in word for word in process.info["cmdline"] or ())
        ]
        if not found:
            return []
        time.sleep(0.02)
    return found


async def test_it_works_here(folder: Path) -> None:
    assert BOX.trouble() is None, "the tests need it: apt-get install bubblewrap"
    assert (await find_sandbox()).name == "bubblewrap"
    result = await BOX.run(["cat"], folder=folder, stdin="héllo")
    assert (result.stdout, result.exit_status, result.ok) == ("héllo", 0, True)
    assert (await shell("exit 3", folder)).exit_status == 3
    assert (await shell("kill -SEGV $$", folder)).signal == "SIGSEGV"
    missing = await BOX.run(["no-such-program"], folder=folder)
    assert (missing.exit_status, missing.stderr) == (127, "no-such-program: No such file or directory\n")
    with pytest.raises(SandboxError, match="does not exist; create it first"):
        await BOX.run(["true"], folder=folder / "nowhere")
    with pytest.raises(SandboxError, match=r"could not be started: .*null"):
        await BOX.run(["echo", "a\0b"], folder=folder)


async def test_only_the_working_folder_and_tmp_can_be_written(folder: Path) -> None:
    secret = folder.parent / "outside.txt"
    secret.write_text("mine")
    places = f"/x /usr/x /etc/x /dev/x /run/x /proc/x /root/x {sys.prefix}/x '{folder.parent}/x' /run/warden.py"
    result = await shell(
        f"for f in {places} '{secret}'; do (echo x > $f) 2>/dev/null && echo wrote $f; done", folder
    )
    assert result.stdout == ""
    assert secret.read_text() == "mine"
    result = await shell("echo in > kept; mkdir a; echo t > /tmp/t; echo s > /dev/shm/s; pwd; echo $HOME", folder)
    assert (result.stdout, result.stderr) == ("/task\n/task\n", "")
    assert (folder / "kept").read_text() == "in\n"
    assert (folder / "kept").stat().st_uid == os.geteuid()
    assert (await shell("cat /tmp/t", folder)).exit_status == 1  # nor does the next one see it


async def test_links_to_outside_lead_nowhere(folder: Path) -> None:
    target = folder.parent / "target"
    target.write_text("mine")
    (folder / "link").symlink_to(target)
    (folder / "up").symlink_to("..")
    result = await shell(
        "cat link; echo x > link; ls up/; ln -s / root; echo x > root/usr/x; ln /usr/bin/env e", folder
    )
    assert target.read_text() == "mine"
    assert "target" not in result.stdout
    assert result.exit_status != 0
    assert not (folder / "e").exists()


async def test_nothing_of_the_host_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = secrets.token_hex(8)
    monkeypatch.setenv("MY_KEY", marker)
    home = folder.parent / "home" / ".ssh"
    home.mkdir(parents=True)
    (home / "id_ed25519").write_text(marker)
    secret = Path.home() / f".agentmem-test-{marker}"
    secret.write_text(marker)
    try:
        result = await shell(
            f"cat /etc/shadow '{home}/id_ed25519' '{secret}' /proc/1/environ /proc/*/environ; env; ls -A /root /home;"
            "cat /proc/1/maps /proc/1/mem; ls -l /proc/1/fd /proc/1/root/ /proc/1/cwd/; cat /etc/hostname; hostname",
            folder,
        )
    finally:
        secret.unlink()
    assert marker not in result.stdout
    assert not re.search("^root:[^\n]", result.stdout, re.MULTILINE)  # of /etc/shadow
    assert result.stderr.count("Permission denied") >= 5
    assert result.stdout.rstrip().endswith("sandbox")
    names = {line.partition("=")[0] for line in (await shell("env", folder)).stdout.splitlines()}
    assert names <= {"PATH", "HOME", "TMPDIR", "LANG", "PYTHONIOENCODING", "PWD", "SHLVL", "OLDPWD", "_"}


async def test_there_is_no_network(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        port = server.getsockname()[1]
        abstract.bind(f"\0agentmem-{port}")
        abstract.listen()
        code = f"""
import socket
for family, address in ((socket.AF_INET, ("127.0.0.1", {port})), (socket.AF_INET, ("1.1.1.1", 53)),
                        (socket.AF_UNIX, "\\0agentmem-{port}")):
    try:
        socket.socket(family).connect(address)
        print("connected", address)
    except OSError as error:
        print(error.strerror)
print(socket.if_nameindex())
"""
        lines = (await python(code, folder)).stdout.splitlines()
        assert lines == ["Connection refused", "Network is unreachable", "Connection refused", "[(1, 'lo')]"]
        with socket.socket() as here:  # the control: from the host it can be reached
            here.connect(("127.0.0.1", port))


async def test_processes_of_the_host_are_neither_seen_nor_killed(folder: Path) -> None:
    victim = await asyncio.to_thread(subprocess.Popen, ["sleep", "30"])
    code = f"""
import os, signal
pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
print(max(pids) < 100, os.getpid() in pids, len(pids))
for pid in {{{victim.pid}, {os.getpid()}}} - set(pids):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        print("none")
try:
    os.kill(1, signal.SIGKILL)
    os.kill(-1, signal.SIGTERM)
except OSError as error:
    print(error.strerror)
print("going on")
"""
    try:
        result = await python(code, folder)
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()
    assert result.stdout.splitlines()[:3] == ["True True 2", "none", "none"]
    assert result.stdout.endswith("going on\n")  # process 1 inside cannot be killed from inside
    assert result.exit_status == 0


async def test_no_descriptor_of_the_trainer_is_inherited(folder: Path) -> None:
    reads, writes = os.pipe()
    os.set_inheritable(writes, True)
    try:
        result = await shell(
            "for fd in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$fd ] && echo $fd; done; tty", folder
        )
    finally:
        os.close(reads)
        os.close(writes)
    assert result.stdout.split() == ["0", "1", "2", "not", "a", "tty"]


async def test_no_privilege_is_to_be_had(folder: Path) -> None:
    result = await shell(
        "id -u; grep -E 'CapEff|CapPrm|NoNewPrivs' /proc/self/status; unshare -U true; mount -t tmpfs t /tmp; "
        "echo 1 > /proc/sys/kernel/pid_max; chroot / true; su -c true",
        folder,
    )
    lines = result.stdout.split()
    assert lines == ["1000", "CapPrm:", "0" * 16, "CapEff:", "0" * 16, "NoNewPrivs:", "1"]
    assert "unshare failed" in result.stderr
    assert result.exit_status != 0
    traced = await python(
        "import ctypes; libc = ctypes.CDLL(None); print(libc.ptrace(16, 1, 0, 0), libc.ptrace(0x4206, 1, 0, 0))",
        folder,
    )
    assert traced.stdout == "-1 -1\n"  # neither attached nor seized


async def test_memory_of_one_and_of_all_is_limited(folder: Path) -> None:
    one = await python("x = bytearray(1 << 30)", folder, memory_mb=256)
    assert "MemoryError" in one.stderr
    code = (
        "import os, time\n"
        "for _ in range(6):\n"
        "    if os.fork() == 0:\n"
        "        kept = b'x' * (100 << 20)\n"
        "        time.sleep(30)\n"
        "time.sleep(30)\n"
    )
    started = time.monotonic()
    result = await python(code, folder, memory_mb=256)
    assert (result.out_of_memory, result.timed_out, result.signal) == (True, False, "SIGKILL")
    assert time.monotonic() - started < 10
    big = await shell("head -c 700000000 /dev/zero > /tmp/fat; head -c 90000000 /dev/zero > /dev/shm/fat", folder)
    assert big.stderr.count("No space left on device") + big.stderr.count("File too large") == 2


async def test_memory_that_is_shared_counts_once(folder: Path) -> None:
    code = (
        "import os, time\n"
        "kept = b'x' * (100 << 20)\n"
        "for _ in range(6):\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(0.4); os._exit(0)\n"
        "time.sleep(0.4); print('done')\n"
    )
    assert (await python(code, folder, memory_mb=256)).stdout == "done\n"


@pytest.mark.parametrize(
    "bomb",
    [
        ":() { : | : & }; :; sleep 30",
        "while true; do setsid sleep 30 & done",
        f"{sys.executable} -c 'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass'",
    ],
)
async def test_a_fork_bomb_dies_and_the_host_lives(folder: Path, bomb: str) -> None:
    marker = f"bomb-{secrets.token_hex(8)}"
    most, watching = 0, True

    def count() -> None:
        nonlocal most
        while watching:
            most = max(most, len(psutil.pids()))
            time.sleep(0.01)

    before = len(psutil.pids())
    watcher = threading.Thread(target=count)
    watcher.start()
    try:
        result = await BOX.run(
            ["bash", "-c", bomb, marker], folder=folder, limits=Limits(seconds=3, processes=100)
        )
    finally:
        watching = False
        watcher.join()
    assert result.too_many_processes or result.timed_out
    assert most - before < 1500
    assert not left_behind(marker)
    assert (await shell("echo fine", folder)).stdout == "fine\n"


async def test_threads_are_counted_too(folder: Path) -> None:
    code = (
        "import threading, time\n"
        "try:\n"
        "    for _ in range(500): threading.Thread(target=time.sleep, args=(5,), daemon=True).start()\n"
        "except RuntimeError as error: print(error, flush=True)\n"
        "else: time.sleep(5)\n"
    )
    result = await python(code, folder, processes=64)
    assert result.too_many_processes or "can't start new thread" in result.stdout
    assert result.seconds < 4


@pytest.mark.parametrize(
    "start",
    [
        "sleep 60 & wait",
        "setsid sleep 60 & wait",
        "(setsid sleep 60 &) ; (sleep 60 & sleep 60 &) ; sleep 60",
        "trap '' TERM INT HUP; nohup setsid sleep 60 < /dev/null > /dev/null 2>&1 & sleep 60",
    ],
)
async def test_whatever_hangs_is_killed_with_all_that_it_started(folder: Path, start: str) -> None:
    marker = f"marker{secrets.token_hex(8)}"
    command = start.replace("sleep 60", f"{sys.executable} -c 'import time; time.sleep(60)' {marker}")
    result = await BOX.run(
        ["sh", "-c", f"echo begun; {command}", marker], folder=folder, limits=Limits(seconds=1.0)
    )
    assert (result.timed_out, result.signal, result.stdout) == (True, "SIGKILL", "begun\n")
    assert result.seconds < 3
    assert not left_behind(marker)


async def test_daemons_die_with_a_program_that_ends(folder: Path) -> None:
    marker = f"marker{secrets.token_hex(8)}"
    code = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        open('begun', 'w'); time.sleep(60)\n"
        "    os._exit(0)\n"
        "while not os.path.exists('begun'): time.sleep(0.01)\n"
    )
    result = await BOX.run([BOX.python, "-c", code, marker], folder=folder)
    assert (result.ok, result.stderr) == (True, "")
    assert result.seconds < 5
    assert not left_behind(marker)


async def test_cancellation_kills_everything(folder: Path) -> None:
    marker = f"marker{secrets.token_hex(8)}"
    command = f'setsid {sys.executable} -c \'import time; open("begun", "w"); time.sleep(60)\' {marker} & sleep 60'
    task = asyncio.create_task(shell(command, folder, seconds=60))
    for _ in range(300):
        if (folder / "begun").exists():
            break
        await asyncio.sleep(0.02)
    assert (folder / "begun").exists()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(task), 5)
    assert not left_behind(marker)


def test_it_dies_with_a_killed_trainer(folder: Path) -> None:
    marker = f"marker{secrets.token_hex(8)}"
    inner = f'setsid {sys.executable} -c \'import time; open("begun", "w"); time.sleep(60)\' {marker} & sleep 60'
    code = (
        "import asyncio; from pathlib import Path; from agentmem.sandbox.bubblewrap import Bubblewrap\n"
        f"asyncio.run(Bubblewrap().run(['sh', '-c', {inner!r}], folder=Path('.')))"
    )
    trainer = subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    for _ in range(500):
        if (folder / "begun").exists():
            break
        time.sleep(0.02)
    assert (folder / "begun").exists()
    trainer.send_signal(signal.SIGKILL)
    trainer.wait()
    assert not [pid for pid in left_behind(marker) if pid != trainer.pid]


async def test_output_is_kept_in_part_and_any_bytes_are_text(folder: Path) -> None:
    ten = await shell("echo first; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo last", folder)
    assert (ten.ok, ten.truncated, ten.flooded) == (True, True, False)
    assert ten.stdout.startswith("first\nxxx")
    assert ten.stdout.endswith("xxx\nlast\n")
    assert f"[... {10_000_000 + 12 - 65536} bytes left out ...]" in ten.stdout
    binary = await shell("head -c 3000 /dev/urandom; head -c 3000 /dev/urandom >&2", folder)
    assert binary.ok
    assert "\ufffd" in binary.stdout
    endless = await shell("yes", folder)
    assert (endless.flooded, endless.signal, endless.out_of_memory) == (True, "SIGKILL", False)


async def test_streams_that_are_closed_hold_nobody_up(folder: Path) -> None:
    result = await BOX.run(
        ["sh", "-c", "exec <&- >&- 2>&-; sleep 0.1; exit 4"], folder=folder, stdin="x" * 10_000_000
    )
    assert (result.exit_status, result.stdout) == (4, "")


async def test_32_at_once_do_not_mix(tmp_path: Path) -> None:
    folders = [tmp_path / str(n) for n in range(32)]
    for folder in folders:
        folder.mkdir()
    script = "echo $1 > own; echo $1 > /tmp/own; sleep 0.0$(($1 % 5)); cat own /tmp/own; exit $1"
    results = await asyncio.gather(
        *(BOX.run(["sh", "-c", script, "-", str(n)], folder=folder) for n, folder in enumerate(folders))
    )
    for n, result in enumerate(results):
        assert (result.stdout, result.exit_status) == (f"{n}\n{n}\n", n)


async def test_what_is_shown_can_be_read_and_not_changed(folder: Path) -> None:
    shown = folder.parent / "shown, file.txt"
    shown.write_text("look")
    result = await BOX.run(["sh", "-c", f"cat '{shown}'; echo x > '{shown}'"], folder=folder, shown=(shown,))
    assert (result.stdout, shown.read_text()) == ("look", "look")


@pytest.fixture
def fake_bwrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `bwrap` that fails as it does where user namespaces are forbidden; and no docker."""
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = programs / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace.' >&2; exit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(room, "_found", {})
    return fake


async def test_where_it_does_not_work_the_repair_is_said(fake_bwrap: Path) -> None:
    with pytest.raises(SandboxUnavailable) as caught:
        await find_sandbox()
    said = str(caught.value)
    assert "installed but cannot make a sandbox here (No permissions to create new namespace)" in said
    assert "--security-opt seccomp=unconfined" in said or "sysctl -w" in said
    assert "docker: it is not installed." in said
    assert "--unsafe-local" in said
    with pytest.raises(SandboxError, match="bubblewrap could not start the program: No permissions"):
        await Bubblewrap().run(["true"], folder=fake_bwrap.parent)
    os.unlink(fake_bwrap)
    with pytest.raises(SandboxUnavailable, match="not installed; run: apt-get install bubblewrap"):
        await find_sandbox("bubblewrap")
    assert (await find_sandbox("unsafe-local")).name == "unsafe-local"


async def test_an_option_that_is_too_new_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Bubblewrap().program
    old = tmp_path / "bwrap"
    old.write_text(
        f'#!/bin/sh\n[ "$1" = --help ] && echo old && exit\ncase "$*" in *--disable-userns*) exit 1;; esac\n'
        f'exec {real} "$@"\n'
    )
    old.chmod(0o755)
    box = Bubblewrap()
    box.program = str(old)
    assert box.trouble() is None
    assert "--disable-userns" not in box.options


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become another user; as a user all tests here show it"
)
def test_it_works_for_a_user_who_is_not_root() -> None:
    python = next((path for path in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(path).exists()), None)
    if python is None:
        pytest.skip("no interpreter that every user may run")
    code = f"""
import asyncio, os, shutil, sys, tempfile
from pathlib import Path
from agentmem.sandbox.bubblewrap import Bubblewrap
from agentmem.sandbox.sandbox import Limits
sys.executable, sys.prefix, sys.base_prefix = {python!r}, "/usr", "/usr"
folder = Path(tempfile.mkdtemp())  # where another user may go, unlike the tests' own folders
os.chown(folder, 65534, 65534)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
os.environ["HOME"] = "/nonexistent"
box = Bubblewrap()
print(box.trouble())
async def main():
    r = await box.run(["sh", "-c", "id -u; echo x > f; cat f; cat /etc/shadow"], folder=folder)
    print(r.stdout.split(), r.exit_status)
    bomb = "import os\\ntry:\\n    while True: os.fork() or os.read(0, 0) or __import__('time').sleep(9)\\n"
    bomb += "except BlockingIOError as e: print(e.errno, flush=True); os.kill(-1, 9)"
    r = await box.run([box.python, "-c", bomb], folder=folder, limits=Limits(seconds=5, processes=50))
    print(r.stdout.split(), r.timed_out)
asyncio.run(main())
shutil.rmtree(folder, ignore_errors=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd="/",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.splitlines()[:3] == ["None", "['1000', 'x'] 1", "['11'] False"], done.stderr
