"""Do the case policies learn what to recall? A simulation: a contextual bandit over cases, with a known optimum.

No language model takes part. Messages of 24 topics arrive, each to be answered in one of 6 ways by a rule that only the
cases know; a fifth of the cases is wrong. The reader follows one of the recalled cases at random; topics differ in how
likely the right answer is rewarded. Because all probabilities are known, so is the regret: what the best slate of the
50 nearest cases would have brought on average, minus what the chosen one does. Values and credit are the library's own.

    python -m benchmarks.case_bandit            # about ten minutes of one core; writes results/case_bandit.json
    python -m benchmarks.case_bandit --quick    # a look, not written
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agentmem.domain.seed import split_seed
from agentmem.evaluation.intervals import mean_interval, paired_interval
from agentmem.memory.case_policy import POOL, Candidates, CasePolicy, Slate
from agentmem.memory.kernel_q import KernelQ
from agentmem.memory.parametric_q import ParametricQ
from agentmem.memory.past_uses import Attempt, PastUses
from agentmem.memory.policies import POLICIES
from agentmem.memory.slate_credit import shares
from agentmem.memory.value_network import BUFFER, Replay
from benchmarks.results_file import write_result

TOPICS, ANSWERS, DIMENSIONS = 24, 6, 64
NOISE = 0.9
"""Two messages of one topic have a cosine of about .55, as with all-MiniLM-L6-v2."""
WRONG = 0.2
"""Share of cases that hold a wrong answer, and of corrections that do."""


@dataclass(frozen=True)
class Setting:
    """How a bank is used."""

    name: str
    k: int
    cases: int = 120
    """In the bank at the start."""
    corrected: float = 0.0
    """How often a correction is written after a message."""
    cites: bool = False
    """Whether the reader says which case it followed."""


SETTINGS = (
    Setting("one case recalled", 1),
    Setting("four recalled", 4),
    Setting("four recalled, the used one cited", 4, cites=True),
    Setting("four recalled, bank grows from nothing", 4, cases=0, corrected=0.5),
)


@dataclass
class World:
    """Topics, their right answers, and how likely those are rewarded."""

    seed: int
    wrong: float = WRONG
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(split_seed(self.seed, "world"))
        self.centres = unit(self.rng.normal(size=(TOPICS, DIMENSIONS)))
        self.right = self.rng.integers(ANSWERS, size=TOPICS)
        self.ease = self.rng.uniform(0.5, 1.0, size=TOPICS)

    def message(self) -> tuple[int, np.ndarray]:
        """A topic and a state of it."""
        topic = int(self.rng.integers(TOPICS))
        return topic, self.state(topic)

    def state(self, topic: int) -> np.ndarray:
        noise = self.rng.normal(size=DIMENSIONS) * NOISE / math.sqrt(DIMENSIONS)
        return unit(self.centres[topic] + noise).astype(np.float32)

    def case(self, topic: int) -> int:
        """The answer that a case of this topic holds."""
        others = [answer for answer in range(ANSWERS) if answer != self.right[topic]]
        return int(self.rng.choice(others) if self.rng.random() < self.wrong else self.right[topic])

    def worth(self, topic: int, answers: Sequence[int]) -> float:
        """The expected reward of a slate: of one answer that is followed, or of a guess without any."""
        if not len(answers):
            return 0.15 * float(self.ease[topic])
        return float(np.mean([self.follow(topic, answer) for answer in answers]))

    def follow(self, topic: int, answer: int) -> float:
        return float(self.ease[topic]) * (1.0 if answer == self.right[topic] else 0.05)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


class Bank:
    """Cases and their uses in memory, with the values and credit of the library."""

    def __init__(self) -> None:
        self.states: list[np.ndarray] = []
        self.answers: list[int] = []
        self.past = PastUses(DIMENSIONS)
        self.log: list[tuple[np.ndarray, int, float, float, float]] = []

    def retain(self, state: np.ndarray, answer: int) -> None:
        self.past.load(str(len(self.states)), [])
        self.states.append(state)
        self.answers.append(answer)

    def candidates(self, state: np.ndarray) -> tuple[list[int], Candidates]:
        matrix = np.stack(self.states) if self.states else np.zeros((0, DIMENSIONS), np.float32)
        cosines = matrix @ state
        near = np.argsort(-cosines, kind="stable")[:POOL]
        means = self.past.baselines(state)
        return near.tolist(), Candidates(
            state=state,
            vectors=matrix[near],
            cosines=cosines[near].astype(np.float64),
            rewards=np.ones(len(near)),  # a correction is written as a success, whether it is right or not
            uses=self.past.of([str(row) for row in near], state),
            baseline=means.reward,
            no_case=means.without,
            no_case_mass=means.without_mass,
        )

    def credit(self, state: np.ndarray, recalled: Sequence[int], cited: Sequence[int], reward: float) -> None:
        parts = shares([str(row) for row in recalled], [str(row) for row in cited])
        baseline = self.past.baselines(state).reward
        self.past.add(Attempt(state, reward, baseline, not recalled, parts))
        self.log += [(state, row, reward, baseline, parts[str(row)]) for row in recalled]

    def replay(self) -> Replay:
        states, rows, rewards, baselines, parts = zip(*self.log[-BUFFER:], strict=True)
        cases = np.stack([self.states[row] for row in rows])
        return Replay(np.stack(states), cases, np.array(rewards), np.array(baselines), np.array(parts))


def play(policy: CasePolicy, setting: Setting, *, rounds: int, seed: int, wrong: float = WRONG) -> np.ndarray:
    """The expected regret of each message. The messages, and what is written, are the same for every policy."""
    world = World(seed, wrong)
    bank = Bank()
    luck = np.random.default_rng(split_seed(seed, "luck"))
    for row in range(setting.cases):
        topic = row % TOPICS
        bank.retain(world.state(topic), world.case(topic))
    regrets = np.zeros(rounds)
    for n in range(rounds):
        topic, state = world.message()
        pool, candidates = bank.candidates(state)
        slate = policy.choose(candidates, setting.k, seed=split_seed(seed, "slate", n))
        recalled = [pool[row] for row in slate.rows]
        answers = [bank.answers[row] for row in recalled]
        best = max([world.worth(topic, []), *(world.follow(topic, bank.answers[row]) for row in pool)])
        regrets[n] = best - world.worth(topic, answers)
        followed = int(luck.integers(len(recalled))) if recalled else None
        chance = world.worth(topic, []) if followed is None else world.follow(topic, answers[followed])
        cited = [recalled[followed]] if followed is not None and setting.cites else []
        bank.credit(state, recalled, cited, float(luck.random() < chance))
        if isinstance(policy, ParametricQ) and bank.log and (n + 1) % policy.every == 0:
            policy.learn(bank.replay())
        written, answer = world.rng.random() < setting.corrected, world.case(topic)
        if written:
            bank.retain(state, answer)
    return regrets


class NoCases:
    """The control: recalls nothing."""

    name = "no case"

    def choose(self, candidates: Candidates, k: int, *, seed: int) -> Slate:
        none = np.append(np.zeros(len(candidates)), 1.0)
        return Slate((), none, none)


ARMS: dict[str, Callable[[], CasePolicy]] = {
    "no case": NoCases,
    **POLICIES,
    "kernel_q, bare kernel": lambda: KernelQ(elsewhere=0.0),
    "kernel_q, no own reward": lambda: KernelQ(own=0.0),
}


def measure(setting: Setting, seeds: int, rounds: int) -> dict[str, Any]:
    """Mean regret a message of all arms, over the stream and its last third; and how far it is below similarity."""
    regrets = {
        name: np.stack([play(make(), setting, rounds=rounds, seed=seed) for seed in range(seeds)])
        for name, make in ARMS.items()
    }
    third = 2 * rounds // 3
    rows = {}
    for name, found in regrets.items():
        late, whole = found[:, third:].mean(axis=1), found.mean(axis=1)
        rows[name] = {
            "regret": interval(mean_interval(whole.tolist(), bounds=(0, 1)), whole),
            "last_third": interval(mean_interval(late.tolist(), bounds=(0, 1)), late),
        }
        if name != "similarity":
            saved = regrets["similarity"][:, third:].mean(axis=1) - late
            rows[name]["saved_in_last_third"] = interval(paired_interval(saved.tolist()), saved)
    return {"setting": setting.name, "k": setting.k, "seeds": seeds, "rounds": rounds, "arms": rows}


def interval(made: Any, values: np.ndarray) -> dict[str, Any]:
    return {
        "mean": round(float(values.mean()), 4),
        "low": round(made.low, 4),
        "high": round(made.high, 4),
        "method": made.method,
    }


def summary(results: Sequence[dict[str, Any]]) -> list[str]:
    lines = []
    for result in results:
        lines.append(f"\n{result['setting']} ({result['seeds']} seeds, {result['rounds']} messages)")
        for name, row in result["arms"].items():
            shown = {key: f"{x['mean']:+.3f} [{x['low']:+.3f}, {x['high']:+.3f}]" for key, x in row.items()}
            lines.append(f"  {name:26}" + "   ".join(f"{key} {text}" for key, text in shown.items()))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few seeds; nothing is written")
    quick = parser.parse_args().quick
    seeds, rounds = (3, 300) if quick else (12, 600)
    began = time.perf_counter()
    results = [measure(setting, seeds, rounds) for setting in SETTINGS]
    print("\n".join(summary(results)))
    if not quick:
        seconds = round(time.perf_counter() - began)
        about = "a simulation: a contextual bandit over cases, without a language model"
        write_result(
            "case_bandit", {"about": about, "wrong_cases": WRONG, "settings": results, "seconds": seconds}
        )


if __name__ == "__main__":
    main()
