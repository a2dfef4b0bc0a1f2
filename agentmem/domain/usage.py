"""What a call cost: tokens, requests, dollars and seconds."""

from __future__ import annotations

from agentmem.domain.value import Value


class Usage(Value):
    """The cost of one or many model calls; usages add up."""

    calls: int = 0
    """HTTP attempts (or generations of a local model), failed ones included."""
    prompt_tokens: int = 0
    """Tokens read."""
    completion_tokens: int = 0
    """Tokens written, hidden reasoning included."""
    cached_tokens: int = 0
    """The part of `prompt_tokens` that the provider had cached."""
    dollars: float | None = 0.0
    """US dollars; None where any part has no known price, because a partial sum would read as a total."""
    seconds: float = 0.0
    """Seconds spent waiting for the model, summed over calls."""

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        unknown = self.dollars is None or other.dollars is None
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            dollars=None if unknown else (self.dollars or 0.0) + (other.dollars or 0.0),
            seconds=self.seconds + other.seconds,
        )


def estimate_tokens(text: str) -> int:
    """About how many tokens `text` is, without a tokenizer: one token for four UTF-8 bytes, rounded up.

    Used to keep a prior within its budget, where the same estimate everywhere matters more than precision.
    Budgets never rest on it: they reserve `bound_tokens`.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def bound_tokens(text: str) -> int:
    """At most how many tokens `text` is: one for each UTF-8 byte, which holds for every byte-level tokenizer."""
    return len(text.encode("utf-8", "surrogatepass"))
