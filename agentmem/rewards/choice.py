"""Choice: which one of the task's choices the output clearly states, by letter or by words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_uppercase

from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.rewards.reference import ReferenceReward
from agentmem.rewards.statement import conclusion, explicit, normal, readable, sentences


class Choice(ReferenceReward):
    """1 where the output clearly states the right choice and no other, else 0.

    `metadata["choices"]` is a list of texts (lettered A, B, ... in order) or a mapping of letters to texts; the
    answer is a letter or a text. Accepted are `B`, `(b)`, `Answer: B`, `B) Paris`, `It is Paris.` and the like.
    What is asked or denied is not stated: `not a fruit` does not mean fruit. An output that states two choices
    is wrong.

    Example:
        >>> task = Task(id="t", input="?", answer="fruit", metadata={"choices": ["fruit", "animal", "tool"]})
        >>> Choice().compare(task, "fruit", "An apple is a fruit, not an animal.").score
        1.0
    """

    def __init__(self) -> None:
        self.name = "choice"

    def unscorable(self, task: Task) -> str:
        """Also a task without choices, or with an answer that is none of them, cannot be scored."""
        if why := super().unscorable(task):
            return why
        choices = _lettered(task)
        if len(choices) < 2:
            return "the task has no metadata 'choices' (a list of two or more)"
        return (
            ""
            if _letter_of(task.answer or "", choices)
            else f"the reference answer is none of {list(choices.values())}"
        )

    def compare(self, task: Task, answer: str, output: str) -> Reward:
        """Score the choice that an output states."""
        choices = _lettered(task)
        right = _letter_of(answer, choices)
        stated = stated_choices(output, choices)
        if stated == {right}:
            return self.right(answer)
        names = " and ".join(repr(choices[letter]) for letter in sorted(stated))
        return self.wrong(answer, names or "no clear choice")


def stated_choices(output: str, choices: Mapping[str, str]) -> set[str]:
    """The letters of the choices that an output states; several where it does not decide.

    Args:
        output: what was said.
        choices: the text of each choice by its letter.

    Example:
        >>> sorted(stated_choices("It is a tool.", {"A": "fruit", "B": "tool"}))
        ['B']
    """
    text = readable(output)
    find = _Finder(choices)
    if letter := find.whole(text):
        return {letter}
    if stated := set().union(*(find.marked(statement.readings) for statement in explicit(text))):
        return stated
    asserted = sentences(text)[-100:]
    if (last := conclusion(asserted)) and (stated := find.asserted(last)):
        return stated
    return set().union(*(find.asserted(sentence) for sentence in asserted))


@dataclass(frozen=True)
class _Mention:
    """A place that names a choice."""

    start: int
    end: int
    letter: str
    by_letter: bool = False
    """Nobody names `(B)` in passing; words such as `tool` are."""


class _Finder:
    """Finds choices in texts."""

    def __init__(self, choices: Mapping[str, str]) -> None:
        self.choices = choices
        self.longest = max((len(text) for text in choices.values()), default=0)
        texts = sorted(choices.items(), key=lambda item: -len(item[1]))
        self.texts = {f"t{n}": letter for n, (letter, _) in enumerate(texts)}
        bare = len({text.casefold() for text in choices.values()} - {x.casefold() for x in choices}) > 0
        words = [rf"(?P<t{n}>{_pattern(text)})" for n, (_, text) in enumerate(texts) if bare and text.strip()]
        # The longest text comes first, so that `New York` is not also `York`.
        self.words = re.compile(rf"(?<![\w-])(?:{'|'.join(words)})(?![\w-]|'\w)", re.I) if words else None
        one = "|".join(re.escape(letter) for letter in choices)
        self.alone = re.compile(rf"\W*(?:option|choice|answer|letter)?\W*({one})\W*", re.I)
        self.start = re.compile(
            rf"[\s*_\"'(\[]*(?:option|choice|letter)?\s*[(\[*_]*((?-i:{one}))(?:[)\].:*_]+(?=\s|$)|\s*$|,|\s+[-–—]\s)",
            re.I,
        )
        self.inside = re.compile(
            rf"\((?P<a>{one})\)|\b(?:option|choice|letter)\s+[(*_\"']*(?P<b>{one})\b|(?<![\w'’])(?P<c>(?-i:{one}))\)"
            rf"|(?<![\w'’])(?P<d>(?-i:{one}))[)*_\"']*\s+is\s+(?:the\s+)?(?:correct|right|best|answer)\b"
            rf"|\b(?:is|it['’]s)\s+[(*_\"']*(?P<f>(?-i:{one}))[)*_\"']*(?=[.,;]|\s*$)"
            rf"|\b(?:choose|pick|select|go with)\s+[(*_\"']*(?P<e>(?-i:{one}))\b(?!\s+[a-z])",
            re.I,
        )

    def whole(self, text: str) -> str | None:
        """The choice that the output is, as a whole."""
        if len(text) > self.longest + 200:
            return None
        if match := self.alone.fullmatch(text):
            return self._letter(match[1])
        letter, start = _letter_of(text, self.choices), self.start.match(text)
        return None if start and self._letter(start[1]) != letter else letter

    def marked(self, readings: tuple[str, ...]) -> set[str]:
        """The choices that a marked answer names, in its shortest reading that names some."""
        return next((found for text in readings if (found := self._named(text))), set())

    def asserted(self, sentence: str) -> set[str]:
        """The choices that a sentence says something to be; its mere mentions count only if it is brief."""
        sentence = sentence[-2000:]
        live = self._live(sentence)
        verbs = [verb.end() for verb in _IS.finditer(sentence)]
        told: list[_Mention] = []
        for mention in live:
            verb = max((end for end in verbs if end <= mention.start), default=None)
            if verb is not None and not (told and told[-1].start >= verb):
                said = _PREDICATE.fullmatch(sentence, verb, mention.start)
            else:  # `a tool and an animal` states two, `a tool used by animals` one
                said = _AND.fullmatch(sentence, told[-1].end, mention.start) if told else None
            named = said and _HEAD.match(sentence, mention.end)
            if named or mention.by_letter or _PREFERRED.match(sentence, mention.end):
                told.append(mention)
        if not told and len(sentence.split()) <= _BRIEF:
            told = live
        return {mention.letter for mention in told}

    def _named(self, text: str) -> set[str]:
        if letter := self.whole(text):
            return {letter}
        return self.asserted(text) or {mention.letter for mention in self._live(text)}

    def _letter(self, found: str) -> str:
        return found if found in self.choices else found.upper()

    def _live(self, text: str) -> list[_Mention]:
        """The mentions that are neither denied nor doubted."""
        return [m for m in self._mentions(text) if not _denied(text, m.start)]

    def _mentions(self, text: str) -> list[_Mention]:
        found = []
        if match := self.start.match(text):
            found.append(_Mention(match.start(1), match.end(1), self._letter(match[1]), by_letter=True))
        for match in self.inside.finditer(text):
            letter = self._letter(next(group for group in match.groups() if group))
            found.append(_Mention(match.start(), match.end(), letter, by_letter=True))
        for match in self.words.finditer(text) if self.words else ():
            found.append(_Mention(match.start(), match.end(), self.texts[match.lastgroup or ""]))
        return sorted(found, key=lambda mention: mention.start)


def _lettered(task: Task) -> dict[str, str]:
    """The choices by letter (by number beyond Z)."""
    given = task.metadata.get("choices") or ()
    if isinstance(given, Mapping):
        return {str(letter): str(text) for letter, text in given.items()}
    names = [*ascii_uppercase, *(str(n) for n in range(27, 1000))]
    return (
        {letter: str(text) for letter, text in zip(names, given, strict=False)}
        if not isinstance(given, str)
        else {}
    )


def _letter_of(text: str, choices: Mapping[str, str]) -> str | None:
    """The letter of the choice that a text is; words come before letters, and `B) Paris` is B if it is Paris."""
    bare = normal(text)
    for letter, choice in choices.items():
        if bare == normal(choice):
            return letter
    for letter, choice in choices.items():
        if bare in (
            letter.casefold(),
            normal(f"{letter}) {choice}"),
            normal(f"{letter}: {choice}"),
            normal(f"({letter}) {choice}"),
        ):
            return letter
    return None


def _pattern(text: str) -> str:
    """The words of a choice, whatever the space between them, in singular or plural."""
    words = [re.escape(word) for word in text.strip().rstrip(".").split()]
    plural = "(?:s|es)?" if words and words[-1][-1:].isalpha() else ""
    return r"\s+".join(words) + plural


def _denied(text: str, at: int) -> bool:
    """Whether a negation or a doubt reaches what stands at `at`: it holds for its clause, as far as `but`."""
    clause, after = _CLAUSE.split(text[max(0, at - 300) : at])[-1], text[at : at + 80]
    return bool(_DENIES.search(_HARMLESS.sub("", clause)) or _DENIED_AFTER.match(after))


_BRIEF = 6
"""Words up to which a sentence that mentions a choice says little else."""
_IS = re.compile(
    r"\b(?:is|are|was|were|be|becomes?|means?|equals|called|considered|belongs? to|"
    r"falls? (?:under|into)|counts? as|(?:classified|categori[sz]ed) as|choose|pick|select|"
    r"say|go with|(?:it|that|this)['’]s|they['’]re)\b|[:=→](?=\s)",
    re.I,
)
_MARKUP = r"[\s,*_\"'“”()\[\]]"
_PREDICATE = re.compile(rf"{_MARKUP}*(?:[\w'’-]+{_MARKUP}+){{0,6}}", re.I)
_HEAD = re.compile(
    r"[\s*_\"'“”()\[\]]*(?:$|[.,;:!?–—-]|(?:that|which|used|and|or|because|since|with|for|in|of|on|by|who|from|made|"
    r"to|as|not|but|rather|category|too|though|although|when|while|so|it)\b)",
    re.I,
)
_PREFERRED = re.compile(
    rf"{_MARKUP}*(?:is|would be)\s+(?:the\s+|my\s+)?(?:\w+\s+)?"
    r"(?:right|correct|best|answer|category|choice|option)\b",
    re.I,
)
_AND = re.compile(rf"{_MARKUP}*(?:(?:[/&]|\b(?:and|or|also|even|both|an?|the))\b{_MARKUP}*){{0,4}}", re.I)
_CLAUSE = re.compile(r"[,;:.!?]\s|\bbut\b|\bit['’]?s\b|\bhowever\b", re.I)
_HARMLESS = re.compile(r"\b(?:no doubt|without (?:a )?doubt|not (?:only|just))\b", re.I)
_DENIES = re.compile(
    r"\b(?:not|no|never|neither|nor|cannot|isn|without|except|whether|if|unless|maybe|perhaps|unlike|wrong|incorrect|"
    r"rather than|instead of|other than|different from)\b|n['’]t\b|\bnon-?\s*$",
    re.I,
)
_DENIED_AFTER = re.compile(
    r"[\w\s)*\"']{0,40}?\s(?:is|are|was|would be)(?:n['’]t|\s+(?:not|wrong|incorrect|false))\b", re.I
)
