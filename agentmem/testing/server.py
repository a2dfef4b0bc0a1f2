"""An OpenAI-compatible server on a real loopback socket: scripted answers, and faults on demand.

It serves `POST /v1/chat/completions` (without streaming), `GET /v1/models` and `GET /ledger` (what it received),
and needs the extra `testing`. In a test: `async with ChatServer(...)` on the test's own loop, or
`with ChatServer(...)` on a thread of its own. As a process: `python -m agentmem.testing.server`, which prints its
address as JSON.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from agentmem.domain.value import fingerprint
from agentmem.errors import InputError
from agentmem.testing.chat import ChatAnswer, ChatRequest, completion
from agentmem.testing.faults import PERMANENT, TRANSIENT, Faults, error_body, wreck

if TYPE_CHECKING:
    from aiohttp import web


@dataclass
class Received:
    """One line of the server's ledger."""

    hash: str
    at: float
    """Seconds after the server started."""
    in_flight: int
    """Requests under way when it arrived, itself included."""
    outcome: str = "under way"
    """`answered`, the fault's kind, `refused` (a bad request), `gone` (the client left), or `script failed`."""
    seconds: float = field(default=0.0, compare=False)
    """From its arrival to its outcome."""


Script = Callable[[ChatRequest], Any]
Latency = float | Callable[[ChatRequest], float]


def heavy_tail(median: float, *, sigma: float = 1.0, most: float = math.inf) -> Callable[[ChatRequest], float]:
    """Lognormal latencies, reproducible by request: most are short, a few are very long.

    Args:
        median: seconds.
        sigma: standard deviation of the logarithm; at 1, one request in 20 takes more than 5 times the median.
        most: seconds at most.
    """
    return lambda chat: min(most, median * math.exp(chat.rng("latency").gauss(0.0, sigma)))


