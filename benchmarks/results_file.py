"""Where a benchmark's figures go: one JSON file each, with the machine and the date."""

from __future__ import annotations

import datetime
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def write_result(name: str, figures: dict[str, Any]) -> None:
    """Write `results/NAME.json` and print it."""
    result = {"benchmark": name, "date": today(), "machine": machine(), **figures}
    text = json.dumps(result, indent=1)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(text)


def today() -> str:
    """The date, in UTC."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def machine() -> dict[str, Any]:
    """What the figures were measured on, and how fast it was then: shared machines differ by a factor of three."""
    return {
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "python_loop_ms": _loop_ms(),
    }


def _loop_ms() -> float:
    """Processor time of a fixed loop (the least of five): figures in seconds compare only where this is the same."""
    times = []
    for _ in range(5):
        started = time.process_time()
        sum(i * i % 7 for i in range(500_000))
        times.append(time.process_time() - started)
    return round(min(times) * 1000, 1)


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in _lines(cpuinfo) if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
