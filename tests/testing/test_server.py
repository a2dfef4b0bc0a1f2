"""The test server itself: what it promises to tests must hold on a real socket."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import statistics
import subprocess
import sys
import time
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmem.domain.trajectory import Message, ToolCall
from agentmem.domain.usage import Usage
from agentmem.models.model import Request, ToolSpec
from agentmem.models.openai import OpenAIModel
from agentmem.testing import ChatAnswer, ChatRequest, ChatServer, Faults, heavy_tail
from agentmem.testing.chat import read_request
from agentmem.testing.faults import PERMANENT, TRANSIENT
from agentmem.testing.server import main


def ask(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


async def post(server: ChatServer, body: Any, **how: Any) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        return await client.post(f"{server.base_url}/chat/completions", json=body, **how)


async def test_it_echoes_and_keeps_a_ledger() -> None:
    async with ChatServer() as server:
        first = (await post(server, ask("hello there"))).json()
        await post(server, ask("hello there"))
        async with httpx.AsyncClient(trust_env=False) as client:
            ledger = (await client.get(server.base_url.removesuffix("/v1") + "/ledger")).json()
            listed = (await client.get(f"{server.base_url}/models")).json()
    assert first["choices"][0]["message"]["content"] == "hello there"
    assert first["usage"] == {
        "prompt_tokens": 2,
        "completion_tokens": 2,
        "total_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    assert server.calls == 2 == ledger["calls"]
    assert [line.outcome for line in server.requests] == ["answered", "answered"]
    assert list(server.bought_twice.values()) == [2]
    assert listed["data"][0]["id"] == "scripted"


async def test_answers_carry_tools_logprobs_usage_and_reason() -> None:
    answer = ChatAnswer(
        text="thinking",
        tool_calls=(ToolCall(id="c1", name="add", arguments='{"a": 1}'),),
        logprobs=(("thin", -0.1), ("king", -0.2)),
        usage=Usage(prompt_tokens=10, completion_tokens=7, cached_tokens=4),
        reasoning_tokens=3,
    )
    async with ChatServer(lambda chat: answer) as server:
        body = (await post(server, ask("?"))).json()
    choice = body["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
    assert [t["logprob"] for t in choice["logprobs"]["content"]] == [-0.1, -0.2]
    assert body["usage"]["prompt_tokens_details"] == {"cached_tokens": 4}
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": 3}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (ask("?", stream=True), 400),
        ({"model": "m"}, 400),
        ({"model": "m", "messages": []}, 400),
        ({"model": "m", "messages": [{"content": "no role"}]}, 400),
        ([1], 400),
        (ask("?") | {"model": "other"}, 404),
    ],
)
async def test_bad_requests_are_refused(body: Any, status: int) -> None:
    async with ChatServer(models=("m",)) as server:
        answer = await post(server, body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
    assert server.outcomes == {"refused": 1}


async def test_a_wrong_key_is_refused() -> None:
    async with ChatServer(api_key="right") as server:
        assert (await post(server, ask("?"), headers={"Authorization": "Bearer wrong"})).status_code == 401
        assert (await post(server, ask("?"), headers={"Authorization": "Bearer right"})).status_code == 200


async def test_a_script_that_raises_is_a_visible_500() -> None:
    def broken(chat: ChatRequest) -> str:
        raise LookupError("no such answer")

    async with ChatServer(broken) as server:
        answer = await post(server, ask("?"))
    assert answer.status_code == 500
    assert "LookupError: no such answer" in answer.text
    assert server.outcomes == {"script failed": 1}


async def test_scripts_may_be_coroutines() -> None:
    async def slow(chat: ChatRequest) -> str:
        await asyncio.sleep(0)
        return chat.last_user.upper()

    async with ChatServer(slow) as server:
        assert (await post(server, ask("abc"))).json()["choices"][0]["message"]["content"] == "ABC"


async def test_a_response_is_one_write_without_delay() -> None:
    """Headers and body arrive together; two small writes would cost 40 ms on some systems."""
    raw = json.dumps(ask("hi")).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(raw)}\r\n\r\n".encode()

    def exchange() -> tuple[bytes, float]:
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.settimeout(5)
            began = time.perf_counter()
            sock.sendall(head + raw)
            return sock.recv(1 << 16), time.perf_counter() - began

    async with ChatServer() as server:
        seen = [await asyncio.to_thread(exchange) for _ in range(10)]
    for data, _ in seen:
        top, _, rest = data.partition(b"\r\n\r\n")
        assert f"Content-Length: {len(rest)}".encode() in top
        assert rest.endswith(b"}")
    assert min(seconds for _, seconds in seen) < 0.03


async def test_in_flight_is_counted_at_arrival() -> None:
    async with ChatServer(latency=0.4) as server:
        await asyncio.gather(*(post(server, ask(str(n))) for n in range(5)))
        await post(server, ask("alone"))
    assert server.most_in_flight == 5
    assert sorted(line.in_flight for line in server.requests) == [1, 1, 2, 3, 4, 5]


async def test_latency_depends_on_the_request_alone() -> None:
    draw = heavy_tail(0.05, sigma=1.0)
    chats = [ChatRequest(ask(str(n)), f"hash {n}", 0, seed=3) for n in range(2000)]
    drawn = [draw(chat) for chat in chats]
    assert drawn == [draw(chat) for chat in chats]
    assert statistics.median(drawn) == pytest.approx(0.05, rel=0.1)
    assert max(drawn) > 5 * 0.05
    assert draw(chats[0]) != draw(ChatRequest(chats[0].body, chats[0].hash, 1, seed=3))
    assert max(heavy_tail(0.05, most=0.06)(chat) for chat in chats) == 0.06


async def test_a_client_that_leaves_is_noticed() -> None:
    async with ChatServer(faults=Faults(share=1, kinds=("hang",), per_request_cap=1)) as server:
        with pytest.raises(httpx.ReadTimeout):
            await post(server, ask("?"), timeout=0.1)
        assert (await post(server, ask("?"))).status_code == 200
        slow = asyncio.create_task(post(server, ask("?"), timeout=5))
        await slow
    assert [line.outcome for line in server.requests] == ["hang", "answered", "answered"]
    assert server.requests[1].in_flight == 1, "the hung request is no longer under way"

    async with ChatServer(latency=30) as server:
        with pytest.raises(httpx.ReadTimeout):
            await post(server, ask("?"), timeout=0.1)
        await asyncio.sleep(0.05)
        assert server.outcomes == {"gone": 1}


async def test_it_stops_at_once_while_requests_hang() -> None:
    async with ChatServer(latency=60) as server:
        hung = asyncio.create_task(post(server, ask("?")))
        await asyncio.sleep(0.1)
        assert server.calls == 1
        began = time.perf_counter()
    assert time.perf_counter() - began < 2
    with pytest.raises(httpx.HTTPError):
        await hung


def test_on_a_thread_of_its_own() -> None:
    with ChatServer("four") as server:
        answer = httpx.post(f"{server.base_url}/chat/completions", json=ask("2 + 2?"), trust_env=False)
    assert answer.json()["choices"][0]["message"]["content"] == "four"
    assert server.calls == 1
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.base_url}/models", trust_env=False)


def test_as_a_process() -> None:
    command = [sys.executable, "-m", "agentmem.testing.server", "--script", "coin?p=1", "--latency", "0.01"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            base_url = json.loads(process.stdout.readline())["base_url"]
            answer = httpx.post(f"{base_url}/chat/completions", json=ask("What is 2 + 3?"), trust_env=False)
        finally:
            process.send_signal(signal.SIGTERM)
        last = json.loads(process.stdout.read())
    assert answer.json()["choices"][0]["message"]["content"] == "5"
    assert last == {"calls": 1, "most_in_flight": 1}
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--kinds", "drop,oops"], "no fault is called 'oops'; known: rate_limit"),
        (["--script", "ecko"], "No script named 'ecko'"),
        (["--share", "2"], "less than or equal to 1"),
    ],
)
def test_bad_flags_of_the_process(flags: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(flags)
    assert stopped.value.code == 2
    assert says in capsys.readouterr().err


# --- faults


async def attempts(server: ChatServer, body: dict[str, Any], most: int) -> int:
    """How many times a request fails before it is answered."""
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        for n in range(most + 1):
            try:
                answer = await client.post(f"{server.base_url}/chat/completions", json=body)
                if answer.status_code == 200 and answer.json()["choices"]:
                    return n
            except (httpx.HTTPError, ValueError):
                pass
    raise AssertionError("never answered")


async def test_a_faulted_request_fails_at_most_cap_times() -> None:
    faults = Faults(share=0.5, per_request_cap=3, seed=1, kinds=tuple(k for k in TRANSIENT if k != "hang"))
    async with ChatServer(faults=faults) as server:
        failures = [await attempts(server, ask(str(n)), 3) for n in range(40)]
        keys = list(dict.fromkeys(line.hash for line in server.requests))
    assert failures == [len(faults.of(key)) for key in keys]
    assert 8 <= sum(f > 0 for f in failures) <= 32
    assert max(failures) == 3
    assert not server.bought_twice


@given(st.text(max_size=30), st.integers(1, 5), st.floats(0, 1), st.integers(0, 1000))
def test_the_plan_of_faults_is_a_function_of_content_and_seed(key: str, cap: int, share: float, seed: int) -> None:
    plan = Faults(share=share, per_request_cap=cap, seed=seed, kinds=TRANSIENT + PERMANENT)
    assert plan.of(key) == plan.of(key)
    assert len(plan.of(key)) <= cap
    assert Faults(share=0, seed=seed).of(key) == ()
    assert len(Faults(share=1, per_request_cap=cap, always=True, seed=seed).of(key)) == cap


def test_the_share_of_faulted_requests_is_the_share_asked_for() -> None:
    plan = Faults(share=0.3, seed=5)
    hit = sum(bool(plan.of(str(n))) for n in range(3000))
    assert hit / 3000 == pytest.approx(0.3, abs=0.03)
    drawn = {kind for n in range(3000) for kind in plan.of(str(n))}
    assert drawn == set(TRANSIENT)


def raw_exchange(port: int) -> bytes:
    raw = json.dumps(ask("hi")).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(raw)}\r\n\r\n".encode()
    got = b""
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.settimeout(5)
        sock.sendall(head + raw)
        try:
            while b"\r\n\r\n" not in got or not got.endswith(b"}"):
                if not (part := sock.recv(1 << 16)):
                    break
                got += part
        except ConnectionResetError:
            got += b"<reset>"
    return got


@pytest.mark.parametrize("kind", ["drop", "drop_midway", "short_body", "truncated_json"])
async def test_what_broken_connections_look_like(kind: Any) -> None:
    async with ChatServer(faults=Faults(share=1, kinds=(kind,), per_request_cap=1)) as server:
        if kind == "truncated_json":
            got = await post_raw(server)
        else:
            got = await asyncio.to_thread(raw_exchange, server.port)
    head, _, body = got.partition(b"\r\n\r\n")
    match kind:
        case "drop":
            assert got == b""
        case "drop_midway":
            assert got.endswith(b"<reset>")
        case "short_body":
            promised = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
            assert 0 < len(body) < promised
        case "truncated_json":
            with pytest.raises(ValueError, match=r"."):
                json.loads(body)


async def post_raw(server: ChatServer) -> bytes:
    answer = await post(server, ask("hi"))
    assert int(answer.headers["content-length"]) == len(answer.content)
    return b"head\r\n\r\n" + answer.content


# --- the library's own words survive the way to the server

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
requests = st.builds(
    Request,
    messages=st.lists(
        st.one_of(
            st.builds(Message, role=st.sampled_from(["system", "user", "assistant"]), content=texts),
            st.builds(Message, role=st.just("tool"), content=texts, tool_call_id=texts),
            st.builds(
                Message,
                role=st.just("assistant"),
                content=texts,
                tool_calls=st.tuples(
                    st.builds(ToolCall, id=texts, name=texts, arguments=st.sampled_from(["{}", '{"a": "\u00e9"}']))
                ),
            ),
        ),
        min_size=1,
        max_size=4,
    ).map(tuple),
    tools=st.lists(st.builds(ToolSpec, name=texts, description=texts, parameters=st.just({"type": "object"}))).map(
        tuple
    ),
    temperature=st.floats(0, 2),
    top_p=st.floats(0.01, 1),
    max_tokens=st.integers(1, 5000),
    stop=st.lists(texts.filter(bool), max_size=2).map(tuple),
    seed=st.none() | st.integers(0, 2**31 - 1),
    logprobs=st.booleans(),
    json_schema=st.none() | st.just({"type": "object", "properties": {"a": {"type": "string"}}}),
)


@settings(max_examples=60, deadline=None)
@given(requests)
def test_a_request_arrives_as_it_was_sent(request: Request) -> None:
    model = OpenAIModel("m", base_url="http://localhost:1/v1", supports_schema=True)
    assert read_request(json.loads(json.dumps(model.params(request)))) == request