class ChatServer:
    """An OpenAI-compatible server for tests.

    Args:
        answer: what it says: a function of the request (or a coroutine function), or one text for everything. By
            default it repeats what the user said last.
        faults: what goes wrong, and when.
        latency: seconds before each response, or a function of the request such as `heavy_tail(0.05)`.
        seed: the draws of latencies and answers depend on it.
        api_key: where given, requests with another key get 401.
        models: where given, requests for another model get 404.
        port: 0 takes a free one.

    Example:
        >>> with ChatServer("four") as server:
        ...     server.base_url.startswith("http://127.0.0.1:"), server.calls
        (True, 0)
    """

    def __init__(
        self,
        answer: Script | str | None = None,
        *,
        faults: Faults | None = None,
        latency: Latency = 0.0,
        seed: int = 0,
        api_key: str | None = None,
        models: tuple[str, ...] | None = None,
        port: int = 0,
    ) -> None:
        self.answer: Script = (
            answer if callable(answer) else (lambda chat: chat.last_user if answer is None else answer)
        )
        self.faults = faults or Faults(share=0.0)
        self.latency = latency
        self.seed = seed
        self.api_key = api_key
        self.models = models
        self.port = port
        self.requests: list[Received] = []
        """Every chat request received, in order of arrival."""
        self.bodies: list[dict[str, Any]] = []
        """Their JSON bodies."""
        self._seen: Counter[str] = Counter()
        self._in_flight = 0
        self._started = 0.0
        self._runner: web.AppRunner | None = None
        self._thread: _LoopThread | None = None

    @property
    def base_url(self) -> str:
        """The address for `base_url`, `/v1` included."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def calls(self) -> int:
        """Chat requests received, faulted ones included."""
        return len(self.requests)

    @property
    def most_in_flight(self) -> int:
        """The most chat requests that were under way at once."""
        return max((received.in_flight for received in self.requests), default=0)

    @property
    def outcomes(self) -> Counter[str]:
        """How many requests had which outcome."""
        return Counter(received.outcome for received in self.requests)

    @property
    def bought_twice(self) -> dict[str, int]:
        """Hashes of requests that were answered more than once, with how often."""
        answered = Counter(received.hash for received in self.requests if received.outcome == "answered")
        return {key: count for key, count in answered.items() if count > 1}

    async def start(self) -> Self:
        """Listen, on the running event loop."""
        try:
            from aiohttp import web
        except ImportError:
            raise InputError(
                "ChatServer needs aiohttp; install it with: pip install 'agentmem[testing]'."
            ) from None

        app = web.Application(client_max_size=256 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_get("/ledger", self._ledger)
        # A handler must learn that its client has left: `hang` waits for nothing else.
        # (A shutdown_timeout of 0 would mean: wait for ever.)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.01)
        await self._runner.setup()
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted connections inherit it; without it, small responses wait 40 ms for the client's acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        await web.SockSite(self._runner, listener, backlog=1024).start()
        self._started = time.monotonic()
        return self

    async def stop(self) -> None:
        """Drop all connections and close the socket."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def __enter__(self) -> Self:
        self._thread = _LoopThread()
        self._thread.run(self.start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None
        self._thread.run(self.stop())
        self._thread.stop()
        self._thread = None

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        """Answer one chat request, and write its line in the ledger whatever happens."""
        arrived = time.monotonic()
        raw = await http.read()
        try:
            body = json.loads(raw)
            key = fingerprint(body)
        except ValueError:
            body, key = {}, fingerprint(raw.decode("latin-1"))
        self._in_flight += 1
        line = Received(key, round(arrived - self._started, 6), self._in_flight)
        self.requests.append(line)
        self.bodies.append(body)
        chat = ChatRequest(body, key, self._seen[key], self.seed)
        self._seen[key] += 1
        try:
            return await self._respond(http, chat, line)
        except asyncio.CancelledError:
            line.outcome = "hang" if line.outcome == "hang" else "gone"
            raise
        finally:
            self._in_flight -= 1
            line.seconds = round(time.monotonic() - arrived, 6)

    async def _respond(self, http: web.Request, chat: ChatRequest, line: Received) -> web.StreamResponse:
        if refusal := self._refusal(http, chat):
            line.outcome = "refused"
            return _response(refusal[0], error_body(refusal[1], code=refusal[2]))
        plan = self.faults.of(chat.hash)
        fault = plan[chat.occurrence] if chat.occurrence < len(plan) else None
        if fault == "hang":
            line.outcome = fault
            await asyncio.Event().wait()
        if (wait := self.latency(chat) if callable(self.latency) else self.latency) > 0:
            await asyncio.sleep(wait)
        if fault == "drop":
            line.outcome = fault
            return _break_off(http, b"", reset=False)
        if fault is None or fault in ("drop_midway", "short_body", "truncated_json", "empty_choices"):
            try:
                said = self.answer(chat)
                answer = ChatAnswer.of(await said if inspect.isawaitable(said) else said)
            except Exception as error:
                line.outcome = "script failed"
                return _response(500, error_body(f"the script raised {type(error).__name__}: {error}"))
            whole = json.dumps(completion(chat, answer)).encode()
        else:
            whole = b""
        line.outcome = fault or "answered"
        if fault is None:
            return _response(200, whole)
        if fault in ("drop_midway", "short_body"):
            return _break_off(http, whole, reset=fault == "drop_midway")
        status, wrecked, headers = wreck(fault, whole=whole, retry_after=self.faults.retry_after)
        return _response(status, wrecked, headers)

    def _refusal(self, http: web.Request, chat: ChatRequest) -> tuple[int, str, str | None] | None:
        """Status, message and code of what any real server would refuse too."""
        if self.api_key is not None and http.headers.get("Authorization") != f"Bearer {self.api_key}":
            return 401, "Incorrect API key provided", "invalid_api_key"
        body = chat.body
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or not body["messages"]:
            return 400, "We could not parse the JSON body of your request with its 'messages'", None
        if body.get("stream"):
            return 400, "This server does not stream", "unsupported_value"
        if self.models is not None and body.get("model") not in self.models:
            return 404, f"The model `{body.get('model')}` does not exist", "model_not_found"
        try:
            _ = chat.request
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return 400, f"Invalid request: {type(error).__name__}: {error}", None
        return None

    async def _list_models(self, http: web.Request) -> web.StreamResponse:
        names = self.models or ("scripted",)
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "agentmem"} for name in names]
        return _response(200, json.dumps({"object": "list", "data": data}).encode())

    async def _ledger(self, http: web.Request) -> web.StreamResponse:
        ledger = {
            "calls": self.calls,
            "most_in_flight": self.most_in_flight,
            "outcomes": self.outcomes,
            "bought_twice": self.bought_twice,
            "requests": [asdict(line) for line in self.requests],
        }
        return _response(200, json.dumps(ledger).encode())


