"""The Hub: a name with its revision, read by the real `datasets` from a folder, and by a stand-in for what it asks."""

from __future__ import annotations

import os
import subprocess
import sys
import types
import warnings
from pathlib import Path

import pytest

from agentmem.errors import InputError
from agentmem.task_files import load_tasks
from agentmem.task_sources.hub import Hub

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Asked:
    """A stand-in for the package: notes what it is asked for."""

    def __init__(self, rows: list[dict] | Exception) -> None:
        self.rows = rows
        self.calls: list[tuple] = []

    def load_dataset(self, path: str, config: str | None, *, split: str, revision: str) -> list[dict]:
        self.calls.append((path, config, split, revision))
        if isinstance(self.rows, Exception):
            raise self.rows
        return self.rows


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch):
    def stand_in(rows: list[dict] | Exception) -> Asked:
        asked = Asked(rows)
        module = types.ModuleType("datasets")
        module.load_dataset = asked.load_dataset  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "datasets", module)
        return asked

    return stand_in


def test_a_name_says_revision_split_and_configuration(hub) -> None:
    asked = hub([{"ask": "2 + 3?", "gold": 5}])
    name = f"hub:owner/sums@{COMMIT}?split=test&config=easy"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tasks = load_tasks(name, columns={"input": "ask", "answer": "gold"})
    assert asked.calls == [("owner/sums", "easy", "test", COMMIT)]
    assert [(task.id, task.input, task.answer) for task in tasks] == [("1", "2 + 3?", "5")]
    assert tasks.name == "sums"
    assert Hub.parse(str(Hub.parse(name))) == Hub.parse(name) == Hub("owner/sums", COMMIT, "test", "easy")


def test_a_revision_that_may_move_is_said(hub) -> None:
    hub([{"input": "a"}])
    with pytest.warns(UserWarning, match="'main' is no commit, so the tasks may be others tomorrow"):
        load_tasks("hub:owner/sums@main?split=test")
    assert Hub("a/b", COMMIT, "test").pinned
    assert not Hub("a/b", COMMIT[:12], "test").pinned


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hub:owner/sums?split=test", "names no revision, and a data set can change from one day to the next: write"),
        ("hub:owner/sums@main", "is not of the form hub:OWNER/NAME@REVISION?split=test"),
        ("hub:owner/sums@?split=test", "is not of the form"),
        ("hub:owner/sums@main?split=test&subset=x", "is not of the form"),
        ("hub:", "names no revision"),
    ],
)  # fmt: skip
def test_names_that_are_none(name: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        load_tasks(name)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_the_hub_refuses_is_one_sentence(hub) -> None:
    hub(ConnectionError("Couldn't reach\nthe Hub"))
    with pytest.raises(InputError) as caught:
        load_tasks(f"hub:owner/sums@{COMMIT}?split=test")
    said = str(caught.value)
    assert said.startswith(
        f"hub:owner/sums@{COMMIT}?split=test cannot be loaded: ConnectionError: Couldn't reach the"
    )
    assert "download its Parquet file elsewhere" in said
    hub([{"ask": "a"}])
    with pytest.raises(InputError, match=r"split=test, row 1: no 'x', the column of 'input'; there is 'ask'"):
        load_tasks(f"hub:owner/sums@{COMMIT}?split=test", columns={"input": "x"})
    hub([])
    with pytest.raises(InputError, match="is empty: it needs a row for each task"):
        load_tasks(f"hub:owner/sums@{COMMIT}?split=test")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r'needs the package datasets, .*pip install "agentmem\[datasets\]"'):
        load_tasks(f"hub:owner/sums@{COMMIT}?split=test")


def test_the_real_package_reads_a_folder_of_parquet_files(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    (tmp_path / "sums").mkdir()
    for split, numbers in (("train", range(5)), ("test", range(5, 8))):
        rows = [{"ask": f"{n} + 1?", "gold": {"value": str(n + 1), "aliases": ["x"]}} for n in numbers]
        parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "sums" / f"{split}.parquet")
    # In a process of its own: it is heavy, and where its cache lies is read when it is imported.
    code = (
        "from agentmem.task_files import load_tasks\n"
        f"name = 'hub:{tmp_path / 'sums'}@{COMMIT}?split=test'\n"
        "tasks = load_tasks(name, columns={'input': 'ask', 'answer': 'gold.value', 'aliases': 'gold.aliases'})\n"
        "print(tasks.name, [(t.id, t.input, t.answer, t.metadata['aliases']) for t in tasks])\n"
        "try: load_tasks(name.replace('split=test', 'split=dev'))\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    environment = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "sums [('1', '5 + 1?', '6', ['x']), ('2', '6 + 1?', '7', ['x']), ('3', '7 + 1?', '8', ['x'])]"
    assert second.startswith("InputError hub:")
    assert "cannot be loaded: ValueError: Unknown split" in second
