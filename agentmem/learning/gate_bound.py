"""How many attempts a gate makes at most, before anything is spent."""

from __future__ import annotations

from agentmem.learning.tips import MOST
from agentmem.settings import LearnSettings


def most_trials(settings: LearnSettings, *, steps: int, batch: int, tasks: int) -> int:
    """Attempts at each gate task at most, on average over them.

    Args:
        settings: the gate, its rounds, and what a step may propose.
        steps: learning steps of the run.
        batch: training tasks of one step.
        tasks: gate tasks.
    """
    match settings.gate:
        case "always":
            return 0
        case "paired":
            # Each step tries one candidate and at most its two halves; the incumbent's scores are stored.
            return (1 + 3 * steps) * settings.gate_rounds
        case "targeted":
            # Each operation is tried alone on the tasks nearest to it. The incumbent's scores are shared by them.
            operations = _most_operations(settings, batch)
            each = operations * min(settings.gate_nearest, tasks)
            attempts = steps * settings.gate_rounds * (each + min(each, tasks))
            return -(-attempts // max(tasks, 1))


def _most_operations(settings: LearnSettings, batch: int) -> int:
    """Operations that one step proposes at most, where a model keeps to the number that it is told."""
    match settings.extractor:
        case "exemplar":
            return settings.examples_per_step
        case "tips":
            return MOST
        case "fused" | "faithful":
            return batch * settings.lessons_per_group
