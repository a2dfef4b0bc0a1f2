"""The `fetch_page` tool: a page of the open Internet as text."""

from __future__ import annotations

import asyncio
import mimetypes
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from email.message import Message as Headers
from pathlib import PurePosixPath
from urllib.parse import urljoin, urlsplit

from agentmem.errors import InputError, ToolError
from agentmem.tools.convert import as_text, require_converter
from agentmem.tools.excerpt import excerpt
from agentmem.tools.files import FileContent
from agentmem.tools.tool import Tool, ToolContext, ToolOutput

REDIRECTS = 5
BODY_MB = 16
"""How much a page may have, both as it is sent and unpacked."""
RATIO = 200
"""How many times its sent size a page may unpack to, from 1 MB on."""
AGENT = "Mozilla/5.0 (compatible; agentmem)"


@dataclass(frozen=True)
class _Page:
    status: int
    headers: Mapping[str, str]
    body: bytes


def page_fetcher(
    *,
    allow: Iterable[str] = (),
    deny: Callable[[str], bool] | None = None,
    network: object = None,
    name: str = "fetch_page",
) -> Tool:
    """A tool that fetches pages. It reaches the open Internet only, and what the caller lists.

    A host is looked up once, every address that it has must be public, and the one that was checked is connected to;
    the same holds for each redirect. Proxies of the environment, cookies and credentials are not used.

    Args:
        allow: hosts with their ports that may be private or this machine, such as `("127.0.0.1:8000",)`.
        deny: True for an address that must not be read, such as one that mirrors a benchmark; asked at each redirect.
        network: an `httpcore.AsyncNetworkBackend` instead of `CheckedNetwork(allow)`.
        name: the tool's name.

    Raises:
        InputError: markitdown is not installed, or `allow` names a host without its port.

    Example:
        >>> page_fetcher(allow=["127.0.0.1:8000"], deny=lambda url: "answers" in url).name
        'fetch_page'
    """
    require_converter()
    allowed = tuple(allow)
    for entry in allowed:
        if not entry.rpartition(":")[2].isdigit():
            raise InputError(f"allow = {entry!r}: name a host and its port, such as '127.0.0.1:8000'.")
    return Tool(_Fetcher(allowed, deny or (lambda url: False), network), name=name, untrusted=True)


