"""A data set on the Hugging Face Hub, at a revision that is named."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from agentmem.errors import InputError
from agentmem.task_sources.parquet_rows import plain
from agentmem.task_sources.place import Place, Row

SCHEME = "hub:"
COMMIT = re.compile(r"[0-9a-f]{40}")
FORM = "hub:OWNER/NAME@REVISION?split=test, and &config=NAME where it has several"


@dataclass(frozen=True)
class Hub:
    """One split of a data set on the Hub.

    Example:
        >>> Hub.parse("hub:owner/sums@main?split=test&config=easy")
        Hub(path='owner/sums', revision='main', split='test', config='easy')
    """

    path: str
    """OWNER/NAME; or a folder with the data set's files."""
    revision: str
    """The commit, 40 hexadecimal digits; a branch or a tag is taken too, with a warning, because it may move."""
    split: str
    config: str | None = None
    """Which of its configurations; None where it has one."""

    @classmethod
    def parse(cls, text: str) -> Hub:
        """What a text such as `hub:owner/sums@main?split=test` names.

        Raises:
            InputError: the name, the revision or the split is missing, or there is something else in it.
        """
        name, _, query = text.removeprefix(SCHEME).partition("?")
        path, _, revision = name.rpartition("@")
        given = dict(parse_qsl(query))
        if not path:
            raise InputError(
                f"{text!r} names no revision, and a data set can change from one day to the next: write {FORM}; "
                "the commit is on the data set's page, under Files, History."
            )
        if not given.get("split") or given.keys() - {"split", "config"} or not revision:
            raise InputError(f"{text!r} is not of the form {FORM}.")
        return cls(path, revision, given["split"], given.get("config"))

    def __str__(self) -> str:
        given = {"split": self.split} | ({"config": self.config} if self.config else {})
        return f"{SCHEME}{self.path}@{self.revision}?{urlencode(given)}"

    @property
    def name(self) -> str:
        """The data set's name without its owner."""
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def pinned(self) -> bool:
        """Whether the revision is a commit, which never changes."""
        return COMMIT.fullmatch(self.revision) is not None

    def rows(self) -> Iterator[Row]:
        """The rows, numbered from 1; downloaded, or out of the cache of `datasets`.

        Raises:
            InputError: the extra is not installed, or the Hub has no such data set, revision, configuration or split.
        """
        if not self.pinned:
            warnings.warn(
                f"{self}: {self.revision!r} is no commit, so the tasks may be others tomorrow; name the commit to "
                "make results that can be compared.",
                UserWarning,
                stacklevel=2,
            )
        for number, record in enumerate(self._loaded(), start=1):
            yield Place(str(self), "row", number), plain(record)

    def _loaded(self) -> Iterator[dict[str, object]]:
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        try:
            from datasets import load_dataset
        except ImportError:
            raise InputError(
                f'{self} needs the package datasets, which is not installed: pip install "agentmem[datasets]".'
            ) from None
        try:
            yield from load_dataset(self.path, self.config, split=self.split, revision=self.revision)
        except Exception as error:  # of requests, of the cache, of the files: it has dozens of kinds
            reason = " ".join(str(error).split())
            raise InputError(
                f"{self} cannot be loaded: {type(error).__name__}: {reason:.300}. Check its name, revision, config and "
                "split, and the network; without one, download its Parquet file elsewhere and name that."
            ) from error
