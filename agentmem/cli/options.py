"""The options that verbs share: which agent, which run, which output."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from agentmem.domain.value import fingerprint
from agentmem.errors import InputError, RunMismatch
from agentmem.settings import AgentSettings, Budget, ModelSettings

Flat = Parameter(name="*")


def panel(title: str) -> Parameter:
    """A group of the help page whose fields are flags of their own."""
    return Parameter(name="*", group=Group(title, sort_key=PANELS.index(title)))


PANELS = ["Agent", "Learning", "Evaluation", "Budget", "Run", "Output", "One attempt", "Model calls"]


@dataclass(frozen=True)
class AgentOptions:
    """Which agent."""

    model: str | None = None
    """openai/NAME, local/NAME (such as local/smollm2), or any LiteLLM name."""
    agent: str | None = None
    """FILE.py:FUNCTION, a callable (task, prior) -> answer, instead of a plain model."""
    base_url: str | None = None
    """Address of an OpenAI-compatible server."""
    tool: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """A tool that the model may call, such as python; may be given several times."""
    system: str = ""
    """System text, before the lessons."""
    library: Path | None = None
    """A library (a file or a learning run's folder) that the agent starts with."""

    def open(self, settings: AgentSettings, calls: ModelSettings) -> Any:
        """The agent that is meant.

        Raises:
            InputError: neither model nor agent is named, or one of them does not exist.
        """
        from agentmem.agents.agent import Agent
        from agentmem.library_files import load_library

        shared: dict[str, Any] = {"tools": self.tool, "system": self.system, "settings": settings, "calls": calls}
        if self.agent is not None:
            agent = Agent(load_function(self.agent), model=self.model, base_url=self.base_url, **shared)
        elif self.model is not None:
            agent = Agent(self.model, base_url=self.base_url, **shared)
        else:
            raise InputError(
                "Name the agent: --model openai/NAME, --model local/smollm2, or --agent FILE.py:FUNCTION."
            )
        return agent.with_experience(load_library(self.library)) if self.library else agent


@dataclass(frozen=True)
class RunOptions:
    """Which run directory."""

    run: Path | None = None
    """The run's directory. By default runs/ and a name made from what is asked, so the same command goes on."""
    resume: bool = False
    """Go on with an interrupted run, and refuse to start a new one."""
    limit: int | None = None
    """Use only the first so many tasks."""
    dry_run: bool = False
    """Print what would be spent, and spend nothing."""

    def directory(self, verb: str, asked: dict[str, Any]) -> Path:
        """Where the run is."""
        path = self.run or Path("runs") / f"{verb}-{fingerprint(asked, length=8)}"
        if self.resume and not (path / "run.toml").exists():
            raise RunMismatch(f"There is no run in {path} to be resumed; leave --resume out to start one.")
        return path


@dataclass(frozen=True)
class OutputOptions:
    """How results and progress are shown."""

    json: Annotated[bool, Parameter(negative="")] = False
    """Print results as JSON, and progress as JSON lines."""
    progress: Literal["auto", "live", "plain", "none"] = "auto"
    """How progress is shown; auto is live on a terminal and plain lines elsewhere."""

    def display(self) -> Any:
        """The display of a run under way."""
        from agentmem.report.display import display

        if self.json:
            return display("json")
        return display("plain" if self.progress == "auto" and not sys.stderr.isatty() else self.progress)

    def show(self, result: Any) -> None:
        """Print a result that has `table()` and `to_json()`."""
        from agentmem.format import printable

        if self.json:
            print(result.to_json().rstrip())
        elif sys.stdout.isatty():
            from rich.console import Console

            Console().print(result.table())
        else:
            print(printable(str(result.table()), sys.stdout.encoding))

    def show_fields(self, **facts: Any) -> None:
        """Print named facts."""
        if self.json:
            print(json.dumps(facts, default=str))
        else:
            for name, value in facts.items():
                print(f"{name.replace('_', ' ')}: {value}")


BudgetOptions = Annotated[Budget, panel("Budget")]
AgentPart = Annotated[AgentOptions, panel("Agent")]
RunPart = Annotated[RunOptions, panel("Run")]
OutputPart = Annotated[OutputOptions, panel("Output")]
AttemptPart = Annotated[AgentSettings, panel("One attempt")]
CallsPart = Annotated[ModelSettings, panel("Model calls")]


def load_function(spec: str) -> Callable[..., Any]:
    """The function that `FILE.py:FUNCTION` names.

    Raises:
        InputError: there is no such file or function, or the file raises when it is loaded.
    """
    file, _, name = spec.rpartition(":")
    path = Path(file)
    if not file or not name:
        raise InputError(f"{spec!r} names no function; write FILE.py:FUNCTION.")
    if not path.is_file():
        raise InputError(f"There is no file {file!r} for {spec!r}.")
    module_spec = importlib.util.spec_from_file_location(path.stem, path)
    if module_spec is None or module_spec.loader is None:
        raise InputError(f"{file!r} is no Python file.")
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[path.stem] = module
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"{file} raised {type(error).__name__} when it was loaded: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        known = sorted(n for n, v in vars(module).items() if callable(v) and not n.startswith("_"))
        raise InputError(f"{file} has no function {name!r}. It has: {', '.join(known) or 'none'}.")
    return function  # type: ignore[no-any-return]  # callable() narrows to object
