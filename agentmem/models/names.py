"""`PREFIX/NAME` becomes a model: which adapter a name belongs to, and what was meant where it belongs to none."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points

from agentmem.errors import InputError
from agentmem.models.model import Model
from agentmem.models.prices import known_models, known_providers

GROUP = "agentmem.models"
"""The entry-point group in which a plugin names a function `(name: str) -> Model` for its prefix."""


def open_model(name: str | Model, *, base_url: str | None = None, api_key: str | None = None) -> Model:
    """The model of this name; a `Model` passes through.

    Args:
        name: `openai/NAME`, `local/NAME` (transformers in this process), `scripted/SCRIPT` (tests), `PREFIX/NAME`
            of a plugin, or a name in LiteLLM's words such as `anthropic/claude-sonnet-4-5`.
        base_url: the address of a server, for `openai/` and LiteLLM.
        api_key: by default the provider's environment variable.

    Raises:
        InputError: no adapter knows the name, or it lacks a key; nothing was sent.

    Example:
        >>> open_model("openai/my-model", base_url="http://localhost:8000/v1").name
        'openai/my-model'
    """
    if not isinstance(name, str):
        return name
    prefix, slash, rest = name.partition("/")
    if not slash or not rest.strip() or name != name.strip():
        raise InputError(_no_such(name))
    if prefix == "openai":
        from agentmem.models.openai import OpenAIModel

        return OpenAIModel.from_name(name, base_url=base_url, api_key=api_key)
    plugin = _plugins().get(prefix)
    if prefix == "local" or plugin is not None:
        if base_url or api_key:
            raise InputError(f"{name!r} takes neither base_url nor api_key; for a server write 'openai/{rest}'.")
        return _local(rest) if plugin is None else _opened(plugin, name)
    if prefix in known_providers():
        from agentmem.models.litellm import LiteLLMModel

        return LiteLLMModel.from_name(name, base_url=base_url, api_key=api_key)
    raise InputError(_no_such(name))


def _local(name: str) -> Model:
    from agentmem.models.local import LocalModel

    model: Model = LocalModel.from_name(name)
    return model


def _plugins() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _opened(plugin: EntryPoint, name: str) -> Model:
    try:
        make = plugin.load()
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"The plugin for '{plugin.name}/' ({plugin.value}) cannot be loaded: {error}; reinstall the package "
            "that brings it."
        ) from error
    model: Model = make(name)
    return model


def _no_such(name: str) -> str:
    """What is wrong with a name, and what was probably meant."""
    prefix, slash, rest = name.strip().partition("/")
    prefixes = ["openai", "local", *_plugins()]
    forms = f"Known: {', '.join(f'{p}/...' for p in prefixes)}, or a provider of LiteLLM such as anthropic/..."
    if not name.strip():
        return f"A model's name is empty. {forms}"
    if slash and not rest.strip():
        return f"{name!r} names no model after {prefix + '/'!r}. {forms}"
    if slash and (prefix in prefixes or prefix in known_providers()):
        return f"No model named {name!r}; write {name.strip()!r}."
    said = f"No model named {name!r}"
    if slash:
        near = get_close_matches(prefix.lower(), [*prefixes, *sorted(known_providers())], n=1, cutoff=0.75)
        guess = f"; did you mean '{near[0]}/{rest}'?" if near else f": there is no provider {prefix!r}."
        return (
            f"{said}{guess} For weights of that name on the Hugging Face Hub write 'local/{name}', for a server "
            f"of your own 'openai/{name}' with base_url. {forms}"
        )
    if full := _with_provider(name):
        return f"{said}; write {full!r}. {forms}"
    bare = [model for model in known_models() if "/" not in model]
    if near := get_close_matches(name.lower(), bare, n=1, cutoff=0.8):
        return f"{said}; did you mean {_with_provider(near[0]) or near[0]!r}? {forms}"
    return f"{said}: it lacks its prefix. For a server of your own write 'openai/{name}' with base_url. {forms}"


def _with_provider(name: str) -> str | None:
    """The full name of a model that was named without its provider."""
    if name.lower() in ("smollm2",):
        return f"local/{name.lower()}"
    table = known_models()
    if name in table and (provider := table[name].provider) in ("openai", "anthropic"):
        return f"{provider}/{name}"
    for provider in ("openai", "anthropic", "gemini", "mistral", "deepseek", "xai", "groq"):
        if f"{provider}/{name}" in table:
            return f"{provider}/{name}"
    return f"{table[name].provider.partition('-')[0]}/{name}" if name in table else None
