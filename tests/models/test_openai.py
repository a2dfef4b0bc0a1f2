"""The openai adapter over a real socket: what is sent, what is read, and what each failure becomes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from email.utils import formatdate
from typing import Any

import httpx
import openai
import pytest

from agentmem.domain.trajectory import Message, ToolCall
from agentmem.domain.usage import Usage
from agentmem.errors import (
    AccessDenied,
    BadRequest,
    InputError,
    MalformedReply,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
)
from agentmem.models.chat_format import is_strict, read_reply
from agentmem.models.http_errors import Endpoint, embedded_error, retry_after, status_error
from agentmem.models.model import Model, Reply, Request, TokenLogprob, ToolSpec
from agentmem.models.openai import OpenAIModel
from agentmem.testing import ChatAnswer, ChatServer, Faults


def ask(text: str = "hi", **more: Any) -> Request:
    return Request(messages=(Message(role="user", content=text),), **more)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)


async def complete(server: ChatServer, request: Request, **how: Any) -> Reply:
    model = OpenAIModel("m", base_url=server.base_url, **how)
    try:
        return await model.complete(request)
    finally:
        await model.close()


# --- what is sent and read


async def test_a_whole_exchange() -> None:
    request = Request(
        messages=(
            Message(role="system", content="be exact"),
            Message(role="user", content="1 + 1?"),
            Message(
                role="assistant",
                content="",
                tool_calls=(ToolCall(id="c1", name="add", arguments='{"a": 1, "b": 1}'),),
            ),
            Message(role="tool", content="2", tool_call_id="c1"),
        ),
        tools=(ToolSpec(name="add", description="adds", parameters={"type": "object", "properties": {}}),),
        temperature=0.7,
        top_p=0.9,
        max_tokens=77,
        stop=("END",),
        seed=5,
        logprobs=True,
    )
    answer = ChatAnswer(
        text="so: ",
        tool_calls=(ToolCall(id="c2", name="add", arguments='{"a": 2'),),
        logprobs=(("so", -0.25), (": ", -1.5)),
        usage=Usage(prompt_tokens=20, completion_tokens=9, cached_tokens=12),
        reasoning_tokens=5,
    )
    async with ChatServer(lambda chat: answer, api_key="sk-1") as server:
        reply = await complete(server, request, api_key="sk-1")
    assert server.bodies == [
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "be exact"},
                {"role": "user", "content": "1 + 1?"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "add", "arguments": '{"a": 1, "b": 1}'},
                        }
                    ],
                },
                {"role": "tool", "content": "2", "tool_call_id": "c1"},
            ],
            "max_tokens": 77,
            "temperature": 0.7,
            "top_p": 0.9,
            "stop": ["END"],
            "logprobs": True,
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "add",
                        "description": "adds",
                        "parameters": {"type": "object", "properties": {}},
                    },
                }
            ],
            "seed": 5,
        }
    ]
    assert reply == Reply(
        message=Message(
            role="assistant",
            content="so: ",
            tool_calls=(ToolCall(id="c2", name="add", arguments='{"a": 2'),),
        ),
        finish_reason="tool_calls",
        usage=Usage(prompt_tokens=20, completion_tokens=9, cached_tokens=12),
        logprobs=(TokenLogprob(token="so", logprob=-0.25), TokenLogprob(token=": ", logprob=-1.5)),
        model="m",
    )


def test_it_is_a_model() -> None:
    model = OpenAIModel("m", base_url="http://localhost:1/v1")
    assert isinstance(model, Model)
    assert (model.name, model.parallel) == ("openai/m", None)
    assert OpenAIModel.from_name("openai/a/b", base_url="http://localhost:1/v1").model == "a/b"


@pytest.mark.parametrize("name", ["o1", "o3-mini", "o4-mini-2025-04-16", "gpt-5", "gpt-5-mini", "gpt-5.1"])
def test_reasoning_models_have_a_dialect_of_their_own(name: str) -> None:
    params = OpenAIModel(name, api_key="k").params(ask(temperature=0.2, top_p=0.5, stop=("x",), logprobs=True))
    assert set(params) == {"model", "messages", "max_completion_tokens"}


@pytest.mark.parametrize("name", ["gpt-4.1", "gpt-4o-mini", "gpt-5-chat-latest", "omni"])
def test_other_models_speak_the_common_one(name: str) -> None:
    params = OpenAIModel(name, api_key="k").params(ask(temperature=0.2))
    assert (params["max_tokens"], params["temperature"], params["top_p"]) == (2048, 0.2, 1.0)
    assert "max_completion_tokens" not in params


def test_another_server_gets_the_common_dialect_whatever_the_name() -> None:
    params = OpenAIModel("gpt-5", base_url="http://localhost:1/v1").params(ask())
    assert "max_tokens" in params
    assert "max_completion_tokens" not in params


async def test_a_stop_that_a_reasoning_model_cannot_be_told_is_applied_here() -> None:
    async with ChatServer("one STOP two") as server:
        client = openai.AsyncOpenAI(
            api_key="k",
            base_url="https://api.openai.com/v1",
            http_client=httpx.AsyncClient(transport=_To(server.base_url), trust_env=False),
        )
        model = OpenAIModel("o3", client=client)
        reply = await model.complete(ask(stop=("END", "STOP")))
        await client.close()
    assert reply.text == "one "


class _To(httpx.AsyncHTTPTransport):
    """Sends everything to another address."""

    def __init__(self, url: str) -> None:
        super().__init__(trust_env=False)
        self.url = httpx.URL(url)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(scheme=self.url.scheme, host=self.url.host, port=self.url.port)
        return await super().handle_async_request(request)


SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


def test_a_schema_is_sent_where_the_model_takes_it() -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True}}
    assert OpenAIModel("gpt-4.1", api_key="k").params(ask(json_schema=SCHEMA))["response_format"] == wanted
    assert "response_format" not in OpenAIModel("gpt-3.5-turbo", api_key="k").params(ask(json_schema=SCHEMA))
    own = {"base_url": "http://localhost:1/v1"}
    assert "response_format" not in OpenAIModel("m", **own).params(ask(json_schema=SCHEMA))
    assert "response_format" in OpenAIModel("m", supports_schema=True, **own).params(ask(json_schema=SCHEMA))


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (SCHEMA, True),
        ({**SCHEMA, "required": []}, False),
        ({k: v for k, v in SCHEMA.items() if k != "additionalProperties"}, False),
        ({**SCHEMA, "properties": {"a": {"type": "array", "items": {"type": "object"}}}}, False),
        ({**SCHEMA, "properties": {"a": {"anyOf": [{"type": "object"}]}}}, False),
        ({**SCHEMA, "$defs": {"B": {"type": "object"}}}, False),
        ({**SCHEMA, "$defs": {"B": SCHEMA}}, True),
    ],
)
def test_strict_schemas(schema: dict[str, Any], strict: bool) -> None:
    assert is_strict(schema) is strict


async def test_broken_arguments_of_past_calls_do_not_break_the_conversation() -> None:
    broken = Message(role="assistant", tool_calls=(ToolCall(id="1", name="f", arguments='{"a": '),))
    result = Message(role="tool", content="no valid JSON", tool_call_id="1")
    async with ChatServer("ok") as server:
        await complete(server, Request(messages=(broken, result)))
    sent = server.bodies[0]["messages"][0]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"invalid_json": '{"a": '}


async def test_lone_surrogates_do_not_stop_a_request() -> None:
    async with ChatServer(lambda chat: "caf\u00e9 \ud83d") as server:
        reply = await complete(server, ask("x \ud800 \u00e9"))
    assert server.bodies[0]["messages"][0]["content"] == "x ? \u00e9"
    assert reply.text == "caf\u00e9 ?"


# --- reading answers


def body(**changes: Any) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"model": "m", "choices": [choice | changes.pop("choice", {})], "usage": usage} | changes


@pytest.mark.parametrize(
    ("reason", "read"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("eos", "other"),
        (None, "other"),
    ],
)
def test_finish_reasons(reason: Any, read: str) -> None:
    assert read_reply(body(choice={"finish_reason": reason}), ask()).finish_reason == read


def test_a_refusal_is_shown_and_marked() -> None:
    reply = read_reply(body(choice={"message": {"content": None, "refusal": "I cannot"}}), ask())
    assert (reply.text, reply.finish_reason) == ("I cannot", "content_filter")


def test_content_in_parts() -> None:
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert read_reply(body(choice={"message": {"content": parts}}), ask()).text == "ab"


def test_tool_calls_of_careless_servers() -> None:
    calls = [{"function": {"name": "f", "arguments": {"a": 1}}}, {"id": "", "function": {"name": "g"}}]
    reply = read_reply(body(choice={"message": {"content": None, "tool_calls": calls}}), ask())
    assert reply.message.tool_calls == (
        ToolCall(id="call-0", name="f", arguments='{"a": 1}'),
        ToolCall(id="call-1", name="g", arguments="{}"),
    )
    assert reply.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        (
            {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(prompt_tokens=9, completion_tokens=3, cached_tokens=4),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 2},
            Usage(prompt_tokens=9, completion_tokens=3, cached_tokens=2),
        ),
        # reasoning that is counted in the total alone is paid for too
        (
            {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 50},
            Usage(prompt_tokens=9, completion_tokens=41),
        ),
        ({"prompt_tokens": 9, "completion_tokens": None}, Usage(prompt_tokens=9)),
    ],
)
def test_usage(usage: dict[str, Any], read: Usage) -> None:
    assert read_reply(body(usage=usage), ask()).usage == read


@pytest.mark.parametrize("usage", [None, {}, "?"])
def test_unreported_usage_is_bounded_not_free(usage: Any) -> None:
    reply = read_reply(body(usage=usage, choice={"message": {"content": "four"}}), ask())
    assert reply.usage == Usage(prompt_tokens=ask().prompt_bound, completion_tokens=4)


def test_infinite_logprobs_can_be_stored() -> None:
    logprobs = {"content": [{"token": "a", "logprob": float("-inf")}, {"token": "b", "logprob": -1}]}
    reply = read_reply(body(choice={"logprobs": logprobs}), ask())
    assert reply.logprobs is not None
    assert [t.logprob for t in reply.logprobs] == [-9999.0, -1.0]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"choices": []}, "'choices' are empty"),
        ({"choices": None}, "'choices' are empty"),
        ({}, "no 'choices'"),
        ([], "a list where an object belongs"),
        (None, "a NoneType where"),
        ({"choices": [{}]}, "KeyError: \"'message'\""),
        ({"choices": [{"message": None}]}, "AttributeError"),
        ({"choices": [{"message": {"content": 3}}]}, "content is a int"),
        ({"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": "many"}}, "ValueError"),
        ({"choices": [{"message": {"content": "x"}, "logprobs": {"content": [{}]}}]}, "KeyError"),
    ],
)
def test_what_is_no_completion(answer: Any, says: str) -> None:
    with pytest.raises(MalformedReply) as error:
        read_reply(answer, ask())
    assert says in str(error.value)


# --- failures, over a real socket

EXPECTED: list[tuple[str, type[ModelError], str]] = [
    ("rate_limit", RateLimited, "less often"),
    ("rate_limit_date", RateLimited, "less often"),
    ("server_error", ModelUnavailable, "(500)"),
    ("overloaded", ModelUnavailable, "(503)"),
    ("html", ModelUnavailable, "(502)"),
    ("html_ok", MalformedReply, "check base_url"),
    ("hang", ModelTimeout, "no answer"),
    ("drop", ModelUnavailable, "without sending a response"),
    ("drop_midway", ModelUnavailable, "The connection"),
    ("short_body", ModelUnavailable, "without sending complete message body"),
    ("malformed_json", MalformedReply, "no valid JSON"),
    ("truncated_json", MalformedReply, "no valid JSON"),
    ("empty_choices", MalformedReply, "empty"),
    ("bad_request", BadRequest, "maximum context length"),
    ("unauthorized", AccessDenied, "set OPENAI_API_KEY"),
    ("forbidden", AccessDenied, "enable the model"),
    ("not_found", AccessDenied, "check the model's name"),
    ("quota", QuotaExhausted, "add credit"),
]


@pytest.mark.parametrize(("kind", "error", "says"), EXPECTED, ids=[kind for kind, *_ in EXPECTED])
async def test_each_fault_becomes_its_typed_error(kind: Any, error: type[ModelError], says: str) -> None:
    faults = Faults(share=1, kinds=(kind,), per_request_cap=1, retry_after=0.25)
    async with ChatServer("fine", faults=faults) as server:
        model = OpenAIModel("m", base_url=server.base_url, timeout=0.8 if kind == "hang" else 10)
        with pytest.raises(ModelError) as raised:
            await model.complete(ask())
        assert server.calls == 1, "the SDK must not retry"
        reply = await model.complete(ask())
        await model.close()
    assert type(raised.value) is error
    assert says in str(raised.value)
    assert "openai/m" in str(raised.value) or kind == "empty_choices"
    assert "\n" not in str(raised.value)
    assert reply.text == "fine", "the next request on the same connection pool is answered"
    wait = raised.value.retry_after
    if kind in ("rate_limit", "overloaded"):
        assert wait == 0.25
    elif kind == "rate_limit_date":
        assert wait is not None
        assert 0 <= wait <= 1.25
    else:
        assert wait is None


async def test_every_fault_kind_is_tested() -> None:
    from agentmem.testing.faults import PERMANENT, TRANSIENT

    assert {kind for kind, *_ in EXPECTED} == {*TRANSIENT, *PERMANENT}


async def test_nobody_listens() -> None:
    with ChatServer() as server:
        address = server.base_url
    model = OpenAIModel("m", base_url=address)
    with pytest.raises(ModelUnavailable, match=r"The connection to http://127.0.0.1:\d+/v1 .*check base_url"):
        await model.complete(ask())
    await model.close()


async def test_cancellation_passes() -> None:
    async with ChatServer(latency=30) as server:
        model = OpenAIModel("m", base_url=server.base_url)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await model.complete(ask())
        await model.close()


@pytest.mark.parametrize(
    ("status", "error", "retryable"),
    [
        (400, BadRequest, False),
        (401, AccessDenied, False),
        (402, QuotaExhausted, False),
        (403, AccessDenied, False),
        (404, AccessDenied, False),
        (408, ModelTimeout, True),
        (409, ModelUnavailable, True),
        (413, BadRequest, False),
        (422, BadRequest, False),
        (429, RateLimited, True),
        (500, ModelUnavailable, True),
        (504, ModelTimeout, True),
        (529, ModelUnavailable, True),
        (302, MalformedReply, True),
    ],
)
def test_statuses(status: int, error: type[ModelError], retryable: bool) -> None:
    found = status_error(status, {"message": "no"}, endpoint=Endpoint("openai/m", "http://x", "KEY"))
    assert type(found) is error
    assert found.retryable is retryable


def test_a_key_given_as_an_argument_is_named_as_such() -> None:
    model = OpenAIModel("m", base_url="http://localhost:1/v1", api_key="k")
    assert "set api_key to" in str(status_error(401, "no", endpoint=model._endpoint))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "soon", "retry-after": "4"}, 4.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date() -> None:
    assert retry_after({"retry-after": formatdate(time.time() + 30, usegmt=True)}) == pytest.approx(30, abs=1.5)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"error": {"message": "slow down", "code": 429}}, RateLimited),
        ({"error": {"message": "broken", "code": 502}}, ModelUnavailable),
        ({"error": {"message": "broken", "code": "odd"}}, MalformedReply),
        ({"error": "broken"}, MalformedReply),
        ({"error": None, "choices": []}, type(None)),
        ({"error": {"code": 500}, "choices": [1]}, type(None)),
    ],
)
def test_errors_in_a_response_of_status_200(answer: Any, error: type) -> None:
    assert type(embedded_error(answer, endpoint=Endpoint("openai/m", "http://x", "KEY"))) is error


# --- keys and addresses


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="set OPENAI_API_KEY"):
        OpenAIModel("gpt-4.1")
    monkeypatch.setenv("OPENAI_API_KEY", " sk-env\n")
    assert OpenAIModel("gpt-4.1")._key == "sk-env"
    assert OpenAIModel("gpt-4.1", api_key="sk-arg")._key == "sk-arg"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-\u2026")
    with pytest.raises(InputError, match="characters that no key has"):
        OpenAIModel("gpt-4.1")


@pytest.mark.parametrize("url", ["localhost:8000", "http://", "ftp://x/v1", "v1"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(InputError, match="is no address"):
        OpenAIModel("m", base_url=url)


async def test_the_address_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ChatServer("hello") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        model = OpenAIModel("m")
        assert (await model.complete(ask())).text == "hello"
        await model.close()


def test_one_model_serves_one_event_loop_after_the_other() -> None:
    with ChatServer("again") as server:
        model = OpenAIModel("m", base_url=server.base_url)

        async def once() -> str:
            try:
                return (await model.complete(ask())).text
            finally:
                await model.close()

        assert [asyncio.run(once()) for _ in range(3)] == ["again"] * 3
        assert not model._clients


def test_a_loop_that_ended_without_close_is_forgotten() -> None:
    model = OpenAIModel("m", base_url="http://localhost:1/v1")

    async def open_only() -> None:
        model._open()

    for _ in range(3):
        asyncio.run(open_only())
    assert len(model._clients) == 1


def test_a_loop_that_ended_without_close_leaves_no_traceback() -> None:
    script = """
