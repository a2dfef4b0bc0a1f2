"""GAIA's scorer, rule for rule, and what a wrong answer only just missed (2311.12983)."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory
from agentmem.rewards.reference import ReferenceReward, shortened
from agentmem.rewards.reward_function import RewardContext
from agentmem.rewards.statement import readable
from agentmem.task_folder import PRIVATE


class Gaia(ReferenceReward):
    r"""1 where the official rule says that the answer is right, else 0.

    The answer is what stands behind the last `FINAL ANSWER:`; without one it is the whole output. A near miss is named
    in the feedback and changes no score.

    Example:
        >>> task = Task(id="t", input="How many?", answer="17")
        >>> Gaia().compare(task, "17", "I counted.\nFINAL ANSWER: 17").score
        1.0
        >>> Gaia().compare(task, "17", "FINAL ANSWER: 17 hours").feedback
        "expected '17', got '17 hours'; near miss: words around the number"
    """

    def __init__(self) -> None:
        self.name = "gaia"

    async def __call__(self, task: Task, trajectory: Trajectory, context: RewardContext) -> Reward:
        """Score one attempt."""
        if _is_private(task):
            return Reward.unknown("its answer is not published", source=self.name, status="unverifiable")
        return await super().__call__(task, trajectory, context)

    def unscorable(self, task: Task) -> str:
        """Why no attempt at this task can be scored; a private answer is no fault."""
        return "" if _is_private(task) else super().unscorable(task)

    def compare(self, task: Task, answer: str, output: str) -> Reward:
        """Score what an output gives as its final answer."""
        said = final_answer(output)
        if is_right(said.text, answer):
            return self.right(answer)
        near = near_miss(said.text, answer)
        notes = [repr(shortened(said.text)), *([f"near miss: {near}"] if near else [])]
        return self.wrong(answer, "; ".join([*notes, *([] if said.marked else ["no FINAL ANSWER marker"])]))


@dataclass(frozen=True)
class FinalAnswer:
    """What an output gives as its answer."""

    text: str
    marked: bool
    """Whether it stood behind the marker."""


def final_answer(output: str | None) -> FinalAnswer:
    r"""What stands behind the last `FINAL ANSWER:`, else the whole output.

    Emphasis around it (`**FINAL ANSWER: 17**`) belongs to the marker, not to the answer.

    Example:
        >>> final_answer("FINAL ANSWER: 4, no.\n**Final answer: 5**")
        FinalAnswer(text='5', marked=True)
        >>> final_answer("It is 5.")
        FinalAnswer(text='It is 5.', marked=False)
    """
    text = readable(output or "")
    marks = list(_MARKER.finditer(text))
    if not marks:
        return FinalAnswer(text, marked=False)
    # The answer is one line; a model that writes it below its marker means the next one that is not blank.
    rest = text[marks[-1].end() :].lstrip()
    line = rest.splitlines()[0].strip() if rest else ""
    return FinalAnswer(line.strip("*`_ ") or line, marked=True)


def is_right(answer: str | None, truth: str) -> bool:
    """What GAIA's leaderboard says of an answer: numbers, lists and strings each have their rule.

    A truth that is a number is compared as one, without `$`, `%` and `,` in the answer; one with `,` or `;` is a list,
    compared place by place, where strings keep their punctuation; any other is compared without white space, ASCII
    punctuation and case.

    Example:
        >>> is_right("$1,000", "1000"), is_right("b, a", "a, b"), is_right("st petersburg", "St. Petersburg")
        (True, False, True)
    """
    said = "None" if answer is None else answer
    if _is_number(truth):
        return _as_number(said) == float(truth)
    if "," in truth or ";" in truth:
        ours, theirs = _elements(said), _elements(truth)
        return len(ours) == len(theirs) and all(map(_same_element, ours, theirs))
    return _bare(said).translate(_NO_PUNCTUATION) == _bare(truth).translate(_NO_PUNCTUATION)


def near_miss(answer: str | None, truth: str) -> str:
    """What a wrong answer only just missed, in words; empty where it is right or far off. It never changes a score.

    Example:
        >>> near_miss("b, a", "a, b"), near_miss("the Rhine", "Rhine"), near_miss("Danube", "Rhine")
        ('the order of the list', 'an article', '')
    """
    said = (answer or "").strip()
    if not said or is_right(said, truth):
        return ""
    return next((label for label, missed in _NEAR.items() if missed(said, truth)), "")


def faults_of(truth: str) -> str:
    """Why a reference answer cannot be scored fairly by this rule; empty where it can.

    Example:
        >>> faults_of("nan"), faults_of("17")
        ('it does not score true against itself', '')
    """
    if not is_right(truth, truth):
        return "it does not score true against itself"
    if is_right("no such answer", truth) or is_right("!", truth):
        return "answers that have nothing to do with it score true"
    return ""


def _is_private(task: Task) -> bool:
    return task.answer is None and bool(task.metadata.get(PRIVATE))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _as_number(text: str) -> float:
    for char in "$%,":
        text = text.replace(char, "")
    return float(text) if _is_number(text) else float("inf")  # the rule's own word for "no number"


def _elements(text: str) -> list[str]:
    return re.split("[,;]", text)


def _same_element(ours: str, theirs: str) -> bool:
    return _as_number(ours) == float(theirs) if _is_number(theirs) else _bare(ours) == _bare(theirs)


def _bare(text: str) -> str:
    return re.sub(r"\s", "", text).lower()


def _plain_letters(text: str) -> str:
    """Without accents, and with ASCII for the minus signs, quotes and full-width forms of other scripts."""
    wide = unicodedata.normalize("NFKD", text.translate(_ASCII))
    return "".join(char for char in wide if not unicodedata.combining(char))


def _other_letters(said: str, truth: str) -> bool:
    return is_right(_plain_letters(said), _plain_letters(truth))


def _other_marks(said: str, truth: str) -> bool:
    return is_right(said.strip(" \t*`_\"'()[]{}.,;:!"), truth)


def _article(said: str, truth: str) -> bool:
    return is_right(_ARTICLE.sub("", said), _ARTICLE.sub("", truth))


def _other_order(said: str, truth: str) -> bool:
    def kept(text: str) -> Counter[str]:
        return Counter(str(_as_number(e)) if _is_number(e) else _bare(e) for e in _elements(text))

    return len(_elements(truth)) > 1 and kept(said) == kept(truth)


def _part_of_list(said: str, truth: str) -> bool:
    ours, theirs = (Counter(map(_bare, _elements(text))) for text in (said, truth))
    shared = sum((ours & theirs).values())
    return theirs.total() > 1 and ours.total() != theirs.total() and shared >= max(1, theirs.total() - 1)


def _number_in_words(said: str, truth: str) -> bool:
    return _is_number(truth) and any(number == float(truth) for number in _numbers(said))


def _close_number(said: str, truth: str) -> bool:
    if not (_is_number(truth) and _as_number(said) not in (float("inf"), float("-inf"))):
        return False
    return abs(_as_number(said) - float(truth)) <= 0.01 * abs(float(truth))


def _within_words(said: str, truth: str) -> bool:
    ours, theirs = (re.findall(r"\w+", text.lower()) for text in (said, truth))
    found = any(ours[n : n + len(theirs)] == theirs for n in range(len(ours) - len(theirs) + 1))
    return bool(theirs) and not _is_number(truth) and found


def _spelling(said: str, truth: str) -> bool:
    ours, theirs = _bare(said)[:200], _bare(truth)[:200]
    alike = SequenceMatcher(None, ours, theirs).ratio() >= 0.85
    return len(theirs) >= 4 and not _is_number(truth) and alike


def _numbers(text: str) -> Iterator[float]:
    return (float(found.replace(",", "")) for found in re.findall(r"-?\d[\d,]*(?:\.\d+)?", text))


_MARKER = re.compile(r"final\s+answer\s*[*_`]*\s*[:：]", re.IGNORECASE)
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"^\s*(?:the|an?)\s+", re.IGNORECASE)
_ASCII = str.maketrans("−–—‘’“”", "---''\"\"")
_NEAR: dict[str, Callable[[str, str], bool]] = {
    "accents or other characters": _other_letters,
    "marks around the answer": _other_marks,
    "an article": _article,
    "the order of the list": _other_order,
    "an element too many or too few": _part_of_list,
    "words around the number": _number_in_words,
    "a number within one percent": _close_number,
    "words around the answer": _within_words,
    "spelling": _spelling,
}
"""Each near miss, and what shows it; the first that holds is named."""
