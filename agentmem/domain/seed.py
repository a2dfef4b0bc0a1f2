"""Randomness enters as one seed and is split by name, so that no draw depends on the order of another."""

from __future__ import annotations

import hashlib


def split_seed(seed: int, *names: str | int) -> int:
    """A 31-bit seed that depends on `seed` and `names` alone (31 bits: the most that every provider accepts).

    Example:
        >>> split_seed(0, "rollout", 3) == split_seed(0, "rollout", 3) != split_seed(0, "rollout", 4)
        True
    """
    digest = hashlib.sha256(repr((seed, *names)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
