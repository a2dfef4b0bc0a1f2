"""A web of one's own on loopback, and the addresses that a tested agent must not read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentmem.domain.trajectory import ToolCall, ToolResult
from agentmem.errors import InputError
from agentmem.tools.fetch_page import page_fetcher
from agentmem.tools.local_web import LocalWeb
from agentmem.tools.mirrors import WithoutMirrors, mirror_of
from agentmem.tools.search import Hit, search_tool
from agentmem.tools.tool import ToolContext
from agentmem.tools.toolbox import Toolbox


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    town = tmp_path / "web" / "town.test"
    (town / "streets").mkdir(parents=True)
    (town / "index.html").write_text(
        '<h1>Town</h1><p>See the <a href="http://town.test/streets/a.html">street</a>.</p>'
    )
    (town / "streets" / "a.html").write_text("<h1>Mill street</h1><p>A windmill stands here.</p>")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "web" / "secret.txt").write_text("secret")
    return tmp_path / "web"


async def call(tools: Toolbox, folder: Path, name: str, **arguments: object) -> ToolResult:
    made = ToolCall(id="c", name=name, arguments=json.dumps(arguments))
    return await tools.call(made, ToolContext(folder))


async def test_pages_are_fetched_and_found_by_their_names(pages: Path, tmp_path: Path) -> None:
    with LocalWeb(pages) as web:
        tools = Toolbox([page_fetcher(network=web.network), search_tool(web)])
        page = await call(tools, tmp_path, "fetch_page", url="http://town.test/")
        assert "[street](http://town.test/streets/a.html)" in page.content
        assert (page.status, page.untrusted, page.source) == ("ok", True, "http://town.test/")
        found = await call(tools, tmp_path, "search", query="windmill")
        assert "http://town.test/streets/a.html" in found.content
        assert ":1" not in found.content


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://town.test/none.html", "http_404"),
        ("http://town.test/%2e%2e/secret.txt", "http_404"),
        ("http://town.test/%2e%2e%2f%2e%2e%2fsecret.txt", "http_404"),
        ("http://example.org/", "no_connection"),
        ("http://127.0.0.1/", "no_connection"),
        ("http://town.test:8080/", "no_connection"),
        ("https://town.test/", "no_connection"),
    ],
)
async def test_nothing_else_is_reached(pages: Path, tmp_path: Path, url: str, error: str) -> None:
    with LocalWeb(pages) as web:
        result = await call(Toolbox([page_fetcher(network=web.network)]), tmp_path, "fetch_page", url=url)
    assert (result.status, result.error) == ("error", error)
    assert "secret" not in result.content.replace("secret.txt", "")


def test_what_is_no_web_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no folder"):
        LocalWeb(tmp_path / "none")
    with pytest.raises(InputError, match="holds no folder of a host"):
        LocalWeb(tmp_path)
    (tmp_path / "a.test").mkdir()
    with pytest.raises(InputError, match="is not open"):
        _ = LocalWeb(tmp_path).network


@pytest.mark.parametrize(
    ("address", "denied"),
    [
        ("https://huggingface.co/datasets/gaia-benchmark/GAIA", True),
        ("https://huggingface.co/spaces/gaia-benchmark/leaderboard", True),
        ("https://hf.co/datasets/me/My_GAIA", True),
        ("https://cdn-lfs.hf.co/x/gaia/metadata.jsonl", True),
        ("https://raw.githubusercontent.com/me/repo/main/gaia_validation.jsonl", True),
        ("https://example.org/%67aia-benchmark/copy", True),
        ("https://arxiv.org/abs/2311.12983", True),
        ("https://own.example/answers", True),
        ("https://x.example/?q=canary-1", True),
        ("https://en.wikipedia.org/wiki/Gaia", False),
        ("https://www.cosmos.esa.int/web/gaia", False),
        ("https://huggingface.co/datasets/squad", False),
        ("https://github.com/me/repo", False),
    ],
)
def test_mirrors(address: str, denied: bool) -> None:
    assert mirror_of("own.example/", canary="canary-1")(address) is denied


async def test_a_mirror_is_neither_read_nor_shown_in_results(tmp_path: Path) -> None:
    class Engine:
        name = "the web"

        async def search(self, query: str, k: int) -> list[Hit]:
            hits = [("a", "https://hf.co/datasets/gaia"), ("b", "https://b.example"), ("c", "https://c.example")]
            return [Hit(title=title, address=address) for title, address in hits][:k]

    denied = mirror_of()
    tools = Toolbox([page_fetcher(deny=denied), search_tool(WithoutMirrors(Engine(), denied))])
    page = await call(tools, tmp_path, "fetch_page", url="https://huggingface.co/datasets/gaia-benchmark/GAIA")
    assert (page.status, page.error) == ("error", "denied")
    found = await call(tools, tmp_path, "search", query="x", k=2)
    assert "hf.co" not in found.content
    assert "b.example" in found.content
    assert "c.example" in found.content
