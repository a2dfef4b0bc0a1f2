"""A run as plain lines: for logs, pipes and CI."""

from __future__ import annotations

from typing import TextIO

from agentmem.events import (
    Answered,
    Event,
    GateDecided,
    Noted,
    PhaseStarted,
    RolloutFinished,
    RunOpened,
    StepFinished,
)
from agentmem.format import count, dollars, number, one_line, printable, seconds
from agentmem.report.learned import verdict_words
from agentmem.report.progress import Progress

EVERY = 15.0
"""Seconds between two lines about the same phase at least."""


class PlainLines:
    """A listener that prints one line for what matters, and one now and then for progress."""

    def __init__(self, out: TextIO) -> None:
        self.progress = Progress()
        self._out = out
        self._said_at = self.progress.clock()

    def hear(self, event: Event) -> None:
        """Print what the event is worth."""
        self.progress.hear(event)
        p = self.progress
        match event:
            case RunOpened(resumed=True):
                self._say(
                    f"{event.path}: goes on; {count(event.stored, 'result')} stored will not be bought again"
                )
            case RunOpened():
                self._say(f"{event.path}: new run")
            case PhaseStarted(phase="learn"):
                self._say(f"step {event.step + 1} of {event.steps}: {count(event.rollouts, 'rollout')}")
            case PhaseStarted(phase="eval"):
                self._say(f"evaluation: {count(event.rollouts, 'rollout')}")
            case GateDecided():
                self._say(f"gate: {verdict_words(event)}")
            case StepFinished():
                mean = "no reward" if event.mean_reward is None else f"mean reward {number(event.mean_reward)}"
                self._say(
                    f"{p.name} done: {mean}; {event.taught} of {event.groups} groups "
                    f"taught; {count(len(event.library), 'experience')}; {count(p.usage.calls, 'call')}, "
                    f"{count(p.usage.tokens, 'token')}, {dollars(p.usage.dollars)}, {seconds(p.seconds)}"
                )
            case Answered() if p.clock() - self._said_at >= EVERY:
                self._say(p.latest)
            case RolloutFinished() if p.total and p.clock() - self._said_at >= EVERY:
                left = "" if p.seconds_left is None else f", about {seconds(p.seconds_left)} left"
                self._say(f"{p.title or p.phase}: {p.done} of {p.total} rollouts{left}")
            case Noted():
                self._say(event.message)
            case _:
                pass

    def _say(self, line: str) -> None:
        self._said_at = self.progress.clock()
        print(printable(one_line(line), self._out.encoding), file=self._out, flush=True)
