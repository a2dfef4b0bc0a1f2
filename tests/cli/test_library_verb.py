"""`agentmem library`: every action, as a person and as a program sees it."""

from __future__ import annotations

import json

import pytest

from agentmem.agents.prior import render_prior
from agentmem.cli.main import run
from agentmem.library_files import load_library, save_library


@pytest.fixture
def library(capsys):
    """Runs `agentmem library ARGUMENTS`; returns exit code, standard output and standard error."""

    def call(*arguments):
        code = run(["library", *map(str, arguments)])
        return (code, *capsys.readouterr())

    return call


def facts(answer):
    code, out, err = answer
    assert (code, err) == (0, "")
    return json.loads(out)


def test_help_names_every_action(library):
    code, out, _ = library("--help")
    assert code == 0
    for action in ("show", "diff", "blame", "revert", "rollback", "promote", "quarantine", "export", "import"):
        assert action in out
        assert library(action, "--help")[0] == 0


def test_show(library, taught):
    _, out, _ = library("show", taught)
    for word in (
        "library, version 3: 2 experiences",
        "Guess less.",
        "1 modify, 1 merge",
        "step 2",
        "taken unseen",
    ):
        assert word in out
    shown = facts(library("show", taught, "--json"))
    assert shown["library"] == json.loads((taught / "library.json").read_text())
    assert [v["number"] for v in shown["versions"]] == [0, 1, 2, 3]
    assert len(facts(library("show", taught, "--version", 1, "--json"))["library"]["experiences"]) == 3
    assert "versions" not in facts(library("show", taught / "library.json", "--json"))


def test_explain(library, taught):
    id = load_library(taught).experiences[1].id
    _, out, _ = library("show", taught, "--explain", id)
    assert "3.2 add" in out
    assert "under version 2: What is" in out
    walk = facts(library("show", taught, "--explain", id, "--json"))
    assert walk["blame"]["id"] == id
    assert len(walk["teachings"][0]["attempts"]) == 4


def test_diff(library, taught, tmp_path):
    assert "version 2 → version 3" in library("diff", taught)[1]
    assert [d["change"] for d in facts(library("diff", taught, 1, 2, "--json"))["differences"]] == [
        "changed",
        "merged",
    ]
    assert facts(library("diff", taught, 0, "--json"))["after"] == 3
    save_library(load_library(taught).apply([]), tmp_path / "a.json")
    assert "The same experiences." in library("diff", tmp_path / "a.json", taught)[1]


def test_blame(library, taught):
    merged = load_library(taught).experiences[0].id
    traced = facts(library("blame", taught, merged, "--json"))
    assert [parent["says"] for parent in traced["parents"]][1] == "Write it down."
    assert "2.2 merge" in library("blame", taught, merged)[1]


def test_revert_and_rollback(library, taught, tmp_path):
    answer = library("revert", taught, "3.1", "--why", "it did help")
    assert answer[0] == 0
    assert "library.json: version 4, 3 experiences" in answer[1]
    made = facts(library("rollback", taught, 1, "--json"))
    assert (made["version"], made["experiences"]) == (5, 3)
    assert all(decision["accepted"] for decision in made["decisions"])
    id = load_library(taught).experiences[0].id
    assert "it did help" in library("blame", taught, id)[1]
    out = tmp_path / "out.json"
    assert facts(library("rollback", taught, 3, "--out", out, "--json"))["file"] == str(out)
    assert load_library(out).version == 6
    assert load_library(taught).version == 5


def test_promote_and_quarantine(library, taught, tmp_path):
    id = load_library(taught).experiences[0].id
    made = facts(library("quarantine", taught, id, "--why", "from a page", "--json"))
    assert (made["version"], made["decisions"][0]["operation"]["op"]) == (4, "quarantine")
    assert [e.id for e in load_library(taught).trusted] == [load_library(taught).experiences[1].id]
    assert id not in str(render_prior(load_library(taught)))
    assert "from a page" in library("blame", taught, id)[1]
    assert "quarantine" in library("show", taught)[1]
    file = tmp_path / "out.json"
    assert facts(library("promote", taught / "library.json", id, "--out", file, "--json"))["experiences"] == 2
    assert len(load_library(file).trusted) == 2
    assert len(load_library(taught).trusted) == 1
    assert library("promote", taught, id)[0] == 0
    assert len(load_library(taught).trusted) == 2


