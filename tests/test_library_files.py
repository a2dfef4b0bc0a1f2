"""A library goes to a file and comes back the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add
from agentmem.errors import InputError
from agentmem.library_files import load_library, save_library

LIBRARY = ExperienceLibrary().apply([Add(text="Prüfe die Einheiten.", when="physics"), Add(text="Check {{ x }}.")])


def test_round_trip_and_equal_bytes(tmp_path: Path) -> None:
    save_library(LIBRARY, tmp_path / "new" / "a.json")
    loaded = load_library(tmp_path / "new" / "a.json")
    assert loaded == LIBRARY
    save_library(loaded, tmp_path / "b.json")
    assert (tmp_path / "b.json").read_bytes() == (tmp_path / "new" / "a.json").read_bytes()


def test_a_run_folder_stands_for_its_library(tmp_path: Path) -> None:
    save_library(LIBRARY, tmp_path / "library.json")
    assert load_library(tmp_path) == LIBRARY


def test_a_byte_order_mark_is_fine(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf" + LIBRARY.to_json().encode())
    assert load_library(tmp_path / "a.json") == LIBRARY


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no experience library: .*Restore"),
        (b"{}{", "is no experience library"),
        (b'{"schema": 99}', "schema 99, newer than this agentmem reads.*upgrade"),
        (b'{"schema": 1, "experiences": [{"id": "e-1"}]}', r"experiences\.0\.text"),
        (
            b'{"version": "\xe9"}',
            r"byte 14: 0xe9 is not UTF-8.*iconv -f WINDOWS-1252 -t UTF-8 a\.json > a\.utf8\.json",
        ),
        ('{"version": 1}'.encode("utf-16"), "this is UTF-16, not UTF-8.*iconv -f UTF-16"),
    ],
)
def test_a_broken_library_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(content)
    with pytest.raises(InputError, match=f"a.json.*{message}"):
        load_library(file)


def test_a_missing_library_offers_the_nearest(tmp_path: Path) -> None:
    save_library(LIBRARY, tmp_path / "library.json")
    with pytest.raises(
        InputError, match=r"no experience library '.*libary\.json'\. Did you mean .*library\.json\?"
    ):
        load_library(tmp_path / "libary.json")


def test_a_folder_without_a_library_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").write_text("")
    with pytest.raises(
        InputError, match=r"is a folder; name the experience library in it\. It holds .*journal\.sqlite\."
    ):
        load_library(tmp_path)
