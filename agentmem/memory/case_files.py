"""A bank as JSON Lines: what it exports, and what it imports, its own form and Memento's three."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from agentmem.atomic import atomic_write
from agentmem.domain.case import Case
from agentmem.domain.provenance import Provenance
from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.format import count, some
from agentmem.memory.case_change import Change
from agentmem.memory.case_history import Rows
from agentmem.memory.case_store import CaseStore
from agentmem.text_file import BOM, decode, open_existing, refuse_foreign

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORM = "agentmem cases"
SCHEMA = 1
_SUCCESS = {"positive": 1.0, "negative": 0.0, "true": 1.0, "false": 0.0}


class StoredUse(Value):
    """One use as a line of a file."""

    state: str
    case_id: str = ""
    place: int = 0
    value: float
    reward: float
    propensity: float | None = None
    share: float = 1.0
    outdated: bool = False
    """Whether it was of what the case said before a correction."""


T = TypeVar("T", Case, StoredUse)
_FIELDS = ("state", "case_id", "place", "value", "reward", "propensity", "share")


@dataclass(frozen=True)
class Import:
    """What a file holds."""

    cases: tuple[Case, ...]
    uses: tuple[StoredUse, ...] = ()
    whole: bool = False
    """Whether it is our own form: what it says is kept to the letter, ids and all."""


def content(rows: Rows) -> Iterator[str]:
    """The living cases by their ids, and the uses that were not undone, as lines of JSON in a canonical order."""
    for (body,) in rows("SELECT body FROM cases WHERE NOT gone ORDER BY id", ()):
        yield f'{{"case":{body}}}'
    uses = rows(
        "SELECT v.text, u.case_id, u.place, u.value, u.reward, u.propensity, u.share, u.void FROM uses u"
        " JOIN vectors v ON v.id = u.vector WHERE u.void != 1",
        (),
    )
    yield from sorted(
        _line(StoredUse(**dict(zip(_FIELDS, row, strict=True)), outdated=void == 2)) for *row, void in uses
    )


def export(store: CaseStore, path: str | Path, *, allow_gated: bool) -> int:
    """Write a bank to a file; see `CaseBank.export`."""
    gated = [case.id for case in store.cases() if case.gated]
    if gated and not allow_gated:
        raise InputError(
            f"A gated data set had a part in {count(len(gated), 'case')}: {some(gated)}. Its terms may forbid "
            "to pass them on; if they do not, export with --allow-gated (allow_gated=True)."
        )
    lines = list(content(store.rows))
    head = json.dumps({"form": FORM, "schema": SCHEMA})
    atomic_write(path, "\n".join([head, *lines]) + "\n")
    return sum(line.startswith('{"case"') for line in lines)


def read(path: str | Path) -> Import:
    """Read a file of cases: our own form, or Memento's `{question, plan, reward}`, `{case, plan, case_label}` and
    `{query, case, plan, case_label, truth_label}`.

    Raises:
        InputError: there is no such file, or a line of it is no case; the message names the line.
    """
    file = Path(path)
    with open_existing(file, "file of cases") as opened:
        raw = opened.read()
    refuse_foreign(raw, file)
    cases: list[Case] = []
    uses: list[StoredUse] = []
    whole = False
    for number, line in enumerate(decode(raw.removeprefix(BOM), path=file, where="").split("\n"), 1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        row = _row(line, where)
        try:
            match row:
                case {"form": str(form), "schema": int(schema)}:
                    _check_form(form, schema, where)
                    whole = True
                case {"case": dict(case)}:
                    cases.append(_stated(Case.model_validate(case), where))
                case {"use": dict(use)}:
                    uses.append(_stated(StoredUse.model_validate(use), where))
                case _:
                    cases.append(_memento(row, f"{file.name}:{number}", where))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise InputError(f"{where} is no case: {place}: {first['msg']}. Mend or remove the line.") from None
    if not cases and not whole:
        raise InputError(
            f"{file} holds no case; each line must be one, as {{'question': …, 'plan': …, 'reward': …}}."
        )
    return Import(tuple(cases), tuple(uses), whole)


def take_in(
    change: Change, found: Import, cases: Sequence[Case], vectors: NDArray[np.float32], *, model: str
) -> tuple[Case, ...]:
    """Write what an export holds, to the letter; what the bank has already is passed over.

    Args:
        change: the import.
        found: what the file holds.
        cases: its cases, as they may be written.
        vectors: of the cases' states, and then of the uses'.
        model: the embedder.
    """
    names: dict[str, str] = {}
    written: list[Case] = []
    there = Counter(content(change.rows))
    for case, vector in zip(cases, vectors, strict=False):
        if there[f'{{"case":{case.model_dump_json()}}}']:
            continue
        new = change.add(case, change.vector(case.state, vector, model))
        names[case.id] = new.id
        written.append(new)
    for use, vector in zip(found.uses, vectors[len(cases) :], strict=True):
        use = use.model_copy(update={"case_id": names.get(use.case_id, use.case_id)})
        if there[line := _line(use)]:
            there[line] -= 1
            continue
        number = change.vector(use.state, vector, model)
        about = use.model_dump(include={"value", "reward", "propensity", "share"})
        change.use(use.place, use.case_id, number, **about, void=2 if use.outdated else 0)
    return tuple(written)


def _line(use: StoredUse) -> str:
    return f'{{"use":{use.model_dump_json()}}}'


def _row(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is no JSON ({error}). Mend or remove the line.") from None
    if not isinstance(row, dict):
        raise InputError(f"{where} is no case, but {type(row).__name__}; each line must be an object.")
    return row


def _check_form(form: str, schema: int, where: str) -> None:
    if form != FORM:
        raise InputError(f"{where}: the file is a {form!r}, not {FORM!r}; name an export of a case bank.")
    if schema > SCHEMA:
        raise InputError(
            f"{where}: schema {schema} is newer than this agentmem reads ({SCHEMA}); upgrade agentmem."
        )


def _memento(row: dict[str, Any], place: str, where: str) -> Case:
    """A row of Memento's files. What a training row says of its query is another query's outcome, and is left out:
    its label belongs to a whole slate of cases, not to this one.
    """
    state = row.get("question", row.get("case"))
    if not isinstance(state, str) or "plan" not in row:
        raise InputError(
            f"{where} is no case: it has {some(sorted(row)) or 'no fields'}; it needs 'question' and 'plan' (and "
            "'reward'), or 'case' and 'plan' (and 'case_label')."
        )
    plan = row["plan"]
    reward = _reward(row.get("reward", row.get("case_label")), where)
    try:
        return Case.of(
            state,
            plan if isinstance(plan, str) else json.dumps(plan, ensure_ascii=False),
            reward=reward,
            provenance=Provenance(source=place.rpartition(":")[0], place=place),
        )
    except InputError as error:
        raise InputError(f"{where} is no case. {error}") from None


def _stated(row: T, where: str) -> T:
    """A case or a use that has a state, without which it cannot be compared."""
    if not row.state.strip():
        raise InputError(f"{where} is no case: its state is empty. Mend or remove the line.")
    return row


def _reward(label: Any, where: str) -> float | None:
    if label is None or isinstance(label, int | float):
        return None if label is None else float(label)
    known = _SUCCESS.get(str(label).strip().casefold())
    if known is None:
        raise InputError(f"{where}: the label {label!r} is not known; use a number, 'positive' or 'negative'.")
    return known
