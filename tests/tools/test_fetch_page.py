"""`fetch_page` over real servers on this machine: only where it may, only as much as it may, whatever they answer."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpcore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.domain.trajectory import ToolCall, ToolResult
from agentmem.errors import InputError, ToolError
from agentmem.tools.address import CheckedNetwork, is_public
from agentmem.tools.fetch_page import _inflated, page_fetcher
from agentmem.tools.tool import Tool, ToolContext
from agentmem.tools.toolbox import Toolbox
from tests.tools import documents

Answer = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(
    answer: bytes | Answer, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[int, list[str]]]:
    """A server that answers every request alike; its port, and the heads of the requests."""
    heads: list[str] = []
    under_way: list[tuple[asyncio.Task[Any] | None, asyncio.StreamWriter]] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        under_way.append((asyncio.current_task(), writer))
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            heads.append((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
            if callable(answer):
                await answer(heads[-1], writer)
            else:
                writer.write(answer)
            await writer.drain()
            writer.close()
            await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1], heads
        for task, writer in under_way:
            writer.transport.abort()
            if task is not None:
                task.cancel()
                await asyncio.wait({task})


def response(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


async def fetch(
    url: str, *, seconds: float = 20.0, start: int = 1, tool: Tool | None = None, **how: Any
) -> ToolResult:
    call = ToolCall(id="c", name="fetch_page", arguments=json.dumps({"url": url, "start": start}))
    return await Toolbox([tool or page_fetcher(**how)]).call(call, ToolContext(folder=Path("."), seconds=seconds))


async def fetched(answer: bytes | Answer, path: str = "/", **how: Any) -> ToolResult:
    async with serving(answer) as (port, _):
        return await fetch(f"http://127.0.0.1:{port}{path}", allow=(f"127.0.0.1:{port}",), **how)


async def test_a_page_becomes_text_that_is_marked_with_its_address() -> None:
    page = b"<html><body><h1>Tides</h1><script>no()</script><p>The moon.</p></body></html>"
    result = await fetched(response(page, "Content-Type: text/html"), "/tides#part")
    assert result.status == "ok", result.content
    assert result.content.endswith("/tides\n\n# Tides\n\nThe moon.")
    assert result.untrusted
    assert result.source.endswith("/tides")


@pytest.mark.parametrize(
    ("body", "headers", "shown"),
    [
        ("Grüße".encode("latin-1"), ["Content-Type: text/plain; charset=iso-8859-1"], "Grüße"),
        ("Grüße".encode(), ["Content-Type: text/plain; charset=no-such-charset"], "Grüße"),
        ("Grüße".encode("utf-16"), ["Content-Type: text/plain"], "Grüße"),
        ("<p>Grüße</p>".encode("cp1252"), ["Content-Type: text/html; charset=windows-1252"], "Grüße"),
        ("Grüße aus Köln".encode("cp1252"), ["Content-Type: text/plain; charset=utf-8"], "Grüße aus Köln"),
        (b'{"a": 1}', ["Content-Type: application/json"], '{"a": 1}'),
        (b"just text", [], "just text"),
        (documents.pdf(["A paper."]), ["Content-Type: application/octet-stream"], "A paper."),
        (documents.docx(["A letter."]), ["Content-Type: application/msword"], "A letter."),
        (gzip.compress(b"packed"), ["Content-Type: text/plain", "Content-Encoding: gzip"], "packed"),
        (zlib.compress(b"packed"), ["Content-Type: text/plain", "Content-Encoding: deflate"], "packed"),
        (zlib.compress(b"packed")[2:-4], ["Content-Type: text/plain", "Content-Encoding: deflate"], "packed"),
    ],
    ids=lambda value: "body" if isinstance(value, bytes) else None,
)
async def test_types_charsets_and_compressions(body: bytes, headers: list[str], shown: str) -> None:
    result = await fetched(response(body, *headers))
    assert result.status == "ok", result.content
    assert result.content.endswith(shown)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (response(b"gone", status="404 Not Found"), "http_404"),
        (response(b"x", "Content-Encoding: br"), "unreadable"),
        (response(b"x", "Content-Encoding: gzip"), "unreadable"),
        (response(b"x", "Content-Encoding: gzip, gzip, gzip"), "refused"),
        (response(gzip.compress(b"\0" * (64 << 20)), "Content-Encoding: gzip"), "too_large"),
        (response(gzip.compress(gzip.compress(b"\0" * (64 << 20))), "Content-Encoding: gzip, gzip"), "too_large"),
        (response(b"\x89PNG\r\n\x1a\n" + b"\0" * 99, "Content-Type: image/png"), "no_text"),
        (response(documents.archive({"x": b"\0" * (32 << 20)}), "Content-Type: application/zip"), "refused"),
        (response(b""), "empty"),
        (b"SSH-2.0-OpenSSH\r\n", "no_connection"),
        (b"", "no_connection"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", "no_connection"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000 + b"\r\n\r\n", "no_connection"),
    ],
    ids=lambda value: "answer" if isinstance(value, bytes) else None,
)
async def test_what_a_server_may_do_wrong_is_a_typed_result(answer: bytes, error: str) -> None:
    result = await fetched(answer)
    assert (result.status, result.error) == ("error", error), result.content
    assert len(result.content) < 400


def test_a_bomb_is_not_unpacked_beyond_what_is_kept() -> None:
    bomb = gzip.compress(b"\0" * (128 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(ToolError, match="unpacks to far more"):
            _inflated(bomb, "gzip")
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


async def test_a_body_without_end_is_cut_off() -> None:
    async def endless(head: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    result = await fetched(endless)
    assert (result.status, result.error) == ("error", "too_large")


async def test_a_server_that_drips_is_given_up_in_time() -> None:
    async def drip(head: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    result = await asyncio.wait_for(fetched(drip, seconds=1.0), 10)
    assert (result.status, result.error) == ("timeout", "timeout")


async def test_cancelling_the_attempt_closes_the_connection() -> None:
    closed = asyncio.Event()

    async def wait(head: str, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                writer.write(b"HTTP/1.1 ")
                await writer.drain()
                await asyncio.sleep(0.02)
        finally:
            closed.set()

    task = asyncio.create_task(fetched(wait))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(closed.wait(), 5)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://2130706433:{port}/",
        "http://0x7f.1:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://[::1]:{port}/",
        "http://0.0.0.0:{port}/",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/",
        "http://100.64.1.1/",
        "http://[fd00::1]/",
        "http://[fe80::1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://224.0.0.1/",
    ],
)
async def test_no_way_of_writing_it_reaches_a_private_address(url: str) -> None:
    async with serving(response(b"secret")) as (port, heads):
        result = await fetch(url.format(port=port), seconds=5)
    assert (result.status, result.error) == ("error", "refused"), result.content
    assert "not one of the open Internet" in result.content
    assert not heads


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("file:///etc/passwd", "refused"),
        ("ftp://example.org/", "refused"),
        ("gopher://example.org/", "refused"),
        ("example.org", "refused"),
        ("http://user:word@example.org/", "refused"),
        ("http://example.org:99999/", "arguments"),
        ("http://[::1/", "arguments"),
        ("http:///path", "refused"),
        ("http://no-such-host.invalid/", "no_connection"),
        ("", "refused"),
    ],
)
async def test_addresses_that_are_none_are_typed(url: str, error: str) -> None:
    result = await fetch(url, seconds=10)
    assert (result.status, result.error) == ("error", error), result.content


@pytest.mark.parametrize(
    "target", ["http://169.254.169.254/latest", "http://localhost:1/", "file:///etc/passwd", "//10.0.0.1/"]
)
async def test_each_redirect_is_checked_again(target: str) -> None:
    result = await fetched(response(b"", f"Location: {target}", status="302 Found"))
    assert (result.status, result.error) == ("error", "refused"), result.content


async def test_redirects_are_followed_told_and_bounded() -> None:
    async def hop(head: str, writer: asyncio.StreamWriter) -> None:
        number = int(head.split()[1].removeprefix("/"))
        there = response(b"", f"Location: {number - 1}", status="301 Moved")
        writer.write(response(b"arrived", "Content-Type: text/plain") if number == 0 else there)

    result = await fetched(hop, "/3")
    assert result.content.split("\n")[0].count(" -> ") == 3
    assert result.content.endswith("arrived")
    assert (await fetched(hop, "/9")).error == "redirects"


async def test_what_is_denied_is_denied_after_a_redirect_too() -> None:
    result = await fetched(
        response(b"", "Location: /mirror/gaia", status="302 Found"), deny=lambda url: "gaia" in url
    )
    assert (result.status, result.error) == ("error", "denied")


class Line(httpcore.AsyncNetworkBackend):
    """Notes where it is asked to connect to, and connects to this machine instead."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def connect_tcp(self, host: str, port: int, **more: Any) -> httpcore.AsyncNetworkStream:
        self.asked.append(host)
        return await httpcore.AnyIOBackend().connect_tcp("127.0.0.1", port, **more)


