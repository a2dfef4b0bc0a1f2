"""Mathematical equality: math-verify decides, in a process of its own.

Its timer uses SIGALRM, which works on the main thread only, and SymPy can compute for ever on what a model wrote.
"""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.errors import InputError, SandboxError
from agentmem.rewards.number import numbers
from agentmem.rewards.numeric import Numeric
from agentmem.rewards.reference import ReferenceReward, shortened
from agentmem.rewards.statement import explicit, readable, sentences, statements
from agentmem.sandbox.worker import Worker


class Math(ReferenceReward):
    r"""1 where the output states something mathematically equal to the reference, else 0.

    The last box (`\boxed{...}`) counts, else the last marked answer, else the formula or number that the output
    states. What cannot be decided in time has status `error`, because it says nothing about the agent.

    Args:
        seconds: what one comparison may take.

    Raises:
        InputError: math-verify is not installed.

    Example:
        >>> Math().name                                                            # doctest: +SKIP
        'math'
    """

    def __init__(self, *, seconds: float = 10.0) -> None:
        if find_spec("math_verify") is None:
            raise InputError(
                "reward 'math' needs math-verify, which is not installed: pip install \"agentmem[math]\"."
            )
        self.name = "math"
        self.seconds = seconds
        self._workers = [
            Worker(Path(__file__).with_name("math_worker.py")) for _ in range(min(4, os.cpu_count() or 1))
        ]
        self._numeric = Numeric()

    async def compare(self, task: Task, answer: str, output: str) -> Reward:
        """Score what an output states against the reference."""
        if _is_number(answer) and not _FORMULA.search(_told(output)):
            plain = self._numeric.compare(task, answer, output)
            return plain.model_copy(update={"source": self.name})
        stated = stated_formula(output)
        payload = {"answer": as_formula(answer), "output": as_formula(stated)}
        try:
            verdict = await self._worker().call(payload, seconds=self.seconds)
        except (TimeoutError, SandboxError) as error:
            pair = f"{shortened(stated, length=60)!r} with {shortened(answer, length=60)!r}"
            return Reward.unknown(f"could not compare {pair}: {error}", source=self.name)
        if not verdict["answer"]:
            return Reward.unknown(
                "the reference answer is no mathematics", source=self.name, status="unverifiable"
            )
        return self.right(answer) if verdict["right"] else self.wrong(answer, repr(shortened(stated)))

    def close(self) -> None:
        """End the helper processes; they would end with this process anyway."""
        for worker in self._workers:
            worker.close()

    def _worker(self) -> Worker:
        return min(self._workers, key=lambda worker: worker.waiting)


def stated_formula(output: str) -> str:
    """The part of an output that states its result: a box, a marked answer, or the last sentence with a formula.

    Example:
        >>> stated_formula("We get $x = 2$. The answer is $x^2 = 4$. Done.")
        '$x^2 = 4$'
    """
    told = _told(output)
    if "\\boxed" in told:
        return told
    return _sentence_end(told).strip(" *_.:")


def as_formula(text: str) -> str:
    """The text as math-verify reads it: a bare formula becomes LaTeX between dollar signs."""
    text = text.strip()
    if re.search(r"\$|\\\(|\\\[|\\boxed", text):
        return text
    text = re.sub(
        r"\bsqrt\s*\(([^()]*)\)|√\(([^()]*)\)|√(\w+)", lambda m: rf"\sqrt{{{m[1] or m[2] or m[3]}}}", text
    )
    text = re.sub(r"(?<![\\A-Za-z])pi\b|π", r"\\pi ", text).replace("**", "^").replace("·", r"\cdot ")
    return f"${text}$"


def _told(output: str) -> str:
    """The last line with a box, else the last marked answer, else the last sentence with a formula or a result."""
    text = readable(output)
    if boxed := [line for line in text.split("\n") if "\\boxed" in line]:
        return boxed[-1][boxed[-1].index("\\boxed") :]
    if marked := explicit(text):
        return marked[-1].readings[-1]
    asserted = sentences(text) or [text]
    last = next((s for s in reversed(asserted) if "$" in s or "\\" in s), asserted[-1])
    if "$" in last or "\\" in last:
        return last
    readings = statements(last)[-1].readings if statements(last) else ()
    return readings[-1] if readings else last


def _sentence_end(text: str) -> str:
    """The text up to the end of its first sentence; what stands between dollar signs is not cut."""
    for stop in re.finditer(r"[.!?](?=\s|$)|,?\s(?=because\b|since\b)", text):
        if text[: stop.start()].count("$") % 2 == 0:
            return text[: stop.start()]
    return text


def _is_number(answer: str) -> bool:
    found = numbers(answer)
    return len(found) == 1 and not answer[: found[0].start].strip(" $") and not answer[found[0].end :].strip(" $.")


_FORMULA = re.compile(r"\\(?!frac|dfrac|\$|%|,)|\^|\bsqrt\b|\bpi\b|[π√]|\d[a-z]\b|[a-z]\s*[+*/]", re.I)
