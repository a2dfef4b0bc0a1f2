"""Pictures and recordings reach a model that takes them, and no other."""

from __future__ import annotations

import base64
import json

import pytest

from agentmem.agents.agent import Agent
from agentmem.agents.trimming import tokens_of, trimmed
from agentmem.domain.media import MOST_BYTES, Media
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Message, ToolCall, ToolResult
from agentmem.errors import BadRequest
from agentmem.models.chat_format import chat_messages
from agentmem.models.model import Request
from agentmem.models.names import open_model
from agentmem.models.prices import accepted_by
from agentmem.settings import ModelSettings
from agentmem.testing.scripted import ScriptedModel
from tests.agents.test_react import attempt

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 600
WAV = b"RIFF\x24\0\0\0WAVEfmt " + b"\0" * 600
SEES = ModelSettings(accepts=("image",))
HEARS = ModelSettings(accepts=("image", "audio"))


def opens(*names: str) -> Message:
    made = [ToolCall(id=name, name="read_file", arguments=json.dumps({"path": name})) for name in names]
    return Message(role="assistant", tool_calls=made)


@pytest.fixture
def task(tmp_path):
    for name, content in (("chart.png", PNG), ("call.wav", WAV), ("notes.txt", b"noon"), ("old.bmp", b"BM" + PNG)):
        (tmp_path / name).write_bytes(content)
    files = [str(tmp_path / name) for name in ("chart.png", "call.wav", "notes.txt", "old.bmp")]
    return Task(id="t", input="What does it show?", answer="42", files=files)


@pytest.mark.parametrize(
    ("calls", "kinds"), [(SEES, ["image"]), (HEARS, ["image", "audio"]), (ModelSettings(), [])]
)
async def test_a_question_comes_with_those_of_its_files_that_the_model_takes(task, tmp_path, calls, kinds):
    model = ScriptedModel(["42"])
    rollout = await attempt(Agent(model, calls=calls), tmp_path, task=task)
    (question,) = model.requests[0].messages
    assert [media.kind for media in question.media] == kinds
    assert rollout.trajectory.untrusted == bool(kinds), "a stranger's picture may say anything"
    assert not (tmp_path / "run" / "work").exists(), "without tools there is no working folder"


async def test_what_a_tool_opens_is_shown_after_all_results_of_the_turn(task, tmp_path):
    model = ScriptedModel([opens("chart.png", "notes.txt", "call.wav"), "42"])
    rollout = await attempt(Agent(model, tools=["read_file"], calls=HEARS), tmp_path, task=task)
    messages = model.requests[1].messages
    assert [m.role for m in messages] == ["user", "assistant", "tool", "tool", "tool", "user"]
    assert [(m.format, base64.b64decode(m.data)) for m in messages[-1].media] == [("png", PNG), ("wav", WAV)]
    assert "chart.png, call.wav" in messages[-1].content
    assert "it follows" in messages[2].content
    assert [len(result.media) for result in rollout.trajectory.steps[0].results] == [1, 0, 1]
    assert rollout.trajectory.untrusted


@pytest.mark.parametrize(
    ("calls", "name", "told"),
    [
        (ModelSettings(), "chart.png", "which you are not shown"),
        (SEES, "call.wav", "which you are not shown"),
        (SEES, "old.bmp", "make it one of gif, jpeg, png, webp with the python tool"),
    ],
)
async def test_what_the_model_cannot_be_shown_is_said_in_one_sentence(task, tmp_path, calls, name, told):
    model = ScriptedModel([opens(name), "42"])
    rollout = await attempt(Agent(model, tools=["read_file"], calls=calls), tmp_path, task=task)
    (result,) = rollout.trajectory.steps[0].results
    assert (result.status, result.error, result.media) == ("error", "no_text", ())
    assert told in result.content


async def test_a_huge_picture_is_left_to_tools(task, tmp_path):
    (tmp_path / "chart.png").write_bytes(PNG + b"\0" * MOST_BYTES)
    model = ScriptedModel([opens("chart.png"), "42"])
    rollout = await attempt(Agent(model, tools=["read_file"], calls=SEES), tmp_path, task=task)
    assert model.requests[0].messages[0].media == ()
    assert "5.0 MB, and you can be shown 5" in rollout.trajectory.steps[0].results[0].content


def test_the_chat_format_carries_them_as_parts():
    parts = (Media.of(b"a", "image", "jpeg"), Media.of(b"b", "audio", "mp3"))
    (said,) = chat_messages((Message(role="user", content="See:", media=parts),))
    assert said["content"] == [
        {"type": "text", "text": "See:"},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,YQ=="}},
        {"type": "input_audio", "input_audio": {"data": "Yg==", "format": "mp3"}},
    ]


def test_messages_of_text_alone_are_stored_and_hashed_as_they_always_were():
    """Else no run of an earlier version could be gone on with."""
    call = ToolCall(id="c", name="f")
    assert "media" not in Message(role="user", content="x").model_dump_json()
    assert "media" not in ToolResult(call=call, content="x").model_dump_json()
    text, picture = (
        Request(messages=(Message(role="user", content="x", media=media),))
        for media in ((), (Media.of(PNG, "image", "png"),))
    )
    assert text.fingerprint != picture.fingerprint
    assert Message.model_validate_json(picture.messages[0].model_dump_json()) == picture.messages[0]


def test_they_count_in_budgets_and_in_the_length_of_a_conversation():
    picture = Message(role="user", content="x", media=(Media.of(PNG, "image", "png"),))
    minute = Media.of(b"\0" * 60 * 32_000, "audio", "wav")
    plain = picture.model_copy(update={"media": ()})
    assert Request(messages=(picture,)).prompt_bound - Request(messages=(plain,)).prompt_bound == 2_000
    assert minute.tokens > 60 * 32
    question = Message(role="user", content="?")
    old, new = [opens("a"), Message(role="tool", tool_call_id="a"), picture], [opens("b"), picture]
    kept = trimmed((question,), [*old, *new], max_tokens=tokens_of(picture) + 200)
    assert [m.role for m in kept] == ["user", "assistant", "user"], "a picture goes with the turn that opened it"


def test_the_price_table_says_what_a_model_takes():
    assert accepted_by("openai/gpt-4.1-mini") == {"image"}
    assert accepted_by("openai/nobody-knows-it") == frozenset()


async def test_a_local_model_refuses_them():
    pytest.importorskip("torch")
    model = open_model("local/smollm2")
    request = Request(messages=(Message(role="user", media=(Media.of(PNG, "image", "png"),)),), max_tokens=1)
    with pytest.raises(BadRequest, match="text alone"):
        await model.complete(request)
    await model.close()
