"""What a call costs: prices from the table that LiteLLM carries, read without importing it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from agentmem.domain.media import MediaKind
from agentmem.domain.usage import Usage
from agentmem.domain.value import Value

FREE_PREFIXES = ("local/", "scripted/")
_TABLE = "model_prices_and_context_window_backup.json"
_ENDPOINTS = "provider_endpoints_support_backup.json"
_TAKES: dict[MediaKind, str] = {"image": "supports_vision", "audio": "supports_audio_input"}
_TEXT = ("chat", "responses", "completion")


class Tier(Value):
    """Other prices for long prompts."""

    above: int
    """Prompt tokens beyond which these prices hold for the whole call."""
    prompt: float
    completion: float
    cached: float


class Price(Value):
    """US dollars per token.

    Example:
        >>> price = Price(prompt=4e-7, completion=1.6e-6, cached=1e-7)
        >>> round(price.cost(Usage(prompt_tokens=1000, cached_tokens=500, completion_tokens=100)), 6)
        0.00041
    """

    prompt: float
    completion: float
    """Hidden reasoning costs the same; where a provider asks more for it, this is the higher of the two."""
    cached: float
    """For a prompt token that the provider had cached."""
    tiers: tuple[Tier, ...] = ()
    """Prices of long prompts, shortest first."""

    def cost(self, usage: Usage) -> float:
        """US dollars for one call with this usage."""
        rate: Price | Tier = self
        for tier in self.tiers:
            if usage.prompt_tokens > tier.above:
                rate = tier
        fresh = usage.prompt_tokens - usage.cached_tokens
        return fresh * rate.prompt + usage.cached_tokens * rate.cached + usage.completion_tokens * rate.completion


class Known(NamedTuple):
    """What the table says of one model that writes text."""

    provider: str
    price: Price | None
    schema: bool
    """Whether it takes a JSON Schema for its reply."""
    accepts: frozenset[MediaKind]
    """What it takes beside text."""


class KnownEmbedding(NamedTuple):
    """What the table says of one embedding model."""

    provider: str
    price: float | None
    """US dollars per token."""
    window: int | None
    """Tokens that a text may have."""


def price_of(model_name: str) -> Price | None:
    """The price of a model; None where it is unknown, because a guess would break a budget.

    Args:
        model_name: with or without its provider, such as `openai/gpt-4.1-mini`; `local/` and `scripted/` are free.

    Example:
        >>> price_of("scripted/echo").cost(Usage(prompt_tokens=1000))
        0.0
    """
    if model_name.startswith(FREE_PREFIXES):
        return Price(prompt=0.0, completion=0.0, cached=0.0)
    key = table_key(model_name)
    return known_models()[key].price if key is not None else None


def accepted_by(model_name: str) -> frozenset[MediaKind]:
    """What the table says that a model takes beside text; nothing where it is unknown.

    Example:
        >>> sorted(accepted_by("openai/gpt-4.1-mini")), sorted(accepted_by("local/smollm2"))
        (['image'], [])
    """
    key = table_key(model_name)
    return known_models()[key].accepts if key is not None else frozenset()


def embedding_of(model_name: str) -> KnownEmbedding | None:
    """What the table says of an embedding model; None where it is not in it.

    Example:
        >>> embedding_of("openai/text-embedding-3-small").window
        8191
    """
    key = table_key(model_name, known_embeddings())
    return known_embeddings()[key] if key is not None else None


def table_key(model_name: str, table: Mapping[str, Known | KnownEmbedding] | None = None) -> str | None:
    """The name under which the table holds a model, which may lack the provider's prefix."""
    table = known_models() if table is None else table
    if model_name in table:
        return model_name
    provider, slash, bare = model_name.partition("/")
    if not slash:
        return None
    # A fine-tuned model is listed under its base: ft:gpt-4.1-mini-2025-04-14:my-org::id
    for name in (bare, ":".join(bare.split(":")[:2])) if bare.startswith("ft:") else (bare,):
        # Names of one provider only: the same model costs something else with another one.
        if name in table and re.match(rf"{re.escape(provider)}(?![a-z0-9])", table[name].provider):
            return name
    return None


@cache
def known_models() -> Mapping[str, Known]:
    """All models that write text, by the table's own names; empty where LiteLLM is not installed."""
    return {
        name: Known(
            str(entry["litellm_provider"]),
            _price(entry),
            bool(entry.get("supports_response_schema")),
            frozenset(kind for kind, key in _TAKES.items() if entry.get(key)),
        )
        for name, entry in _packaged(_TABLE).items()
        if entry.get("mode") in _TEXT and entry.get("litellm_provider")
    }


@cache
def known_embeddings() -> Mapping[str, KnownEmbedding]:
    """All embedding models, by the table's own names; empty where LiteLLM is not installed."""
    return {
        name: KnownEmbedding(
            str(entry["litellm_provider"]), entry.get("input_cost_per_token"), entry.get("max_input_tokens")
        )
        for name, entry in _packaged(_TABLE).items()
        if entry.get("mode") == "embedding" and entry.get("litellm_provider")
    }


@cache
def known_providers() -> frozenset[str]:
    """The prefixes of model names that LiteLLM knows."""
    listed = {name.partition("/")[0] for name in _packaged(_ENDPOINTS).get("providers", {})}
    # The table splits some providers by the kind of model (vertex_ai-anthropic_models); those are no prefixes.
    return frozenset(listed | {p for known in known_models().values() if "-" not in (p := known.provider)})


def _packaged(file: str) -> dict[str, Any]:
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    path = Path(spec.origin).parent / file
    table: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
    return table


def _price(entry: dict[str, Any]) -> Price | None:
    tiers = sorted((_ranges(entry) or _thresholds(entry)), key=lambda tier: tier.above)
    if "input_cost_per_token" not in entry and tiers and tiers[0].above == 0:
        first, tiers = tiers[0], tiers[1:]
        return Price(prompt=first.prompt, completion=first.completion, cached=first.cached, tiers=tuple(tiers))
    base = _rates(entry, "")
    return Price(**base, tiers=tuple(tier for tier in tiers if tier.above > 0)) if base else None


def _rates(entry: dict[str, Any], suffix: str) -> dict[str, float] | None:
    """Prompt, completion and cached price; None where the model is not priced by the token."""
    prompt, completion = entry.get(f"input_cost_per_token{suffix}"), entry.get(f"output_cost_per_token{suffix}")
    if prompt is None or completion is None or entry.get("input_cost_per_request"):
        return None
    cached = entry.get(f"cache_read_input_token_cost{suffix}")
    completion = max(float(completion), float(entry.get("output_cost_per_reasoning_token") or 0.0))
    return {
        "prompt": float(prompt),
        "completion": completion,
        "cached": float(prompt if cached is None else cached),
    }


def _thresholds(entry: dict[str, Any]) -> list[Tier]:
    found = (re.fullmatch(r"input_cost_per_token(_above_(\d+)k_tokens)", key) for key in entry)
    return [
        Tier(above=int(match[2]) * 1000, **rates)
        for match in found
        if match and (rates := _rates(entry, match[1]))
    ]


def _ranges(entry: dict[str, Any]) -> list[Tier]:
    return [
        Tier(above=int(part["range"][0]), **rates)
        for part in entry.get("tiered_pricing") or ()
        if "range" in part and (rates := _rates(part, ""))
    ]
