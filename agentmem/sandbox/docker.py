"""The second choice of a sandbox: a fresh container of Docker for each program."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentmem.errors import SandboxError
from agentmem.sandbox.process import ProcessResult, Started, cpu_seconds, existing, run_started
from agentmem.sandbox.sandbox import Limits

INSIDE = "/task"
"""The working folder, as it is called inside; also the home."""
TMP_MB, SHM_MB = 512, 64
"""Sizes of the private /tmp and /dev/shm, which lie in memory."""
PROBE_SECONDS = 30.0
SHORT_SECONDS = 10.0
"""Seconds that looking at a container, or removing it, may take."""
FAILED = 125
"""The status of the docker command where the container could not be made."""


class Docker:
    """Runs each program in a container of its own: no network, read-only but for the working folder, with limits.

    The image must be there already; nothing is pulled. Its Python is used, with what is installed in it.

    Args:
        image: has `python` and `sh`.
    """

    name = "docker"
    about = "a container without network, the image read-only"
    python = "python"

    def __init__(self, image: str = "python:3.12-slim") -> None:
        self.image = image
        self.program = shutil.which("docker")

    def trouble(self) -> str | None:
        """See `Sandbox.trouble`."""
        if self.program is None:
            return "it is not installed."
        if why := self._refused("version", "--format", "{{.Server.Version}}"):
            return f"its daemon does not answer ({why}); start it, and let this user use it."
        if self._refused("image", "inspect", self.image):
            return f"the image {self.image} is not here; run: docker pull {self.image}"
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
        """See `Sandbox.run`."""
        name = f"agentmem-{secrets.token_hex(8)}"
        command = self.command(name, argv, existing(folder), limits, shown)
        started = Started(argv=command, cwd="/", env=_environment())
        try:
            result = await run_started(
                started, stdin=stdin, seconds=limits.seconds, output_bytes=limits.output_bytes
            )
            if result.exit_status == FAILED:
                raise SandboxError(f"docker could not start the program: {result.stderr.strip()[:500]}")
            killed = await self._told("inspect", "--format", "{{.State.OOMKilled}}", name)
        finally:
            # Killing the command does not kill the container; this does, also on cancellation.
            await asyncio.shield(self._told("rm", "--force", "--volumes", name))
        return _fate(result, out_of_memory=killed == "true")

    def command(
        self, name: str, argv: Sequence[str], folder: str, limits: Limits, shown: Sequence[Path]
    ) -> list[str]:
        """The `docker run` for one program."""
        cpu = cpu_seconds(limits.seconds)
        shows = [word for path in shown for word in ("--mount", _mount(str(path.absolute()), read_only=True))]
        return [
            *(self.program or "docker", "run", "--name", name, "--interactive", "--init", "--pull", "never"),
            *("--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
            *("--user", f"{os.getuid()}:{os.getgid()}", "--hostname", "sandbox", "--log-driver", "none"),
            *("--memory", f"{limits.memory_mb}m", "--memory-swap", f"{limits.memory_mb}m"),
            *("--pids-limit", str(limits.processes), "--ulimit", f"cpu={cpu}:{cpu}", "--ulimit", "core=0:0"),
            *("--ulimit", f"fsize={limits.file_mb << 20}:{limits.file_mb << 20}"),
            *("--ulimit", f"nofile={limits.open_files}:{limits.open_files}", "--shm-size", f"{SHM_MB}m"),
            *("--tmpfs", f"/tmp:rw,nosuid,nodev,size={TMP_MB}m,mode=1777"),
            *("--mount", _mount(folder, INSIDE), *shows, "--workdir", INSIDE, "--env", f"HOME={INSIDE}"),
            *("--env", "LANG=C.UTF-8", "--env", "PYTHONIOENCODING=utf-8", "--entrypoint", "", self.image, *argv),
        ]

    def _refused(self, *arguments: str) -> str | None:
        """Why a short command of docker failed; None where it did not."""
        try:
            done = subprocess.run(
                [self.program or "docker", *arguments],
                env=_environment(),
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=PROBE_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit status {done.returncode}"]
        return said[-1].rstrip(".") if done.returncode else None

    async def _told(self, *arguments: str) -> str:
        """What a short command of docker says."""
        started = Started(argv=(self.program or "docker", *arguments), cwd="/", env=_environment())
        return (await run_started(started, seconds=SHORT_SECONDS)).stdout.strip()


def _mount(source: str, target: str = "", *, read_only: bool = False) -> str:
    """The value of `--mount`, which docker reads as a line of CSV, so that a path may hold commas and quotes."""
    fields = ["type=bind", f"source={source}", f"target={target or source}", *(["readonly"] if read_only else [])]
    return ",".join('"' + field.replace('"', '""') + '"' if set(field) & set(',"') else field for field in fields)


def _environment() -> Mapping[str, str]:
    """What the docker command itself may need to find its daemon; nothing of it reaches the container."""
    plain = ("PATH", "HOME", "XDG_RUNTIME_DIR")
    return {name: value for name, value in os.environ.items() if name in plain or name.startswith("DOCKER_")}


def _fate(result: ProcessResult, *, out_of_memory: bool) -> ProcessResult:
    """The result, with the signal that the status stands for."""
    killed = {137: "SIGKILL", 134: "SIGABRT", 139: "SIGSEGV", 143: "SIGTERM", 152: "SIGXCPU"}
    name = killed.get(result.exit_status or 0)
    changes: dict[str, object] = {"out_of_memory": out_of_memory}
    if name:
        changes |= {"exit_status": None, "signal": name, "timed_out": result.timed_out or name == "SIGXCPU"}
    return result.model_copy(update=changes)
