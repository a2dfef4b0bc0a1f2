"""What the library costs on top of the calls that it makes: CPU, makespan, memory, import time.

    python benchmarks/overhead.py            writes benchmarks/results/overhead.json

All figures are ratios or differences within one run of this script, on one machine, without any network. Latencies
and answers are scripted, so nothing here says anything about a language model.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
from openai import AsyncOpenAI

from agentmem.agents.agent import Agent
from agentmem.domain.task import Task, TaskSet
from agentmem.domain.trajectory import Message
from agentmem.evaluation.evaluate import Evaluation
from agentmem.events import Event, PhaseStarted, RolloutFinished
from agentmem.execution import carry_out
from agentmem.learning.learn import Learning
from agentmem.models.gateway import Gateway
from agentmem.models.handle import ModelHandle
from agentmem.models.openai import OpenAIModel
from agentmem.rewards.reward_function import resolve_reward
from agentmem.runs.run import Run
from agentmem.settings import EvalSettings, LearnSettings, ModelSettings
from agentmem.testing.scripted import ScriptedModel
from benchmarks.results_file import write_result

CONCURRENCY = 64
MEDIAN_LATENCY = 0.5
"""Seconds of a simulated call: short for a language model, so that the library's own time does not vanish in it."""
PROMPT = "A question of some length, as tasks are. " * 20
COMPLETION = {
    "id": "x",
    "object": "chat.completion",
    "created": 0,
    "model": "stub",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "An answer. " * 30}}
    ],
    "usage": {"prompt_tokens": 200, "completion_tokens": 90, "total_tokens": 290},
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        figures = {
            "cpu": asyncio.run(cpu_per_call(path)),
            # The slowest of 100 calls takes 5 times the median, as APIs do on a good day; and 10 times.
            "makespan": asyncio.run(makespan(path, sigma=0.7)),
            "makespan_heavier_tail": asyncio.run(makespan(path, sigma=1.0)),
            "memory": asyncio.run(memory(path)),
            "imports": imports(),
        }
    write_result("overhead", figures)


async def cpu_per_call(folder: Path, *, calls: int = 3000, repeats: int = 5) -> dict[str, Any]:
    """Process CPU per call: the bare client, its own generic method, and ours with journal; medians of repeats."""
    client = AsyncOpenAI(
        api_key="none",
        base_url="http://stub/v1",
        max_retries=0,
        http_client=httpx.AsyncClient(transport=Stub(), limits=httpx.Limits(max_connections=None)),
    )
    body: dict[str, Any] = {"model": "stub", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 100}

    async def bare(i: int) -> None:
        await client.chat.completions.create(**body, seed=i)

    async def generic(i: int) -> None:
        (await client.post("/chat/completions", cast_to=httpx.Response, body={**body, "seed": i})).json()

    run = Run.open(folder / "cpu", {"verb": "benchmark"})
    gateway = Gateway(
        OpenAIModel("stub", client=client), run.ledger, settings=ModelSettings(max_in_flight=CONCURRENCY)
    )
    number = iter(range(10**9))

    async def ours(i: int) -> None:
        scope = run.at("bench", task=str(next(number)))
        handle = ModelHandle(gateway, scope, purpose="act", seed=i)
        await handle.complete([Message(role="user", content=PROMPT)], max_tokens=100)

    ways: dict[str, Callable[[int], Awaitable[None]]] = {"bare": bare, "generic": generic, "ours": ours}
    for way in ways.values():
        await at_once(way, 200)
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):  # in turn, so that drift of the machine hits all alike
        for name, way in ways.items():
            gc.collect()
            started = time.process_time()
            await at_once(way, calls)
            samples[name].append((time.process_time() - started) / calls * 1000)
    run.close()
    median = {name: statistics.median(values) for name, values in samples.items()}
    return {
        "n": f"{repeats} repeats of {calls} calls, concurrency {CONCURRENCY}, stub transport, journal on",
        "bare_client_ms": round(median["bare"], 3),
        "generic_post_of_the_client_ms": round(median["generic"], 3),
        "ours_ms": round(median["ours"], 3),
        "added_over_bare_client_ms": round(median["ours"] - median["bare"], 3),
        "added_over_generic_post_ms": round(median["ours"] - median["generic"], 3),
        "target_added_ms": 0.4,
    }


