"""`read_file`: every kind of document as text, one sentence for what is none, and no file but the permitted ones."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.domain.trajectory import ToolCall, ToolResult
from agentmem.errors import InputError
from agentmem.tools import convert, excerpt
from agentmem.tools.excerpt import excerpt as stretch
from agentmem.tools.read_file import file_reader
from agentmem.tools.tool import ToolContext
from agentmem.tools.toolbox import Toolbox
from tests.tools import documents

BOX = Toolbox(["read_file"])


async def read(
    folder: Path, path: str, *, box: Toolbox = BOX, files: tuple[Path, ...] = (), **more: Any
) -> ToolResult:
    call = ToolCall(id="c", name="read_file", arguments=json.dumps({"path": path} | more))
    return await box.call(call, ToolContext(folder=folder, seconds=60, files=files))


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    ("name", "content", "shown"),
    [
        ("a.pdf", documents.pdf(["First page", "Second page"]), "--- page 2 of 2 ---\nSecond page"),
        ("a.docx", documents.docx(["A paragraph."]), "A paragraph."),
        (
            "a.xlsx",
            documents.xlsx(),
            '## Sheet "Data"\n|  | A | B | C |\n| 1 | name | x | y |\n| 2 | a\\|b | 1 | 2.5 |',
        ),
        ("a.pptx", documents.pptx(["One", "Two"]), "--- slide 2 of 2 ---\n# Two"),
        ("a.html", b"<html><body><h1>Head</h1><script>no</script><p>text</p></body></html>", "# Head\n\ntext"),
        ("a.csv", b"a;b\r\n1;2\r\n", "a;b\n1;2\n"),
        ("a.json", b'{"a": 1}', '{"a": 1}'),
        ("a.jsonl", b'{"a": 1}\n{"a": 2}\n', '{"a": 1}\n{"a": 2}\n'),
        ("a.xml", b"<?xml version='1.0'?><r><x>1</x></r>", "<r><x>1</x></r>"),
        ("a.py", b"def f():\n    return 1\n", "def f():\n    return 1\n"),
        ("a.zip", documents.archive({"d/in.csv": "a,b\n"}), "Read one as `a.zip/d/in.csv`."),
        ("a.ipynb", b'{"cells": [{"cell_type": "markdown", "source": ["# Note"]}], "nbformat": 4}', "# Note"),
        ("latin.txt", "Grüße aus Köln".encode("cp1252"), "Grüße aus Köln"),
        ("wide.txt", "Grüße".encode("utf-16"), "Grüße"),
        ("mislabelled.pdf", b"only text", "only text"),
        ("mislabelled.txt", documents.pdf(["Really a PDF"]), "Really a PDF"),
    ],
    ids=lambda value: "content" if isinstance(value, bytes) else None,
)
async def test_documents_become_text(tmp_path: Path, name: str, content: bytes, shown: str) -> None:
    (tmp_path / name).write_bytes(content)
    result = await read(tmp_path, name)
    assert result.status == "ok", result.content
    assert shown in result.content
    assert (result.untrusted, result.source) == (True, f"file:{name}")


@pytest.mark.parametrize(
    ("name", "content", "error", "says"),
    [
        ("a.txt", b"", "empty", "'a.txt' is empty"),
        ("a.pdf", b"%PDF-1.4 nothing more", "unreadable", "it is damaged"),
        ("a.pdf", documents.pdf(["x"], trailer=documents.ENCRYPTED), "encrypted", "is encrypted"),
        ("a.docx", documents.docx(["x"])[:-30], "unreadable", "damaged archive"),
        ("a.docx", documents.archive({"word/document.xml": "<broken"}), "unreadable", "it is damaged"),
        ("a.xlsx", b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le"), "encrypted", "is encrypted"),
        ("a.doc", b"\xd0\xcf\x11\xe0" + b"\0" * 600, "no_text", "old Office format"),
        ("a.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 600, "no_text", "an image file (PNG"),
        ("a.mp3", b"ID3" + b"\0" * 600, "no_text", "an audio file (MP3"),
        ("a.bin", bytes(range(256)) * 4, "no_text", "is binary"),
        ("a.pdf", documents.pdf([""]), "no_text", "hold no text"),
    ],
    ids=lambda value: "content" if isinstance(value, bytes) else None,
)
async def test_what_is_no_text_is_said_in_one_sentence(
    tmp_path: Path, name: str, content: bytes, error: str, says: str
) -> None:
    (tmp_path / name).write_bytes(content)
    result = await read(tmp_path, name)
    assert (result.status, result.error) == ("error", error), result.content
    assert says in result.content
    assert len(result.content) < 300
    assert "\n" not in result.content


async def test_defect_23_an_upper_case_ending_and_cells_as_in_excel(tmp_path: Path) -> None:
    """Memento raised KeyError on `.TXT`, and named cells `1A`."""
    (tmp_path / "NOTES.TXT").write_text("upper case")
    (tmp_path / "BOOK.XLSX").write_bytes(documents.xlsx())
    assert (await read(tmp_path, "NOTES.TXT")).content == "upper case"
    cell = await read(tmp_path, "BOOK.XLSX", part="C2")
    assert cell.content == '## Sheet "Data"\n|  | C |\n| 2 | 2.5 |'
    assert "| 7 |  | deep |" in (await read(tmp_path, "BOOK.XLSX", part="two!a1:$B$9")).content
    assert "=SUM(B1:B2)" in (await read(tmp_path, "BOOK.XLSX", part="Data")).content


@pytest.mark.parametrize(
    ("name", "part", "says"),
    [
        ("a.pdf", "3", "it has pages 1 to 2, so part='3' means none"),
        ("a.pdf", "x", "part='x' means none"),
        ("a.xlsx", "Three!A1", "it has no sheet 'Three', but 'Data', 'Two'"),
        ("a.xlsx", "1A", "part='1A' is no cell such as 'B7'"),
        ("a.txt", "2", "has no parts"),
    ],
)
async def test_a_wrong_part_says_which_there_are(tmp_path: Path, name: str, part: str, says: str) -> None:
    (tmp_path / "a.pdf").write_bytes(documents.pdf(["1", "2"]))
    (tmp_path / "a.xlsx").write_bytes(documents.xlsx())
    (tmp_path / "a.txt").write_text("text")
    result = await read(tmp_path, name, part=part)
    assert (result.status, result.error) == ("error", "arguments")
    assert says in result.content


async def test_a_long_file_is_read_to_its_end_by_what_it_says(tmp_path: Path) -> None:
    lines = [f"line {n} " + "x" * (n % 90) for n in range(2000)]
    (tmp_path / "long.txt").write_text("\n".join(lines))
    start, got = 1, list[str]()
    for _ in range(50):
        result = await read(tmp_path, "long.txt", start=start)
        body, mark, note = result.content.rpartition("\n[Lines ")
        got += (body if mark else result.content).split("\n")
        assert len(result.content) <= excerpt.CHARACTERS + 100
        if not mark:
            break
        start = int(note.rpartition("start=")[2].rstrip(".]"))
    assert got == lines
    beyond = await read(tmp_path, "long.txt", start=5000)
    assert beyond.content == "'long.txt' has lines 1 to 2000, so there is none 5000."


@given(st.text(max_size=400), st.integers(1, 60), st.integers(1, 30))
def test_stretches_put_together_are_the_text(text: str, characters: int, width: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(excerpt, "CHARACTERS", characters)
        patch.setattr(excerpt, "LINE_CHARACTERS", width)
        start, got = 1, list[str]()
        while True:
            shown = stretch(text, start=start, what="t")
            body, mark, note = shown.rpartition("\n[Lines ")
            if not (mark and note.endswith(".]") and "Read on with start=" in note):
                got.append(shown)
                break
            got.append(body)
            start = int(note.rpartition("start=")[2].rstrip(".]"))
    assert "".join("".join(got).split("\n")) == "".join(text.split("\n"))


async def test_a_json_file_of_one_line_can_be_read_on(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"numbers": list(range(5000))}))
    assert "Read on with start=" in (await read(tmp_path, "a.json")).content


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "/etc/passwd",
        "{outside}",
        "link",
        "linked/secret.txt",
        "sub/../../secret.txt",
        "/nowhere/at/all",
    ],
)
async def test_no_path_leads_out_of_the_folder(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret.txt")
    (folder / "linked").symlink_to(tmp_path)
    result = await read(folder, path.format(outside=tmp_path / "secret.txt"))
    assert (result.status, result.error) == ("error", "refused")
    assert "lies outside of the folder" in result.content


async def test_a_link_that_is_changed_between_check_and_use_gains_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "a.txt").write_text("mine")
    really = os.open

    def swapped(path: Any, *rest: Any, **more: Any) -> int:
        if str(path).endswith("a.txt"):
            (folder / "a.txt").unlink(missing_ok=True)
            (folder / "a.txt").symlink_to(tmp_path / "secret.txt")
        return really(path, *rest, **more)

    monkeypatch.setattr(os, "open", swapped)
    assert (await read(folder, "a.txt")).error == "refused"


async def test_pipes_folders_and_missing_files_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "notes.txt").write_text("x")
    for path in ("pipe", ".", "", "a\0b", "note.txt"):
        result = await asyncio.wait_for(read(tmp_path, path), 20)
        assert (result.status, result.error) == ("error", "no_file")
    assert "Did you mean 'notes.txt'?" in (await read(tmp_path, "note.txt")).content


async def test_the_tasks_own_files_and_opened_folders_can_be_read(tmp_path: Path) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    work.mkdir()
    other.mkdir()
    (other / "given.csv").write_text("a,b")
    (other / "z.zip").write_bytes(documents.archive({"in.txt": "inner"}))
    (other / "private.txt").write_text("no")
    own = (other / "given.csv", other / "z.zip")
    assert (await read(work, "given.csv", files=own)).content == "a,b"
    assert (await read(work, str(other / "given.csv"), files=own)).content == "a,b"
    assert (await read(work, "z.zip/in.txt", files=own)).content == "inner"
    assert (await read(work, str(other / "private.txt"), files=own)).error == "refused"
    opened = Toolbox([file_reader(other)])
    assert (await read(work, "private.txt", box=opened)).content == "no"
    assert (await read(work, "../private.txt", box=opened)).error == "refused"


async def test_a_file_of_another_format_does_not_reach_out(tmp_path: Path) -> None:
    """A Word document may name a picture by its address, a local file among them; it is not fetched."""
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "a.docx").write_bytes(documents.docx(["Words."], link=(tmp_path / "secret.png").as_uri()))
    result = await read(tmp_path, "a.docx")
    assert "c2VjcmV0" not in result.content  # "secret" in base 64


async def test_a_reader_that_takes_too_long_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "slow_worker.py"
    slow.write_text("import time\ndef handle(payload):\n    time.sleep(60)\n")
    worker = convert.Worker(slow)
    monkeypatch.setattr(convert, "_worker", lambda: worker)
    (tmp_path / "a.pdf").write_bytes(documents.pdf(["x"]))
    call = ToolCall(id="c", name="read_file", arguments='{"path": "a.pdf"}')
    result = await BOX.call(call, ToolContext(folder=tmp_path, seconds=3))
    assert (result.status, result.error) == ("timeout", "timeout")
    await asyncio.sleep(0.5)
    assert worker.pid is None


async def test_cancelling_the_attempt_stops_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "slow_worker.py"
    slow.write_text("import time\ndef handle(payload):\n    time.sleep(60)\n")
    worker = convert.Worker(slow)
    monkeypatch.setattr(convert, "_worker", lambda: worker)
    (tmp_path / "a.pdf").write_bytes(documents.pdf(["x"]))
    task = asyncio.create_task(read(tmp_path, "a.pdf"))
    for _ in range(600):
        await asyncio.sleep(0.05)
        if worker.pid:
            break
    pid = worker.pid
    assert pid is not None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(100):
        if not alive(pid):
            break
        await asyncio.sleep(0.05)
    assert not alive(pid)


async def test_many_readers_at_once_get_their_own_texts(tmp_path: Path) -> None:
    folders = [tmp_path / str(n) for n in range(16)]
    for n, folder in enumerate(folders):
        folder.mkdir()
        (folder / "a.pdf").write_bytes(documents.pdf([f"Page of attempt {n}."]))
    results = await asyncio.gather(*(read(folder, "a.pdf") for folder in folders))
    assert [f"attempt {n}." in result.content for n, result in enumerate(results)] == [True] * 16


def test_a_folder_that_does_not_exist_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        file_reader(tmp_path / "none")
