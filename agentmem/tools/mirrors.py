"""Addresses at which a benchmark's answers can be read, and which an agent that is tested must not read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import unquote

from agentmem.tools.search import Hit, SearchEngine

HUBS = (
    "huggingface.co",
    "hf.co",
    "hf-mirror.com",
    "kaggle.com",
    "github.com",
    "githubusercontent.com",
    "gitlab.com",
)
"""Where data sets are kept and copied; there, every address that speaks of GAIA is one too many."""
PLACES = ("gaia-benchmark", "gaia_benchmark", "2311.12983", "gaia/2023", "gaia_validation", "gaia_test")
"""What gives a copy away wherever it lies; the number is that of the paper, which prints tasks with their answers."""


def mirror_of(*more: str, canary: str = "") -> Callable[[str], bool]:
    """Whether an address is a mirror of GAIA, or of another set; for `page_fetcher(deny=...)`.

    Args:
        more: parts of addresses that are not to be read either.
        canary: the data set's canary; nobody looks for it who does not look for the data set.

    Example:
        >>> deny = mirror_of()
        >>> deny("https://huggingface.co/datasets/someone/GAIA-copy"), deny("https://en.wikipedia.org/wiki/Gaia")
        (True, False)
    """
    parts = tuple(part.lower() for part in (*PLACES, *more, canary) if part.strip())

    def denied(address: str) -> bool:
        plain = unquote(unquote(address)).lower()
        host = re.sub(r"^\w+://", "", plain).split("/", 1)[0].partition(":")[0]
        at_hub = any(host == hub or host.endswith(f".{hub}") for hub in HUBS)
        return (at_hub and re.search(r"\bgaia", plain.replace("_", "-")) is not None) or any(
            part in plain for part in parts
        )

    return denied


class WithoutMirrors:
    """A search engine whose results leave out what must not be read; their snippets would show it too.

    Args:
        engine: what searches.
        denied: see `mirror_of`.
    """

    def __init__(self, engine: SearchEngine, denied: Callable[[str], bool]) -> None:
        self.engine = engine
        self.denied = denied

    @property
    def name(self) -> str:
        """What is searched."""
        return self.engine.name

    async def search(self, query: str, k: int) -> Sequence[Hit]:
        """The best `k` of the places that may be read; a few more are asked for, so that as many are left."""
        return list(_kept(await self.engine.search(query, 2 * k), self.denied))[:k]


def _kept(hits: Iterable[Hit], denied: Callable[[str], bool]) -> Iterable[Hit]:
    return (hit for hit in hits if not (denied(hit.address) or denied(hit.snippet)))