class Stub(httpx.AsyncBaseTransport):
    """Answers at once, without a socket."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=COMPLETION)


async def at_once(work: Callable[[int], Awaitable[None]], count: int) -> None:
    """`count` calls by `CONCURRENCY` workers."""
    numbers = iter(range(count))

    async def worker() -> None:
        for i in numbers:
            await work(i)

    await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))


async def makespan(
    folder: Path, *, sigma: float, tasks: int = 464, group: int = 5, repeats: int = 5
) -> dict[str, Any]:
    """Wall time of one learning step against its critical path, with lognormal latencies.

    The candidate's rounds wait for the rollouts that it is made of, and for each other, because a round is only bought
    if the one before did not decide. So no schedule is faster than the sum of max(work / concurrency, longest call)
    over these three, nor than all work / concurrency. The incumbent's attempts wait for nothing, so they count in the
    work alone. The one liberty that the library takes with this order is to begin a round when no straggler of the
    round before can decide any more; the bound knows nothing of that, and counts each round in full.

    Nobody knows beforehand which call will be slow, so beside the bound stands the greedy schedule of the same
    latencies in the same order, with no overhead at all, in which the incumbent's attempts take no time either.
    """
    settings = LearnSettings(extractor="exemplar", group_size=group, epochs=1, gate_rounds=2, gate_min_tasks=64)
    ratios, to_greedy, knowing_nothing = [], [], []
    for repeat in range(repeats):
        latencies: dict[str, list[float]] = {}
        phase = [""]

        def latency(request: Any, repeat: int = repeat, phase: list[str] = phase, by: Any = latencies) -> float:
            rng = random.Random(f"{repeat}/{request.seed}/{request.messages[-1].content}")
            drawn = rng.lognormvariate(math.log(MEDIAN_LATENCY), sigma)
            # With nothing but the question at the gate's temperature, it is the incumbent that is asked.
            incumbent = len(request.messages) == 1 and request.temperature == settings.gate_temperature
            by.setdefault("incumbent" if incumbent else phase[0], []).append(drawn)
            return drawn

        def follow(event: Event, phase: list[str] = phase, by: Any = latencies) -> None:
            if isinstance(event, PhaseStarted):
                phase[0] = f"{event.phase} {event.step} {event.title}"

        model = ScriptedModel(lambda request: "right" if request.seed % 3 else "wrong", latency=latency)
        model.parallel = CONCURRENCY  # its limit is known, so nothing is spent on finding it
        bench = TaskSet([Task(id=str(i), input=f"Task {i}?", answer="right") for i in range(tasks)])
        plan = Learning.of(
            Agent(model),
            bench,
            resolve_reward("exact"),
            settings,
        )
        started = time.perf_counter()
        await carry_out(plan, folder / f"makespan-{sigma}-{repeat}", listeners=[follow])
        wall = time.perf_counter() - started
        work = sum(map(sum, latencies.values())) / CONCURRENCY
        del latencies["incumbent"]
        assert len(latencies) == 3, latencies.keys()
        bound = max(work, sum(max(sum(drawn) / CONCURRENCY, max(drawn)) for drawn in latencies.values()))
        ratios.append(wall / bound)
        without_overhead = max(work, sum(greedy(drawn) for drawn in latencies.values()))
        to_greedy.append(wall / without_overhead)
        knowing_nothing.append(without_overhead / bound)
    return {
        "n": f"{repeats} repeats; {tasks} tasks x {group}, gate of 64 x 2 rounds; "
        f"simulated lognormal, median {MEDIAN_LATENCY:g} s, sigma {sigma:g}",
        "ratio_to_lower_bound": [round(ratio, 3) for ratio in ratios],
        "median_ratio": round(statistics.median(ratios), 3),
        "ratio_to_greedy_schedule_without_overhead": [round(ratio, 3) for ratio in to_greedy],
        "median_ratio_to_greedy": round(statistics.median(to_greedy), 3),
        "greedy_schedule_to_lower_bound": [round(ratio, 3) for ratio in knowing_nothing],
        "median_greedy_to_lower_bound": round(statistics.median(knowing_nothing), 3),
        "target_ratio": 1.15,
    }


def greedy(latencies: list[float]) -> float:
    """When the last of these calls ends, each started as soon as one of `CONCURRENCY` places is free."""
    ends = [0.0] * CONCURRENCY
    for latency in latencies:
        heapq.heapreplace(ends, ends[0] + latency)
    return max(ends)


async def memory(folder: Path, *, rollouts: int = 10_000) -> dict[str, Any]:
    """Resident memory that an evaluation of 10,000 rollouts adds to the process."""

    class Forgetful(ScriptedModel):
        """Does not keep requests: the library's memory is measured, not the script's."""

        async def complete(self, request: Any) -> Any:
            self.requests.clear()
            return await super().complete(request)

    model = Forgetful(lambda request: "An answer of ordinary length. " * 40, parallel=CONCURRENCY)
    tasks = TaskSet([Task(id=str(i), input=f"{PROMPT} {i}?", answer="An answer") for i in range(rollouts // 4)])
    heard = 0

    def hear(event: Event) -> None:
        nonlocal heard
        heard += isinstance(event, RolloutFinished)

    plan = Evaluation.of(Agent(model), tasks, resolve_reward("exact"), EvalSettings(samples=4))
    gc.collect()
    process = psutil.Process()
    before, peak = process.memory_info().rss, 0

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, process.memory_info().rss)
            await asyncio.sleep(0.05)

    watching = asyncio.create_task(watch())
    started = time.perf_counter()
    report = await carry_out(plan, folder / "memory", listeners=[hear])
    seconds = time.perf_counter() - started
    watching.cancel()
    assert heard == len(report.outcomes) == rollouts
    return {
        "n": f"{rollouts} rollouts, concurrency 64, journal on",
        "added_mb": round((peak - before) / 1e6, 1),
        "target_mb": 300,
        "rollouts_per_second": round(rollouts / seconds),
    }


def imports(*, repeats: int = 7) -> dict[str, Any]:
    """Wall seconds of a process, less those of an empty one: medians."""
    first_use = (
        "import agentmem as am; am.Task(id='a', input='b'); am.Agent('openai/m', base_url='http://localhost/v1')"
    )
    pydantic = "import pydantic; type('One', (pydantic.BaseModel,), {'__annotations__': {'x': int}})(x=1)"
    commands = {
        "empty": ["-c", "pass"],
        "pydantic": ["-c", pydantic],
        "import_agentmem": ["-c", "import agentmem"],
        "first_task_and_agent": ["-c", first_use],
        "help": ["-m", "agentmem", "--help"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, arguments in commands.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            seconds[name].append(time.perf_counter() - started)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    empty = median["empty"]
    return {
        "n": f"medians of {repeats} processes each",
        "import_agentmem_s": round(median["import_agentmem"] - empty, 3),
        "target_import_s": 0.15,
        "first_task_and_agent_s": round(median["first_task_and_agent"] - median["import_agentmem"], 3),
        "target_first_use_s": 0.2,
        "of_which_a_first_model_of_pydantic_s": round(median["pydantic"] - empty, 3),
        "agentmem_help_s": round(median["help"], 3),
        "target_help_s": 0.5,
    }


if __name__ == "__main__":
    main()
