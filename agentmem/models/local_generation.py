"""Continuous batching: sequences decoded together on one key/value cache, joining and leaving at any step.

All sequences of a batch end in the same column; shorter ones are padded on the left, because a pad between a
prompt and its first new token ruins the output. Prompts that share a beginning (the system prompt, worked
examples) have it computed once, and the newest beginnings are kept for the next prompts. Nothing here knows of
threads or chats.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import Any, Literal

KeysValues = list[tuple[Any, Any]]
"""For each layer: keys and values, [rows, heads, columns, size]."""

PREFILL_TOKENS = 8192
"""Tokens that one forward pass reads at most, which bounds its memory."""
WORTH_SHARING = 16
"""A shared beginning is computed by itself from so many new tokens on; below, the extra pass does not pay."""


@dataclass(eq=False)
class Sampled:
    """One sequence: what was asked, and what was sampled so far."""

    prompt: tuple[int, ...]
    max_tokens: int
    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    seed: int | None = None
    logprobs: bool = False
    gone: Callable[[], bool] = lambda: False
    """Whether nobody waits for it any more; it then leaves at the next step."""
    tokens: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    """Log-probability of each token under temperature 1, in nats."""
    cached: int = 0
    """Tokens of the prompt that were not computed for it."""
    finish: Literal["stop", "length"] | None = None

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def draw(self) -> float:
        """The next number in [0, 1). It alone decides a token, so a seed means the same in every batch."""
        return self._random.random()


class Decoder:
    """Decodes a changing set of sequences with one model.

    Args:
        model: a causal language model of transformers.
        text: turns token ids into text, without special tokens.
        ends: ids of the tokens that end a turn.
        window: tokens that prompt and completion may have together.
        prefixes: how many beginnings of prompts are kept.
    """

    def __init__(
        self,
        model: Any,
        text: Callable[[Sequence[int]], str],
        *,
        ends: frozenset[int],
        window: int,
        prefixes: int = 4,
    ) -> None:
        self.sequences: list[Sampled] = []
        self._model, self._text, self._ends, self._window = model, text, ends, window
        self._prefixes: OrderedDict[tuple[int, ...], KeysValues] = OrderedDict()
        self._keep = prefixes
        self._batch: _Batch | None = None

    def admit(self, sequences: Sequence[Sampled]) -> None:
        """Read the prompts of `sequences`, each distinct one once, and decode them from now on."""
        import torch

        with torch.inference_mode():
            prompts = sorted({sequence.prompt for sequence in sequences})
            parts = [self._read(chunk) for family in families(prompts) for chunk in _chunks(family)]
            ordered = [prompt for chunk, _, _ in parts for prompt in chunk]
            place = {prompt: row for row, prompt in enumerate(ordered)}
            batch = _join([part for _, part, _ in parts])
            batch.select([place[sequence.prompt] for sequence in sequences])
            known = {
                prompt: count for chunk, _, counts in parts for prompt, count in zip(chunk, counts, strict=True)
            }
            for sequence in sequences:
                # Only the first of equal prompts pays for it.
                sequence.cached = known.get(sequence.prompt, 0)
                known[sequence.prompt] = len(sequence.prompt)
            self._batch = batch if self._batch is None else _join([self._batch, batch])
            self.sequences = [*self.sequences, *sequences]

    def step(self) -> list[Sampled]:
        """Sample one token for each sequence; returns those that ended, which leave the batch."""
        import torch

        self._leave([sequence for sequence in self.sequences if sequence.gone()])
        if self._batch is None:
            return []
        with torch.inference_mode():
            tokens = self._sample(self._batch.logits)
            for sequence, token in zip(self.sequences, tokens, strict=True):
                sequence.tokens.append(token)
                sequence.finish = self._finish(sequence)
            ended = [sequence for sequence in self.sequences if sequence.finish]
            self._leave(ended)
            if self._batch is not None:
                self._batch.feed(self._model, [[sequence.tokens[-1]] for sequence in self.sequences])
        return ended

    def clear(self) -> list[Sampled]:
        """Drop all sequences and all kept beginnings; returns the sequences."""
        dropped, self.sequences, self._batch = self.sequences, [], None
        self._prefixes.clear()
        return dropped

    def _leave(self, leaving: list[Sampled]) -> None:
        if not leaving or self._batch is None:
            return
        out = {id(sequence) for sequence in leaving}
        rows = [row for row, sequence in enumerate(self.sequences) if id(sequence) not in out]
        self.sequences = [self.sequences[row] for row in rows]
        if rows:
            self._batch.select(rows)
        else:
            self._batch = None

    def _finish(self, sequence: Sampled) -> Literal["stop", "length"] | None:
        if sequence.tokens[-1] in self._ends:
            return "stop"
        if sequence.stop:
            # A look at the tail is cheap; only where it holds a stop string, the whole text decides.
            tail = self._text(sequence.tokens[-max(map(len, sequence.stop)) - 4 :])
            if any(stop in tail for stop in sequence.stop):
                text = self._text(sequence.tokens)
                if any(stop in text for stop in sequence.stop):
                    return "stop"
        full = len(sequence.prompt) + len(sequence.tokens) >= self._window
        return "length" if full or len(sequence.tokens) >= sequence.max_tokens else None

    def _sample(self, logits: Any) -> list[int]:
        """One token a row, by inverting the cumulative distribution at the row's own random number."""
        import torch

        logits = logits.float()
        rows = self.sequences
        tokens = logits.argmax(-1)
        if warm := [row for row, sequence in enumerate(rows) if sequence.temperature > 0]:
            heat = torch.tensor([rows[row].temperature for row in warm], device=logits.device)
            probabilities = torch.softmax(logits[warm] / heat[:, None], -1)
            if any(rows[row].top_p < 1 for row in warm):
                probabilities = _nucleus(probabilities, [rows[row].top_p for row in warm])
            # In double precision, so that no random number falls beyond the last token with any probability.
            mass = probabilities.cumsum(-1, dtype=torch.float64)
            draws = torch.tensor([rows[row].draw() for row in warm], dtype=torch.float64, device=logits.device)
            drawn = torch.searchsorted(mass, (draws * mass[:, -1])[:, None], right=True)[:, 0]
            tokens[warm] = drawn.clamp_max(logits.shape[-1] - 1)
        if wanted := [row for row, sequence in enumerate(rows) if sequence.logprobs]:
            scores = torch.log_softmax(logits[wanted], -1).gather(-1, tokens[wanted][:, None])[:, 0]
            for row, score in zip(wanted, scores.tolist(), strict=True):
                rows[row].scores.append(score)
        chosen: list[int] = tokens.tolist()
        return chosen

    def _read(self, prompts: list[tuple[int, ...]]) -> tuple[list[tuple[int, ...]], _Batch, list[int]]:
        """Compute the prompts of one family; returns them, their batch, and how much of each was known."""
        shared = min(_common(prompts[0], prompts[-1]), min(map(len, prompts)) - 1)
        past, known = self._recall(prompts[0][:shared])
        before = known
        if len(prompts) > 1 and shared - known >= WORTH_SHARING:
            prefix = _Batch.of(self._model, past, [prompts[0][known:shared]])
            past, known = prefix.keys_values, shared
            self._remember(prompts[0][:shared], past)
        batch = _Batch.of(self._model, past, [prompt[known:] for prompt in prompts])
        if len(prompts) == 1:
            self._remember(prompts[0], batch.keys_values)
        return prompts, batch, [before, *[known] * (len(prompts) - 1)]

    def _recall(self, tokens: tuple[int, ...]) -> tuple[KeysValues, int]:
        """The longest kept beginning of `tokens`, and its length."""
        best = max(self._prefixes, key=lambda kept: _common(kept, tokens), default=())
        length = _common(best, tokens)
        if not length:
            return [], 0
        self._prefixes.move_to_end(best)
        return [(k[:, :, :length], v[:, :, :length]) for k, v in self._prefixes[best]], length

    def _remember(self, tokens: tuple[int, ...], past: KeysValues) -> None:
        if self._keep:
            self._prefixes[tokens] = past
            self._prefixes.move_to_end(tokens)
        while len(self._prefixes) > self._keep:
            self._prefixes.popitem(last=False)