def _response(status: int, body: bytes, headers: dict[str, str] | None = None) -> web.StreamResponse:
    from aiohttp import web

    # A whole body in bytes goes out together with its headers, in one write.
    return web.Response(status=status, body=body, headers=headers or {"Content-Type": "application/json"})


def _break_off(http: web.Request, body: bytes, *, reset: bool) -> web.StreamResponse:
    """Close the connection after half of `body`, or at once where there is none.

    Args:
        http: the request.
        body: announced in full.
        reset: tear the connection (RST) instead of closing it in order (FIN).
    """
    from aiohttp import web

    transport = http.transport
    if transport is not None:
        if body:
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            transport.write(head.encode() + body[: len(body) // 2])
        if reset and (sock := transport.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.close()
    return web.Response()  # never reaches anyone


class _LoopThread:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ChatServer", daemon=True)
        self._thread.start()

    def run(self, work: Awaitable[Any]) -> None:
        async def wait() -> None:
            await work

        asyncio.run_coroutine_threadsafe(wait(), self._loop).result(timeout=30)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=30)
        self._loop.close()


def main(arguments: list[str] | None = None) -> None:
    """Serve until interrupted; the first line on stdout is the address as JSON, the last the count of calls."""
    import argparse
    import signal

    from agentmem.testing.scripted import load_script

    parser = argparse.ArgumentParser(prog="python -m agentmem.testing.server", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument(
        "--script", default="echo", help="what follows scripted/ in a model's name (default: echo)"
    )
    parser.add_argument("--latency", type=float, default=0.0, help="seconds; the median where --sigma is set")
    parser.add_argument("--sigma", type=float, default=0.0, help="spread of lognormal latencies")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=0.0, help="share of requests that are faulted")
    parser.add_argument("--kinds", default="", help="faults, separated by commas (default: all transient ones)")
    parser.add_argument("--cap", type=int, default=4, help="faults of one request at most")
    parser.add_argument("--retry-after", type=float, default=0.05, help="seconds in Retry-After headers")
    given = parser.parse_args(arguments)

    kinds = tuple(given.kinds.split(",")) if given.kinds else TRANSIENT
    if unknown := [kind for kind in kinds if kind not in TRANSIENT + PERMANENT]:
        parser.error(f"no fault is called {unknown[0]!r}; known: {', '.join(TRANSIENT + PERMANENT)}")
    try:
        script = load_script(given.script)
        faults = Faults.model_validate(
            {
                "share": given.share,
                "kinds": kinds,
                "per_request_cap": given.cap,
                "retry_after": given.retry_after,
                "seed": given.seed,
            }
        )
    except (InputError, ValueError) as error:
        parser.error(str(error))

    async def serve() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        server = ChatServer(
            lambda chat: script(chat.request),
            faults=faults,
            latency=heavy_tail(given.latency, sigma=given.sigma) if given.sigma else given.latency,
            seed=given.seed,
            port=given.port,
        )
        async with server:
            print(json.dumps({"base_url": server.base_url}), flush=True)
            await stop.wait()
        print(json.dumps({"calls": server.calls, "most_in_flight": server.most_in_flight}), flush=True)

    asyncio.run(serve())


if __name__ == "__main__":
    main()
