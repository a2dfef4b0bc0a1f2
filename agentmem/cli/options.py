"""The options that verbs share: which agent, which reward, which run, which output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from agentmem.cli.output import OutputOptions
from agentmem.cli.tasks import TaskOptions, benchmark_at
from agentmem.cli.user_code import load_function
from agentmem.domain.value import fingerprint
from agentmem.errors import InputError, RunMismatch
from agentmem.settings import AgentSettings, Budget, MemorySettings, ModelSettings

if TYPE_CHECKING:
    from agentmem.agents.agent import Agent
    from agentmem.domain.task import TaskSet
    from agentmem.rewards.reward_function import RewardFunction
    from agentmem.tools.tool import Tool

__all__ = [
    "AgentOptions",
    "AgentPart",
    "AttemptPart",
    "BudgetOptions",
    "CallsPart",
    "DirectoryOptions",
    "DirectoryPart",
    "MemoryPart",
    "OutputOptions",
    "OutputPart",
    "RewardOptions",
    "RewardPart",
    "RunOptions",
    "RunPart",
    "TaskOptions",
    "TaskPart",
    "panel",
]

PANELS = [
    "Tasks",
    "Agent",
    "Memory",
    "Reward",
    "Learning",
    "Evaluation",
    "Budget",
    "Run",
    "Output",
    "One attempt",
    "Model calls",
]


def panel(title: str) -> Parameter:
    """A group of the help page whose fields are flags of their own."""
    return Parameter(name="*", group=Group(title, sort_key=PANELS.index(title)))


@dataclass(frozen=True)
class AgentOptions:
    """Which agent."""

    model: str | None = None
    """openai/NAME, local/NAME (such as local/smollm2), or any LiteLLM name."""
    style: Literal["react", "planner"] = "react"
    """Of a model: react calls tools until it answers; planner plans subtasks, which an executor does."""
    executor: str | None = None
    """Of a planner: the model that does its subtasks; by default the same."""
    agent: str | None = None
    """FILE.py:FUNCTION, a callable (task, prior) -> answer, instead of a plain model."""
    base_url: str | None = None
    """Address of an OpenAI-compatible server."""
    tool: tuple[str, ...] = ()
    """A tool that the model may call, such as python or shell; may be given several times."""
    unsafe_local: bool = False
    """Let python and shell run without a sandbox, with your files and your network; the same as --sandbox
    unsafe-local."""
    system: str = ""
    """System text, before the lessons."""
    library: Path | None = None
    """A library (a file or a learning run's folder) that the agent starts with."""
    memory: Path | None = None
    """A case bank's folder; it is read before each attempt. Made where there is none."""
    memory_policy: str = "kernel_q"
    """Which cases are recalled: similarity, kernel_q, parametric_q, thompson or ucb."""

    def open(
        self,
        settings: AgentSettings,
        calls: ModelSettings,
        memory: MemorySettings | None = None,
        *,
        tools: Sequence[Tool] = (),
    ) -> Agent:
        """The agent that is meant.

        Args:
            settings: limits of one attempt.
            calls: how models are called.
            memory: how its case bank is used.
            tools: what the verb itself gives it, besides those that are named.

        Raises:
            InputError: neither model nor agent is named, or one of them does not exist.
        """
        from agentmem.agents.agent import Agent
        from agentmem.library_files import load_library

        settings = self.confined(settings)
        shared: dict[str, Any] = {
            "tools": (*self.tool, *tools),
            "system": self.system,
            "style": self.style,
            "executor": self.executor,
            "base_url": self.base_url,
            "settings": settings,
            "calls": calls,
        }
        if self.agent is not None:
            agent = Agent(load_function(self.agent), model=self.model, **shared)
        elif self.model is not None:
            agent = Agent(self.model, **shared)
        else:
            raise InputError(
                "Name the agent: --model openai/NAME, --model local/smollm2, or --agent FILE.py:FUNCTION."
            )
        if self.library is not None:
            agent = agent.with_experience(load_library(self.library))
        if self.memory is not None:
            agent = agent.with_memory(self.memory, policy=self.memory_policy, settings=memory)
        return agent

    def confined(self, settings: AgentSettings) -> AgentSettings:
        """The settings, with the sandbox that is meant."""
        return settings.model_copy(update={"sandbox": "unsafe-local"}) if self.unsafe_local else settings


@dataclass(frozen=True)
class RewardOptions:
    """What an attempt is worth."""

    reward: str | None = None
    """exact, numeric, math, f1, choice, json, gaia, judge, or FILE.py:FUNCTION, a callable (task, trajectory) ->
    float; by default the benchmark's own, and exact where the tasks are no benchmark."""
    judge_model: str | None = None
    """Of judge: the model that judges; by default the agent's own."""
    judge_base_url: str | None = None
    """Of judge: address of the OpenAI-compatible server of its model."""
    rubric: str | None = None
    """Of judge: what a good answer is, in words; with one, tasks need no reference answer."""

    def open(self, agent: Agent | None, tasks: Path | None = None) -> RewardFunction:
        """The reward that is meant.

        Args:
            agent: whose model judges where no other is named; None where it is not known.
            tasks: what is judged; a benchmark has a reward of its own.

        Raises:
            InputError: there is none of this name, or its options do not go together.
        """
        from agentmem.rewards.reward_function import resolve_reward

        benchmark = benchmark_at(tasks)
        named = self.reward or (benchmark.reward if benchmark else "exact")
        if named != "judge":
            for flag in ("judge_model", "judge_base_url", "rubric"):
                if getattr(self, flag) is not None:
                    name = flag.replace("_", "-")
                    raise InputError(f"--{name} belongs to --reward judge, but the reward is {named!r}.")
            return resolve_reward(load_function(named) if ".py:" in named else named)
        from agentmem.models.names import open_model
        from agentmem.rewards.judge import Judge

        rubric = self.rubric or (benchmark.rubric if benchmark else None)
        if self.judge_model is not None:
            return Judge(open_model(self.judge_model, base_url=self.judge_base_url), rubric)
        if self.judge_base_url is not None:
            raise InputError("--judge-base-url needs --judge-model, the model's name at that address.")
        if agent is not None and agent.model is None:
            raise InputError("The agent has no model that could judge; name one with --judge-model.")
        return Judge(None, rubric)


@dataclass(frozen=True)
class DirectoryOptions:
    """Which run directory."""

    run: Path | None = None
    """The run's directory. By default runs/ and a name made from what is asked, so the same command goes on."""
    resume: bool = False
    """Go on with an interrupted run, and refuse to start a new one."""
    limit: Annotated[int | None, Parameter(validator=Number(gte=1))] = None
    """Use only the first so many tasks."""
    dry_run: bool = False
    """Print what would be spent, and spend nothing."""
    config: Path | None = None
    """A TOML file with any of these options, named as here, at its top level; flags win over it."""

    def first(self, tasks: TaskSet) -> TaskSet:
        """Those of them that are asked for."""
        return tasks.head(self.limit) if self.limit is not None else tasks

    def directory(self, verb: str, asked: dict[str, Any]) -> Path:
        """Where the run is."""
        path = self.run or Path("runs") / f"{verb}-{fingerprint(asked, length=8)}"
        return self._going_on(path, path / "run.toml")

    def folder(self, verb: str) -> Path:
        """Where the runs are, of a verb that makes several."""
        path = self.run or Path("runs") / verb
        return self._going_on(path, path)

    def _going_on(self, path: Path, begun: Path) -> Path:
        if self.resume and not begun.exists():
            raise RunMismatch(f"There is no run in {path} to be resumed; leave --resume out to start one.")
        return path


@dataclass(frozen=True)
class RunOptions(DirectoryOptions, TaskOptions):
    """Which run directory, and which tasks."""

    def tasks(self, path: Path) -> TaskSet:
        """The tasks that are asked for."""
        return self.first(self.read(path))


BudgetOptions = Annotated[Budget, panel("Budget")]
AgentPart = Annotated[AgentOptions, panel("Agent")]
RewardPart = Annotated[RewardOptions, panel("Reward")]
DirectoryPart = Annotated[DirectoryOptions, panel("Run")]
RunPart = Annotated[RunOptions, panel("Run")]
TaskPart = Annotated[TaskOptions, panel("Tasks")]
OutputPart = Annotated[OutputOptions, panel("Output")]
AttemptPart = Annotated[AgentSettings, panel("One attempt")]
CallsPart = Annotated[ModelSettings, panel("Model calls")]
MemoryPart = Annotated[MemorySettings, panel("Memory")]
