"""Writes the offline set: `python -m benchmarks.offline_gaia.generate OUT`; the same seed, the same bytes."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from agentmem.domain.seed import split_seed
from benchmarks.offline_gaia import level1, level2, level3
from benchmarks.offline_gaia.template import Made, Template

TEMPLATES = (*level1.TEMPLATES, *level2.TEMPLATES, *level3.TEMPLATES)
DRAWS, TRAINING = 6, 3
"""Tasks of each template, and how many of them are for training; all of a held-out template's are not."""
CANARY = "offline-gaia canary 5f0c6b1e-generated-set"


@dataclass(frozen=True)
class Written:
    """One task of the set with its template."""

    id: str
    template: Template
    split: str
    made: Made


def tasks(seed: int = 0) -> Iterator[Written]:
    """All tasks, in order."""
    for template in TEMPLATES:
        for n in range(DRAWS):
            rng = Random(split_seed(seed, "offline-gaia", template.name, n))
            slug = f"{rng.randint(16**3, 16**4 - 1):x}{n}"
            path = f"{template.name}-{n}"
            made = template.make(rng, f"{path}.{ENDINGS.get(template.name, '')}", slug)
            split = "transfer" if template.held_out else "train" if n < TRAINING else "test"
            yield Written(path, template, split, made)


def write(out: Path, seed: int = 0) -> str:
    """Write the set into a folder that is new or empty; returns the digest of all its files.

    Raises:
        FileExistsError: the folder holds something.
    """
    if out.exists() and any(out.iterdir()):
        raise FileExistsError(f"{out} holds something already; name a new folder.")
    contents = dict(_contents(seed))
    for name, content in contents.items():
        place = out / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return digest(contents)


def digest(contents: dict[str, bytes]) -> str:
    """One SHA-256 over names and contents."""
    total = hashlib.sha256()
    for name in sorted(contents):
        total.update(f"{name}\0{hashlib.sha256(contents[name]).hexdigest()}\n".encode())
    return total.hexdigest()


def _contents(seed: int) -> Iterator[tuple[str, bytes]]:
    lines, taken = [], set[str]()
    for task in tasks(seed):
        file = _bytes(task.made.file[1]) if task.made.file else None
        if file is not None:
            yield f"files/{_file_name(task)}", file
        for address, content in task.made.pages.items():
            if address in taken:
                raise ValueError(f"two tasks have a page {address}; change the seed")
            taken.add(address)
            yield f"web/{address}", _bytes(content)
        lines.append(json.dumps(_row(task, file), ensure_ascii=False) + "\n")
    yield "tasks.jsonl", "".join(lines).encode()
    yield "dataset.toml", _card(seed).encode()


def _row(task: Written, file: bytes | None) -> dict[str, Any]:
    """A task in GAIA's columns; the plan stands where GAIA has the annotator's."""
    made = task.made
    tools = sorted({call.tool for call in made.calls})
    steps = [f"{n}. {call.tool}, find {', '.join(call.find) or 'nothing'}" for n, call in enumerate(made.calls, 1)]
    plan = [{"tool": call.tool, "arguments": dict(call.arguments), "find": dict(call.find)} for call in made.calls]
    return {
        "task_id": task.id,
        "Question": made.question,
        "Level": str(task.template.level),
        "Final answer": made.answer,
        "file_name": _file_name(task) if file is not None else "",
        "Annotator Metadata": {
            "Steps": "\n".join(steps),
            "Number of steps": str(len(steps)),
            "Tools": "\n".join(f"{n}. {tool}" for n, tool in enumerate(tools, 1)),
            "Number of tools": str(len(tools)),
            "Skills": list(task.template.skills),
            "Plan": plan,
            "Answer": made.final,
        },
        "cluster": task.template.name,
        "split": task.split,
        **({"sha256": hashlib.sha256(file).hexdigest()} if file is not None else {}),
    }


def _card(seed: int) -> str:
    fields = {
        "name": "offline-gaia",
        "version": f"1 (seed {seed})",
        "license": "Apache-2.0",
        "gated": False,
        "canary": CANARY,
        "scorer": "gaia",
        "web": "web",
    }
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items())


def _file_name(task: Written) -> str:
    return f"{task.id}.{task.made.file[0]}" if task.made.file else ""


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


ENDINGS = {
    "ledger": "csv", "letter": "docx", "minutes": "pdf", "badge": "png", "dialled": "wav", "program": "py",
    "stock": "xlsx", "talk": "pptx", "parcels": "zip", "storms": "jsonl", "catalogue": "xml", "gallery": "html",
    "device": "json", "customs": "zip", "hotline": "wav", "audit": "xlsx",
}  # fmt: skip
"""The attachment of each template; those that are not here have none."""


def main() -> None:
    """Write the set where the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(f"{given.out}: {write(given.out, given.seed)}")


if __name__ == "__main__":
    main()
