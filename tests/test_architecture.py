"""The house keeps its plan: imports go downwards, `import agentmem` is light, nothing pickles, examples run."""

from __future__ import annotations

import ast
import doctest
import json
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "agentmem"
SOURCES = sorted(PACKAGE.rglob("*.py"))
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VENDORS = {
    "accelerate", "aiohttp", "anyio", "bm25s", "chromadb", "cyclopts", "datasets", "faiss", "httpcore", "httpx",
    "huggingface_hub",
    "jinja2", "json_repair", "litellm", "markitdown", "mcp", "numpy", "openai", "openpyxl", "pyarrow",
    "pydantic", "requests",
    "rich", "scipy", "sentence_transformers", "tenacity", "tiktoken", "tokenizers", "tomli_w", "torch",
    "transformers", "yaml",
}  # fmt: skip
LIGHT = {"pydantic"}
"""What the domain stands on, and so may be loaded with the first public name."""


def loaded_by(code: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after `code`."""
    ask = f"import sys, json; {code}; print(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run(
        [sys.executable, "-c", ask], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_contracts_hold() -> None:
    # The same as the command `lint-imports`, wherever that is installed.
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_import_agentmem_loads_no_vendor() -> None:
    assert not loaded_by("import agentmem") & VENDORS


def test_the_first_names_load_only_pydantic() -> None:
    names = (
        "agentmem.Task, agentmem.ExperienceLibrary, agentmem.Budget, agentmem.load_tasks, agentmem.save_library"
    )
    assert not loaded_by(f"import agentmem; {names}") & (VENDORS - LIGHT)


@pytest.mark.parametrize("module", ["prompts", "task_files", "library_files", "events", "format", "settings"])
def test_small_rooms_load_only_pydantic(module: str) -> None:
    assert not loaded_by(f"import agentmem.{module}") & (VENDORS - LIGHT)


def test_import_agentmem_takes_little() -> None:
    code = "import time; t = time.perf_counter(); import agentmem; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code]
    seconds = [
        float(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout)
        for _ in range(5)
    ]
    assert min(seconds) < 0.15  # the best of five, because other processes share the cores


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_pickles(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name.split(".")[0] for name in names} & {
        "pickle",
        "cPickle",
        "dill",
        "cloudpickle",
        "joblib",
        "shelve",
    }


@pytest.mark.parametrize(
    "path",
    [path for path in SOURCES if ">>> " in (text := path.read_text(encoding="utf-8")) and "+SKIP" not in text],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_examples_in_docstrings_run(path: Path, tmp_path: Path) -> None:
    parts = path.relative_to(ROOT).with_suffix("").parts
    module = import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testmod(module, optionflags=flags, extraglobs={"tmp": tmp_path})
    assert result.attempted > 0
    assert result.failed == 0


def test_dependencies_are_pinned() -> None:
    pins = [
        line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")
    ]
    assert all(line.count("==") == 1 and "+" not in line and "/" not in line for line in pins)
    names = [_normal(line.split("==")[0]) for line in pins]
    assert len(names) == len(set(names))
    project = SETTINGS["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    direct = {_normal(line) for line in wanted} - {"agentmem"}
    assert direct <= set(names)


def test_what_is_installed_is_what_is_pinned() -> None:
    from importlib.metadata import PackageNotFoundError, version

    differing = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, pinned = line.split("==")
        try:
            installed = version(name).split("+")[0]
        except PackageNotFoundError:
            continue
        if installed != pinned:
            differing[name] = (installed, pinned)
    assert not differing


def _normal(requirement: str) -> str:
    name = requirement
    for stop in "[<>=!~; ":
        name = name.split(stop)[0]
    return name.lower().replace("_", "-")
