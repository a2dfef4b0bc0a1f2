"""The LiteLLM adapter, against our own server through LiteLLM's `openai/` provider."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from typing import Any

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
from agentmem.models.litellm import LiteLLMModel
from agentmem.models.model import Model, Reply, Request, TokenLogprob, ToolSpec
from agentmem.testing import ChatAnswer, ChatServer, Faults
from agentmem.testing.chat import read_request

# LiteLLM hands a TypedDict of the openai SDK to pydantic, which warns at the first call.
pytestmark = pytest.mark.filterwarnings(r"ignore:Item '\w+' on TypedDict class .*`ReadOnly`:UserWarning")


def ask(text: str = "hi", **more: Any) -> Request:
    return Request(messages=(Message(role="user", content=text),), **more)


def model_at(server: ChatServer, **how: Any) -> LiteLLMModel:
    return LiteLLMModel("openai/m", base_url=server.base_url, api_key="k", **how)


async def test_a_whole_exchange() -> None:
    request = Request(
        messages=(
            Message(role="system", content="be exact"),
            Message(role="user", content="1 + 1?"),
            Message(role="assistant", tool_calls=(ToolCall(id="c1", name="add", arguments='{"a": 1}'),)),
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
        text="so",
        tool_calls=(ToolCall(id="c2", name="add", arguments='{"a": 2'),),
        logprobs=(("so", -0.25),),
        usage=Usage(prompt_tokens=20, completion_tokens=9, cached_tokens=12),
        reasoning_tokens=5,
    )
    async with ChatServer(lambda chat: answer) as server:
        reply = await model_at(server).complete(request)
    sent = server.bodies[0]
    assert read_request(sent) == request
    assert set(sent) == {
        *("model", "messages", "tools", "temperature", "top_p", "max_tokens", "stop", "seed", "logprobs")
    }
    assert reply == Reply(
        message=Message(
            role="assistant",
            content="so",
            tool_calls=(ToolCall(id="c2", name="add", arguments='{"a": 2'),),
        ),
        finish_reason="tool_calls",
        usage=Usage(prompt_tokens=20, completion_tokens=9, cached_tokens=12),
        logprobs=(TokenLogprob(token="so", logprob=-0.25),),
        model="m",
    )


EXPECTED: list[tuple[str, type[ModelError], str]] = [
    ("rate_limit", RateLimited, "less often"),
    ("rate_limit_date", RateLimited, "less often"),
    ("server_error", ModelUnavailable, "(500)"),
    ("overloaded", ModelUnavailable, "(503)"),
    ("html", ModelUnavailable, "(502)"),
    ("html_ok", MalformedReply, "check base_url"),
    ("hang", ModelTimeout, "no answer"),
    ("drop", ModelUnavailable, "The connection"),
    ("drop_midway", ModelUnavailable, "The connection"),
    ("short_body", ModelUnavailable, "The connection"),
    ("malformed_json", MalformedReply, "no valid completion"),
    ("truncated_json", MalformedReply, "no valid completion"),
    ("empty_choices", MalformedReply, "empty"),
    ("bad_request", BadRequest, "maximum context length"),
    ("unauthorized", AccessDenied, "set api_key"),
    ("forbidden", AccessDenied, "enable the model"),
    ("not_found", AccessDenied, "check the model's name"),
    ("quota", QuotaExhausted, "add credit"),
]


@pytest.mark.parametrize(("kind", "error", "says"), EXPECTED, ids=[kind for kind, *_ in EXPECTED])
async def test_each_fault_becomes_its_typed_error(kind: Any, error: type[ModelError], says: str) -> None:
    faults = Faults(share=1, kinds=(kind,), per_request_cap=1, retry_after=0.25)
    async with ChatServer("fine", faults=faults) as server:
        model = model_at(server, timeout=0.8 if kind == "hang" else 10)
        with pytest.raises(ModelError) as raised:
            await model.complete(ask())
        assert server.calls == 1, "LiteLLM must not retry"
        reply = await model.complete(ask())
    assert type(raised.value) is error
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)
    assert reply.text == "fine"
    wait = raised.value.retry_after
    if kind in ("rate_limit", "overloaded"):
        assert wait == 0.25
    elif kind == "rate_limit_date":
        assert wait is not None
        assert 0 <= wait <= 1.25
    else:
        assert wait is None


async def test_a_missing_key_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(AccessDenied, match="set ANTHROPIC_API_KEY"):
        await LiteLLMModel("anthropic/claude-sonnet-4-5", base_url="http://127.0.0.1:9").complete(ask())


async def test_an_unknown_provider_is_refused() -> None:
    with pytest.raises(BadRequest, match="refuses this request to nosuch/m"):
        await LiteLLMModel("nosuch/m").complete(ask())


async def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.setitem(sys.modules, "botocore", None)
    monkeypatch.setitem(sys.modules, "botocore.credentials", None)
    with pytest.raises(AccessDenied, match=r"needs another package for bedrock/.*boto"):
        await LiteLLMModel("bedrock/anthropic.claude-sonnet-4-20250514-v1:0").complete(ask())


async def test_nobody_listens() -> None:
    async with ChatServer() as server:
        model = model_at(server)
    with pytest.raises(ModelUnavailable, match="The connection to"):
        await model.complete(ask())


async def test_many_requests_at_once() -> None:
    async with ChatServer(latency=0.1) as server:
        model = model_at(server)
        replies = await asyncio.gather(*(model.complete(ask(str(n))) for n in range(32)))
    assert [reply.text for reply in replies] == [str(n) for n in range(32)]
    assert server.calls == 32


def test_one_model_serves_one_event_loop_after_the_other(caplog: pytest.LogCaptureFixture) -> None:
    with ChatServer("again") as server:
        model = model_at(server)

        async def once() -> str:
            reply = await model.complete(ask())
            await model.close()
            return reply.text

        logger = logging.getLogger("LiteLLM")
        logger.addHandler(caplog.handler)
        assert [asyncio.run(once()) for _ in range(3)] == ["again"] * 3
        logger.removeHandler(caplog.handler)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_what_is_sent() -> None:
    model = LiteLLMModel("anthropic/claude-sonnet-4-5")
    assert isinstance(model, Model)
    params = model.params(ask(json_schema={"type": "object"}))
    assert "top_p" not in params, "some providers refuse it beside a temperature"
    assert "api_key" not in params
    assert (params["num_retries"], params["max_retries"], params["drop_params"]) == (0, 0, True)
    assert params["response_format"]["type"] == "json_schema"
    assert "response_format" not in LiteLLMModel("ollama/llama2").params(ask(json_schema={"type": "object"}))


def test_a_key_with_odd_characters() -> None:
    with pytest.raises(InputError, match="no key has"):
        LiteLLMModel("anthropic/claude-sonnet-4-5", api_key="sk-\u2026")


def test_making_a_model_imports_no_litellm_and_the_import_fetches_nothing() -> None:
    script = """
import sys
from agentmem.models.litellm import LiteLLMModel, _litellm
assert LiteLLMModel("anthropic/claude-sonnet-4-5").supports_schema
assert "litellm" not in sys.modules
import socket
def refuse(*args, **more): raise AssertionError("network")
tried = []
socket.socket.connect = lambda self, address: tried.append(address) or refuse()
socket.getaddrinfo = lambda *a, **k: tried.append(a) or refuse()
litellm = _litellm()
print(tried, litellm.suppress_debug_info)
"""
    env = {k: v for k, v in os.environ.items() if not k.startswith("LITELLM")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("[] True")