def resolver(*answers: Sequence[str]) -> tuple[Callable[[str, int], Awaitable[Sequence[str]]], list[str]]:
    """A name server that answers differently each time."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    return resolve, asked


async def test_a_name_that_changes_its_address_is_asked_once_and_connected_as_checked() -> None:
    """DNS rebinding: public when it is checked, loopback when it is connected to."""
    resolve, asked = resolver(["93.184.216.34"], ["127.0.0.1"])
    line = Line()
    async with serving(response(b"public", "Content-Type: text/plain")) as (port, heads):
        tool = page_fetcher(network=CheckedNetwork(resolve=resolve, connect=line))
        first = await fetch(f"http://rebind.test:{port}/", tool=tool)
        second = await fetch(f"http://rebind.test:{port}/", tool=tool)
    assert first.content.endswith("public")
    assert line.asked == ["93.184.216.34"]
    assert f"Host: rebind.test:{port}\r\n" in heads[0]
    assert (second.status, second.error) == ("error", "refused")
    assert asked == ["rebind.test", "rebind.test"]


async def test_one_private_address_among_public_ones_refuses_the_host() -> None:
    resolve, _ = resolver(["93.184.216.34", "127.0.0.1"])
    line = Line()
    result = await fetch(
        "http://mixed.test/", tool=page_fetcher(network=CheckedNetwork(resolve=resolve, connect=line))
    )
    assert (result.error, line.asked) == ("refused", [])


async def test_a_server_is_asked_for_by_name_and_its_certificate_is_checked(tmp_path: Path) -> None:
    names: list[str] = []
    context = _certificate(tmp_path, "site.test")
    context.sni_callback = lambda _, name, __: names.append(name)
    resolve, _ = resolver(["93.184.216.34"])
    async with serving(response(b"x"), tls=context) as (port, heads):
        tool = page_fetcher(network=CheckedNetwork(resolve=resolve, connect=Line()))
        result = await fetch(f"https://site.test:{port}/", tool=tool)
    assert names == ["site.test"]
    assert "CERTIFICATE_VERIFY_FAILED" in result.content
    assert not heads


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert (await fetched(response(b"direct", "Content-Type: text/plain"))).content.endswith("direct")


async def test_a_long_page_is_read_on() -> None:
    body = "\n".join(f"line {n} {'x' * 60}" for n in range(1000)).encode()
    async with serving(response(body, "Content-Type: text/plain")) as (port, _):
        url = f"http://127.0.0.1:{port}/"
        first = await fetch(url, allow=(f"127.0.0.1:{port}",))
        start = int(first.content.rpartition("start=")[2].rstrip(".]"))
        rest = await fetch(url, allow=(f"127.0.0.1:{port}",), start=start)
    assert f"\nline {start - 1} " in rest.content


@given(st.ip_addresses())
def test_what_is_public_is_global_and_never_wraps_another(address: Any) -> None:
    if is_public(str(address)):
        assert address.is_global
        assert not any((address.is_multicast, address.is_loopback, address.is_link_local, address.is_reserved))
        assert getattr(address, "ipv4_mapped", None) is None
        assert getattr(address, "sixtofour", None) is None


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111"])
def test_the_open_internet_is_public(address: str) -> None:
    assert is_public(address)


def test_an_allowed_host_needs_its_port() -> None:
    with pytest.raises(InputError, match="name a host and its port"):
        page_fetcher(allow=["localhost"])


def _certificate(folder: Path, host: str) -> ssl.SSLContext:
    """A server's context with a certificate that nobody has signed."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(
            name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1)
        )
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "server.pem"
    file.write_bytes(private + made.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
