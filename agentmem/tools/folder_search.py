"""Searching the files of a folder by their words (BM25, Robertson and Zaragoza 2009), with bm25s."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentmem.errors import InputError, ToolError
from agentmem.sandbox.thread import in_thread
from agentmem.tools.convert import as_text
from agentmem.tools.files import FILE_MB, FileContent
from agentmem.tools.search import Hit

PASSAGE_CHARACTERS = 1000
"""About how long the passages are that are found."""
FILES = 20_000
"""Files of a folder that are searched."""
FILE_SECONDS = 60.0
"""Seconds that turning one file into text may take; one that takes longer is left out."""

_Stamp = tuple[int, int]


@dataclass(frozen=True)
class _Passage:
    file: str
    line: int
    title: str
    text: str


class FolderSearch:
    """A search engine for `search_tool`: the files of a folder, embedded, without a server.

    The index is made at the first search and kept; at each search the files are looked at, and those that are new or
    have changed are read again. Documents (PDF, Word ...) are converted; what cannot be read is left out. Hidden files
    and links that lead out of the folder are not searched.

    Args:
        folder: where to search, with all that is below it.

    Raises:
        InputError: there is no such folder.

    Example:
        >>> import asyncio
        >>> _ = (tmp / "a.md").write_text("Tides are caused by the moon.")
        >>> [hit.address for hit in asyncio.run(FolderSearch(tmp).search("moon tides", 3))]
        ['a.md:1']
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).absolute()
        if not self.folder.is_dir():
            raise InputError(f"There is no folder {str(folder)!r} to search in; name one that exists.")
        self.name = f"the folder {self.folder.name!r}"
        self._passages: dict[str, tuple[_Stamp, list[_Passage]]] = {}
        self._all: list[_Passage] = []
        self._index: Any = None
        self._turn = threading.Lock()

    async def search(self, query: str, k: int) -> Sequence[Hit]:
        """The best `k` passages, one a file first."""
        return await in_thread(lambda: self._search(query, k), name="agentmem-search")

    def _search(self, query: str, k: int) -> list[Hit]:
        with self._turn:  # built by one, awaited by all
            self._refresh()
            index, passages = self._index, self._all
        words = _words(query)
        if index is None or not words:
            return []
        scores = index.get_scores(words)
        order = sorted(range(len(passages)), key=lambda n: (-scores[n], n))
        found = [n for n in order[: 10 * k] if scores[n] > 0]
        seen: set[str] = set()
        first = [n for n in found if not (passages[n].file in seen or seen.add(passages[n].file))]  # type: ignore[func-returns-value]
        chosen = sorted(first[:k] or [], key=order.index) + [n for n in found if n not in first]
        return [_hit(passages[n]) for n in chosen[:k]]

    def _refresh(self) -> None:
        """Read what is new or has changed, forget what is gone, and make the index anew if anything did."""
        stamps = dict(self._files())
        gone = self._passages.keys() - stamps.keys()
        changed = [file for file, stamp in stamps.items() if self._passages.get(file, (None,))[0] != stamp]
        for file in gone:
            del self._passages[file]
        for file in changed:
            self._passages[file] = (stamps[file], self._read(file))
        if not (gone or changed):
            return
        self._all = [passage for file in sorted(self._passages) for passage in self._passages[file][1]]
        corpus = [_words(f"{passage.title} {passage.text}") for passage in self._all]
        self._index = None
        if any(corpus):
            import bm25s

            self._index = bm25s.BM25(method="lucene")
            self._index.index(corpus, show_progress=False)

    def _files(self) -> Iterator[tuple[str, _Stamp]]:
        """All files that may be searched, with what changes when they change."""
        count, root = 0, os.path.realpath(self.folder)
        for folder, inner, names in os.walk(self.folder):
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            for name in sorted(names):
                path = Path(folder, name)
                if name.startswith(".") or not Path(os.path.realpath(path)).is_relative_to(root):
                    continue
                try:
                    about = path.stat()
                except OSError:
                    continue
                if not path.is_file() or about.st_size > FILE_MB << 20:
                    continue
                count += 1
                if count > FILES:
                    raise ToolError(f"{self.name} has more than {FILES} files.", error_class="too_large")
                yield path.relative_to(self.folder).as_posix(), (about.st_mtime_ns, about.st_size)

    def _read(self, file: str) -> list[_Passage]:
        try:
            content = (self.folder / file).read_bytes()
            text = asyncio.run(as_text(FileContent(file, content), seconds=FILE_SECONDS))
        except (ToolError, TimeoutError, OSError):
            return []  # a picture, a broken or locked file: nothing to be found in it
        return list(_split(file, text))


def _split(file: str, text: str) -> Iterator[_Passage]:
    """Passages of whole lines; the title is the last heading, or the file's name."""
    title, start, size, lines = file, 1, 0, list[str]()
    for number, line in enumerate(text.split("\n"), start=1):
        heading = re.match(r"#{1,6} +(.+)", line)
        ends = heading is not None or (not line.strip() and size > PASSAGE_CHARACTERS // 2)
        if lines and (ends or size + len(line) > PASSAGE_CHARACTERS):
            if any(map(str.strip, lines)):
                yield _Passage(file, start, title, "\n".join(lines).strip())
            lines, size = [], 0
        if not lines:
            start = number
        title = f"{file}: {heading[1].strip()}" if heading else title
        lines.append(line)
        size += len(line) + 1
    if any(map(str.strip, lines)):
        yield _Passage(file, start, title, "\n".join(lines).strip())


def _words(text: str) -> list[str]:
    """Words in small letters; where none are set apart by spaces (Chinese, Japanese), pairs of characters."""
    words: list[str] = []
    for word in re.findall(r"\w+", text.casefold()):
        for wide, other in re.findall(r"([\u3040-\u30ff\u3400-\u9fff]+)|([^\u3040-\u30ff\u3400-\u9fff]+)", word):
            words += [wide[n : n + 2] for n in range(max(1, len(wide) - 1))] if wide else [other]
    return words


def _hit(passage: _Passage) -> Hit:
    return Hit(title=passage.title, address=f"{passage.file}:{passage.line}", snippet=passage.text)
