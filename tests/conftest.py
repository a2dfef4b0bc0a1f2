"""What tests share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 40 sums, in the form that the scripted learner solves."""
    path = tmp_path_factory.mktemp("sums") / "sums.jsonl"
    pairs = [(3 * i + 1, 7 * i % 50 + 2) for i in range(40)]
    lines = [{"id": f"{a}+{b}", "input": f"What is {a} + {b}?", "answer": str(a + b)} for a, b in pairs]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def agentmem(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts `agentmem ARGUMENTS` as a process of its own, in an empty folder."""

    return lambda *arguments: start(tmp_path, *arguments)


def start(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """`agentmem ARGUMENTS` as a process of its own, working in `folder`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "", "COLUMNS": "200"}
    command = [sys.executable, "-m", "agentmem", *map(str, arguments)]
    return subprocess.Popen(
        command, text=True, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
