"""Puts the figures of benchmarks/results into the README, between its two marks.

python -m benchmarks.readme_table           rewrite
python -m benchmarks.readme_table --check   exit 1 where the README is not up to date
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from agentmem import format as fmt
from benchmarks.results_file import RESULTS

README = Path(__file__).parent.parent / "README.md"
START, END = "<!-- results: python -m benchmarks.readme_table -->", "<!-- end of results -->"


def main() -> None:
    before = README.read_text(encoding="utf-8")
    head, _, rest = before.partition(START)
    _, _, tail = rest.partition(END)
    after = f"{head}{START}\n\n{table()}\n{END}{tail}"
    if "--check" in sys.argv:
        sys.exit(
            "README.md is behind its figures; run: python -m benchmarks.readme_table" if before != after else 0
        )
    README.write_text(after, encoding="utf-8")


def table() -> str:
    """All results as Markdown."""
    parts = {
        "quickstart": quickstart,
        "simulated_learner": simulation,
        "online_routing": routing,
        "memory": memory,
        "poisoning": poisoning,
        "offline_gaia": offline_gaia,
        "statistics_acceptance": statistics,
        "overhead": overhead,
    }
    return "\n\n".join("\n".join(part()) for name, part in parts.items() if (RESULTS / f"{name}.json").exists())


def quickstart() -> list[str]:
    result = _read("quickstart")
    lines = [
        f"**{result['model']} learns from its own successes** ({result['n']}; {_where(result)}; held-out, paired):",
        "",
        "| tasks | seed | n | before | after | difference | kept |",
        "|---|---|---|---|---|---|---|",
    ]
    for run in result["runs"]:
        for row in run["families"]:
            learned = row["experiences"] > 0
            cells = (
                row["family"],
                run["seed"],
                f"{row['n']} x {row['samples']}",
                _score(row["before"]),
                _score(row["after"]) if learned else "not measured again",
                _score(row["difference"], signs=True) if learned else "",
                fmt.count(row["experiences"], "example") if learned else "nothing: refused by the gate",
            )
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def simulation() -> list[str]:
    result = _read("simulated_learner")
    lines = [
        f"**A simulation, no language model** ({result['n_seeds']} seeds; {_where(result)}): calls until the prompt is "
        f"worth 90 % of the best, at most {result['cap_calls']:,}. What the world is, and what it says nothing about: "
        "[benchmarks/simulated_learner](benchmarks/simulated_learner/README.md).",
        "",
        "| system | reached | calls: median [quartiles] | tokens: median | true lessons of 8 | harmful lessons |",
        "|---|---|---|---|---|---|",
    ]
    for name, of in result["systems"].items():
        calls, tokens = of["calls_to_target"], of["tokens_to_target"]
        span = f"{_count(calls['median'])} [{_count(calls['q1'])}, {_count(calls['q3'])}]"
        found = f"{of['true_lessons']['median']:g} | {of['harmful_lessons']['median']:g}"
        lines.append(f"| {name} | {of['reached']} of {of['n']} | {span} | {_count(tokens['median'])} | {found} |")
    return lines


def _count(value: float | None) -> str:
    return "never" if value is None else fmt.count(round(value))


def memory() -> list[str]:
    result = _read("memory")
    lines = [
        f"**What the case bank costs** ({_where(result)}, load {result['load_at_start']:g} to "
        f"{result['load_at_end']:g}; {result['n']}; a read is the whole recall but for the embedder):",
        "",
        "| cases | vectors a cluster | index | read p50 | p99 | of which Chroma's own query | recall@10 | built in | "
        "bulk, cases/s | open and first read |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for bank in result["banks"]:
        for index in ("exact", "ivf", "chroma"):
            if read := bank.get(index):
                alone = read.get("query_of_chroma_alone")
                cells = (
                    fmt.count(bank["cases"]),
                    fmt.count(bank["vectors_a_cluster"]),
                    index,
                    f"{read['p50_ms']} ms",
                    f"{read['p99_ms']} ms",
                    f"{alone['p50_ms']} ms, p99 {alone['p99_ms']} ms" if alone else "",
                    read["recall_at_10"],
                    f"{read['build_s']} s" if "build_s" in read else "",
                    fmt.count(bank["bulk_cases_per_s"]) if index == "exact" else "",
                    f"{bank['open_and_first_read_s']} s" if index == "exact" else "",
                )
                lines.append("| " + " | ".join(map(str, cells)) + " |")
    writes, minilm = result["writes"], result["minilm"]
    ours, bare, disk = (writes[name] for name in ("case_bank", "bare_sqlite", "bare_disk"))
    again = minilm["reencoding_the_bank_per_query_s_extrapolated"]
    largest = max(again, key=int)
    hardest = max(result["banks"], key=lambda bank: (bank["cases"], bank["vectors_a_cluster"]))
    waiting = hardest["while_ivf_is_built"]
    return [
        *lines,
        "",
        f"Each process builds IVF for itself, after 20 reads; until then, and while it does, all cases are compared "
        f"(at the last size p50 {waiting['p50_ms']} ms, p99 {waiting['p99_ms']} ms, {waiting['n']}).",
        "",
        f"One durable write: p50 {ours['p50_ms']} ms, p99 {ours['p99_ms']} ms; a bare SQLite insert in the same "
        f"pattern {bare['p50_ms']} and {bare['p99_ms']} ms; putting four pages on this disk, one process at a time, "
        f"{disk['p50_ms']} and {disk['p99_ms']} ms ({writes['n']}). MiniLM: "
        f"{minilm['import_load_first_encode_s']} s to load, {minilm['encode_one_ms']} ms a text; encoding the bank "
        f"anew for every query, as the reference does, would take {again[largest]} s with {fmt.count(int(largest))} "
        "cases (extrapolated from 256 texts)."
        + _sentences(result["sentences"])
        + _million(result.get("million_vectors")),
    ]


def _sentences(found: dict[str, Any]) -> str:
    return (
        f" The indexes alone, on MiniLM's vectors of {fmt.count(found['cases'])} pieces of Python's documentation and "
        f"source: IVF finds {found['recall_at_10']:.3f} of the nearest 10 ({found['n']}), looks into {found['probes']} "
        f"of {found['cells']} cells, and takes {found['ivf']['p50_ms']} ms where comparing all takes "
        f"{found['exact']['p50_ms']} ms."
    )


def _million(found: dict[str, Any] | None) -> str:
    if not found:
        return ""
    exact, ivf = found["exact"], found["ivf"]
    return (
        f" The indexes alone, on a million vectors in clusters of 5,000: {exact['p50_ms']} ms by comparing all, "
        f"{ivf['p50_ms']} ms by IVF (recall@10 {ivf['recall_at_10']:.3f}, built in {ivf['build_s']} s; {found['n']})."
    )


def routing() -> list[str]:
    result = _read("online_routing")
    lines = [
        f"**A memory that begins empty, on {result['model']}** ({result['n']}; {_where(result)}): messages go to six "
        "teams by rules that the model cannot know; each answer is scored before anything is written, and then a team "
        "is named with probability rho, a wrong one in a fifth of these. Mean score over the seeds, in brackets their "
        "range; differences are paired by message, over the second half, with their standard error over seeds.",
        "",
        "| rho | arm | all messages | last quarter | second half, minus `similarity` |",
        "|---|---|---|---|---|",
    ]
    for rho, arms in result["curves"].items():
        for arm, curve in arms.items():
            against = result["against_similarity"][rho].get(arm)
            last = f"{curve['windows'][-1]:.2f} ({curve['low'][-1]:.2f}-{curve['high'][-1]:.2f})"
            minus = f"{against['mean']:+.3f} ± {against['standard_error']:.3f}" if against else ""
            lines.append(f"| {rho.removeprefix('rho ')} | {arm} | {curve['all']:.2f} | {last} | {minus} |")
    return [*lines, "", _whether_values_beat(result)]


def _whether_values_beat(result: dict[str, Any]) -> str:
    """Said in words, whichever way it came out: better or worse by more than twice the standard error."""
    found = [
        (rho, arm, row["mean"], row["standard_error"])
        for rho, arms in result["against_similarity"].items()
        for arm, row in arms.items()
    ]
    better = [f"{arm} at {rho}" for rho, arm, mean, error in found if mean > 2 * error]
    worse = [f"{arm} at {rho}" for rho, arm, mean, error in found if mean < -2 * error]
    said = (
        f"Learned values beat similarity for {', '.join(better)}."
        if better
        else "Learned values do not beat similarity."
    )
    return said + (f" They are worse for {', '.join(worse)}." if worse else "")


def offline_gaia() -> list[str]:
    result = _read("offline_gaia")
    lines = [
        f"**The generated GAIA-style set** ({result['tasks']} tasks, {_where(result)}; {result['what']}): following "
        f"the tasks' plans scores {result['replayed']:.3f}, {result['at_once']} at once, "
        f"{'the same twice' if result['same_twice'] else 'not the same twice'}; with every result misread, the same "
        f"plans score {result['with_slips']:.3f}.",
    ]
    if (RESULTS / "offline_gaia_learning.json").exists():
        lines += ["", *_offline_gaia_learning()]
    return lines


def _offline_gaia_learning() -> list[str]:
    result = _read("offline_gaia_learning")
    n = result["contrasts"][0]["n"]
    return [
        f"**Learning on it** ({_where(result)}; {result['what']}; {n} tasks held out, {result['samples']} attempts "
        "each): " + ", ".join(f"{arm} {score:.3f}" for arm, score in result["scores"].items()),
        "",
        "| contrast | difference | p (Holm) |",
        "|---|---|---|",
        *(
            f"| {one['contrast']} | {_difference(one)} | {fmt.p_value(one['p_adjusted'])} |"
            for one in result["contrasts"]
        ),
    ]


def _difference(one: dict[str, Any]) -> str:
    return fmt.score(one["difference"], one["low"], one["high"], signs=True)


def statistics() -> list[str]:
    result = _read("statistics_acceptance")
    draws = result["null"][0]["draws"]
    lines = [
        f"**Whether the statistics hold** (simulation; {result['null'][0]['n']} tasks, {draws:,} pairs of equal arms, "
        f"{result['date']}): how often each rejects at 5 %.",
        "",
        "| attempts a task | test | rejects |",
        "|---|---|---|",
        *(f"| {row['k']} | {row['test']} | {row['rate']:.1%} |" for row in result["null"]),
    ]
    kept = [f"{promise}: {'kept' if true else 'NOT KEPT'}" for promise, true in result["kept"].items()]
    return [*lines, "", "; ".join(kept) + "."]


def poisoning() -> list[str]:
    result = _read("poisoning")
    said = {(row["attack"], row["rate"], row["defence"]): row for row in (result["answers"] or {}).get("rows", ())}
    lines = [
        f"**Poisoned cases** ({result['n']}, {_where(result)}): how many messages of the attacked topic recall "
        "one. What is attacked, and what this does not say: [benchmarks/poisoning](benchmarks/poisoning/README.md).",
        "",
        "| attack | poisoned | defences | recalled | in the prompt | trusted | model names the attacker's team | "
        "the right one, none |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in result["retrieval"]:
        if row["defence"] not in ("off", "quarantine alone", "on"):
            continue
        answered = said.get((row["attack"], row["rate"], row["defence"]))
        cells = (
            row["attack"],
            f"{row['rate']:.0%}",
            row["defence"],
            _score(row["attacked"]["slate"]),
            _score(row["attacked"]["prompt"]),
            f"{row['promoted']} of {row['written']}",
            _score(answered["attacked"]["target"]) if answered else "not measured",
            f"{answered['attacked']['right']['value']:.2f}, {answered['attacked']['none']['value']:.2f}"
            if answered
            else "",
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def overhead() -> list[str]:
    result = _read("overhead")
    cpu, makespan, memory, imports = (result[part] for part in ("cpu", "makespan", "memory", "imports"))
    rows = [
        (
            "CPU added to a call, over the bare `AsyncOpenAI` client",
            f"{cpu['added_over_bare_client_ms']} ms",
            "0.4 ms",
            cpu,
        ),
        ("... over that client's cheapest method", f"{cpu['added_over_generic_post_ms']} ms", "0.4 ms", cpu),
        *(
            row
            for about in (makespan, result["makespan_heavier_tail"])
            for row in (
                (
                    "makespan of a learning step, over the critical path",
                    f"{about['median_ratio']} x",
                    "1.15 x",
                    about,
                ),
                ("... over a greedy schedule without overhead", f"{about['median_ratio_to_greedy']} x", "", about),
            )
        ),
        ("memory added by 10,000 rollouts", f"{memory['added_mb']} MB", "300 MB", memory),
        ("`import agentmem`", f"{imports['import_agentmem_s']} s", "0.15 s", imports),
        ("first `Task` and `Agent`", f"{imports['first_task_and_agent_s']} s", "0.2 s", imports),
        (
            "... of which pydantic's first model",
            f"{imports['of_which_a_first_model_of_pydantic_s']} s",
            "",
            imports,
        ),
        ("`agentmem --help`", f"{imports['agentmem_help_s']} s", "0.5 s", imports),
    ]
    return [
        f"**What the library costs** ({_where(result)}; scripted answers, no network):",
        "",
        "| figure | measured | target | n |",
        "|---|---|---|---|",
        *(f"| {name} | {value} | {target} | {about['n']} |" for name, value, target, about in rows),
    ]


def _score(row: dict[str, float], *, signs: bool = False) -> str:
    return fmt.score(row["value"], row["low"], row["high"], signs=signs)


def _where(result: dict[str, Any]) -> str:
    machine = result["machine"]
    speed = f", a fixed Python loop {machine['python_loop_ms']} ms" if "python_loop_ms" in machine else ""
    return f"{machine['processor']}, {machine['cpus']} cores, Python {machine['python']}{speed}, {result['date']}"


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return content


if __name__ == "__main__":
    main()
