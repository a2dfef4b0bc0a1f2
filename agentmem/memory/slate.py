"""A slate of cases: a varied few of the pool (MMR), drawn one after the other or taken from the top.

Items are the candidates' rows and, last, "no case", which ends the slate. All functions take logits over these items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agentmem.memory.case_policy import Candidates, Floats

BREADTH = 3
"""How many candidates a place of the slate are left to choose from."""
RELEVANCE = 0.7
"""Weight of relevance against novelty; 1 looks at relevance alone."""


def varied(
    candidates: Candidates, logits: Floats, k: int, *, temperature: float, relevance: float = RELEVANCE
) -> NDArray[np.bool_]:
    """Which items stay in play: by maximal marginal relevance, `BREADTH` candidates a place, and "no case".

    Relevance is the logit in units of the cosine (mu0's own temperature), so that of two copies the more valuable
    one stays: cases of the same state may hold different answers.

    Args:
        candidates: the pool.
        logits: of its items.
        k: places of the slate.
        temperature: what turns logits into cosines.
        relevance: between 0 and 1.
    """
    import numpy as np

    n, most = len(candidates), BREADTH * k
    possible = logits[:n] > -np.inf
    kept = np.append(possible, True)
    if int(possible.sum()) <= most or (relevance == 1 and most >= n):
        return kept
    kept[:n] = False
    wanted = np.where(possible, relevance * temperature * logits[:n], -np.inf)
    nearest = np.zeros(n)
    for _ in range(most):
        row = int(np.argmax(wanted - (1 - relevance) * nearest))
        kept[row] = True
        wanted[row] = -np.inf
        # Row by row on one core: a product of matrices waits for the slowest core, and few rows are asked for.
        nearest = np.maximum(nearest, np.vecdot(candidates.vectors, candidates.vectors[row]))
    return kept


def drawn(logits: Floats, end: float, k: int, rng: np.random.Generator) -> tuple[int, ...]:
    """An ordered sample without replacement by Gumbel-top-k, up to `k` rows or to the draw of "no case".

    It has the law of drawing one item after the other in proportion to what is left of the shares.

    Args:
        logits: of the items at the first place.
        end: logit of "no case" from the second place on, where it says that the slate is enough: to have recalled
            nothing at all may be worth little, and to recall nothing more is worth what the slate is.
        k: places of the slate.
        rng: draws once for the first place, and once for the order of all others.
    """
    import numpy as np

    first = int(np.argmax(logits + rng.gumbel(size=len(logits))))
    if first == len(logits) - 1 or logits[first] == -np.inf:
        return ()
    left = _further(logits, first, end)
    keys = left + rng.gumbel(size=len(left))
    return (first, *until_no_case(np.argsort(-keys, kind="stable"), keys, k - 1))


def ranked(scores: Floats, k: int, *, end: float | None = None) -> tuple[int, ...]:
    """The top of the scores, up to `k` rows or to "no case"; of equals the more similar, and any case before none.

    Args:
        scores: of the items.
        k: places of the slate.
        end: score of "no case" from the second place on; by default as at the first.
    """
    import numpy as np

    rows = until_no_case(np.argsort(-scores, kind="stable"), scores, k)
    if rows and end is not None:
        left = _further(scores, rows[0], end)
        rows = (rows[0], *until_no_case(np.argsort(-left, kind="stable"), left, k - 1))
    return rows


def until_no_case(order: NDArray[np.intp], scores: Floats, k: int) -> tuple[int, ...]:
    """The items before "no case" (the last one), at most `k`; none that has no share at all."""
    rows: list[int] = []
    last = len(scores) - 1
    for item in order[: k + 1].tolist():
        if item == last or len(rows) == k or scores[item] == -float("inf"):
            break
        rows.append(item)
    return tuple(rows)


def propensities(logits: Floats, end: float, rows: Sequence[int], k: int) -> tuple[tuple[float, ...], float]:
    """Of an ordered slate: the probability of each place given the places before, and of its end.

    Their product, with the end, is the probability of the slate. A full slate ends by itself, with probability 1.

    Example:
        >>> import numpy as np
        >>> propensities(np.log([0.5, 0.25, 0.25]), np.log(0.25), [0, 1], k=3)
        ((0.5, 0.5), 1.0)
    """
    left, places = logits, []
    for row in rows:
        places.append(_share(left, row))
        left = _further(left, row, end)
    return tuple(places), 1.0 if len(rows) == k else _share(left, len(logits) - 1)


def _further(logits: Floats, taken: int, end: float) -> Floats:
    import numpy as np

    left = logits.copy()
    left[taken], left[-1] = -np.inf, end
    return left


def _share(logits: Floats, item: int) -> float:
    import numpy as np

    weights = np.exp(logits - logits.max())
    return float(weights[item] / weights.sum())
