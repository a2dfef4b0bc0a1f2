"""What tests of the command line share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentmem.cli.main import run


@dataclass
class Outcome:
    """What one command came to."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one line that says what went wrong."""
        said = [line for line in self.err.splitlines() if line.startswith("agentmem: ")]
        assert len(said) == 1, self.err
        assert "Traceback" not in self.err
        return said[0]


Command = Callable[..., Outcome]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `agentmem ARGUMENTS` in this process, in an empty folder without keys."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("AGENTMEM_PROMPTS", raising=False)

    def command(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return command


@pytest.fixture
def learner() -> tuple[str, str]:
    """A model that gets better with a worked example."""
    return "--model", "scripted/learner?p=0.3"
