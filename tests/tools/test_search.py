"""`search`: one protocol, the words of a folder, and a SearxNG server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from agentmem.domain.trajectory import ToolCall, ToolResult
from agentmem.errors import InputError
from agentmem.tools.folder_search import FolderSearch, _split, _words
from agentmem.tools.search import Hit, search_in, search_tool
from agentmem.tools.searxng import SearxNG
from agentmem.tools.tool import Tool, ToolContext
from agentmem.tools.toolbox import Toolbox
from tests.tools import documents


async def ask(tool: Tool, query: str, **more: Any) -> ToolResult:
    call = ToolCall(id="c", name="search", arguments=json.dumps({"query": query} | more))
    return await Toolbox([tool]).call(call, ToolContext(folder=Path("."), seconds=60))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "tides.md").write_text("# Tides\nThe moon causes the tides.\n\n# Waves\nThe wind makes waves.\n")
    (tmp_path / "sub" / "bread.txt").write_text("Bread is made of flour, water and yeast.")
    (tmp_path / "paper.pdf").write_bytes(documents.pdf(["Photosynthesis turns light into sugar."]))
    (tmp_path / "空.txt").write_text("東京は日本の首都です。")
    (tmp_path / ".hidden").write_text("moon tides hidden")
    (tmp_path / "pic.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 99)
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 no")
    return tmp_path


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Moon TIDES", "tides.md:1"),
        ("wind", "tides.md:4"),
        ("what is bread made of?", "sub/bread.txt:1"),
        ("photosynthesis", "paper.pdf:1"),
        ("日本の首都", "空.txt:1"),
    ],
)
async def test_the_best_passage_comes_first_with_its_place(folder: Path, query: str, first: str) -> None:
    hits = await FolderSearch(folder).search(query, 3)
    assert hits[0].address == first


async def test_a_result_is_marked_and_can_be_read_on(folder: Path) -> None:
    result = await ask(search_in(str(folder)), "moon", k=2)
    assert result.content == "1. tides.md: Tides\n   tides.md:1\n   # Tides The moon causes the tides."
    assert result.untrusted
    assert result.source.startswith("search:the folder")
    assert (await ask(search_in(str(folder)), "zebra")).content.startswith("Nothing was found in the folder")
    assert (await ask(search_in(str(folder)), " ")).content.startswith("The query is empty")


async def test_changes_are_found_and_the_rest_is_not_read_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = FolderSearch(folder)
    read: list[str] = []
    really = engine._read
    monkeypatch.setattr(engine, "_read", lambda file: (read.append(file), really(file))[1])
    await engine.search("moon", 1)
    assert "tides.md" in read
    index = engine._index
    read.clear()
    await engine.search("bread", 1)
    assert not read
    assert engine._index is index  # nothing changed: the same index
    (folder / "sub" / "bread.txt").write_text("Cake is made of sugar.")
    (folder / "new.txt").write_text("A comet passed by.")
    (folder / "tides.md").unlink()
    assert [hit.address for hit in await engine.search("comet", 1)] == ["new.txt:1"]
    assert sorted(read) == ["new.txt", "sub/bread.txt"]
    assert await engine.search("moon", 1) == []
    assert await engine.search("yeast", 1) == []


async def test_a_link_out_of_the_folder_is_not_searched(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "secret.txt").write_text("secret moon")
    (inside / "link.txt").symlink_to(tmp_path / "secret.txt")
    (inside / "linked").symlink_to(tmp_path)
    assert await FolderSearch(inside).search("moon", 5) == []


async def test_many_searches_at_once_build_one_index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FolderSearch(folder)
    read: list[str] = []
    really = engine._read
    monkeypatch.setattr(engine, "_read", lambda file: (read.append(file), really(file))[1])
    results = await asyncio.gather(*(engine.search("moon" if n % 2 else "bread", 1) for n in range(32)))
    assert [hits[0].address for hits in results] == ["sub/bread.txt:1", "tides.md:1"] * 16
    assert len(read) == len(set(read))


async def test_one_file_does_not_take_all_places(tmp_path: Path) -> None:
    (tmp_path / "long.md").write_text("\n".join(f"# Part {n}\nmoon moon moon" for n in range(9)))
    (tmp_path / "short.md").write_text("The moon, once, among many other words that are about something else.")
    addresses = [hit.address for hit in await FolderSearch(tmp_path).search("moon", 3)]
    assert "short.md:1" in addresses
    assert len(addresses) == 3


@given(st.lists(st.text(alphabet="ab #\n", max_size=30), max_size=30).map("\n".join))
def test_passages_hold_every_word_once_and_name_their_line(text: str) -> None:
    passages = list(_split("f", text))
    assert [w for p in passages for w in _words(p.text)] == _words(text)
    lines = text.split("\n")
    for passage in passages:
        assert next(filter(str.strip, lines[passage.line - 1 :])).strip() in passage.text


def test_a_missing_folder_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no folder"):
        search_in(str(tmp_path / "none"))
    with pytest.raises(InputError, match="is no search engine"):
        search_tool(object())  # type: ignore[arg-type]


class Broken:
    name = "nothing"

    async def search(self, query: str, k: int) -> Sequence[Hit]:
        raise OSError("out of order")


async def test_an_engine_that_fails_is_a_result() -> None:
    result = await ask(search_tool(Broken()), "x")
    assert (result.status, result.error) == ("error", "OSError")


@pytest.fixture
async def searx() -> Any:
    """A server that answers as SearxNG does, or as the test says."""
    state: dict[str, Any] = {"asked": [], "answer": None}

    async def handle(request: web.Request) -> web.Response:
        state["asked"].append(dict(request.query))
        if state["answer"] is not None:
            return web.Response(**state["answer"])
        results = [{"url": f"http://a/{n % 3}", "title": f"T{n}", "content": f"c {n}"} for n in range(6)]
        return web.json_response({"query": "q", "results": [*results, {"odd": 1}, "odd"]})

    app = web.Application()
    app.router.add_get("/search", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    state["address"] = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    yield state
    await runner.cleanup()


async def test_searxng_is_asked_for_json_and_told_safesearch(searx: dict[str, Any]) -> None:
    """Memento sent `safe`, which SearxNG does not know (defect 23)."""
    hits = await SearxNG(searx["address"], safesearch=2).search("the moon & tides", 5)
    assert searx["asked"] == [{"q": "the moon & tides", "format": "json", "safesearch": "2"}]
    assert [hit.address for hit in hits] == ["http://a/0", "http://a/1", "http://a/2"]
    assert (await ask(search_in(searx["address"]), "moon", k=1)).content == "1. T0\n   http://a/0\n   c 0"


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        ({"status": 403}, "http_403", "list `json` under search.formats"),
        ({"status": 500}, "http_500", "status 500"),
        ({"text": "<html>"}, "unreadable", "no JSON"),
        ({"text": "[]"}, "unreadable", "no results"),
        ({"body": b"x" * (5 << 20)}, "too_large", "too large"),
    ],
)
async def test_what_a_search_server_may_do_wrong_is_typed(
    searx: dict[str, Any], answer: dict[str, Any], error: str, says: str
) -> None:
    searx["answer"] = answer
    result = await ask(search_tool(SearxNG(searx["address"])), "moon")
    assert (result.status, result.error) == ("error", error)
    assert says in result.content


async def test_a_search_server_that_is_away_is_typed() -> None:
    result = await ask(search_tool(SearxNG("http://127.0.0.1:9")), "moon")
    assert (result.status, result.error) == ("error", "no_connection")


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="starts with http"):
        SearxNG("localhost:8080")
    with pytest.raises(InputError, match=r"0 \(none\), 1 \(moderate\) or 2"):
        SearxNG("http://localhost", safesearch=3)  # type: ignore[arg-type]
