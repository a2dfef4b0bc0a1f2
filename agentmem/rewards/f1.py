"""Token F1: how much of the words is shared with the reference, as the SQuAD evaluation defines it."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter

from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.rewards.reference import ReferenceReward, aliases, shortened
from agentmem.rewards.statement import explicit, readable


class F1(ReferenceReward):
    """The token F1 between 0 and 1, best over the reference and `metadata["aliases"]` (SQuAD, 1606.05250).

    Where the output marks exactly one answer (`Answer: ...`), that answer is compared, else the whole output.

    Example:
        >>> F1().compare(Task(id="t", input="?", answer="red car"), "red car", "The red truck").score
        0.5
    """

    def __init__(self) -> None:
        self.name = "f1"

    def compare(self, task: Task, answer: str, output: str) -> Reward:
        """Score the words of an output against those of the reference."""
        marked = {statement.readings[-1] for statement in explicit(output)}
        said = marked.pop() if len(marked) == 1 else readable(output)
        score, best = max(((f1(said, text), text) for text in (answer, *aliases(task))), key=lambda pair: pair[0])
        if score == 1.0:
            return self.right(best)
        feedback = f"expected {shortened(best)!r}, got {shortened(said)!r}, F1 {score:.2f}"
        return Reward.of(score, feedback=feedback, source=self.name)


def f1(said: str, answer: str) -> float:
    """The harmonic mean of token precision and recall; texts without tokens are equal or share nothing.

    Example:
        >>> f1("the red car", "a red car"), f1("red", "red car")
        (1.0, 0.6666666666666666)
    """
    ours, theirs = tokens(said), tokens(answer)
    if not ours or not theirs:
        return float(ours == theirs)
    shared = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * shared / (len(ours) + len(theirs))


def tokens(text: str) -> list[str]:
    """The words without case, punctuation and articles."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = "".join(char for char in text if char not in string.punctuation)
    return re.sub(r"\b(?:a|an|the)\b", " ", text).split()
