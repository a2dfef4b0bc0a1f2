"""The `search` tool, and the protocol of what it asks: any engine that finds places with a title and a snippet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.tools.tool import Tool, ToolOutput

RESULTS = 20
"""How many results a model may ask for."""
SNIPPET_CHARACTERS = 600


class Hit(Value):
    """One place that was found."""

    title: str
    address: str
    """A web address, or a file with the line where it is, such as `notes/a.md:12`."""
    snippet: str = ""


@runtime_checkable
class SearchEngine(Protocol):
    """Whoever finds places for a query.

    Example:
        An engine of one's own, as a tool:

        >>> class Shelf:
        ...     name = "the shelf"
        ...     books = {"Emma": "A novel about a matchmaker.", "Dune": "A novel about sand."}
        ...     async def search(self, query: str, k: int) -> list[Hit]:
        ...         found = [t for t, about in self.books.items() if query.lower() in about.lower()]
        ...         return [Hit(title=t, address=f"shelf/{t}", snippet=self.books[t]) for t in found[:k]]
        >>> import asyncio
        >>> print(asyncio.run(search_tool(Shelf())("sand")).text)
        1. Dune
           shelf/Dune
           A novel about sand.
    """

    @property
    def name(self) -> str:
        """What is searched, in words for the model, such as `the web`."""
        ...

    async def search(self, query: str, k: int) -> Sequence[Hit]:
        """The best `k` places, best first. Whatever it raises is told to the model as an error of the tool."""
        ...


def search_tool(engine: SearchEngine, *, name: str = "search") -> Tool:
    """A tool that searches with `engine`.

    Args:
        engine: see `SearchEngine`.
        name: the tool's name; two searches need two.

    Raises:
        InputError: it is no search engine.
    """
    if not isinstance(engine, SearchEngine):
        raise InputError(
            f"{engine!r} is no search engine; it needs a name and `async def search(self, query, k)`."
        )

    async def search(query: str, k: int = 5) -> ToolOutput:
        if not query.strip():
            return ToolOutput("The query is empty; write what to look for.")
        hits = await engine.search(query.strip(), min(max(k, 1), RESULTS))
        text = "\n".join(_shown(n, hit) for n, hit in enumerate(hits, start=1))
        return ToolOutput(
            text or f"Nothing was found in {engine.name} for {query!r}.", source=f"search:{engine.name}"
        )

    search.__doc__ = f"""Search {engine.name}; returns titles, addresses and snippets, best first.

    Args:
        query: what to look for, in a few words.
        k: how many results, {RESULTS} at most.
    """
    return Tool(search, name=name, untrusted=True)


def search_in(place: str) -> Tool:
    """The search that `search:PLACE` names: a SearxNG server by its address, else a folder.

    Raises:
        InputError: there is no such folder.
    """
    if place.startswith(("http://", "https://")):
        from agentmem.tools.searxng import SearxNG

        return search_tool(SearxNG(place))
    from agentmem.tools.folder_search import FolderSearch

    return search_tool(FolderSearch(place))


def _shown(number: int, hit: Hit) -> str:
    snippet = " ".join(hit.snippet.split())
    if len(snippet) > SNIPPET_CHARACTERS:
        snippet = snippet[:SNIPPET_CHARACTERS] + " ..."
    return "\n   ".join(
        part for part in (f"{number}. {' '.join(hit.title.split())}", hit.address, snippet) if part
    )