@dataclass
class _Fetcher:
    """Fetch a page or a document (HTML, PDF, Word ...) by its http or https address, and return its text.

    A long text is shown in stretches, each with the line to read on from.

    Args:
        url: the whole address, such as `https://example.org/page`.
        start: the line to read from, for reading on.
        context: where it runs; the model is not told.
    """

    allow: tuple[str, ...]
    deny: Callable[[str], bool]
    network: object = None

    async def __call__(self, url: str, context: ToolContext, start: int = 1) -> ToolOutput:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + 0.95 * context.seconds
        async with asyncio.timeout_at(deadline):
            trail, page = await self._follow(url)
            body = _unpacked(page.body, page.headers.get("content-encoding", ""))
            file, charset = _as_file(trail[-1], page.headers.get("content-type", ""), body)
            if page.status >= 400:
                raise ToolError(
                    f"{trail[-1]} answered with status {page.status}.", error_class=f"http_{page.status}"
                )
            text = await as_text(file, seconds=deadline - loop.time(), charset=charset)
        way = " -> ".join(trail)
        return ToolOutput(f"{way}\n\n{excerpt(text, start=start, what=trail[-1])}", source=trail[-1])

    async def _follow(self, url: str) -> tuple[list[str], _Page]:
        """The addresses that were gone through, and the page at the end."""
        trail = [self._checked(url)]
        while True:
            page = await self._get(trail[-1])
            if page.status not in (301, 302, 303, 307, 308) or not (target := page.headers.get("location")):
                return trail, page
            if len(trail) > REDIRECTS:
                raise ToolError(f"{url} redirects more than {REDIRECTS} times.", error_class="redirects")
            trail.append(self._checked(urljoin(trail[-1], target)))

    def _checked(self, url: str) -> str:
        """The address without its fragment, if it may be asked for."""
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except ValueError as error:
            raise ToolError(f"{url!r} is no address: {error}.", error_class="arguments") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise ToolError(
                f"{url!r} cannot be fetched: an address starts with http:// or https:// and a host.",
                error_class="refused",
            )
        if parts.username is not None or parts.password is not None:
            raise ToolError("An address with a user name or a password in it is refused.", error_class="refused")
        plain = parts._replace(fragment="").geturl()
        if self.deny(plain):
            raise ToolError(f"{plain} is on the list of addresses that must not be read.", error_class="denied")
        return plain

    async def _get(self, url: str) -> _Page:
        import httpcore
        import httpx

        from agentmem.tools.address import CheckedNetwork

        network = (
            self.network if isinstance(self.network, httpcore.AsyncNetworkBackend) else CheckedNetwork(self.allow)
        )
        try:
            address = httpx.URL(url)  # names in other alphabets, spaces and umlauts as the wire wants them
            target = httpcore.URL(
                scheme=address.raw_scheme, host=address.raw_host, port=address.port, target=address.raw_path
            )
            headers: dict[bytes | str, bytes | str] = {
                "Host": address.netloc.decode("ascii"),
                "User-Agent": AGENT,
                "Accept": "text/html, text/*;q=0.9, */*;q=0.5",
                "Accept-Encoding": "gzip, deflate",
            }
            async with (
                httpcore.AsyncConnectionPool(network_backend=network, retries=0) as pool,
                pool.stream("GET", target, headers=headers) as response,
            ):
                told = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in response.headers}
                body = b"" if response.status in range(300, 400) else await _limited(response.aiter_stream(), url)
                return _Page(response.status, told, body)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ToolError(f"{url!r} is no address: {error}.", error_class="arguments") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as error:
            why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise ToolError(
                f"{url} gave no answer that can be read ({why}).", error_class="no_connection"
            ) from None


async def _limited(chunks: AsyncIterator[bytes], url: str) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > BODY_MB << 20:
            raise ToolError(f"{url} has more than {BODY_MB} MB.", error_class="too_large")
    return bytes(body)


def _unpacked(body: bytes, encodings: str) -> bytes:
    """The body without its compressions, unless it grows out of all proportion."""
    names = [name.strip().lower() for name in encodings.split(",") if name.strip()]
    if len(names) > 2:
        raise ToolError("The page is compressed again and again.", error_class="refused")
    for name in reversed(names):
        match name:
            case "identity":
                continue
            case "gzip" | "x-gzip" | "deflate":
                body = _inflated(body, name)
            case _:  # br and zstd were not asked for
                raise ToolError(
                    f"The page is compressed as {name!r}, which was not asked for.", error_class="unreadable"
                )
    return body


def _inflated(body: bytes, name: str) -> bytes:
    limit = min(BODY_MB << 20, max(1 << 20, RATIO * len(body)))
    # Deflate is sent with and without a header; +32 finds gzip and zlib by themselves.
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        unpacker = zlib.decompressobj(window)
        try:
            unpacked = unpacker.decompress(body, limit + 1)
        except zlib.error:
            continue
        if len(unpacked) > limit:
            raise ToolError("The page unpacks to far more than was sent.", error_class="too_large")
        if unpacker.eof:
            return unpacked
    raise ToolError(f"The page's {name} is damaged or cut short.", error_class="unreadable")


def _as_file(url: str, content_type: str, body: bytes) -> tuple[FileContent, str | None]:
    """The page as a file with the ending that its type has, and the charset that was declared."""
    headers = Headers()
    headers["content-type"] = content_type or "application/octet-stream"
    kind = headers.get_content_type()
    ending = ".html" if "html" in kind else mimetypes.guess_extension(kind) or ""
    if kind == "application/octet-stream":
        ending = PurePosixPath(urlsplit(url).path).suffix
    return FileContent(url, body, ending), headers.get_content_charset()
