"""A bank seen as a whole: in numbers, and what may be wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from agentmem.domain.case import Case
from agentmem.domain.redaction import redact
from agentmem.domain.value import Value
from agentmem.format import count, some
from agentmem.memory.case_history import Rows
from agentmem.memory.case_store import CaseStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ALIKE = 0.97
"""Cosine of the states from which two cases that did the same are called duplicates."""
SHARE = 0.5
"""Of the cases, or of the recalls, that one source or one case may have before it is named."""
FEW = 20
"""Below so many cases, or recalls, a share says nothing."""
_BLOCK = 2048
_MOST = 200
"""Pairs of duplicates that are named."""


class Finding(Value):
    """One thing that may be wrong."""

    kind: Literal["duplicates", "secrets", "source", "retrieval", "quarantined", "gated"]
    text: str
    """In a sentence, with what to do."""
    ids: tuple[str, ...] = ()


class AuditReport(Value):
    """What an audit found; nothing in it was changed."""

    cases: int
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        found = [f"{finding.kind}: {finding.text}" for finding in self.findings]
        return "\n".join([f"{count(self.cases, 'case')} audited.", *(found or ["Nothing found."])])


class BankStats(Value):
    """A bank in numbers."""

    cases: int
    removed: int
    quarantined: int
    gated: int
    succeeded: int
    failed: int
    unknown: int
    """Cases whose reward is not known."""
    sources: dict[str, int]
    """Living cases by source."""
    attempts: int
    """Attempts that were credited."""
    mean_reward: float | None
    mean_reward_without_case: float | None
    uses: int
    changes: int
    embedder: str | None
    dimensions: int | None
    bytes: int
    """On disk."""


def stats(store: CaseStore) -> BankStats:
    """The bank in numbers."""
    living = store.rows(
        "SELECT COUNT(*), COALESCE(SUM(trust != 'trusted'), 0), COALESCE(SUM(json_extract(body, '$.gated')), 0),"
        " COALESCE(SUM(json_extract(body, '$.reward') >= 0.5), 0),"
        " COALESCE(SUM(json_extract(body, '$.reward') < 0.5), 0) FROM cases WHERE NOT gone"
    )[0]
    embedder = store.embedder or (None, None)
    return BankStats(
        cases=living[0],
        removed=store.rows("SELECT COUNT(*) FROM cases WHERE gone")[0][0],
        quarantined=living[1],
        gated=living[2],
        succeeded=living[3],
        failed=living[4],
        unknown=living[0] - living[3] - living[4],
        sources=dict(store.rows("SELECT source, living FROM sources WHERE living ORDER BY living DESC, source")),
        attempts=store.rows("SELECT n FROM totals WHERE name = 'attempts'")[0][0],
        mean_reward=store.mean_reward(),
        mean_reward_without_case=store.mean_reward(without_case=True),
        uses=store.rows("SELECT COUNT(*) FROM uses WHERE case_id != '' AND void = 0")[0][0],
        changes=store.seq,
        embedder=embedder[0],
        dimensions=embedder[1],
        bytes=sum(p.stat().st_size for p in store.path.parent.glob(f"{store.path.name}*")),
    )


def audit(rows: Rows) -> AuditReport:
    """What is wrong with a bank, or may be."""
    cases = [
        Case.model_validate_json(body)
        for (body,) in rows("SELECT body FROM cases WHERE NOT gone ORDER BY born", ())
    ]
    findings = [
        *_duplicates(rows),
        *_secrets(cases),
        *_sources(cases),
        *_retrieval(rows),
        *_marked(cases),
    ]
    return AuditReport(cases=len(cases), findings=tuple(findings))


def _duplicates(rows: Rows) -> list[Finding]:
    import numpy as np

    found: list[Finding] = []
    groups = rows("SELECT action FROM cases WHERE NOT gone GROUP BY action HAVING COUNT(*) > 1", ())
    for (action,) in groups:
        members = rows(
            "SELECT c.id, json_extract(c.body, '$.action'), v.vector FROM cases c JOIN vectors v ON v.id = c.vector"
            " WHERE NOT c.gone AND c.action = ? ORDER BY c.born, c.rowid",
            (action,),
        )
        matrix = np.frombuffer(b"".join(vector for *_, vector in members), np.float32).reshape(len(members), -1)
        for one, other, cosine in _pairs(matrix):
            if members[one][1] == members[other][1]:
                ids = (members[one][0], members[other][0])
                text = (
                    f"{ids[0]} and {ids[1]} did the same in nearly the same state (cosine {cosine:.3f}); "
                    "merge them, or remove one."
                )
                found.append(Finding(kind="duplicates", text=text, ids=ids))
                if len(found) >= _MOST:
                    return found
    return found


def _pairs(matrix: NDArray[np.float32]) -> list[tuple[int, int, float]]:
    """Rows that are alike, block by block: all cosines at once would not fit."""
    import numpy as np

    found = []
    for top in range(0, len(matrix), _BLOCK):
        for left in range(top, len(matrix), _BLOCK):
            cosines = matrix[top : top + _BLOCK] @ matrix[left : left + _BLOCK].T
            for one, other in np.argwhere(cosines >= ALIKE):
                if top + one < left + other:
                    found.append((int(top + one), int(left + other), float(cosines[one, other])))
            if len(found) >= _MOST:
                return found
    return found


def _secrets(cases: list[Case]) -> list[Finding]:
    found = []
    for case in cases:
        kinds = tuple(
            dict.fromkeys(kind for text in (case.state, case.action, *case.trace) for kind in redact(text)[1])
        )
        if kinds:
            text = f"{case.id} holds what looks like a secret ({', '.join(kinds)}); correct it, and change the secret."
            found.append(Finding(kind="secrets", text=text, ids=(case.id,)))
    return found


def _sources(cases: list[Case]) -> list[Finding]:
    counts: dict[str, int] = {}
    for case in cases:
        counts[case.provenance.source] = counts.get(case.provenance.source, 0) + 1
    if len(cases) < FEW or len(counts) < 2:
        return []
    source, most = max(counts.items(), key=lambda item: item[1])
    if most <= SHARE * len(cases):
        return []
    share = f"{most / len(cases):.0%} of the cases come from {source!r}" if source else "Most cases name no source"
    text = f"{share}; cap what one source may bring with WriteRules(per_source=…)."
    return [Finding(kind="source", text=text)]


def _retrieval(rows: Rows) -> list[Finding]:
    slates = rows("SELECT COUNT(*) FROM uses WHERE place = 0 AND case_id != '' AND void = 0", ())[0][0]
    if slates < FEW:
        return []
    top = rows(
        "SELECT case_id, COUNT(*), AVG(reward) FROM uses WHERE case_id != '' AND void = 0"
        " GROUP BY case_id ORDER BY 2 DESC, 1 LIMIT 5",
        (),
    )
    found = []
    for id, n, mean in top:
        if n > SHARE * slates:
            share = f"{id} was in {n / slates:.0%} of {slates} recalls"
            text = f"{share}, which were worth {mean:.2f} in the mean; see whether it deserves that."
            found.append(Finding(kind="retrieval", text=text, ids=(id,)))
    return found


def _marked(cases: list[Case]) -> list[Finding]:
    quarantined = tuple(case.id for case in cases if case.trust == "quarantined")
    gated = tuple(case.id for case in cases if case.gated)
    found = []
    if quarantined:
        text = f"{count(len(quarantined), 'case')} in quarantine: {some(quarantined)}; promote or remove them."
        found.append(Finding(kind="quarantined", text=text, ids=quarantined))
    if gated:
        text = f"A gated data set had a part in {count(len(gated), 'case')}: {some(gated)}; they may not be passed on."
        found.append(Finding(kind="gated", text=text, ids=gated))
    return found
