"""A stream of Zork sums for tests, at a pace that makes two runs comparable; run as a program, it learns from it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from agentmem.agents.agent import Agent
from agentmem.api import alearn_online
from agentmem.domain.task import Task
from agentmem.events import StepFinished
from agentmem.settings import ModelSettings
from agentmem.testing.hash_embedder import HashEmbedder

QUICK = {
    "reward": "numeric",
    "group_size": 4,
    "batch_size": 4,
    "gate_share": 0.4,
    "gate_min_tasks": 6,
    "gate_rounds": 3,
    "concurrency": 4,
    "listeners": (),
}
VALIDATION = [Task(id=f"v{n}", input=f"How much is {n} and 77 in Zork?", answer=str(n + 78)) for n in range(8)]


def zork_task(n: int) -> Task:
    """The n-th task of the stream."""
    a, b = n % 40, n // 40
    return Task(id=f"{a}+{b}", input=f"How much is {a} and {b} in Zork?", answer=str(a + b + 1))


class Paced:
    """Tasks that come when the last answer was given and all whole batches were learned from.

    So which library answers a task depends on its position alone, and two runs can be compared. It needs a gate that
    never waits for tasks, such as one with validation tasks.
    """

    def __init__(self, tasks) -> None:
        self.tasks = tasks
        self.given = self.answered = self.taught = self.steps = 0
        self._changed = asyncio.Event()

    def hear(self, event) -> None:
        self.steps += isinstance(event, StepFinished)
        self._changed.set()

    def on_answer(self, answer) -> None:
        self.answered += 1
        self.taught += answer.arrival.role == "teaches"
        self._changed.set()

    async def __aiter__(self):
        for task in self.tasks:
            while self.answered < self.given or self.steps < self.taught // QUICK["batch_size"]:
                self._changed.clear()
                await self._changed.wait()
            self.given += 1
            yield task


async def main(folder: str, base_url: str, tasks: int, pace: str) -> None:
    """Learn from the first so many tasks."""
    stream = Paced([zork_task(n) for n in range(tasks)])
    agent = Agent("openai/m", base_url=base_url, calls=ModelSettings(retry_wait=0.01))
    asked = {**QUICK, "embedder": HashEmbedder(), "run": Path(folder)}
    if pace == "paced":
        asked |= {"on_answer": stream.on_answer, "listeners": [stream.hear], "validation": VALIDATION}
    await alearn_online(agent, stream if pace == "paced" else stream.tasks, **asked)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]))
