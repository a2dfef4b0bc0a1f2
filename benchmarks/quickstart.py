"""The quickstart over several seeds: another split of every family, another draw of everything.

    python -m benchmarks.quickstart            about four minutes a seed on two cores

Writes `benchmarks/results/quickstart.json`: for each family and seed, the held-out score before and after with its n
and interval, what was kept, and what the gate refused.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.results_file import write_result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--model", default="local/smollm2")
    asked = parser.parse_args()
    runs = [once(asked.model, seed) for seed in range(asked.seeds)]
    write_result("quickstart", {"model": asked.model, "n": f"{asked.seeds} seeds", "runs": runs})


def once(model: str, seed: int) -> dict[str, Any]:
    """One quickstart, in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "agentmem", "quickstart", "--json", "--model", model, "--seed", str(seed)]
        started = time.perf_counter()
        done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
        result: dict[str, Any] = json.loads(done.stdout)
        return {"seed": seed, "seconds": round(time.perf_counter() - started), **result}


if __name__ == "__main__":
    main()
