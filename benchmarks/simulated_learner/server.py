"""The simulated world behind an OpenAI-compatible server, with a tally of what each role cost.

    python -m benchmarks.simulated_learner.server --seed 0        as a process; prints its address as JSON

Every draw depends on the server's seed, the content of the request (its own seed included) and how often the same
request came before: never on the order in which different requests arrive.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentmem.domain.trajectory import Message
from agentmem.domain.usage import Usage, estimate_tokens
from agentmem.errors import InputError
from agentmem.prompts import load
from agentmem.testing.chat import ChatAnswer, ChatRequest
from agentmem.testing.server import ChatServer
from benchmarks.simulated_learner.distiller import Distiller
from benchmarks.simulated_learner.world import WITH, World

TEMPLATES = ("distil", "summarise", "contrast", "group_update", "consolidate", "critique")
"""Our prompts that ask for something else than a task; each is recognised by its first line."""
PEERS = {
    "reflect": "I provided an assistant with the following instructions to perform a task for me:",
    "reflect_dspy": "I provided an assistant with instructions to perform a task for me.",
}
"""How the reflection prompts of gepa 0.1.4 and dspy 3.4.1 begin."""


class Roles:
    """Which role a prompt asks for."""

    def __init__(self) -> None:
        self.marks = {role: line for role in TEMPLATES if (line := first_line(role))} | PEERS

    def of(self, messages: Sequence[Message]) -> str:
        """The role; `task` where nothing else is recognised."""
        lines = {line.strip() for m in messages if m.role != "assistant" for line in m.content.splitlines()}
        for role, mark in self.marks.items():
            if any(line.startswith(mark) for line in lines):
                return role
        return "task"


def first_line(template: str) -> str:
    """The line that a prompt of this template begins with; empty where there is no such template."""
    try:
        source = load(template).source
    except InputError:
        return ""
    body = source.split("\n---\n", 1)[1]
    return next(line for line in body.splitlines() if line.strip()).split("{", 1)[0].strip()


@dataclass
class Cost:
    """What one role cost."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt_tokens + self.completion_tokens


@dataclass
class Tally:
    """What was asked of the server, by role. Tokens are characters / 4, for all systems alike."""

    by_role: dict[str, Cost] = field(default_factory=dict)

    def add(self, role: str, usage: Usage) -> None:
        """One more call."""
        cost = self.by_role.setdefault(role, Cost())
        cost.calls += 1
        cost.prompt_tokens += usage.prompt_tokens
        cost.completion_tokens += usage.completion_tokens

    @property
    def calls(self) -> int:
        """Calls of all roles."""
        return sum(cost.calls for cost in self.by_role.values())

    @property
    def tokens(self) -> int:
        """Tokens of all roles."""
        return sum(cost.tokens for cost in self.by_role.values())


class Simulation:
    """The script of a `ChatServer`: tasks are answered by the world's probabilities, the rest by the distiller."""

    def __init__(self, world: World, distiller: Distiller | None = None) -> None:
        self.world = world
        self.distiller = distiller or Distiller(world)
        self.tally = Tally()
        self._roles = Roles()

    def __call__(self, chat: ChatRequest) -> ChatAnswer:
        """Answer one request.

        Raises:
            ValueError: it holds neither a task of this world nor a role that is known.
        """
        messages = chat.request.messages
        prompt = "\n\n".join(message.content for message in messages if message.role != "assistant")
        role = self._roles.of(messages)
        rng = chat.rng(role)
        if role in ("task", "critique"):
            text = self._attempt(prompt, chat, refined=role == "critique")
        else:
            text = self.distiller.answer(role, prompt, rng)
        usage = Usage(
            prompt_tokens=sum(estimate_tokens(message.content) for message in messages),
            completion_tokens=estimate_tokens(text),
        )
        self.tally.add(role, usage)
        return ChatAnswer(text=text, usage=usage)

    def _attempt(self, prompt: str, chat: ChatRequest, *, refined: bool) -> str:
        tasks = self.world.tasks_in(chat.last_user)
        if not tasks:
            raise ValueError("this is neither a task of the simulated world nor a prompt that is known")
        task, rng = tasks[-1], chat.rng("answer")
        assert task.answer is not None  # every task of a World has one
        p = self.world.p(task.metadata["family"], prompt)
        if refined and task.answer in prompt:
            p = WITH  # a critique that shows the reference
        right = rng.random() < p
        number = task.answer
        while not right and number == task.answer:
            number = str(rng.randint(1000, 9999))
        if "[[ ## answer ## ]]" in prompt:  # the chat format of dspy
            return f"[[ ## answer ## ]]\n{number}\n\n[[ ## completed ## ]]"
        return rng.choice(("{}", "The answer is {}.", "It comes to {}.")).format(number)


def serve(simulation: Simulation, *, seed: int, port: int = 0) -> ChatServer:
    """The server of a simulation; see `ChatServer` for how it is started."""
    return ChatServer(simulation, seed=seed, port=port, models=("simulated",))


def main(arguments: list[str] | None = None) -> None:
    """Serve until interrupted; the first line on stdout is the address as JSON, the last the tally."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.simulated_learner.server", description=main.__doc__
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0, help="of the world and of all draws")
    given = parser.parse_args(arguments)

    async def run() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        simulation = Simulation(World(given.seed))
        async with serve(simulation, seed=given.seed, port=given.port) as server:
            print(json.dumps({"base_url": server.base_url, "model": "simulated"}), flush=True)
            await stop.wait()
        by_role = {role: vars(cost) for role, cost in simulation.tally.by_role.items()}
        print(json.dumps({"calls": simulation.tally.calls, "by_role": by_role}), flush=True)

    asyncio.run(run())


if __name__ == "__main__":
    main()
