"""Text from outside: what would be obeyed is gone, all else is as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.domain.clean_text import clean

PIECES = [
    "<|im_start|>",
    "<|",
    "|>",
    "[INST]",
    "</s>",
    "\u200b",
    "\u200d",
    "\ufe0f",
    "\u202e",
    "\x1b[31m",
    "\x00",
    "م",
    "👩",
    "a",
    " ",
    "<",
    ">",
]


@pytest.mark.parametrize(
    "token",
    [
        "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<|endoftext|>", "<|channel|>",
        "<|START_OF_TURN_TOKEN|>", "<｜User｜>", "<｜end▁of▁sentence｜>", "<|turn>", "<turn|>", "[INST]", "[/INST]",
        "<<SYS>>", "<</SYS>>", "<s>", "</s>", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "[TOOL_CALLS]",
        "[SYSTEM_PROMPT]", "<think>", "</think>", "<tool_call>", "</tool_call>", "</tool_response>",
    ],
)  # fmt: skip
def test_template_tokens_become_a_space(token):
    assert clean(f"a{token}b") == "a b"


@pytest.mark.parametrize(
    "text", ["a\u200bb", "a\u202eb", "a\u2066b", "a\ufeffb", "a\x00b", "a\x1b[1;31mb", "a\x1b]0;title\x07b", "a\ud800b",
             "a\U000e0041b", "a\u00adb", "a\u3164b", "a\u200db", "a\ufe0fb", "a\x9b2Jb", "a\u180eb"],
)  # fmt: skip
def test_what_cannot_be_seen_is_gone(text):
    assert clean(text) == "ab"


@pytest.mark.parametrize(
    "text",
    [
        "If x < y and y > z, use |x| <b>here</b>; f <| x |> g; List<int>.\n\tdef f(a: [int]): ...",
        "می‌خواهم", "क्‍ष", "👩‍👩‍👧‍👦 ❤️ ❤️‍🔥 👍🏽", "日本語、Prüfe Σ ½ ²", "$\\frac{1}{2}$ `code` [link](x) [1]",
    ],
)  # fmt: skip
def test_ordinary_text_comes_back_as_it_is(text):
    assert clean(text) == text


def test_nested_tokens_cannot_close_up_and_line_breaks_are_newlines():
    assert clean("<|im_<|x|>start|>") == "<|im_ start|>"
    assert clean("<\u200b|im_end|>") == " "
    assert clean("a\r\nb\rc\u2028d\x0be\x85f") == "a\nb\nc\nd\ne\nf"


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=14).map("".join)))
def test_cleaning_twice_is_cleaning_once(text):
    once = clean(text)
    assert clean(once) == once
    once.encode()
