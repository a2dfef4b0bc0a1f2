"""Which adapter a model's name belongs to, and what the message says where it belongs to none."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentmem.errors import InputError
from agentmem.models import names
from agentmem.models.litellm import LiteLLMModel
from agentmem.models.names import open_model
from agentmem.models.openai import OpenAIModel
from agentmem.testing import ScriptedModel

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture(autouse=True)
def _our_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry points of pyproject.toml, whether or not the package is installed."""
    group = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"][names.GROUP]
    found = [EntryPoint(name, value, names.GROUP) for name, value in group.items()]
    found.append(EntryPoint("broken", "agentmem.no_such_module:make", names.GROUP))
    monkeypatch.setattr(names, "entry_points", lambda group: found if group == names.GROUP else [])
    monkeypatch.setenv("OPENAI_API_KEY", "k")


def test_a_model_passes_through() -> None:
    model = ScriptedModel(["x"])
    assert open_model(model) is model


def test_openai() -> None:
    model = open_model("openai/gpt-4.1-mini", base_url="http://localhost:8000/v1", api_key="mine")
    assert isinstance(model, OpenAIModel)
    assert (model.model, model.base_url, model._key) == ("gpt-4.1-mini", "http://localhost:8000/v1", "mine")


def test_scripted() -> None:
    model = open_model("scripted/learner?p=0.2")
    assert isinstance(model, ScriptedModel)
    assert model.name == "scripted/learner?p=0.2"


def test_local(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def from_name(name: str) -> Any:
        opened.append(name)
        return ScriptedModel(["x"], name=f"local/{name}")

    fake = SimpleNamespace(LocalModel=SimpleNamespace(from_name=from_name))
    monkeypatch.setitem(sys.modules, "agentmem.models.local", fake)
    assert open_model("local/org/name").name == "local/org/name"
    assert opened == ["org/name"]


@pytest.mark.parametrize("name", ["anthropic/claude-sonnet-4-5", "openrouter/a/b", "vertex_ai/gemini-2.5-pro"])
def test_everything_else_that_litellm_knows(name: str) -> None:
    model = open_model(name, base_url="http://localhost:1", api_key="k")
    assert isinstance(model, LiteLLMModel)
    assert (model.name, model.base_url) == (name, "http://localhost:1")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpt-4.1", "No model named 'gpt-4.1'; write 'openai/gpt-4.1'."),
        ("gpt4.1", "did you mean 'openai/gpt-4.1'?"),
        ("claude-sonnet-4-5", "write 'anthropic/claude-sonnet-4-5'."),
        ("gemini-2.5-pro", "write 'gemini/gemini-2.5-pro'."),
        ("smollm2", "write 'local/smollm2'."),
        ("opnai/gpt-4.1", "did you mean 'openai/gpt-4.1'?"),
        ("OpenAI/gpt-4.1", "did you mean 'openai/gpt-4.1'?"),
        ("scriptd/echo", "did you mean 'scripted/echo'?"),
        ("HuggingFaceTB/SmolLM2", "write 'local/HuggingFaceTB/SmolLM2'"),
        ("my-model", "write 'openai/my-model' with base_url"),
        (" openai/gpt-4.1", "write 'openai/gpt-4.1'."),
        ("openai/gpt-4.1\n", "write 'openai/gpt-4.1'."),
        ("openai/", "names no model after 'openai/'"),
        ("openai/ ", "names no model after 'openai/'"),
        ("", "A model's name is empty."),
        ("  ", "A model's name is empty."),
        ("broken/x", "plugin for 'broken/' (agentmem.no_such_module:make) cannot be loaded"),
        ("scripted/ecko", "No script named 'ecko'"),
    ],
)
def test_names_that_are_none(name: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        open_model(name)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["local/smollm2", "scripted/echo"])
def test_an_address_makes_no_sense_for_models_in_this_process(name: str) -> None:
    with pytest.raises(InputError, match="takes neither base_url nor api_key"):
        open_model(name, base_url="http://localhost:1/v1")


def test_opening_a_model_imports_no_vendor() -> None:
    script = (
        "import sys; from agentmem.models.names import open_model; "
        "open_model('openai/x', base_url='http://localhost:1/v1'); open_model('anthropic/claude-sonnet-4-5'); "
        "assert not {'litellm', 'openai', 'httpx', 'aiohttp', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
