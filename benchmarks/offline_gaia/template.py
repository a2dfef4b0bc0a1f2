"""A template makes tasks that differ in their facts and are solved in the same way; a plan says how."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from textwrap import dedent
from typing import Any

NAMES = re.compile(r"<<(\w+)>>")


@dataclass(frozen=True)
class Call:
    """One tool call of a plan.

    `<<name>>` in its arguments and patterns stands for what an earlier call found.
    """

    tool: str
    arguments: Mapping[str, Any]
    find: Mapping[str, str] = field(default_factory=dict)
    """What to read in the result: a name, and a pattern with one group."""


@dataclass(frozen=True)
class Made:
    """One task, with all that belongs to it and the plan that solves it."""

    question: str
    answer: str
    calls: tuple[Call, ...]
    final: str
    """How the answer follows: a text with `<<name>>`s."""
    file: tuple[str, bytes | str] | None = None
    """The attachment: its ending, and its content."""
    pages: Mapping[str, str | bytes] = field(default_factory=dict)
    """Of the local web: `host/path`, and the content."""


@dataclass(frozen=True)
class Template:
    """Makes tasks of one kind."""

    name: str
    level: int
    skills: tuple[str, ...]
    """What one must know to solve it; templates share skills."""
    make: Callable[[Random, str, str], Made]
    """From the facts of a draw: a random source, the attachment's path, and a word that no other task of it has."""
    held_out: bool = False
    """Whether none of its tasks is for training: what is learned elsewhere has to transfer."""


def filled(value: Any, known: Mapping[str, str], *, pattern: bool = False) -> Any:
    """A value with what is known in place of its `<<name>>`s.

    Args:
        value: arguments, a text or a pattern.
        known: what was found.
        pattern: whether it is a pattern, in which what is known stands for itself.

    Raises:
        KeyError: something was not found.
    """
    if isinstance(value, str):
        return NAMES.sub(lambda found: re.escape(known[found[1]]) if pattern else known[found[1]], value)
    if isinstance(value, Mapping):
        return {key: filled(inner, known) for key, inner in value.items()}
    return value


def read_file(path: str, find: Mapping[str, str] | None = None, **more: Any) -> Call:
    """A call of `read_file`."""
    return Call("read_file", {"path": path, **more}, find or {})


def fetch(url: str, **find: str) -> Call:
    """A call of `fetch_page`."""
    return Call("fetch_page", {"url": url}, find)


def search(query: str, **find: str) -> Call:
    """A call of `search`."""
    return Call("search", {"query": query}, find)


def calculate(expression: str, name: str = "result") -> Call:
    """A call of `calculator`, whose result has a name."""
    return Call("calculator", {"expression": expression}, {name: r"^\s*(-?[\d.]+)"})


def python(code: str, **find: str) -> Call:
    """A call of `python`."""
    return Call("python", {"code": dedent(code).strip() + "\n"}, find)


def link(words: str) -> str:
    """The pattern of a link with these words, as a page's text shows it."""
    return rf"\[{words}\]\((http\S+?)\)"


READ_QR = """
    # skill qr: decode the code in a picture
    import zxingcpp
    from PIL import Image
    print(zxingcpp.read_barcodes(Image.open("{path}"))[0].text)
"""
READ_TONES = """
    # skill tones: decode the keys of a telephone
    import wave
    import numpy as np
    with wave.open("{path}") as sound:
        rate = sound.getframerate()
        samples = np.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2").astype(float)
    def loudest(part, tones):
        at = np.arange(len(part)) / rate
        return int(np.argmax([abs(np.exp(-2j * np.pi * tone * at) @ part) for tone in tones]))
    size, keys, before = rate // 50, "", ""
    for start in range(0, len(samples) - size + 1, size):
        part, key = samples[start : start + size], ""
        if np.abs(part).mean() > 1000:
            row = loudest(part, (697, 770, 852, 941))
            key = "123456789*0#"[3 * row + loudest(part, (1209, 1336, 1477))]
        keys += key if key != before else ""
        before = key
    print(keys)
"""
