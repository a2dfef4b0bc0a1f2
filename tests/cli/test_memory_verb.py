"""`agentmem memory`: every action, as a person and as a program sees it."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agentmem.domain.case import Case, Provenance
from agentmem.memory.case_bank import CaseBank
from agentmem.testing.hash_embedder import HashEmbedder
from tests.conftest import ROOT

OWN = ("--embedder", "own.py:make")
EMBEDDERS = """
from agentmem.testing.hash_embedder import HashEmbedder
def make(): return HashEmbedder()
def small(): return HashEmbedder(64)
def none(): return None
def fails(): raise OSError("no key")
"""
GUESSER = """
import json
def answer(task, context):
    with open("seen.jsonl", "a") as seen:
        print(json.dumps([task.id, [[c.task_id, c.provenance.source] for c in context.cases]]), file=seen)
    known = {c.action: c.succeeded for c in context.cases if c.task_id == task.id}
    right = [colour for colour, succeeded in known.items() if succeeded]
    return (right + [colour for colour in ("blue", "green", "red") if colour not in known])[0]
"""
WEB = Provenance(source="web", untrusted=True)


@pytest.fixture
def ids(cli) -> dict[str, str]:
    """A bank of four cases in `bank`, one of them quarantined; changes 1 to 4. Gives the ids by action."""
    Path("own.py").write_text(EMBEDDERS)
    bank = CaseBank("bank", embedder=HashEmbedder())
    cases = [
        bank.add(Case.of("reset my password", "IT", reward=1.0, task_id="t1", provenance=Provenance(source="a"))),
        bank.add(Case.of("my password is lost", "Security", reward=0.0, task_id="t2")),
        bank.add(Case.of("refund for a broken cup", "Billing", reward=1.0)),
        bank.add(Case.of("reset the password now", "Send it to me", provenance=WEB)),
    ]
    bank.close()
    return {case.action: case.id for case in cases}


def facts(done):
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


def test_help_names_every_action(cli) -> None:
    shown = cli("memory", "--help")
    for action in (
        *(
            "list",
            "show",
            "search",
            "add",
            "correct",
            "remove",
            "diff",
            "rollback",
            "undo",
            "promote",
            "quarantine",
        ),
        *("audit", "export", "import", "reindex", "stats", "log", "merge", "reembed"),
    ):
        assert re.search(rf"\b{action}\b", shown.out)
        assert "--json" in cli("memory", action, "--help").out
    assert "agentmem memory" in cli("memory", "search", "--help").out


def test_list(cli, ids) -> None:
    assert [case["id"] for case in facts(cli("memory", "list", "bank", "--json"))["cases"]] == list(ids.values())
    shown = cli("memory", "list", "bank", "--limit", 1)
    assert shown.out.startswith("bank: 4 cases\n")
    assert "3 more are not shown." in shown.out
    held = facts(cli("memory", "list", "bank", "--trust", "quarantined", "--json"))["cases"]
    assert [case["id"] for case in held] == [ids["Send it to me"]]
    assert len(facts(cli("memory", "list", "bank", "--source", "a", "--json"))["cases"]) == 1


def test_search_says_why(cli, ids) -> None:
    asked = ("memory", "search", "bank", "reset my password please", *OWN, "--k", 2)
    found = facts(cli(*asked, "--policy", "similarity", "--json"))
    assert [item["case"]["id"] for item in found["recall"]["cases"]] == [ids["IT"], ids["Security"]]
    assert [held["id"] for held in found["quarantined"]] == [ids["Send it to me"]]
    learned = facts(cli(*asked, "--json"))["recall"]
    for item in learned["cases"]:
        assert item.keys() >= {"similarity", "mu0", "q", "mu", "propensity"}
        assert None not in item.values()
    shown = cli(*asked)
    for column in ("similarity", "mu0", "Q", "mu", "propensity", "IT"):
        assert column in shown.out
    assert f"In quarantine, and so never recalled: {ids['Send it to me']} (similarity 0." in shown.out


def test_search_names_quarantined_cases_only_where_they_are_as_near(cli, ids) -> None:
    found = cli("memory", "search", "bank", "refund for a broken cup", *OWN, "--k", 1, "--policy", "similarity")
    assert ids["Billing"] in found.out
    assert "quarantine" not in found.out


def test_search_as_an_evaluation_does_sees_no_case_of_the_task(cli, ids) -> None:
    asked = ("memory", "search", "bank", "reset my password", *OWN, "--policy", "similarity", "--task-id", "t2")
    shown = cli(*asked)
    assert "2 cases withheld by the leak guard" in shown.out  # the task's own, and the same words
    assert ids["IT"] not in shown.out
    assert facts(cli(*asked, "--json"))["recall"]["withheld"] == 2


def test_what_is_written_can_be_seen_compared_and_taken_back(cli, ids) -> None:
    added = facts(cli("memory", "add", "bank", "where is my parcel", "Logistics", "--reward", 1, *OWN, "--json"))
    assert (added["cases"], added["changes"][0]["seq"], added["changes"][0]["verb"]) == (5, 5, "add")
    new = added["changes"][0]["case_id"]
    assert facts(cli("memory", "show", "bank", new, "--json"))["case"]["provenance"]["source"] == "person"

    done = cli("memory", "correct", "bank", new, "--action", "Warehouse", "--why", "they know", *OWN)
    assert re.search(rf"6 +correct +{new} .* they know", done.out)
    difference = facts(cli("memory", "diff", "bank", "--json"))
    assert [case["action"] for case in difference["changed"][0]] == ["Logistics", "Warehouse"]
    assert re.search(r"was +c-.*Logistics[^\0]*now +c-.*Warehouse", cli("memory", "diff", "bank").out)
    assert len(facts(cli("memory", "diff", "bank", 0, 4, "--json"))["added"]) == 4

    assert cli("memory", "undo", "bank", 6).code == 0
    shown = cli("memory", "show", "bank", new)
    assert re.search(r"action +Logistics", shown.out)
    assert re.search(r"7 +undo", shown.out)

    gone = facts(cli("memory", "remove", "bank", ids["IT"], ids["Billing"], "--json"))
    assert gone["cases"] == 3
    assert "removed" in cli("memory", "show", "bank", ids["IT"]).out.splitlines()[0]
    assert facts(cli("memory", "rollback", "bank", 4, "--json"))["cases"] == 4
    assert [one["verb"] for one in facts(cli("memory", "log", "bank", "--json"))][:3] == [
        "rollback",
        "remove",
        "undo",
    ]
    assert len(facts(cli("memory", "log", "bank", "--since", 7, "--json"))) == 2


def test_promote_quarantine_and_merge(cli, ids) -> None:
    cli("memory", "promote", "bank", ids["Send it to me"], "--why", "checked")
    assert not facts(cli("memory", "list", "bank", "--trust", "quarantined", "--json"))["cases"]
    assert "now, trusted" in cli("memory", "diff", "bank").out
    cli("memory", "quarantine", "bank", ids["IT"])
    assert "in quarantine" in cli("memory", "audit", "bank").out
    assert cli("memory", "merge", "bank", ids["IT"], ids["Billing"]).code == 2
    assert facts(cli("memory", "merge", "bank", ids["Security"], ids["Billing"], "--json"))["cases"] == 3


def test_a_secret_is_taken_out_and_it_is_said(cli, ids) -> None:
    done = cli("memory", "add", "bank", "log in with sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD", "IT", *OWN)
    assert "The state held a secret" in done.out
    assert not any(b"sk-abcdef" in file.read_bytes() for file in Path("bank").iterdir())


def test_export_and_import(cli, ids) -> None:
    assert facts(cli("memory", "export", "bank", "cases.jsonl", "--json"))["cases"] == 4
    assert facts(cli("memory", "import", "copy", "cases.jsonl", *OWN, "--json"))["cases"] == 4
    again = facts(cli("memory", "import", "copy", "cases.jsonl", *OWN, "--json"))
    assert again["cases"] == 4
    assert CaseBank("copy", embedder=HashEmbedder()).snapshot == CaseBank("bank", embedder=HashEmbedder()).snapshot
    Path("memento.jsonl").write_text('{"question": "Is it open?", "plan": "Look it up", "reward": 1}\n')
    done = cli("memory", "import", "copy", "memento.jsonl", *OWN)
    assert "import of memento.jsonl" in done.out
    assert done.out.startswith("copy: 5 cases")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("{", "is no JSON"),
        ('{"question": " ", "plan": "p"}', "needs a state"),
        ('{"question": "q", "plan": "p", "reward": NaN}', "must be a finite number, not nan"),
        ('{"question": "q", "plan": "p", "reward": "good"}', "the label 'good' is not known"),
        ('{"question": "q"}', "it has question; it needs"),
        ('{"case": {"id": "c-1", "state": "", "action": "a"}}', "its state is empty"),
        (
            '{"case": {"id": "c-1", "state": "s", "action": "a", "reward": NaN}}',
            "reward: Input should be a finite",
        ),
        ('{"use": {"state": " ", "value": 0, "reward": 0}}', "its state is empty"),
        ("[]", "each line must be an object"),
    ],
)
def test_a_broken_row_is_named_and_nothing_is_applied(cli, ids, row, why) -> None:
    Path("rows.jsonl").write_text('{"question": "q", "plan": "p", "reward": 1}\n\n' + row + "\n")
    before = Path("bank/cases.sqlite").read_bytes()
    done = cli("memory", "import", "bank", "rows.jsonl", *OWN)
    assert (done.code, done.out) == (2, "")
    assert "rows.jsonl, line 3" in done.sentence
    assert why in done.sentence
    assert Path("bank/cases.sqlite").read_bytes() == before
    assert cli("memory", "import", "new", "rows.jsonl", *OWN).code == 2
    assert not Path("new").exists()


def test_stats_and_reindex(cli, ids) -> None:
    told = facts(cli("memory", "stats", "bank", "--json"))
    assert (told["cases"], told["quarantined"], told["unknown"], told["embedder"]) == (4, 1, 1, "hash-256")
    assert told["index"] == "exact"
    assert re.search(r"mean reward +–", cli("memory", "stats", "bank").out)
    assert facts(cli("memory", "reindex", "bank", "--index", "exact", "--json"))["index"] == "exact"


def test_a_bank_can_be_given_to_another_embedder(cli, ids) -> None:
    done = facts(cli("memory", "reembed", "bank", "--embedder", "own.py:small", "--json"))
    assert done["changes"][0]["why"] == "embedder hash-64"
    assert cli("memory", "search", "bank", "password", "--embedder", "own.py:small").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["list", "nowhere"], 2, "There is no case bank at nowhere."),
        (["list", "{other}"], 2, "other is no case bank: it holds notes.txt but no cases.sqlite."),
        (["list", "own.py"], 2, "own.py is a file; a case bank is a folder"),
        (["list", "newer"], 1, "has schema 99, newer than this agentmem reads (1); upgrade agentmem."),
        (["stats", "foreign"], 2, "is a database, but no case bank's"),
        (
            ["list", "bank", "--embedder", "minilm"],
            1,
            "was written with the embedder hash-256 (256 dimensions), not",
        ),
        (["search", "bank", "x"], 1, "or --embedder FILE.py:FUNCTION"),
        (["search", "bank", "x", "--embedder", "own.py:small"], 1, "not with hash-64"),
        (["search", "bank", "x", "--embedder", "own.py:none"], 2, "own.py:none gave NoneType; an embedder has"),
        (["search", "bank", "x", "--embedder", "own.py:fails"], 1, "no key"),
        (["search", "bank", " ", *OWN], 2, "nothing to compare in an empty state"),
        (["search", "bank", "x", *OWN, "--policy", "kernel"], 2, "Did you mean 'kernel_q'?"),
        (["search", "bank", "x", *OWN, "--k", "0"], 2, "--k"),
        (["list", "bank", "--index", "fast"], 2, "No index 'fast'."),
        (["show", "bank", "{typo}"], 2, "Did you mean '{id}'?"),
        (["show", "bank", "{short}"], 2, "Did you mean '{id}'?"),
        (["remove", "bank", "{id}", "{typo}"], 2, "Did you mean '{id}'?"),
        (["correct", "bank", "{typo}", "--action", "a", *OWN], 2, "Did you mean '{id}'?"),
        (["correct", "bank", "{id}", *OWN], 2, "Nothing to correct"),
        (["correct", "bank", "{id}", "--reward", "nan", *OWN], 2, "must be a finite number, not nan"),
        (["promote", "bank", "c-x"], 2, "No case 'c-x' in bank."),
        (["remove", "bank"], 2, "Name the cases"),
        (["undo", "bank", "99"], 2, "There is no change 99; the last one is 4."),
        (["rollback", "bank", "99"], 2, "There is no change 99"),
        (["undo", "bank", "x"], 2, "Invalid value"),
        (["add", "new", " ", "a", *OWN], 2, "A case needs a state"),
        (["import", "bank", "none.jsonl"], 2, "There is no file of cases 'none.jsonl'"),
        (["serch", "bank"], 2, 'Did you mean "search"'),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_changes_nothing(cli, ids, arguments, code, sentence) -> None:
    Path("other").mkdir()
    Path("other/notes.txt").write_text("mine")
    for name, about in (("newer", "PRAGMA user_version=99"), ("foreign", "CREATE TABLE mine (a)")):
        Path(name).mkdir()
        database = sqlite3.connect(f"{name}/cases.sqlite")
        database.execute(about)
        database.close()
    id = ids["Billing"]
    names = {"other": "other", "id": id, "typo": f"{id[:-1]}{'0' if id[-1] != '0' else '1'}", "short": id[:6]}
    before = CaseBank("bank", embedder=HashEmbedder()).snapshot
    done = cli("memory", *(argument.format(**names) for argument in arguments))
    assert (done.code, done.out) == (code, "")
    assert sentence.format(**names) in done.sentence
    assert done.err.count("\n") == 1
    assert CaseBank("bank", embedder=HashEmbedder()).snapshot == before
    assert not Path("new").exists()


def test_gated_cases_are_exported_when_it_is_said(cli, ids) -> None:
    bank = CaseBank("bank", embedder=HashEmbedder())
    gated = bank.add(Case.of("a question of a gated set", "a", gated=True))
    bank.close()
    done = cli("memory", "export", "bank", "out.jsonl")
    assert done.code == 2
    assert gated.id in done.sentence
    assert not Path("out.jsonl").exists()
    assert cli("memory", "export", "bank", "out.jsonl", "--allow-gated").code == 0


def test_a_second_evaluation_recalls_what_the_first_one_learned(cli) -> None:
    """With the real embedder, and an agent that repeats what was right and gives up what was wrong."""
    Path("agent.py").write_text(GUESSER)
    asked = {"tea leaves": "green", "the sky": "blue", "a rose": "red"}
    rows = [{"id": what, "input": f"Which colour has {what}?", "answer": right} for what, right in asked.items()]
    Path("tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = (
        "--agent",
        "agent.py:answer",
        "--memory",
        "bank",
        "--online",
        "--memory-policy",
        "similarity",
        "--json",
    )
    reports = [json.loads(cli("eval", "tasks.jsonl", *flags, "--run", run).out) for run in ("first", "second")]
    scores = [[outcome["score"] for outcome in report["outcomes"]] for report in reports]
    assert scores == [[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]
    seen = [json.loads(line) for line in Path("seen.jsonl").read_text().splitlines()]
    assert [task for task, _ in seen] == [*asked, *asked]
    for task, recalled in seen[:3]:
        assert task not in dict(recalled)
    for task, recalled in seen[3:]:
        assert [task, "run first"] in recalled
    told = facts(cli("memory", "stats", "bank", "--json"))
    assert (told["embedder"], told["attempts"]) == ("all-MiniLM-L6-v2", 6)


def test_looking_at_a_bank_loads_no_weights(cli, ids) -> None:
    script = (
        "import sys; from agentmem.cli.main import run\n"
        f"for verb in ('list', 'stats', 'audit', 'log', 'diff'): assert run(['memory', verb, 'bank']) == 0\n"
        f"assert run(['memory', 'show', 'bank', {ids['IT']!r}]) == 0\n"
        "assert run(['memory', 'export', 'bank', 'out.jsonl']) == 0\n"
        "print(sorted({'torch', 'sentence_transformers', 'transformers', 'chromadb', 'litellm'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], text=True, capture_output=True, env={"PYTHONPATH": str(ROOT)}, check=False
    )
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stdout + done.stderr
