"""Exact match: what the output clearly states equals the reference, up to case, articles and punctuation."""

from __future__ import annotations

from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.rewards.reference import ReferenceReward, aliases, shortened
from agentmem.rewards.statement import normal, readable, statements


class Exact(ReferenceReward):
    """1 where all that the output clearly states as its answer is the reference or an alias of it, else 0.

    Accepted are the bare answer, `The answer is X.`, `**X**`, `The capital of France is X.` and the like. An
    output that states two different answers is wrong. `metadata["aliases"]` holds further right answers;
    `metadata["match_case"]` (or `match_case`) makes upper and lower case matter.

    Example:
        >>> Exact().compare(Task(id="t", input="?", answer="Paris"), "Paris", "It is Paris.").score
        1.0
    """

    def __init__(self, *, match_case: bool = False) -> None:
        self.name = "exact"
        self.match_case = match_case

    def compare(self, task: Task, answer: str, output: str) -> Reward:
        """Score what an output states against the reference."""
        match_case = bool(task.metadata.get("match_case", self.match_case))
        right = {normal(text, match_case=match_case) for text in (answer, *aliases(task))}
        if normal(readable(output), match_case=match_case) in right:
            return self.right(answer)
        stated = statements(output)
        readings = [{normal(r, match_case=match_case): r for r in s.readings} for s in stated]
        if readings and all(right & r.keys() for r in readings):
            return self.right(answer)
        if any(right & r.keys() for r in readings):
            return self.wrong(answer, "different answers at once")
        return self.wrong(answer, repr(shortened(stated[-1].readings[0])) if stated else "no clear statement")
