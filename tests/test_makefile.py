"""The Makefile says what is missing, and how to get it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def make(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    # Without MAKEFLAGS and MAKELEVEL, which the `make` that runs these tests hands down.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    if path is not None:
        environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    command = ["make", "-f", str(ROOT / "Makefile"), *arguments]
    return subprocess.run(command, cwd=path or ROOT, env=environment, capture_output=True, text=True, timeout=60)


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_make_alone_lists_the_targets() -> None:
    done = make()
    assert done.returncode == 0
    listed = [line.split()[1] for line in done.stdout.splitlines()]
    assert {"test", "quickstart", "lint", "clean"} <= set(listed)


@pytest.mark.parametrize("target", ["test", "quickstart"])
def test_an_old_python_is_named_with_the_repair(tmp_path: Path, target: str) -> None:
    for file in ("pyproject.toml", "constraints.txt", "Makefile"):
        (tmp_path / file).write_bytes((ROOT / file).read_bytes())
    program(tmp_path, "oldpython", 'if [ "$1" = --version ]; then echo Python 3.8.1; else exit 1; fi')
    done = make("PYTHON=oldpython", target, path=tmp_path)
    assert done.returncode != 0
    assert "needs Python 3.11 or newer, but 'oldpython' is Python 3.8.1." in done.stderr
    assert f"make PYTHON=python3.12 {target}" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_without_venv_the_package_is_named(tmp_path: Path) -> None:
    for file in ("pyproject.toml", "constraints.txt", "Makefile"):
        (tmp_path / file).write_bytes((ROOT / file).read_bytes())
    program(tmp_path, "barepython", 'if [ "$1" = -m ]; then mkdir .venv; exit 1; fi')
    done = make("PYTHON=barepython", "setup", path=tmp_path)
    assert done.returncode != 0
    assert (
        "'barepython' cannot make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv"
        in done.stderr
    )
    assert not (tmp_path / ".venv").exists()


def test_when_pip_fails_the_usual_reasons_are_named(tmp_path: Path) -> None:
    for file in ("pyproject.toml", "constraints.txt", "Makefile"):
        (tmp_path / file).write_bytes((ROOT / file).read_bytes())
    # Its "environment" holds an interpreter of which every pip fails.
    bare = 'if [ "$1" = -m ]; then mkdir -p .venv/bin; printf "#!/bin/sh\\nexit 1" > .venv/bin/python; '
    program(tmp_path, "barepython", bare + "chmod +x .venv/bin/python; fi")
    done = make("PYTHON=barepython", "setup", path=tmp_path)
    assert done.returncode != 0
    assert "pip could not install this. Most often the package index cannot be reached" in done.stderr
    assert not (tmp_path / ".venv" / ".ready").exists()


def test_missing_programs_are_installed_as_root(tmp_path: Path) -> None:
    program(tmp_path, "id", "echo 0")
    program(tmp_path, "apt-get", f'echo "$@" >> {tmp_path}/log')
    done = make("system", "SYSTEM=sh:dash nosuchprogram:its-package", path=tmp_path)
    assert done.returncode == 0, done.stderr
    update, install = (tmp_path / "log").read_text().splitlines()
    assert update.startswith("update")
    assert install.startswith("install -y")
    assert install.endswith(" its-package")


def test_bubblewrap_is_one_of_them(tmp_path: Path) -> None:
    for name in ("make", "uname", "sh"):
        program(tmp_path, name, f'exec {shutil.which(name)} "$@"')
    program(tmp_path, "id", "echo 1000")
    command = [tmp_path / "make", "-f", ROOT / "Makefile", "system"]
    done = subprocess.run(command, cwd=tmp_path, env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    wanted = "Run: sudo apt-get install -y bubblewrap\n" if sys.platform == "linux" else ""
    assert done.stderr.partition("make")[0].endswith(wanted)
    assert (done.returncode != 0) == bool(wanted)


def test_missing_programs_are_named_with_the_command_to_others(tmp_path: Path) -> None:
    program(tmp_path, "id", "echo 1000")
    program(tmp_path, "apt-get", "exit 9")
    done = make("system", "SYSTEM=sh:dash nosuchprogram:its-package", path=tmp_path)
    assert done.returncode != 0
    assert "Run: sudo apt-get install -y its-package\n" in done.stderr
    assert make("system", "SYSTEM=sh:dash", path=tmp_path).returncode == 0
    assert make("system", path=tmp_path).returncode == 0
