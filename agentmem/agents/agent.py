"""An agent: a model and tools, or any callable; and, optionally, an experience library as its prior."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, get_args
from urllib.parse import urlsplit

from agentmem.agents.prior import Full, Prior, PriorPolicy, prior_for, render_prior
from agentmem.domain.callable import name_of, source_hash
from agentmem.domain.plan import MOST_SUBTASKS
from agentmem.domain.task import Task
from agentmem.domain.value import fingerprint
from agentmem.errors import InputError
from agentmem.models.model import Model
from agentmem.models.names import open_model
from agentmem.settings import AgentSettings, MemorySettings, ModelSettings, settings_of
from agentmem.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from pathlib import Path

    from agentmem.agents.context import Context
    from agentmem.agents.memory import FeedbackFunction, Memory
    from agentmem.domain.experience import ExperienceLibrary
    from agentmem.domain.trajectory import Trajectory
    from agentmem.memory.case_bank import CaseBank
    from agentmem.memory.case_policy import CasePolicy
    from agentmem.memory.embedder import Embedder


Style = Literal["react", "planner"]
"""How a model acts: `react` calls tools until it answers; `planner` plans subtasks, which an executor does."""


def address_of(model: object) -> str | None:
    """The server of a model that has one, without user and password."""
    url = getattr(model, "base_url", None)
    if not url:
        return None
    parts = urlsplit(str(url))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


class Agent:
    """What acts. It is a value: every `with_` method returns another agent.

    Args:
        acts: a model (`openai/NAME`, `local/NAME`, any LiteLLM name, or a `Model`), which then acts by `style`; or
            any callable `(task, prior) -> answer | Trajectory`, sync or async, see `agent_function`.
        tools: names (`python`, `read_file`, `search:FOLDER`, `mcp:COMMAND` ...), `Tool`s or plain functions that the
            model may call; see `agentmem.tools.names.open_tool`.
        system: the system text, before the lessons.
        style: of a model: `react`, or `planner`, see `agentmem.agents.planner`.
        executor: of a planner: the model that does its subtasks; by default the same.
        model: for a callable: the model whose handle it is offered.
        base_url: of an OpenAI-compatible server; an executor that is named with the same prefix is there, too.
        name: what reports call it.
        settings: limits of one attempt; single fields may be given as keywords (`max_steps=3`).
        calls: how models are called: concurrency, retries, prices.

    Raises:
        InputError: an unknown model, tool or setting; nothing was spent.

    Example:
        >>> agent = Agent(lambda task, prior: "42", name="deep thought")
        >>> agent.name
        'deep thought'
    """

    def __init__(
        self,
        acts: str | Model | Callable[..., Any],
        *,
        tools: Sequence[Any] = (),
        system: str = "",
        style: Style = "react",
        executor: str | Model | None = None,
        model: str | Model | None = None,
        base_url: str | None = None,
        name: str | None = None,
        settings: AgentSettings | None = None,
        calls: ModelSettings | None = None,
        **changes: Any,
    ) -> None:
        is_model = isinstance(acts, str | Model)
        if is_model and model is not None:
            raise InputError("An agent has one model: give it first, or after a callable as model=..., not both.")
        if isinstance(acts, type):
            raise InputError(f"{acts.__name__} is a class; an agent is an instance, such as {acts.__name__}().")
        if not is_model and not callable(acts):
            raise InputError(f"An agent is a model's name, a Model or a callable, not a {type(acts).__name__}.")
        if style not in get_args(Style):
            raise InputError(f"An agent's style is 'react' or 'planner', not {style!r}.")
        if style == "planner" and not is_model:
            raise InputError("Only a model plans; a callable acts by its own code. Leave style='planner' out.")
        if executor is not None and style != "planner":
            raise InputError("Only a planner has an executor: add style='planner', or leave executor out.")
        chosen = acts if is_model else model
        self.model: Model | None = open_model(chosen, base_url=base_url) if chosen is not None else None  # type: ignore[arg-type]  # isinstance above
        self.style = style
        same_server = isinstance(executor, str) and executor.partition("/")[0] == str(acts).partition("/")[0]
        self.executor: Model | None = (
            open_model(executor, base_url=base_url if same_server else None) if executor is not None else None
        )
        self.tools = Toolbox(tools)
        self.system = system
        self.settings = settings_of(AgentSettings, settings, changes)
        self.calls = calls or ModelSettings()
        self.library: ExperienceLibrary | None = None
        self.prior_tokens = 2000
        self.prior_policy: PriorPolicy = Full()
        self._prior: Prior | None = None
        self.memory: Memory | None = None
        self.name = name or (self.model.name if is_model and self.model else name_of(acts))
        self._function = None if is_model else acts
        if is_model:
            self._act: Callable[[Context], Awaitable[Trajectory]] = _react if style == "react" else _plan
        else:
            self._act = _wrapped(acts)  # type: ignore[arg-type]  # as above

    def with_experience(
        self,
        library: ExperienceLibrary | None,
        *,
        prior_tokens: int | None = None,
        policy: PriorPolicy | None = None,
    ) -> Agent:
        """The same agent with this library as its prior; None takes it away.

        Args:
            library: what `learn` returned.
            prior_tokens: tokens that it may take in the prompt, estimated at 4 bytes a token.
            policy: which experiences a task is shown: `Full()`, or `Retrieved(embedder)`.
        """
        other = copy(self)
        other.library = library
        other._prior = None
        if prior_tokens is not None:
            other.prior_tokens = prior_tokens
        if policy is not None:
            other.prior_policy = policy
        return other

    def with_memory(
        self,
        memory: str | Path | CaseBank | None,
        *,
        policy: str | CasePolicy = "kernel_q",
        embedder: str | Embedder = "minilm",
        feedback: FeedbackFunction | None = None,
        settings: MemorySettings | None = None,
        **changes: Any,
    ) -> Agent:
        """The same agent with this case bank as its memory (2508.16153); None takes it away.

        A ReAct agent is shown the cases that its task recalls; a callable finds them in `context.cases`, or, if it
        takes only text, in its prior. Of a planner, the planner is shown the cases of whole tasks, which are plans;
        its executor is shown solved subtasks (a bank of their own, in `subtasks`) and how its tools did.

        Args:
            memory: a bank, or its folder; made where there is none.
            policy: which cases are recalled: `similarity`, `kernel_q`, `parametric_q`, `thompson`, `ucb`, or an object.
            embedder: of a new bank: what compares states by meaning.
            feedback: `(task, rollout) -> Feedback | None`, plain or async: what an online memory learns from, where
                that is not the reward itself.
            settings: see `MemorySettings`.
            **changes: fields of `MemorySettings` (`cases=4, online=True`).

        Raises:
            InputError: an unknown policy or setting, or a folder that is no bank.

        Example:
            >>> from agentmem.memory.case_bank import CaseBank
            >>> from agentmem.testing.hash_embedder import HashEmbedder
            >>> bank = CaseBank(tmp / "doc-memory", embedder=HashEmbedder())
            >>> agent = Agent(lambda task, prior: "IT desk", name="router").with_memory(bank, online=True)
            >>> agent.memory.settings.cases
            4
        """
        other = copy(self)
        other.memory = None
        if memory is not None:
            from agentmem.agents.memory import Memory
            from agentmem.agents.subtask_memory import SubtaskMemory
            from agentmem.memory.case_bank import CaseBank
            from agentmem.memory.policies import open_policy
            from agentmem.memory.tool_memory import ToolMemory

            bank = memory if isinstance(memory, CaseBank) else CaseBank(memory, embedder=embedder)
            chosen = settings_of(MemorySettings, settings, changes)
            opened = open_policy(policy)
            levels: dict[str, Any] = {"tools": ToolMemory(bank.path / "tools.sqlite")}
            if self.style == "planner":
                levels["subtasks"] = SubtaskMemory.beside(bank, opened, chosen)
            other.memory = Memory(bank, opened, chosen, feedback, **levels)
        return other

    @property
    def prior(self) -> Prior:
        """What its whole library becomes in the prompt."""
        if self._prior is None:
            self._prior = render_prior(self.library, max_tokens=self.prior_tokens, apart=self.style == "planner")
        return self._prior

    async def prior_for(self, task: Task, *, inclusion: float = 1.0, seed: int = 0) -> Prior:
        """What one attempt at one task is shown of its library; see `agentmem.agents.prior`."""
        if inclusion >= 1 and isinstance(self.prior_policy, Full):
            return self.prior  # rendered once for all attempts
        return await prior_for(
            task,
            self.library,
            policy=self.prior_policy,
            max_tokens=self.prior_tokens,
            inclusion=inclusion,
            seed=seed,
            apart=self.style == "planner",
        )

    @property
    def memory_hash(self) -> str:
        """Equal for agents that are shown the same experiences by the same rule; empty without any."""
        if self.library is None or not len(self.library):
            return ""
        return fingerprint([self.library.hash, self.prior_policy.name, self.prior_tokens])

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that it calls."""
        return tuple(model for model in (self.model, self.executor) if model is not None)

    @property
    def most_turns(self) -> int:
        """Turns of models in one attempt at most."""
        turns = self.settings.max_steps if len(self.tools) or self.tools.has_servers else 1
        if self.style == "react":
            return turns
        # Each plan may have to be asked for again, and so may the answer.
        return self.settings.max_cycles * (2 + MOST_SUBTASKS * turns) + 2

    @property
    def uses_files(self) -> bool:
        """Whether an attempt may make a working folder."""
        return self._function is not None or bool(self.tools.describe())

    async def act(self, context: Context) -> Trajectory:
        """One attempt."""
        return await self._act(context)

    def describe(self) -> dict[str, Any]:
        """What determines its behaviour, its library apart; compared when a run is gone on with."""
        about: dict[str, Any] = {
            "model": self.model.name if self.model else None,
            "base_url": address_of(self.model),
            "tools": self.tools.describe(),
            "system": self.system,
            "settings": self.settings.model_dump(),
        }
        if self.style != "react":
            about |= {"style": self.style, "executor": self.executor.name if self.executor else None}
            about["executor_url"] = address_of(self.executor)
        if self.memory is not None:
            about["memory"] = self.memory.describe()
        if self._function is not None:
            about["function"] = f"{name_of(self._function)}#{source_hash(self._function)}"
        return about

    def __repr__(self) -> str:
        learned = f", {len(self.library)} experiences" if self.library is not None else ""
        return f"Agent({self.name!r}{learned})"


# All at use: an agent is often made long before it acts, and acting brings journal, gateway and event loop along.


async def _react(context: Context) -> Trajectory:
    from agentmem.agents.react import react

    return await react(context)


async def _plan(context: Context) -> Trajectory:
    from agentmem.agents.planner import plan_and_act

    return await plan_and_act(context)


def _wrapped(function: Callable[..., Any]) -> Callable[[Context], Awaitable[Trajectory]]:
    from agentmem.agents.function import agent_function

    return agent_function(function)
