"""A web of one's own: a folder of pages, served on loopback under the names of hosts that exist nowhere else."""

from __future__ import annotations

import mimetypes
import os
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpcore

from agentmem.errors import InputError, ToolError
from agentmem.tools.folder_search import FolderSearch
from agentmem.tools.search import Hit


class LocalWeb:
    """Pages for `page_fetcher` and `search_tool` that need no network; open inside its context.

    Args:
        folder: one folder for each host, such as `town.test/index.html`. Names under `.test` belong to nobody.

    Raises:
        InputError: there is no such folder, or none in it.

    Example:
        >>> (tmp / "town.test").mkdir()
        >>> _ = (tmp / "town.test" / "index.html").write_text("<p>Hello</p>")
        >>> with LocalWeb(tmp) as web:
        ...     web.hosts
        ('town.test',)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise InputError(f"There is no folder {str(folder)!r} with the pages of a local web.")
        self.hosts = tuple(sorted(place.name for place in self.folder.iterdir() if place.is_dir()))
        if not self.hosts:
            raise InputError(f"{folder} holds no folder of a host, such as town.test; put the pages into one.")
        self._search = FolderSearch(self.folder)
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> LocalWeb:
        handler = type("Handler", (_Handler,), {"root": Path(os.path.realpath(self.folder)), "hosts": self.hosts})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="agentmem-web", daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @property
    def network(self) -> httpcore.AsyncNetworkBackend:
        """For `page_fetcher`: connects the hosts of this web with its server, and nothing else with anything."""
        if self._server is None:
            raise InputError("The local web is not open; use it as a context: with LocalWeb(folder) as web.")
        return _Loopback(self.hosts, int(self._server.server_address[1]))

    @property
    def name(self) -> str:
        """What the model is told that it searches."""
        return "the web"

    async def search(self, query: str, k: int) -> Sequence[Hit]:
        """The best `k` pages, by their addresses."""
        return [_as_page(hit) for hit in await self._search.search(query, k)]


class _Loopback(httpcore.AsyncNetworkBackend):
    def __init__(self, hosts: Sequence[str], port: int) -> None:
        self._hosts = hosts
        self._port = port
        self._connect = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's own signature
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.AsyncNetworkStream:
        if host.lower() not in self._hosts or port != 80:
            raise ToolError(f"The host {host}:{port} is not known.", error_class="no_connection")
        return await self._connect.connect_tcp("127.0.0.1", self._port, timeout=timeout)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's own signature
        socket_options: Any = None,
    ) -> httpcore.AsyncNetworkStream:
        raise ToolError("Sockets of this machine are refused.", error_class="refused")

    async def sleep(self, seconds: float) -> None:
        await httpcore.AnyIOBackend().sleep(seconds)


class _Handler(BaseHTTPRequestHandler):
    """Answers with the file that host and path name, if it lies in the host's folder."""

    root: Path
    hosts: Sequence[str]

    def do_GET(self) -> None:  # the name that http.server looks for
        host = self.headers.get("Host", "").partition(":")[0].lower()
        path = unquote(urlsplit(self.path).path).lstrip("/") or "index.html"
        file = Path(os.path.realpath(self.root / host / path))
        if host not in self.hosts or not file.is_relative_to(self.root / host) or not file.is_file():
            self.send_error(404)
            return
        content = file.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", mimetypes.guess_type(file.name)[0] or "application/octet-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what was asked for is in the trajectories."""


def _as_page(hit: Hit) -> Hit:
    address = hit.address.rpartition(":")[0]
    return hit.model_copy(
        update={"address": f"http://{address}", "title": hit.title.replace(address, "").strip(": ")}
    )
