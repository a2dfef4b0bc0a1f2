"""Embedders: what is sent to an API, what its failures become, and what is kept of what was embedded."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from agentmem.errors import AccessDenied, BadRequest, InputError, MalformedReply, ModelUnavailable, QuotaExhausted
from agentmem.memory import api_embedder
from agentmem.memory.api_embedder import ApiEmbedder
from agentmem.memory.embedder import MiniLM, VectorCache, cached, open_embedder
from agentmem.models.prices import embedding_of
from agentmem.testing.hash_embedder import HashEmbedder

NAME = "openai/text-embedding-3-small"
Answer = tuple[int, Any]


class Server:
    """`POST /v1/embeddings` on a free port of this machine, with an answer that the test gives."""

    def __init__(self, answer: Callable[[dict[str, Any]], Answer]) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler) -> None:  # `self` is the server
                body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
                self.bodies.append(body)
                self.keys.append(handler.headers["authorization"])
                status, said = answer(body)
                content = said if isinstance(said, bytes) else json.dumps(said).encode()
                handler.send_response(status)
                handler.send_header("content-type", "application/json")
                handler.send_header("content-length", str(len(content)))
                handler.end_headers()
                handler.wfile.write(content)

            def log_message(handler, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def hashed(body: dict[str, Any]) -> Answer:
    """What the hash embedder says, not of length 1, and in another order, as the protocol allows."""
    vectors = HashEmbedder(8).embed(body["input"]) * 3
    data = [{"index": place, "embedding": vector.tolist()} for place, vector in enumerate(vectors)]
    return 200, {"data": data[::-1], "usage": {"prompt_tokens": 10, "total_tokens": 10}}


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def start(answer: Callable[[dict[str, Any]], Answer] = hashed) -> Server:
        made.append(Server(answer))
        monkeypatch.setenv("OPENAI_BASE_URL", made[-1].url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        return made[-1]

    monkeypatch.setattr(api_embedder, "_wait", lambda state: 0.0)
    yield start
    for server in made:
        server.stop()


class TestApi:
    def test_vectors_have_length_1_and_the_order_of_the_texts(self, serve: Callable[..., Server]) -> None:
        server = serve()
        embedder = open_embedder(NAME)
        texts = ["alpha", "beta", "alpha", "gamma"]
        assert np.allclose(embedder.embed(texts), HashEmbedder(8).embed(texts), atol=1e-6)
        assert server.bodies[0] == {
            "model": "text-embedding-3-small",
            "input": ["alpha", "beta", "gamma"],
            "encoding_format": "float",
        }
        assert server.keys == ["Bearer sk-test"]

    def test_nothing_is_bought_twice_and_all_is_counted(self, serve: Callable[..., Server]) -> None:
        server = serve()
        embedder = ApiEmbedder(NAME)
        for _ in range(3):
            embedder.embed(["a", "b"])
        embedder.embed(["b", "c"])
        assert [body["input"] for body in server.bodies] == [["a", "b"], ["c"]]
        assert (embedder.usage.calls, embedder.usage.prompt_tokens) == (2, 20)
        assert embedder.usage.dollars == pytest.approx(20 * 2e-8)

    def test_in_batches(self, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
        server = serve()
        monkeypatch.setattr(api_embedder, "BATCH_TEXTS", 4)
        monkeypatch.setattr(api_embedder, "BATCH_BYTES", 30)
        texts = [f"text {i}" for i in range(9)] + ["x" * 29, "y"]
        assert np.allclose(ApiEmbedder(NAME).embed(texts), HashEmbedder(8).embed(texts), atol=1e-6)
        assert [len(body["input"]) for body in server.bodies] == [4, 4, 1, 2]

    def test_a_text_beyond_the_window_is_cut(self, serve: Callable[..., Server]) -> None:
        def picky(body: dict[str, Any]) -> Answer:
            most = max(len(text.encode()) for text in body["input"])
            return hashed(body) if most <= 8191 else (400, {"error": {"message": "maximum context length"}})

        server = serve(picky)
        embedder = ApiEmbedder(NAME)
        assert embedder.window == 8191
        assert embedder.embed(["é" * 20_000, "short"]).shape == (2, 8)
        sizes = [[len(text.encode()) for text in body["input"]] for body in server.bodies]
        assert sizes == [[24572, 5], [8190, 5]]  # and never half a character

    def test_a_refusal_that_cutting_does_not_mend(self, serve: Callable[..., Server]) -> None:
        server = serve(lambda body: (400, {"error": {"message": "no"}}))
        with pytest.raises(BadRequest, match=r"refuses this request to openai/text-embedding-3-small \(400\)"):
            ApiEmbedder(NAME).embed(["short"])
        assert len(server.bodies) == 1

    def test_what_may_pass_is_tried_again(self, serve: Callable[..., Server]) -> None:
        answers: Iterator[Answer] = iter([(503, {}), (200, b"{"), (200, {"data": []})])
        server = serve(lambda body: next(answers, None) or hashed(body))
        ApiEmbedder(NAME).embed(["a"])
        assert len(server.bodies) == 4

    def test_what_does_not_pass_ends(self, serve: Callable[..., Server]) -> None:
        server = serve(lambda body: (503, {"error": {"message": "busy"}}))
        with pytest.raises(ModelUnavailable, match="failed \\(503\\)"):
            ApiEmbedder(NAME).embed(["a"])
        assert len(server.bodies) == api_embedder.ATTEMPTS

    @pytest.mark.parametrize(
        ("answer", "error", "said"),
        [
            ((401, {"error": {"message": "bad key"}}), AccessDenied, "set OPENAI_API_KEY to a valid key"),
            ((404, {"error": {"message": "no model"}}), AccessDenied, "There is no openai/text-embedding-3-small"),
            ((429, {"error": {"code": "insufficient_quota"}}), QuotaExhausted, "No quota is left"),
            ((200, {"data": [{"embedding": "AAAA"}]}), MalformedReply, "no valid embeddings of 1 texts"),
            ((200, {"data": [{"embedding": []}]}), MalformedReply, "no valid embeddings of 1 texts"),
        ],
    )
    def test_failures_have_the_house_s_words(
        self, serve: Callable[..., Server], answer: Answer, error: type[Exception], said: str
    ) -> None:
        serve(lambda body: answer)
        with pytest.raises(error, match=said):
            ApiEmbedder(NAME).embed(["a"])

    def test_nobody_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        monkeypatch.setattr(api_embedder, "ATTEMPTS", 1)
        with pytest.raises(ModelUnavailable, match=r"The connection to http://127\.0\.0\.1:9/v1"):
            ApiEmbedder(NAME).embed(["a"])

    def test_no_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        with pytest.raises(InputError, match="set OPENAI_API_KEY"):
            open_embedder(NAME)

    @pytest.mark.parametrize("name", ["", "word2vec", "openai/", "openia/text-embedding-3-small"])
    def test_no_such_embedder(self, name: str) -> None:
        with pytest.raises(InputError, match=r"No embedder named .* Known: minilm, openai/"):
            open_embedder(name)

    def test_threads_share_it(self, serve: Callable[..., Server]) -> None:
        serve()
        embedder = ApiEmbedder(NAME)
        texts = [f"text {i}" for i in range(8)]
        right = HashEmbedder(8).embed(texts)
        found: list[bool] = []
        threads = [
            threading.Thread(target=lambda: found.append(np.allclose(embedder.embed(texts), right, atol=1e-6)))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [True] * 8
        assert embedder.usage.prompt_tokens == 10 * embedder.usage.calls

    def test_litellm(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from agentmem.models import embeddings

        class Response:
            def model_dump(self) -> Any:
                return {"data": [{"embedding": [3.0, 4.0]}], "usage": {"prompt_tokens": 7}}

        class Litellm:
            def embedding(self, **arguments: Any) -> Response:
                assert arguments["model"] == "cohere/embed-english-v3.0"
                assert arguments["num_retries"] == arguments["max_retries"] == 0
                return Response()

        monkeypatch.setattr(embeddings, "_litellm", Litellm)
        embedder = ApiEmbedder("cohere/embed-english-v3.0")
        assert np.allclose(embedder.embed(["a"]), [[0.6, 0.8]])
        assert (embedder.usage.prompt_tokens, embedder.window) == (7, 512)


def test_prices_and_windows_come_from_the_table() -> None:
    known = embedding_of(NAME)
    assert known is not None
    assert (known.price, known.window) == (2e-8, 8191)
    assert embedding_of("openai/of-my-own") is None


class TestCache:
    def test_it_has_a_bound_and_forgets_what_was_not_asked_for(self) -> None:
        cache = VectorCache(most_bytes=10_000)
        for i in range(500):
            cache.get(["kept"])
            cache.put({str(i): np.zeros(64, np.float32), "kept": np.ones(64, np.float32)})
            assert cache.bytes <= 10_000
        assert list(cache.get(["kept", "0", "499"])) == ["kept", "499"]

    def test_a_batch_larger_than_it_comes_out_whole(self) -> None:
        cache = VectorCache(most_bytes=1_000)
        texts = [f"text {i}" for i in range(100)]
        embed = HashEmbedder(8).embed
        assert np.array_equal(cached(texts, cache, embed), embed(texts))

    def test_it_holds_no_larger_array_alive(self) -> None:
        cache = VectorCache()
        cache.put({"a": np.zeros((1000, 8), np.float32)[3]})
        assert cache.get(["a"])["a"].base is None


def test_minilm_is_safe_for_threads_and_encodes_each_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, most, encoded = 0, 0, []

    class Model:
        def encode(self, texts: list[str], **_: Any) -> Any:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            threading.Event().wait(0.01)
            encoded.extend(texts)
            at_once -= 1
            return HashEmbedder(384).embed(texts)

    minilm = MiniLM()
    monkeypatch.setattr(minilm, "_loaded", Model)
    threads = [threading.Thread(target=minilm.embed, args=([f"t{i}", "t0"],)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    before = len(encoded)
    assert minilm.embed([f"t{i}" for i in range(6)]).shape == (6, 384)
    assert len(encoded) == before
    assert minilm.embed([]).shape == (0, 384)
