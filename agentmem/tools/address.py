"""Which addresses of the network a tool may connect to, and a connection to just the address that was checked."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import httpcore

from agentmem.errors import ToolError

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""A host's addresses, by name and port."""

# Not left to `is_global` alone: it has changed from one Python to the next, and knows multicast as global.
_REFUSED = [
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4",
        "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
    )
]  # fmt: skip
CONNECT_SECONDS = 10.0
"""Seconds after which the next address of a host is tried."""
_GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")
"""All that is routed in IPv6; what wraps an IPv4 address (mapped, compatible, NAT64) lies outside."""


def is_public(address: str) -> bool:
    """Whether an address is one of the open Internet.

    Example:
        >>> [is_public(a) for a in ("93.184.216.34", "10.0.0.1", "::ffff:93.184.216.34", "64:ff9b::5db8:d822")]
        [True, False, False, False]
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if "%" in address or not ip.is_global or ip.is_multicast:
        return False
    if ip.version == 6 and ip not in _GLOBAL_IPV6:
        return False
    return not any(ip in network for network in _REFUSED if network.version == ip.version)


async def resolved(host: str, port: int) -> Sequence[str]:
    """The addresses that the system knows for a host."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to public addresses only: a name is looked up once, and what was checked is what is connected to.

    httpcore keeps the name for the Host header, for SNI and for the certificate.

    Args:
        allow: hosts with their ports (`127.0.0.1:8000`) that are connected to wherever they are.
        resolve: who looks names up.
        connect: who connects to an address; by default the system.
    """

    def __init__(
        self,
        allow: Iterable[str] = (),
        *,
        resolve: Resolve = resolved,
        connect: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._allow = {entry.lower() for entry in allow}
        self._resolve = resolve
        self._connect = connect or httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's own signature
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of `host` that answers, if all of them are permitted."""
        addresses = await self._addresses(host.strip("[]"), port)
        failure: Exception | None = None
        for address in addresses:
            try:
                return await self._connect.connect_tcp(
                    address,
                    port,
                    timeout=timeout or CONNECT_SECONDS,
                    local_address=local_address,
                    socket_options=socket_options,
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise ToolError(f"No connection to {host}:{port}: {failure or 'no address'}.", error_class="no_connection")

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise ToolError(f"The host {host!r} is not known: {error}.", error_class="no_connection") from None
        if f"{host.lower()}:{port}" in self._allow or f"[{host.lower()}]:{port}" in self._allow:
            return addresses
        if refused := [address for address in addresses if not is_public(address)]:
            raise ToolError(
                f"{host}:{port} is refused: its address {refused[0]} is not one of the open Internet.",
                error_class="refused",
            )
        return addresses

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's own signature
        socket_options: Any = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refused."""
        raise ToolError("Sockets of this machine are refused.", error_class="refused")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
