"""Searching the web through a SearxNG server, by its JSON interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from agentmem.errors import InputError, ToolError
from agentmem.tools.search import Hit

ANSWER_MB = 4
"""How much a server may answer."""


class SearxNG:
    """A search engine for `search_tool`.

    Args:
        address: the server's, such as `http://localhost:8080`; its `settings.yml` must list `json` under
            `search.formats`.
        safesearch: 0 none, 1 moderate, 2 strict.
        seconds: how long one search may take.

    Raises:
        InputError: the address is none, or safesearch is out of range.

    Example:
        >>> SearxNG("http://localhost:8080/").name
        'the web'
    """

    name = "the web"

    def __init__(self, address: str, *, safesearch: Literal[0, 1, 2] = 1, seconds: float = 15.0) -> None:
        if not address.startswith(("http://", "https://")):
            raise InputError(f"SearxNG({address!r}): an address starts with http:// or https://.")
        if safesearch not in (0, 1, 2):
            raise InputError(f"safesearch = {safesearch!r}: it is 0 (none), 1 (moderate) or 2 (strict).")
        self.address = address.rstrip("/")
        self.safesearch = safesearch
        self.seconds = seconds

    async def search(self, query: str, k: int) -> Sequence[Hit]:
        """The server's best `k` results, each address once."""
        answer = await self._ask({"q": query, "format": "json", "safesearch": str(self.safesearch)})
        results = answer.get("results") if isinstance(answer, dict) else None
        if not isinstance(results, list):
            raise ToolError("The search server's answer has no results.", error_class="unreadable")
        hits: dict[str, Hit] = {}
        for result in results:
            if isinstance(result, dict) and isinstance(address := result.get("url"), str):
                title, snippet = (result.get(key) for key in ("title", "content"))
                hits.setdefault(
                    address, Hit(title=str(title or address), address=address, snippet=str(snippet or ""))
                )
        return list(hits.values())[:k]

    async def _ask(self, query: dict[str, str]) -> Any:
        import httpx

        try:
            async with (
                httpx.AsyncClient(timeout=self.seconds, trust_env=False) as client,
                client.stream("GET", f"{self.address}/search", params=query) as response,
            ):
                if response.status_code == 403:
                    raise ToolError(
                        "The search server refuses JSON; list `json` under search.formats in its settings.yml.",
                        error_class="http_403",
                    )
                if response.status_code != 200:
                    raise ToolError(
                        f"The search server answered with status {response.status_code}.",
                        error_class=f"http_{response.status_code}",
                    )
                body = bytearray()
                async for chunk in response.aiter_bytes(65536):
                    body += chunk
                    if len(body) > ANSWER_MB << 20:
                        raise ToolError("The search server's answer is too large.", error_class="too_large")
                return httpx.Response(200, content=bytes(body)).json()
        except httpx.TimeoutException:
            raise TimeoutError(f"the search server gave no answer within {self.seconds:g} s") from None
        except httpx.HTTPError as error:
            raise ToolError(
                f"The search server cannot be reached: {error}.", error_class="no_connection"
            ) from None
        except ValueError:
            raise ToolError("The search server's answer is no JSON.", error_class="unreadable") from None
