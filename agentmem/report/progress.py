"""How far a run is: what its events add up to. Every display shows this."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agentmem.domain.operation import Add, Delete, Merge, Modify
from agentmem.domain.usage import Usage
from agentmem.events import (
    Answered,
    CallFinished,
    Event,
    GateDecided,
    GroupFinished,
    OperationsDecided,
    PhaseStarted,
    RolloutFinished,
    RunOpened,
    StepFinished,
)
from agentmem.format import count, number
from agentmem.report.learned import verdict_words

LATEST = 50
"""Answers of a stream whose mean is shown."""


@dataclass
class Progress:
    """The state of a run, as far as its events tell."""

    clock: Callable[[], float] = time.monotonic
    path: str = ""
    stored: int = 0
    """Results that the run held when it was opened."""
    phase: str = ""
    title: str = ""
    step: int = 0
    steps: int = 0
    done: int = 0
    """Rollouts of this phase that are in."""
    total: int = 0
    scores: list[float] = field(default_factory=list)
    """Of this phase."""
    step_rewards: list[float | None] = field(default_factory=list)
    """Mean reward of each finished learning step."""
    answers: list[float | None] = field(default_factory=list)
    """Scores of the newest answers of a stream."""
    answered: int = 0
    taught: int = 0
    skipped: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    rejected: int = 0
    verdict: str = ""
    """What the gate said last."""
    failed: int = 0
    experiences: int = 0
    in_flight: int = 0
    limit: int = 0
    usage: Usage = field(default_factory=Usage)
    started: float = 0.0
    phase_started: float = 0.0
    _announced: tuple[str, str, int] = ("", "", -1)

    def __post_init__(self) -> None:
        self.started = self.phase_started = self.clock()

    def hear(self, event: Event) -> None:
        """Take one event in."""
        match event:
            case RunOpened():
                self.path, self.stored = event.path, event.stored
            case PhaseStarted() if (event.phase, event.title, event.step) == self._announced:
                self.total += event.rollouts  # the other arm of the same round
            case PhaseStarted():
                self._announced = event.phase, event.title, event.step
                self.phase, self.title, self.total = event.phase, event.title, event.rollouts
                self.done, self.scores, self.phase_started = 0, [], self.clock()
                if event.phase != "gate":
                    self.step, self.steps = event.step, event.steps
            case CallFinished():
                self.usage = self.usage + event.usage
                self.in_flight, self.limit = event.in_flight, event.limit
            case RolloutFinished(rollout=rollout):
                self.failed += rollout.score is None
                # What is drawn ahead for the gate, while learning still goes on, is no part of this phase.
                if event.phase.partition("/")[0] == self.phase:
                    self.done = min(self.done + 1, self.total) if self.total else self.done + 1
                    self.scores.extend(() if rollout.score is None else (rollout.score,))
            case Answered(rollout=rollout):
                self.answered += 1
                self.answers = [*self.answers[1 - LATEST :], rollout.score]
            case GroupFinished(teaches=teaches):
                self.taught += teaches
                self.skipped += not teaches
            case OperationsDecided(decisions=decisions):
                accepted = [decision.operation for decision in decisions if decision.accepted]
                self.added += sum(isinstance(operation, Add) for operation in accepted)
                self.changed += sum(isinstance(operation, Modify | Merge) for operation in accepted)
                self.removed += sum(isinstance(operation, Delete) for operation in accepted)
                self.rejected += len(decisions) - len(accepted)
            case StepFinished():
                self.step, self.steps = event.step, event.steps
                self.step_rewards.append(event.mean_reward)
                self.experiences = len(event.library)
            case GateDecided():
                self.verdict = f"step {event.step + 1}: {verdict_words(event)}"
            case _:
                pass

    @property
    def seconds(self) -> float:
        """Seconds since the display was opened."""
        return self.clock() - self.started

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the end of this phase at its pace so far; None until there is a pace."""
        if not self.done or self.done >= self.total:
            return None
        return (self.clock() - self.phase_started) / self.done * (self.total - self.done)

    @property
    def name(self) -> str:
        """The step, in words; of a stream nobody knows how many there will be."""
        return f"step {self.step + 1} of {self.steps}" if self.steps else f"step {self.step + 1}"

    @property
    def latest(self) -> str:
        """The newest answers of a stream, in words: progress, not a result."""
        known = [score for score in self.answers if score is not None]
        mean = f"; mean of the newest {len(known)}: {number(sum(known) / len(known))}" if known else ""
        return f"{count(self.answered, 'task')} answered{mean}"

    @property
    def mean(self) -> float | None:
        """Mean score of this phase so far: progress, not a result, so it comes without an interval."""
        return sum(self.scores) / len(self.scores) if self.scores else None
