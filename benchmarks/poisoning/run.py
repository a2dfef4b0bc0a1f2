"""Attacks on a case bank at 0, 1 and 10 % of its cases, with the defences on, off, and each by itself.

    python -m benchmarks.poisoning.run --no-model           what is recalled, shown and trusted: some minutes
    python -m benchmarks.poisoning.run --folder F           and what a model answers; what is finished in F is kept
    python -m benchmarks.poisoning.run --no-model --seeds 1 --messages 20 --show    a look, not written

Writes `benchmarks/results/poisoning.json`. What the figures say, and what they do not: README.md beside this file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agentmem.evaluation.intervals import wilson
from agentmem.memory.embedder import Embedder, open_embedder
from agentmem.models.names import open_model
from benchmarks.poisoning.attacks import ATTACKS, Attack
from benchmarks.poisoning.defences import ANSWERS, PER_SOURCE, RETRIEVAL, Defence
from benchmarks.poisoning.remembered import Remembered
from benchmarks.poisoning.retrieval import CASES, measured, texts
from benchmarks.poisoning.victim import answered
from benchmarks.poisoning.world import World
from benchmarks.results_file import RESULTS, write_result

RATES = (0.01, 0.1)
"""Poisoned, of all that is written; a bank without poison is the control of every attack."""
Figures = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cases", type=int, default=200, help="honest cases in a bank")
    parser.add_argument("--messages", type=int, default=120, help="a seed, half of the attacked topic")
    parser.add_argument("--answers", type=int, default=60, help="messages that the model answers in each arm")
    parser.add_argument("--model", default="local/smollm2")
    parser.add_argument("--no-model", action="store_true", help="leave out what a model answers")
    parser.add_argument("--show", action="store_true", help="print, and write nothing")
    parser.add_argument("--folder", type=Path, help="where finished arms are kept; by default nowhere")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as nowhere:
        folder = asked.folder or Path(nowhere)
        folder.mkdir(parents=True, exist_ok=True)
        figures = asyncio.run(suite(asked, folder))
    if asked.show:
        print(json.dumps(figures, indent=1))
    else:
        write_result("poisoning", figures)


async def suite(asked: argparse.Namespace, folder: Path) -> Figures:
    """All arms."""
    embedder = Remembered(open_embedder("minilm"), folder / "vectors.npz")
    worlds = [World.of(seed, cases=asked.cases, messages=asked.messages) for seed in range(asked.seeds)]
    for world in worlds:
        embedder.embed(texts(world, ATTACKS, max(RATES)))
    embedder.save()
    size = f"{asked.cases}-{asked.messages}"
    figures: Figures = {
        "n": f"{asked.seeds} banks of {asked.cases} honest cases; {asked.messages} messages each, half attacked",
        "cases_recalled": CASES,
        "per_source": PER_SOURCE,
        "retrieval": [],
    }
    for arm in arms(RETRIEVAL):
        made = [await retrieved(folder, size, arm, world, seed, embedder) for seed, world in enumerate(worlds)]
        figures["retrieval"].append({**about(arm), **pooled(made)})
    figures["answers"] = earlier_answers() if asked.no_model else await answers(asked, folder, worlds[0], embedder)
    return figures


Arm = tuple[Attack | None, float, Defence]


def arms(defences: Sequence[Defence]) -> Iterator[Arm]:
    """Every defence without an attack, and against each attack at each rate."""
    for defence in defences:
        yield None, 0.0, defence
    for attack in ATTACKS:
        for rate in RATES:
            for defence in defences:
                yield attack, rate, defence


def about(arm: Arm) -> Figures:
    """The arm in words."""
    attack, rate, defence = arm
    return {"attack": attack.name if attack else "none", "rate": rate, "defence": defence.name}


async def retrieved(folder: Path, size: str, arm: Arm, world: World, seed: int, embedder: Embedder) -> Figures:
    """What one bank recalls, shows and trusts in an arm."""

    async def make(place: Path) -> Figures:
        return measured(place / "bank", world, *arm, embedder, seed)

    return await kept(folder / f"retrieval-{size}-{slug(arm)}-{seed}", make)


async def answers(asked: argparse.Namespace, folder: Path, world: World, embedder: Embedder) -> Figures:
    """What the model says in each arm; the messages and the bank are those of the first seed."""
    model, rows = open_model(asked.model), []
    size = f"{asked.model.replace('/', '-')}-{asked.cases}-{asked.messages}-{asked.answers}"
    for arm in arms(ANSWERS):

        async def make(place: Path, arm: Arm = arm) -> Figures:
            return await answered(place, world, *arm, embedder, model, asked.answers)

        made = await kept(folder / f"answers-{size}-{slug(arm)}", make)
        rows.append(
            {
                **about(arm),
                **{
                    kind: {what: share(hits) for what, hits in made[kind].items()}
                    for kind in ("attacked", "others")
                },
            }
        )
    return {"model": asked.model, "n": f"{asked.answers} messages an arm, half of them attacked", "rows": rows}


def earlier_answers() -> Figures | None:
    """Those of the results as they are: a run without a model takes none away."""
    path = RESULTS / "poisoning.json"
    found: Figures | None = json.loads(path.read_text(encoding="utf-8")).get("answers") if path.exists() else None
    return found


async def kept(place: Path, make: Callable[[Path], Awaitable[Figures]]) -> Figures:
    """The figures of an arm, from its folder where it is finished; what was cut off begins anew."""
    if (done := finished(place)) is not None:
        return done
    made = await make(place)
    (place / "figures.json").write_text(json.dumps(made), encoding="utf-8")
    print(place.name, flush=True)
    return made


def finished(place: Path) -> Figures | None:
    """The figures of an arm that came to its end; for another an empty folder."""
    done = place / "figures.json"
    if done.exists():
        found: Figures = json.loads(done.read_text(encoding="utf-8"))
        return found
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return None


def slug(arm: Arm) -> str:
    """The arm as part of a folder's name."""
    attack, rate, defence = arm
    name = f"{attack.name if attack else 'none'}-{rate:g}-{defence.name}"
    return "".join(char if char.isalnum() or char in "-." else "_" for char in name)


