"""Scripted models: deterministic, and honest about what they were not asked."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from agentmem.domain.trajectory import Message, ToolCall
from agentmem.domain.usage import Usage
from agentmem.errors import InputError, ModelError, RateLimited
from agentmem.models.model import Model, Reply, Request, ToolSpec
from agentmem.testing import ScriptedModel
from agentmem.testing.scripted import words_in


def ask(text: str, *before: Message, seed: int | None = None, logprobs: bool = False) -> Request:
    return Request(messages=(*before, Message(role="user", content=text)), seed=seed, logprobs=logprobs)


async def test_a_list_is_used_up_in_order() -> None:
    call = Message(role="assistant", tool_calls=(ToolCall(id="1", name="add"),))
    model = ScriptedModel(["one", call, RateLimited("slow down", retry_after=2.0), "never"])
    assert isinstance(model, Model)
    assert (await model.complete(ask("?"))).text == "one"
    reply = await model.complete(ask("?"))
    assert (reply.finish_reason, reply.message.tool_calls) == ("tool_calls", call.tool_calls)
    with pytest.raises(RateLimited) as error:
        await model.complete(ask("?"))
    assert error.value.retry_after == 2.0
    assert model.unused == ("never",)
    assert model.calls == 3
    await model.complete(ask("?"))
    with pytest.raises(InputError, match="4 answers is used up"):
        await model.complete(ask("one more"))


async def test_a_mapping_answers_what_was_asked() -> None:
    model = ScriptedModel({"a?": "A", "b?": "B"})
    assert [(await model.complete(ask(t))).text for t in ("b?", "a?", "b?")] == ["B", "A", "B"]
    assert model.unused == ()
    with pytest.raises(InputError, match=r"no answer for 'c\?'"):
        await model.complete(ask("c?"))


async def test_a_function_may_be_a_coroutine_and_return_a_reply() -> None:
    ready = Reply(message=Message(role="assistant", content="x"), usage=Usage(prompt_tokens=99), model="exact")

    async def script(request: Request) -> Reply:
        return ready

    assert await ScriptedModel(script).complete(ask("?")) == ready


async def test_usage_is_counted_in_words() -> None:
    tool = ToolSpec(name="add", description="adds two", parameters={})
    request = ask("two words", Message(role="system", content="be brief"), logprobs=True)
    request = request.model_copy(update={"tools": (tool,)})
    reply = await ScriptedModel(["a b  c "]).complete(request)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (2 + 2 + 4, 3)
    assert reply.logprobs is not None
    assert "".join(t.token for t in reply.logprobs) == "a b  c "


@pytest.mark.parametrize("text", ["", " ", "a", " a b", "a\n\nb \n"])
def test_words_make_up_the_text(text: str) -> None:
    assert "".join(words_in(text)) == text


async def test_latency() -> None:
    model = ScriptedModel(lambda r: "x", latency=0.05)
    began = time.perf_counter()
    await asyncio.gather(*(model.complete(ask("?")) for _ in range(10)))
    assert 0.05 <= time.perf_counter() - began < 0.45


async def test_echo_and_say() -> None:
    assert (await ScriptedModel.from_name("scripted/echo").complete(ask("abc"))).text == "abc"
    assert (await ScriptedModel.from_name("scripted/say?text=no+way").complete(ask("abc"))).text == "no way"


async def share_right(name: str, *before: Message) -> float:
    model = ScriptedModel.from_name(name)
    asked = [(a, b) for a in range(20) for b in range(20)]
    said = [(await model.complete(ask(f"What is {a} + {b}?", *before, seed=7))).text for a, b in asked]
    return sum(text == str(a + b) for text, (a, b) in zip(said, asked, strict=True)) / len(asked)


async def test_the_coin_is_right_with_probability_p() -> None:
    assert await share_right("scripted/coin?p=0.3") == pytest.approx(0.3, abs=0.07)
    assert await share_right("scripted/coin?p=1") == 1.0
    assert await share_right("scripted/coin?p=0") == 0.0


async def test_the_learner_learns_from_a_worked_example() -> None:
    example = (Message(role="user", content="What is 1 + 1?"), Message(role="assistant", content="2"))
    assert await share_right("scripted/learner") == pytest.approx(0.3, abs=0.07)
    assert await share_right("scripted/learner", *example) == pytest.approx(0.9, abs=0.05)
    assert await share_right("scripted/learner?learned=0.5", *example) == pytest.approx(0.5, abs=0.08)


async def test_draws_depend_on_seed_and_question_alone() -> None:
    model = ScriptedModel.from_name("scripted/coin?p=0.5")
    asked = [ask("What is 2 + 3?", seed=n) for n in range(40)]
    first = [(await model.complete(r)).text for r in asked]
    again = [(await ScriptedModel.from_name("scripted/coin?p=0.5").complete(r)).text for r in reversed(asked)]
    assert first == again[::-1]
    assert {"5"} < set(first)


async def test_fail() -> None:
    model = ScriptedModel.from_name("scripted/fail?kind=rate_limited&share=0.5&then=say")
    outcomes = []
    for n in range(100):
        try:
            outcomes.append((await model.complete(ask(str(n)))).text)
        except ModelError as error:
            outcomes.append(error.kind)
    assert set(outcomes) == {"ok", "rate_limited"}
    assert 30 < outcomes.count("ok") < 70


async def test_a_script_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "answers.py"
    file.write_text("def shout(request):\n    return request.messages[-1].content.upper()\n")
    model = ScriptedModel.from_name(f"scripted/{file}:shout?latency=0.001")
    assert (await model.complete(ask("abc"))).text == "ABC"
    assert model.latency == 0.001
    with pytest.raises(InputError, match="no function 'whisper'"):
        ScriptedModel.from_name(f"scripted/{file}:whisper")
    with pytest.raises(InputError, match="no options"):
        ScriptedModel.from_name(f"scripted/{file}:shout?p=1")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("scripted/ecko", "No script named 'ecko'. Known: path.py:function, echo"),
        ("scripted/coin?q=1", "no option 'q'. Known: latency, p"),
        ("scripted/coin?p=high", "p = 'high' is no number"),
        ("scripted/coin?latency=x", "latency = 'x' is no number"),
        ("scripted/missing.py:f", "no file 'missing.py'"),
        ("scripted/fail?kind=oops", "No model error is called 'oops'"),
    ],
)
def test_bad_names(name: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        ScriptedModel.from_name(name)
    assert says in str(error.value)


def test_a_single_text_is_no_script() -> None:
    with pytest.raises(InputError, match="list of answers"):
        ScriptedModel("yes")


async def test_a_script_that_returns_nonsense() -> None:
    with pytest.raises(InputError, match="not int"):
        await ScriptedModel(lambda request: 3).complete(ask("?"))  # type: ignore[arg-type,return-value]
