"""What tests share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    """A file of 40 sums, in the form that the scripted learner solves."""
    path = tmp_path / "sums.jsonl"
    pairs = [(3 * i + 1, 7 * i % 50 + 2) for i in range(40)]
    lines = [{"id": f"{a}+{b}", "input": f"What is {a} + {b}?", "answer": str(a + b)} for a, b in pairs]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def agentmem(tmp_path: Path):
    """Starts `agentmem ARGUMENTS` as a process of its own, in an empty folder."""

    def start(*arguments: object, **options: object) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "", "COLUMNS": "200"}
        command = [sys.executable, "-m", "agentmem", *map(str, arguments)]
        defaults = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": tmp_path}
        return subprocess.Popen(command, text=True, env=environment, **{**defaults, **options})

    return start