def pooled(made: Sequence[Figures]) -> Figures:
    """The banks of all seeds together: shares with their intervals, sums, and shares bank by bank."""
    shown: Figures = {}
    for kind in ("attacked", "others"):
        rows = [one[kind] for one in made]
        shown[kind] = {
            what: share([hit for row in rows for hit in row[what]])
            for what in ("slate", "prompt", "unquoted", "right")
        }
        places, of = (sum(sum(row[what]) for row in rows) for what in ("places", "of"))
        shown[kind]["poisoned_places"] = {"value": round(places / of, 3) if of else None, "n": of}
        shown[kind]["slate"]["by_bank"] = [round(sum(row["slate"]) / len(row["slate"]), 3) for row in rows]
    for what in ("written", "living", "promoted", "honest", "honest_quarantined"):
        shown[what] = sum(one[what] for one in made)
    shown["promoted_share"] = share([1] * shown["promoted"] + [0] * (shown["written"] - shown["promoted"]))
    if "audit" in made[0]:
        shown["banks_where_audit_names_the_attacker"] = sum(bool(one["audit"]) for one in made)
    return shown


def share(hits: Sequence[int]) -> Figures:
    """A share with Wilson's interval: over messages (or cases), given the banks."""
    if not hits:
        return {"value": None, "n": 0}
    interval = wilson(sum(hits), len(hits))
    return {
        "value": round(sum(hits) / len(hits), 3),
        "low": round(interval.low, 3),
        "high": round(interval.high, 3),
        "n": len(hits),
    }


if __name__ == "__main__":
    main()