def test_export_is_exact_on_standard_output_and_in_a_file(library, taught, tmp_path):
    learned = load_library(taught)
    prior = str(render_prior(learned))
    assert library("export", taught, "--format", "prompt") == (0, prior, "")
    assert library("export", taught, "--format", "json")[1] == learned.to_json()
    assert facts(library("export", taught, "--format", "prompt", "--json"))["text"] == prior
    file = tmp_path / "prompt.txt"
    assert facts(library("export", taught, "--format", "prompt", "--out", file, "--json"))["experiences"] == 2
    assert file.read_bytes() == prior.encode()
    code, out, err = library("export", taught, "--format", "prompt", "--prior-tokens", 10)
    assert (code, out) == (0, str(render_prior(learned, max_tokens=10)))
    assert "left out, which 10 tokens have no room for" in err
    agents = tmp_path / "AGENTS.md"
    agents.write_text("# Mine\n")
    assert library("export", taught, "--format", "agents-md", "--out", agents)[0] == 0
    assert agents.read_text().startswith("# Mine\n\n<!-- agentmem:begin -->\n## Lessons")


def test_export_of_gated_lessons_is_refused(library, taught, tmp_path):
    learned = load_library(taught)
    gated = learned.experiences[0].model_copy(update={"gated": True})
    save_library(learned.model_copy(update={"experiences": (gated,)}), tmp_path / "g.json")
    code, out, err = library("export", tmp_path / "g.json")
    assert (code, out) == (2, "")
    assert gated.id in err
    assert library("export", tmp_path / "g.json", "--allow-gated")[0] == 0


def test_import(library, taught, tmp_path):
    (tmp_path / "rules.md").write_text("- Ask back.\n- guess LESS.\n")
    new, into = tmp_path / "new.json", taught / "library.json"
    assert facts(library("import", tmp_path / "rules.md", "--out", new, "--json"))["experiences"] == 2
    code, out, _ = library("import", tmp_path / "rules.md", "--into", taught)
    assert code == 0
    assert "left out: already in the library as e-" in out
    assert [e.text for e in load_library(into)][-1] == "Ask back."
    assert load_library(into).version == 4
    assert "import" in library("show", taught)[1]
    assert facts(library("import", taught, "--into", new, "--json"))["experiences"] == 3
    assert load_library(new).version == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["show", "nowhere"], "There is no experience library"),
        (["show", "{run}", "--version", "9"], "has no version 9; it has 0 to 3"),
        (["show", "{run}/library.json", "--version", "1"], "is a file, which has no history"),
        (["show", "{run}", "--explain", "e-1"], "has no experience 'e-1'"),
        (["blame", "{run}/library.json", "e-1"], "is a file, which has no history"),
        (["blame", "nowhere", "e-1"], "nowhere does not exist; name the folder of a run"),
        (["diff", "{run}", "0", "x"], "'x' is no version"),
        (["diff", "{run}", "{run}", "2"], "'2' is too much"),
        (["diff", "{run}/library.json"], "is a file, which has no history"),
        (["revert", "{run}", "9.9"], "has no operation '9.9'"),
        (["revert", "{run}/library.json", "1.1"], "revert needs the folder of the run"),
        (["rollback", "{run}", "3"], "Version 3 is what the library holds already"),
        (["rollback", "{run}", "x"], "Invalid value"),
        (["promote", "{run}", "e-1"], "The library has no experience 'e-1' in use."),
        (["promote", "{run}", "{id}"], "is trusted already; nothing was changed"),
        (["quarantine", "{run}", "{id}0"], "Did you mean '{id}'?"),
        (["import", "{run}"], "Say where the lessons go"),
        (["import", "{run}", "--out", "{run}/library.json"], "exists; add to it with --into"),
        (["import", "nowhere.md", "--into", "{run}"], "There is no file of lessons"),
        (["export", "{run}", "--format", "yaml"], "yaml"),
        (["shw", "{run}"], 'Did you mean "show"'),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_changes_nothing(library, taught, arguments, sentence):
    before = (taught / "library.json").read_bytes()
    names = {"run": taught, "id": load_library(taught).experiences[0].id}
    code, out, err = library(*(argument.format(**names) for argument in arguments))
    assert (code, out) == (2, "")
    assert sentence.format(**names) in err
    assert err.count("\n") == 1
    assert (taught / "library.json").read_bytes() == before
