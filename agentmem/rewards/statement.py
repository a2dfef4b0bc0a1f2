"""What an output clearly states as its answer.

A language model wraps its answer in words: `The answer is 41.`, `**41**`, `The larger number is 41.` A scorer that
wants the bare answer scores manners; one that searches the answer anywhere scores luck. Here an output is read
as a person reads it: an explicit mark (a box, `Final answer:`, `Answer:`) counts before everything else, then
the output as a whole, then what its sentences assert. Questions, doubts and negations assert nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

LONGEST = 20_000
"""Characters of an output that are read: its end, because answers stand there."""


@dataclass(frozen=True)
class Statement:
    """One place where an output states something as its answer."""

    how: Literal["boxed", "final", "answer", "whole", "bold", "sentence"]
    readings: tuple[str, ...]
    """What may be meant, shortest first: `5`, then `5 because 2 + 3 = 5`."""


def statements(output: str) -> tuple[Statement, ...]:
    """All statements of the strongest kind that the output has; an output that means one thing has them agree.

    Example:
        >>> statements("I thought of 4. The answer is 5.")[0].readings
        ('5', '5.')
    """
    text = readable(output)
    return explicit(text) or _implicit(text)


def explicit(output: str) -> tuple[Statement, ...]:
    """The marked answers alone: boxes, else `Final answer`, else `Answer`; empty where nothing is marked."""
    text = readable(output)
    for kind, places in (
        ("boxed", _boxes(text)),
        ("final", _marked(_FINAL, text)),
        ("answer", _marked(_ANSWER, text)),
    ):
        if found := tuple(Statement(kind, readings) for readings in places if readings):  # type: ignore[arg-type]
            return found
    return ()


def readable(output: str) -> str:
    """The part of an output that speaks to the reader: after its reasoning, and the end of it if it is huge."""
    return output[-LONGEST:].rpartition("</think>")[2].replace("\r\n", "\n").strip()


def normal(text: str, *, match_case: bool = False) -> str:
    """The text without what does not matter: case, articles, spacing, markup, and punctuation around words.

    Punctuation inside a word stays, so `3.14`, `-5`, `C++` and `C#` keep their meaning.

    Example:
        >>> normal('  The **Eiffel** Tower. '), normal("C++."), normal("Vitamin A")
        ('eiffel tower', 'c++', 'vitamin a')
    """
    text = unicodedata.normalize("NFKC", text)
    text = text if match_case else text.casefold()
    text = text.translate(_PLAIN)
    text = re.sub(r"(?<=[^\W\d_])-(?=[^\W\d_])", " ", text)
    words = [word for raw in text.split() if (word := _bare_word(raw))]
    kept = [w for n, w in enumerate(words) if n == len(words) - 1 or w.casefold() not in {"a", "an", "the"}]
    return " ".join(kept) or " ".join(text.split())


def sentences(text: str) -> list[str]:
    """The sentences that assert something; questions are left out, and a line that ends in `:` goes on."""
    joined = re.sub(r":[ \t*]*\n\s*", ": ", text)
    parts = [part.strip() for line in joined.split("\n") for part in _split(line)]
    return [part for part in parts if part and not part.rstrip("\"'*)” ").endswith("?")]


def conclusion(asserted: list[str]) -> str | None:
    """The last sentence, where it draws a conclusion (`So ...`, `Therefore ...`)."""
    return asserted[-1] if len(asserted) > 1 and _CONCLUDES.match(asserted[-1]) else None


def _implicit(text: str) -> tuple[Statement, ...]:
    """What the output as a whole, its emphasis, or its sentences state."""
    text = _FAREWELL.sub("", _GREETING.sub("", text)).strip()
    if not text:
        return ()
    if "\n\n" in text and (bare := tuple(Statement("whole", _cuts(line)) for line in _bare_paragraphs(text))):
        return bare
    asserted = sentences(text)[-_MANY:]
    if len(asserted) <= 1:
        only = asserted[0] if asserted else text
        return (Statement("whole", (*_cuts(text), *_cuts(only), *_asserted(only))),)
    if last := conclusion(asserted):
        asserted = [last]
    elif "\n" in text and (bold := _bold(text)):
        return bold
    found = tuple(Statement("sentence", r) for s in asserted if (r := _asserted(s, several=True)))
    return found or _bold(text) or (Statement("whole", (text,)),)


def _boxes(text: str) -> Iterator[tuple[str, ...]]:
    for mark in list(_BOX.finditer(text))[-_MANY:]:
        depth, start = 1, mark.end()
        for end in range(start, min(len(text), start + _LINE)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if not depth:
                inside = text[start:end].strip()
                yield (inside, *(m.group(1) for m in [_TEXT.fullmatch(inside)] if m))
                break
    for tagged in list(_TAG.finditer(text))[-_MANY:]:
        yield (tagged.group(1).strip(),)


def _marked(mark: re.Pattern[str], text: str) -> Iterator[tuple[str, ...]]:
    for found in list(mark.finditer(text))[-_MANY:]:
        before = text[max(0, found.start() - 80) : found.start()]
        if not _DOUBT.search(_split(before.rpartition("\n")[2])[-1]):
            yield _cuts(text[found.end() : found.end() + _LINE])


def _cuts(text: str) -> tuple[str, ...]:
    """The first line of `text`, cut where a statement may end: shortest first."""
    line = text.strip(" \t\n*_").split("\n", 1)[0][:_LINE]
    ends = [m.start() for m in _END.finditer(line) if not _abbreviates(line, m.start())]
    cuts = [line[:end].strip() for end in ends[:8]] + [line.strip()]
    return tuple(dict.fromkeys(cut for cut in cuts if cut.strip("*_\"'`.:; ")))


def _asserted(sentence: str, *, several: bool = False) -> tuple[str, ...]:
    """What a sentence says of its subject; and the subject, where the sentence says which thing is *the* one.

    Args:
        sentence: one sentence.
        several: it is one among several, where `It is lovely.` speaks of something else than the answer.
    """
    readings: list[str] = []
    sentence = sentence[-_LINE:]
    for verb in list(_IS.finditer(sentence))[:8]:
        subject, predicate = sentence[: verb.start()].strip(), sentence[verb.end() :]
        if _DOUBT.search(subject) or _NOT.search(subject) or (several and _PRONOUN.fullmatch(subject)):
            continue
        readings.extend(_cuts(predicate))
        if _THE.match(predicate):
            readings.append(_CONCLUDES.sub("", subject))
    return tuple(dict.fromkeys(readings))


def _bare_paragraphs(text: str) -> list[str]:
    """The first and the last paragraph, where they are no sentence but a few words: `PARIS`, then the reasons."""
    paragraphs = [paragraph.strip() for paragraph in text.split("\n\n")]
    ends = [paragraphs[0], paragraphs[-1]]
    return [p for p in ends if 0 < len(p.split()) <= 4 and not re.search(r"[:?#\n=]", p) and not _IS.search(p)]


def _bold(text: str) -> tuple[Statement, ...]:
    """Emphasis that ends a sentence or fills a line; emphasis within a sentence stresses, it does not answer."""
    return tuple(Statement("bold", (m.group(1),)) for m in _BOLD.finditer(text) if not m.group(1).endswith(":"))


def _split(line: str) -> list[str]:
    parts, start = [], 0
    for stop in _STOP.finditer(line):
        if not _abbreviates(line, stop.start()):
            parts.append(line[start : stop.end()])
            start = stop.end()
    return [*parts, line[start:]]


def _abbreviates(line: str, stop: int) -> bool:
    return bool(_ABBREVIATION.search(line[max(0, stop - 12) : stop + 1]))


def _bare_word(word: str) -> str:
    """A word without the punctuation around it; a sign or a decimal point before a digit is part of it."""
    bare = word.strip(_EDGE)
    at = word.find(bare)
    if bare[:1].isdigit() and at > 0 and word[at - 1] == ".":
        bare, at = "." + bare, at - 1
    return "" if bare.strip("-") == "" else bare.lstrip("-") if not re.match(r"-+[$€£.]?\d", bare) else bare


_MANY = 20
"""Marks or sentences of one kind that are looked at, the last ones."""
_LINE = 2000
"""Characters that one statement may have."""
_EDGE = "\"'“”‘’«»()[]{}<>*_`~.,;:!?…"
_PLAIN = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-"})

_BE = r"(?:is|are|was|were|would be|should be|must be|will be)"
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_TEXT = re.compile(r"\\(?:text|mathrm|textbf)\{([^{}]*)\}")
_TAG = re.compile(r"<answer>([^<]*)</answer>", re.I)
_TO = r"(?: (?:to|of|for) [^.:\n]{1,120}?)?"
_FINAL = re.compile(rf"^[ \t]*#{{4}}(?!#)|\bfinal\s+answer\b[*_]*{_TO}\s*(?:{_BE}\b\s*:?|[:=])[*_]*", re.I | re.M)
_ANSWER = re.compile(rf"\banswer\b[*_]*{_TO}\s*(?:{_BE}\b\s*:?|[:=])[*_]*", re.I)
_END = re.compile(
    r"[.!?;](?=[\s\"'”*)_]|$)|,?\s(?=(?:because|since)\b)|,\s(?=(?:as|so|which|where|not|but not|and not)\b)"
    r"|\s(?=[–—-]\s[^\W\d])|\s(?=\()",
    re.I,
)
_STOP = re.compile(r"[.!?][\"'”*)_]*(?=\s|$)")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:Dr|Mr|Mrs|Ms|St|Prof|Jr|Sr|vs|etc|approx|e\.g|i\.e|[A-Z](?:\.[A-Z])*)\.$"
)
_IS = re.compile(
    r"\s*(?:\b(?:is|are|was|were|equals|becomes|means|gives|would be|should be|must be|will be)\b[ \t]*:?|:(?=\s)"
    r"|(?<![<>=!])=(?!=)|→|⇒|[-=]>)\s*",
    re.I,
)
_THE = re.compile(r"(?:the|my)\b", re.I)
_PRONOUN = re.compile(r"(?:it|this|that|these|those|he|she|they|there|which|who|what|here)", re.I)
_DOUBT = re.compile(
    r"\b(?:whether|if|unless|doubt(?!less)|unsure|maybe|perhaps|wrong|false|incorrect|"
    r"not (?:sure|think|know|certain))\b"
    r"|n['’]t (?:think|know|believe|sure)|not clear|unclear",
    re.I,
)
_NOT = re.compile(r"\b(?:not|never|neither|nor)\b|n['’]t\b", re.I)
_CONCLUDES = re.compile(
    r"(?:and )?(?:so|therefore|thus|hence|finally|overall|in conclusion|in summary|in short|to conclude|"
    r"we conclude that|actually|correction)\b[,:]?\s*",
    re.I,
)
_GREETING = re.compile(
    r"\A\s*(?:(?:sure(?: thing)?|certainly|of course|okay|ok|absolutely|yes|great question|hello|hi)\s*[!.,]\s+)+",
    re.I,
)
_FAREWELL = re.compile(
    r"\n\s*(?:(?:i )?hope (?:this|that|it) helps|let me know[^\n]*|feel free[^\n]*|good luck|have a [^\n]*)"
    r"[.!]*\s*\Z",
    re.I,
)
_BOLD = re.compile(r"\*\*\s*([^*\n]{1,200}?)\s*\*\*(?=[.!]?\s*(?:$|\n))", re.M)
