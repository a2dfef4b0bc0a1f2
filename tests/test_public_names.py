"""The public names: one table, loaded on first use."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import agentmem


@pytest.mark.parametrize("name", agentmem.__all__)
def test_each_name_is_what_its_module_defines(name: str) -> None:
    home = import_module(agentmem._HOMES[name])
    assert getattr(agentmem, name) is getattr(home, name)
    # Where it says it was defined is where the table says it lives: no detours through other modules.
    assert getattr(agentmem, name).__module__ == home.__name__
    assert inspect.getdoc(getattr(agentmem, name))


def test_table_all_and_type_checking_imports_agree() -> None:
    tree = ast.parse(Path(agentmem.__file__).read_text(encoding="utf-8"))
    imports = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("agentmem.")
        for alias in node.names
    }
    assert imports == agentmem._HOMES
    assert sorted(agentmem._HOMES) == sorted(agentmem.__all__)
    assert set(agentmem.__all__) <= set(dir(agentmem))


def test_a_name_costs_nothing_until_it_is_used() -> None:
    code = (
        "import sys, agentmem; before = set(sys.modules); agentmem.Task; "
        "assert 'agentmem.domain.task' in set(sys.modules) - before; assert 'Task' in vars(agentmem)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_an_agent_is_made_without_loading_what_acts() -> None:
    code = (
        "import os, sys, agentmem; os.environ['OPENAI_API_KEY'] = 'x'; "
        "agentmem.Task(id='a', input='b'); agentmem.Agent('openai/m'); "
        "assert not {'asyncio', 'sqlite3', 'tenacity', 'jinja2', 'numpy', 'agentmem.models.gateway', "
        "'agentmem.runs.run', 'agentmem.events', 'agentmem.sandbox'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'agentmem' has no attribute 'lern'"):
        _ = agentmem.lern
    assert not hasattr(agentmem, "__path_of_nothing__")