import asyncio, gc, sys
from agentmem.domain.trajectory import Message
from agentmem.models.model import Request
from agentmem.models.openai import OpenAIModel
from agentmem.testing import ChatServer
request = Request(messages=(Message(role="user", content="x"),))
with ChatServer("again") as server:
    model = OpenAIModel("m", base_url=server.base_url)
    print([asyncio.run(model.complete(request)).text for _ in range(3)])
    async def collect():
        model._clients.clear()
        gc.collect()
        await asyncio.sleep(0.05)
    asyncio.run(collect())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['again', 'again', 'again']"
    assert done.stderr == ""


async def test_a_given_client_is_used_without_retries_and_left_open() -> None:
    faults = Faults(share=1, kinds=("server_error",), per_request_cap=1)
    async with ChatServer("x", faults=faults) as server:
        client = openai.AsyncOpenAI(api_key="k", base_url=server.base_url, max_retries=5)
        model = OpenAIModel("m", client=client)
        with pytest.raises(ModelUnavailable):
            await model.complete(ask())
        await model.close()
        assert (await model.complete(ask())).text == "x"
        assert server.calls == 2
        await client.close()


async def test_many_requests_at_once() -> None:
    async with ChatServer(latency=0.4) as server:
        model = OpenAIModel("m", base_url=server.base_url)
        replies = await asyncio.gather(*(model.complete(ask(str(n))) for n in range(64)))
        await model.close()
    assert [reply.text for reply in replies] == [str(n) for n in range(64)]
    assert server.most_in_flight > 32
