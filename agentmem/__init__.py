"""Lets any LLM agent learn from experience instead of from gradients.

    import agentmem as am

    train, test = am.load_tasks("problems.jsonl").split(0.5, seed=0)
    agent = am.Agent("openai/gpt-4.1-mini")
    before = am.evaluate(agent, test, reward="math")
    library = am.learn(agent, train, reward="math", group_size=5, epochs=3)
    after = am.evaluate(agent.with_experience(library), test, reward="math")
    print(am.compare(before, after))

Each name is loaded on first use, so that `import agentmem` costs milliseconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentmem.agents.agent import Agent
    from agentmem.agents.memory import Feedback
    from agentmem.api import aevaluate, alearn, alearn_online, evaluate, learn, learn_online, rescore
    from agentmem.domain.case import Case
    from agentmem.domain.experience import Experience, ExperienceLibrary
    from agentmem.domain.reward import Reward
    from agentmem.domain.rollout import Group, Rollout
    from agentmem.domain.task import Task, TaskSet
    from agentmem.domain.trajectory import Trajectory
    from agentmem.errors import AgentMemError
    from agentmem.evaluation.comparison import compare
    from agentmem.evaluation.controls import controlled
    from agentmem.evaluation.seeds import compare_seeds
    from agentmem.learning.online_result import OnlineResult
    from agentmem.library_files import load_library, save_library
    from agentmem.memory.case_bank import CaseBank
    from agentmem.settings import AgentSettings, Budget, EvalSettings, LearnSettings, MemorySettings
    from agentmem.task_files import load_tasks
    from agentmem.task_sources.benchmark import Benchmark
    from agentmem.task_sources.hub import Hub
    from agentmem.tools.tool import tool

__version__ = "0.1.0"

_HOMES = {
    "Agent": "agentmem.agents.agent",
    "AgentMemError": "agentmem.errors",
    "AgentSettings": "agentmem.settings",
    "Benchmark": "agentmem.task_sources.benchmark",
    "Budget": "agentmem.settings",
    "Case": "agentmem.domain.case",
    "CaseBank": "agentmem.memory.case_bank",
    "EvalSettings": "agentmem.settings",
    "Experience": "agentmem.domain.experience",
    "ExperienceLibrary": "agentmem.domain.experience",
    "Feedback": "agentmem.agents.memory",
    "Group": "agentmem.domain.rollout",
    "Hub": "agentmem.task_sources.hub",
    "LearnSettings": "agentmem.settings",
    "MemorySettings": "agentmem.settings",
    "OnlineResult": "agentmem.learning.online_result",
    "Reward": "agentmem.domain.reward",
    "Rollout": "agentmem.domain.rollout",
    "Task": "agentmem.domain.task",
    "TaskSet": "agentmem.domain.task",
    "Trajectory": "agentmem.domain.trajectory",
    "aevaluate": "agentmem.api",
    "alearn": "agentmem.api",
    "alearn_online": "agentmem.api",
    "compare": "agentmem.evaluation.comparison",
    "compare_seeds": "agentmem.evaluation.seeds",
    "controlled": "agentmem.evaluation.controls",
    "evaluate": "agentmem.api",
    "learn": "agentmem.api",
    "learn_online": "agentmem.api",
    "load_library": "agentmem.library_files",
    "load_tasks": "agentmem.task_files",
    "rescore": "agentmem.api",
    "save_library": "agentmem.library_files",
    "tool": "agentmem.tools.tool",
}
"""Where each public name lives; a test holds this table, `__all__` and the imports above together."""

__all__ = [
    "Agent",
    "AgentMemError",
    "AgentSettings",
    "Benchmark",
    "Budget",
    "Case",
    "CaseBank",
    "EvalSettings",
    "Experience",
    "ExperienceLibrary",
    "Feedback",
    "Group",
    "Hub",
    "LearnSettings",
    "MemorySettings",
    "OnlineResult",
    "Reward",
    "Rollout",
    "Task",
    "TaskSet",
    "Trajectory",
    "aevaluate",
    "alearn",
    "alearn_online",
    "compare",
    "compare_seeds",
    "controlled",
    "evaluate",
    "learn",
    "learn_online",
    "load_library",
    "load_tasks",
    "rescore",
    "save_library",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'agentmem' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value  # so that the next use costs nothing
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
