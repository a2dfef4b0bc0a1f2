"""Zip archives: listed, read by member, and refused where they were made to fill a memory."""

from __future__ import annotations

import contextlib
import io
import struct
import warnings
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmem.errors import ToolError
from agentmem.tools import archive
from agentmem.tools.files import FileContent
from tests.tools import documents


def zipped(members: dict[str, bytes | str]) -> FileContent:
    return FileContent("a.zip", documents.archive(members))


def test_members_are_listed_and_read() -> None:
    inner = documents.archive({"deep/c.txt": "deep"})
    file = zipped({"b.txt": "flat", "in.zip": inner})
    assert "b.txt" in archive.contents(file)
    assert archive.member(file, "b.txt").content == b"flat"
    assert archive.member(file, "in.zip").content == inner
    assert archive.member(file, "in.zip/deep/c.txt").content == b"deep"
    assert archive.member(file, "in.zip/deep/c.txt").name == "a.zip/in.zip/deep/c.txt"


def test_what_is_not_in_it_is_said_with_a_near_name() -> None:
    with pytest.raises(ToolError, match=r"holds no 'c.txt'. Did you mean 'b.txt'"):
        archive.member(zipped({"b.txt": "x"}), "c.txt")
    with pytest.raises(ToolError, match="is no archive"):
        archive.member(zipped({"b.txt": "x"}), "b.txt/c")


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", "..\\evil", "C:\\evil"])
def test_a_path_that_leads_out_is_refused_and_marked(name: str) -> None:
    file = zipped({name: "x"})
    assert "leads out of the archive; refused" in archive.contents(file)
    stored = zipfile.ZipFile(io.BytesIO(file.content)).namelist()[0]
    with pytest.raises(ToolError) as caught:
        archive.member(file, stored)
    assert caught.value.error_class in ("refused", "no_file")


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"big": b"\0" * (64 << 20)}, "times its size"),
        ({f"m{n}": "" for n in range(10_001)}, "10001 files"),
    ],
)
def test_bombs_are_refused_unopened(members: dict[str, bytes | str], why: str) -> None:
    for use in (archive.contents, archive.check):
        with pytest.raises(ToolError, match=why) as caught:
            use(zipped(members))
        assert caught.value.error_class == "refused"


def test_a_declared_size_beyond_all_limits_is_refused() -> None:
    content = bytearray(documents.archive({"x": b"small"}))
    place = content.rindex(b"PK\x01\x02") + 24  # the unpacked size in the directory
    content[place : place + 4] = struct.pack("<I", 0x70000000)
    with pytest.raises(ToolError, match="256 MB are the most"):
        archive.contents(FileContent("a.zip", bytes(content)))


def test_a_size_that_lies_gives_no_more_than_it_says() -> None:
    content = bytearray(documents.archive({"x": b"0" * 100_000}))
    place = content.rindex(b"PK\x01\x02") + 24
    content[place : place + 4] = struct.pack("<I", 10)
    with pytest.raises(ToolError, match="damaged"):
        archive.member(FileContent("a.zip", bytes(content)), "x")


def test_members_that_overlap_are_refused() -> None:
    """One stretch of bytes that many entries name unpacks many times (Fifield 2019)."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        warnings.simplefilter("ignore")
        made.writestr("a", bytes(range(256)) * 40)
        made.infolist()
        made.filelist.extend(made.filelist * 200)
    with pytest.raises(ToolError, match="overlap"):
        archive.contents(FileContent("a.zip", buffer.getvalue()))


def test_archives_in_archives_have_an_end() -> None:
    content = documents.archive({"x.txt": "deep"})
    for _ in range(4):
        content = documents.archive({"in.zip": content})
    with pytest.raises(ToolError, match="3 are the most"):
        archive.member(FileContent("a.zip", content), "in.zip/in.zip/in.zip/in.zip/x.txt")


def test_an_encrypted_member_is_said_to_be() -> None:
    content = bytearray(documents.archive({"x": b"small"}))
    for mark, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        content[content.rindex(mark) + offset] |= 1
    file = FileContent("a.zip", bytes(content))
    assert "(encrypted)" in archive.contents(file)
    with pytest.raises(ToolError, match="is encrypted") as caught:
        archive.member(file, "x")
    assert caught.value.error_class == "encrypted"


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damage_anywhere_raises_nothing_but_a_typed_error(data: st.DataObject) -> None:
    content = bytearray(documents.archive({"a.txt": "some words", "b/c.txt": "others"}))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file = FileContent("a.zip", bytes(content))
    for use in (archive.contents, lambda f: archive.member(f, "a.txt"), lambda f: archive.member(f, "b/c.txt")):
        with contextlib.suppress(ToolError):
            use(file)
