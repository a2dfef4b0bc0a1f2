"""Prices from LiteLLM's packaged table, read without importing it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.domain.usage import Usage
from agentmem.models import prices
from agentmem.models.prices import Price, Tier, known_models, known_providers, price_of, table_key


def test_a_known_price() -> None:
    price = price_of("openai/gpt-4.1-mini")
    assert price is not None
    assert price.prompt == 4e-7
    assert price.completion == 1.6e-6
    assert price.cached == 1e-7
    million = Usage(prompt_tokens=100_000, cached_tokens=40_000, completion_tokens=10_000)
    assert price.cost(million) == pytest.approx(0.024 + 0.004 + 0.016)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("gpt-4.1", "gpt-4.1"),
        ("openai/gpt-4.1", "gpt-4.1"),
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("gemini/gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("azure/gpt-4.1", "azure/gpt-4.1"),
        ("openai/ft:gpt-4.1-mini-2025-04-14:my-org::id", "ft:gpt-4.1-mini-2025-04-14"),
        # another provider's price is no price
        ("openrouter/gpt-4.1", None),
        ("anthropic/gpt-4.1", None),
        ("open/gpt-4.1", None),
        ("openai/my-own-model", None),
        ("my-own-model", None),
        ("openai/text-embedding-3-small", None),
        ("", None),
        ("/", None),
    ],
)
def test_names_with_and_without_prefix(name: str, key: str | None) -> None:
    assert table_key(name) == key
    assert (price_of(name) is None) == (key is None)


@pytest.mark.parametrize("name", ["local/smollm2", "local/gpt-4.1", "scripted/coin?p=0.3"])
def test_local_and_scripted_models_are_free(name: str) -> None:
    price = price_of(name)
    assert price is not None
    assert price.cost(Usage(prompt_tokens=10**9, completion_tokens=10**9)) == 0.0


def test_long_prompts_cost_more() -> None:
    price = price_of("gemini/gemini-2.5-pro")
    assert price is not None
    assert [tier.above for tier in price.tiers] == [200_000]
    short, long = (price.cost(Usage(prompt_tokens=n)) for n in (200_000, 200_001))
    assert long / short == pytest.approx(2.0, rel=1e-4)


def test_prices_by_range() -> None:
    price = price_of("dashscope/qwen-flash")
    assert price is not None
    assert price.prompt == 5e-8
    assert [tier.prompt for tier in price.tiers] == [2.5e-7]
    assert price.cost(Usage(prompt_tokens=300_000)) == pytest.approx(300_000 * 2.5e-7)


def test_hidden_reasoning_is_never_underpriced() -> None:
    price = price_of("dashscope/qwen-turbo-latest")
    assert price is not None
    assert price.completion == 5e-7


def test_without_a_cached_price_cached_tokens_cost_the_same() -> None:
    assert prices._price({"input_cost_per_token": 1.0, "output_cost_per_token": 2.0}) == Price(
        prompt=1.0, completion=2.0, cached=1.0
    )


@pytest.mark.parametrize(
    "entry", [{}, {"input_cost_per_token": 1.0}, {"output_cost_per_token": 1.0}, {"input_cost_per_image": 1.0}]
)
def test_a_partial_price_is_none(entry: dict[str, float]) -> None:
    assert prices._price(entry) is None


counts = st.integers(0, 10**6)


@given(counts, counts, counts)
def test_cost_is_monotone(prompt: int, completion: int, more: int) -> None:
    tier = Tier(above=1000, prompt=2e-6, completion=4e-6, cached=1e-6)
    price = Price(prompt=1e-6, completion=3e-6, cached=5e-7, tiers=(tier,))
    cost = price.cost(Usage(prompt_tokens=prompt, completion_tokens=completion))
    assert 0 <= cost <= price.cost(Usage(prompt_tokens=prompt + more, completion_tokens=completion))
    assert cost <= price.cost(Usage(prompt_tokens=prompt, completion_tokens=completion + more))
    cached = Usage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=prompt)
    assert price.cost(cached) <= cost


def test_every_price_of_the_table_is_usable() -> None:
    assert len(known_models()) > 1000
    for name, known in known_models().items():
        if known.price is not None:
            assert known.price.cost(Usage(prompt_tokens=10, completion_tokens=10)) >= 0, name
            assert list(known.price.tiers) == sorted(known.price.tiers, key=lambda tier: tier.above)


def test_providers() -> None:
    wanted = {"openai", "anthropic", "gemini", "bedrock", "azure", "vertex_ai", "openrouter", "ollama", "groq"}
    assert wanted <= known_providers()
    assert not any(provider.startswith("vertex_ai-") for provider in known_providers())
    assert "local" not in known_providers()


def test_without_litellm_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices, "find_spec", lambda name: None)
    assert prices._packaged(prices._TABLE) == {}


def test_litellm_is_not_imported() -> None:
    script = "import sys; from agentmem.models.prices import price_of; assert price_of('openai/gpt-4.1'); "
    script += "assert not {'litellm', 'openai', 'httpx'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