class _Batch:
    """Rows on one cache: which columns are real, and the logits of the next token of each row."""

    def __init__(self, cache: Any, real: Any, logits: Any) -> None:
        self.cache, self.real, self.logits = cache, real, logits

    @classmethod
    def of(cls, model: Any, past: KeysValues, rows: Sequence[Sequence[int]]) -> _Batch:
        """`rows` read by the model, all after the same `past`."""
        import torch
        from transformers import DynamicCache

        wide = [(k.expand(len(rows), *k.shape[1:]), v.expand(len(rows), *v.shape[1:])) for k, v in past]
        columns = past[0][0].shape[2] if past else 0
        real = torch.ones(len(rows), columns, dtype=torch.long, device=model.device)
        batch = cls(DynamicCache(wide) if wide else DynamicCache(), real, None)
        batch.feed(model, rows)
        return batch

    @property
    def keys_values(self) -> KeysValues:
        return [(layer.keys, layer.values) for layer in self.cache.layers]

    def feed(self, model: Any, rows: Sequence[Sequence[int]]) -> None:
        """Read more tokens, which must be at least one for each row."""
        import torch

        longest = max(map(len, rows))
        ids = torch.tensor([[0] * (longest - len(row)) + list(row) for row in rows], device=model.device)
        new = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=model.device)
        self.real = torch.cat([self.real, new], 1)
        places = (self.real.cumsum(-1) - 1).clamp_min(0)[:, -longest:]
        output = model(
            input_ids=ids,
            attention_mask=self.real,
            position_ids=places,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        self.logits = output.logits[:, -1]

    def select(self, rows: list[int]) -> None:
        """Keep these rows, in this order; columns that are real in none of them go."""
        import torch

        if rows == list(range(len(self.real))):
            return
        index = torch.tensor(rows, device=self.real.device)
        self.logits, real = self.logits[index], self.real[index]
        first = int(real.any(0).long().argmax())
        self.real = real[:, first:]
        for layer in self.cache.layers:
            layer.keys = layer.keys[:, :, first:].index_select(0, index)
            layer.values = layer.values[:, :, first:].index_select(0, index)


def _join(batches: list[_Batch]) -> _Batch:
    """All rows on one cache, padded on the left to the longest."""
    import torch
    from torch.nn.functional import pad
    from transformers import DynamicCache

    if len(batches) == 1:
        return batches[0]
    columns = max(batch.real.shape[1] for batch in batches)
    short = [columns - batch.real.shape[1] for batch in batches]
    layers = zip(*(batch.keys_values for batch in batches), strict=True)
    cache = DynamicCache(
        [
            tuple(
                torch.cat([pad(pair[side], (0, 0, gap, 0)) for pair, gap in zip(layer, short, strict=True)])
                for side in (0, 1)
            )
            for layer in layers
        ]
    )
    real = torch.cat([pad(batch.real, (gap, 0)) for batch, gap in zip(batches, short, strict=True)])
    return _Batch(cache, real, torch.cat([batch.logits for batch in batches]))


def _nucleus(probabilities: Any, top_p: list[float]) -> Any:
    """The most probable tokens that together reach `top_p` (the one that crosses it included); zero elsewhere."""
    import torch

    ordered, index = probabilities.sort(-1, descending=True)
    before = ordered.cumsum(-1) - ordered
    ordered[before >= torch.tensor(top_p, device=ordered.device)[:, None]] = 0
    return torch.zeros_like(probabilities).scatter(-1, index, ordered)


def families(prompts: list[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
    """Sorted prompts, cut where neighbours share less than half of what one of them shares with its other side.

    Two sets of prompts with different worked examples are two families, though all begin with one system prompt.

    Example:
        >>> families([(1, 2, 3, 4, 5), (1, 2, 3, 4, 6), (1, 7, 8, 9), (1, 7, 8, 10)])
        [[(1, 2, 3, 4, 5), (1, 2, 3, 4, 6)], [(1, 7, 8, 9), (1, 7, 8, 10)]]
    """
    shared = [0, *(_common(a, b) for a, b in pairwise(prompts)), 0]
    cut: list[list[tuple[int, ...]]] = []
    for row, prompt in enumerate(prompts):
        left = shared[row]
        if row and 2 * left >= max(shared[row - 1], left, shared[row + 1]):
            cut[-1].append(prompt)
        else:
            cut.append([prompt])
    return cut


def _chunks(prompts: list[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    """Pieces of similar length that one forward pass can read."""
    shared = _common(prompts[0], prompts[-1])
    chunk: list[tuple[int, ...]] = []
    for prompt in prompts:
        longest = max(len(other) for other in [*chunk, prompt])
        if chunk and (len(chunk) + 1) * (longest - min(shared, longest - 1)) > PREFILL_TOKENS:
            yield chunk
            chunk = []
        chunk.append(prompt)
    yield chunk


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
