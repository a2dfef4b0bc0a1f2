"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from agentmem import atomic
from agentmem.atomic import atomic_write
from agentmem.errors import InputError


def test_writes_utf8_with_the_newlines_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "er" / "a.json"
    atomic_write(file, "é\r\n\n")
    assert file.read_bytes() == "é\r\n\n".encode()
    assert os.listdir(file.parent) == ["a.json"]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    file = tmp_path / "a.json"
    atomic_write(file, "old")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if call == "write":
        monkeypatch.setattr(atomic, "_write_through", full)
    else:
        monkeypatch.setattr(atomic.os, call, full)
    with pytest.raises(InputError, match=r"Cannot write .*a\.json: No space left on device.*untouched"):
        atomic_write(file, "new")
    monkeypatch.undo()
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_the_content_is_on_disk_before_the_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def spy_fsync(handle: int) -> None:
        calls.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def spy_replace(old: Path, new: Path) -> None:
        calls.append("replace")
        assert old.read_text() == "text"
        replace(old, new)

    monkeypatch.setattr(atomic.os, "fsync", spy_fsync)
    monkeypatch.setattr(atomic.os, "replace", spy_replace)
    atomic_write(tmp_path / "a", "text")
    assert calls == ["file", "replace", "folder"]


def test_a_link_is_followed_and_permissions_are_kept(tmp_path: Path) -> None:
    real = tmp_path / "real.json"
    real.write_text("old")
    real.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(real)
    atomic_write(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        atomic_write(tmp_path / "a", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match=r"Cannot write .*untouched"):
        atomic_write(tmp_path / "file" / "a", "x")
    with pytest.raises(InputError, match="half a character"):
        atomic_write(tmp_path / "a", "x\ud800")
    with pytest.raises(InputError, match=r"Cannot write .*directory"):
        atomic_write(tmp_path, "x")
    assert os.listdir(tmp_path) == ["file"]
