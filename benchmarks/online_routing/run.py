"""Messages that must go to the right team, by rules that no model can know, and a case bank that begins empty.

    python -m benchmarks.online_routing.run            about an hour on two cores: 3 seeds, all arms
    python -m benchmarks.online_routing.run --folder F what is finished in F is not run again
    python -m benchmarks.online_routing.run --seeds 1 --messages 40 --arms none similarity --rhos 1

A real language model on the CPU (`local/smollm2`) answers each message before anything is written of it. Then, with
probability rho, a team is named (with probability .2 a wrong one): what was answered is judged by that, and the named
team is written as a correction. The score is against the true rules, which the agent is never told.

Arms: `none` has no memory; `irrelevant` is shown as many cases about something else (what more tokens do by
themselves); the others are the case policies. Writes `benchmarks/results/online_routing.json`: the learning curve of
each arm in windows, mean over seeds with its band, and the paired difference of each policy to `similarity`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from agentmem.agents.agent import Agent
from agentmem.agents.memory import Feedback
from agentmem.api import aevaluate
from agentmem.domain.case import Case
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Rollout
from agentmem.domain.task import Task
from agentmem.memory.case_bank import CaseBank
from agentmem.memory.case_policy import Candidates, Slate, reference
from agentmem.memory.embedder import Embedder, open_embedder
from agentmem.models.model import Model
from agentmem.models.names import open_model
from agentmem.settings import AgentSettings
from benchmarks.online_routing.messages import OTHER, TEAMS, Post, post
from benchmarks.results_file import write_result

POLICIES = ("similarity", "kernel_q", "parametric_q", "thompson")
ARMS = ("none", "irrelevant", *POLICIES)
WRONG = 0.2
CASES = 4
AT_ONCE = 8
SYSTEM = f"Name the team for each message. The teams are {', '.join(TEAMS)}. Answer with one word."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--window", type=int, default=40)
    parser.add_argument("--rhos", type=float, nargs="+", default=[1.0, 0.5, 0.1])
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=ARMS)
    parser.add_argument("--model", default="local/smollm2")
    parser.add_argument("--folder", type=Path, help="where finished runs are kept; by default nowhere")
    asked = parser.parse_args()
    started = time.perf_counter()
    scores = asyncio.run(all_runs(asked))
    figures = {
        "model": asked.model,
        "n": f"{asked.seeds} seeds x {asked.messages} messages, {CASES} cases at most, wrong labels {WRONG:.0%}",
        "window": asked.window,
        "seconds": round(time.perf_counter() - started),
        "curves": {f"rho {rho:g}": curves(scores, rho, asked) for rho in asked.rhos},
        "against_similarity": {f"rho {rho:g}": differences(scores, rho, asked) for rho in asked.rhos},
    }
    write_result("online_routing", figures)


Scores = dict[tuple[str, float, int], list[float]]
"""By arm, rho and seed: the score of each message, in order of arrival."""


async def all_runs(asked: argparse.Namespace) -> Scores:
    """Every arm on every seed, some at once. Arms that are told nothing do not depend on rho, and run once."""
    model, embedder = open_model(asked.model), open_embedder("minilm")
    scores: Scores = {}
    places = asyncio.Semaphore(AT_ONCE)  # a local model answers several at once in little more time than one

    async def one(rho: float, seed: int, arm: str, folder: Path) -> None:
        place = folder / f"{arm}-{rho:g}-{seed}-{asked.messages}"
        arrived = post(seed, asked.messages, revealed=rho, wrong=WRONG)
        async with places:
            made = finished(place) or await one_run(arm, arrived, model, embedder, place, seed)
        print(f"seed {seed} {arm:13} rho {rho:g}: {fmean(made):.3f}", flush=True)
        for same in (rho,) if arm in POLICIES else asked.rhos:
            scores[arm, same, seed] = made

    with tempfile.TemporaryDirectory() as nowhere:
        async with asyncio.TaskGroup() as group:
            for rho, seed, arm in product(asked.rhos, range(asked.seeds), asked.arms):
                if arm in POLICIES or rho == asked.rhos[0]:
                    group.create_task(one(rho, seed, arm, asked.folder or Path(nowhere)))
    return scores


def finished(place: Path) -> list[float] | None:
    """The scores of an earlier run of this arm and seed; what was cut off before its end begins anew."""
    kept = place / "scores.json"
    if kept.exists():
        return [float(score) for score in json.loads(kept.read_text())]
    shutil.rmtree(place, ignore_errors=True)
    return None


async def one_run(
    arm: str, arrived: Post, model: Model, embedder: Embedder, place: Path, seed: int
) -> list[float]:
    """One arm on one seed: every message is answered and scored before anything of it is written."""

    def told(task: Task, rollout: Rollout) -> Feedback | None:
        team = arrived.revealed[task.id]
        if team is None:
            return None
        right = names(rollout.output) == team
        return Feedback(reward=Reward.of(float(right)), correction=team, keep_attempt=False)

    settings = AgentSettings(max_completion_tokens=6)
    agent = Agent(model, system=SYSTEM, settings=settings)
    bank = CaseBank(place / "bank", embedder=embedder)
    shared: dict[str, Any] = {"cases": CASES, "show": "turns"}
    if arm == "irrelevant":
        for question, answer in OTHER:
            bank.retain(Case.of(question, answer, reward=1.0))
        agent = agent.with_memory(bank, policy=AnyOf(), **shared)
    elif arm != "none":
        agent = agent.with_memory(bank, policy=arm, online=True, feedback=told, **shared)
    report = await aevaluate(
        agent, arrived.tasks, reward=right_team, temperature=0.0, seed=seed, run=place / "run", listeners=()
    )
    bank.close()
    by_task = report.task_scores()
    made = [by_task[task.id] for task in arrived.tasks]
    (place / "scores.json").write_text(json.dumps(made))
    return made


def right_team(task: Task, trajectory: Any) -> float:
    """Whether the first team that the answer names is the right one."""
    return float(names(trajectory.output) == task.answer)


def names(answer: str | None) -> str | None:
    """The first team in an answer."""
    found = [(place, team) for team in TEAMS if (place := (answer or "").casefold().find(team.casefold())) >= 0]
    return min(found)[1] if found else None


class AnyOf:
    """Any cases, however far: the control."""

    name = "any"

    def choose(self, candidates: Candidates, k: int, *, seed: int) -> Slate:
        rows = random.Random(seed).sample(range(len(candidates)), min(k, len(candidates)))
        mu0 = reference(candidates.cosines)
        return Slate(tuple(rows), mu0, mu0)


def curves(scores: Scores, rho: float, asked: argparse.Namespace) -> dict[str, Any]:
    """Each arm's score in windows of arrival: mean over seeds, and the range of the seeds as its band."""
    shown = {}
    for arm in asked.arms:
        runs = np.array([scores[arm, rho, seed] for seed in range(asked.seeds)])
        windows = [runs[:, at : at + asked.window].mean(axis=1) for at in range(0, asked.messages, asked.window)]
        shown[arm] = {
            "all": round(float(runs.mean()), 3),
            "windows": [round(float(w.mean()), 3) for w in windows],
            "low": [round(float(w.min()), 3) for w in windows],
            "high": [round(float(w.max()), 3) for w in windows],
        }
    return shown


def differences(scores: Scores, rho: float, asked: argparse.Namespace) -> dict[str, Any]:
    """Each policy minus `similarity` on the same messages, over the second half, when there is something to know."""
    if "similarity" not in asked.arms:
        return {}
    half = asked.messages // 2
    shown = {}
    for arm in (arm for arm in asked.arms if arm in POLICIES and arm != "similarity"):
        each = [
            fmean(
                a - b for a, b in zip(scores[arm, rho, s][half:], scores["similarity", rho, s][half:], strict=True)
            )
            for s in range(asked.seeds)
        ]
        shown[arm] = {"mean": round(fmean(each), 3), "seeds": [round(d, 3) for d in each], **spread(each)}
    return shown


def spread(values: Sequence[float]) -> dict[str, float]:
    """The standard error over seeds, where there are several."""
    return {"standard_error": round(stdev(values) / len(values) ** 0.5, 3)} if len(values) > 1 else {}


if __name__ == "__main__":
    main()
