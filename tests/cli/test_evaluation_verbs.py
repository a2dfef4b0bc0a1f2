"""`eval` with controls and contamination, `rescore`, and `compare` over seeds, on the command line."""

import json
from pathlib import Path


def test_rescore_judges_stored_answers_without_the_agent(cli, sums) -> None:
    Path("strict.py").write_text("def strict(task, trajectory):\n    return 0.0\n")
    cli("eval", sums, "--model", "scripted/coin?p=0.5", "--reward", "strict.py:strict", "--run", "r")
    done = cli("rescore", "r", "--reward", "numeric", "--run", "again")
    assert (done.code, done.out.endswith("run: again\n")) == (0, True)
    assert json.loads(Path("r/report.json").read_text())["summary"]["score"] == 0
    assert json.loads(Path("again/report.json").read_text())["summary"]["score"] > 0
    assert cli("compare", "again", "again").code == 0
    mixed = cli("compare", "r", "again")
    assert (mixed.code, "were judged by different rewards" in mixed.sentence) == (2, True)


def test_rescore_has_a_folder_of_its_own_and_goes_on_there(cli, sums) -> None:
    cli("eval", sums, "--model", "scripted/coin", "--run", "r")
    first = cli("rescore", "r", "--reward", "numeric")
    folder = first.out.splitlines()[-1].removeprefix("run: ")
    assert folder.startswith("runs/rescore-")
    assert cli("rescore", "r", "--reward", "numeric").out.splitlines()[-1] == f"run: {folder}"
    assert "40 stored answers" in cli("rescore", "r", "--reward", "numeric", "--dry-run").out
    nobody = cli("rescore", "r", "--reward", "judge")
    assert (nobody.code, "--judge-model" in nobody.sentence) == (2, True)
    none = cli("rescore", "nowhere")
    assert (none.code, "does not exist" in none.sentence) == (2, True)


def test_more_samples_without_naming_the_run(cli, sums) -> None:
    few = cli("eval", sums, "--model", "scripted/coin", "--reward", "numeric", "--samples", 2)
    many = cli("eval", sums, "--model", "scripted/coin", "--reward", "numeric", "--samples", 3)
    folder = few.out.splitlines()[-1].removeprefix("run: ")
    assert many.out.splitlines()[-1] == f"run: {folder}"
    report = json.loads(Path(folder, "report.json").read_text())
    assert (report["summary"]["k"], report["usage"]["calls"]) == (3, 120)


def test_a_control_takes_the_gain_away(cli, sums, learner) -> None:
    cli("learn", sums, *learner, "--extractor", "exemplar", "--epochs", 1, "--run", "l")
    cli("eval", sums, *learner, "--library", "l", "--run", "on")
    cli("eval", sums, *learner, "--library", "l", "--control", "none", "--run", "off")
    told = json.loads(cli("compare", "off", "on", "--json").out)
    assert told["verdict"] == "better"
    raw = cli("eval", sums, *learner, "--control", "raw", "--run", "raw")
    assert (raw.code, "name its folder with --library" in raw.sentence) == (2, True)
    wrong = cli("eval", sums, *learner, "--library", "l", "--control", "shufled")
    assert (wrong.code, "Did you mean 'shuffled'?" in wrong.sentence) == (2, True)


def test_training_tasks_are_compared_with(cli, sums) -> None:
    shared = cli("eval", sums, "--model", "scripted/coin", "--against", sums, "--dry-run")
    assert "40 tasks share something with 40 texts (exact 40)" in " ".join(shared.out.split())
    done = cli("eval", sums, "--model", "scripted/coin", "--against", sums, "--run", "r", "--json")
    assert json.loads(done.out)["summary"]["dirty"]["n"] == 40


def test_learning_seeds_are_compared_together(cli, sums) -> None:
    cli("eval", sums, "--model", "scripted/coin?p=0.2", "--reward", "numeric", "--run", "off")
    for seed in (1, 2, 3):
        model = "scripted/coin?p=0.9"
        cli("eval", sums, "--model", model, "--reward", "numeric", "--seed", seed, "--run", f"on{seed}")
    done = cli("compare", "off", "on1", "--also", "on2", "--also", "on3", "--fail-if-worse")
    assert (done.code, "3 seeds x 40 tasks" in done.out) == (0, True)
    worse = cli("compare", "on1", "off", "--also", "off", "--fail-if-worse")
    assert worse.code == 3


def test_a_budget_stop_leaves_a_report_that_no_comparison_takes(cli, sums) -> None:
    asked = ("eval", sums, "--model", "scripted/coin", "--run", "r")
    assert cli(*asked, "--max-calls", 7).code == 4
    said = json.loads(Path("r/report.json").read_text())["summary"]
    assert (said["complete"], said["stopped"], said["attempts"]) == (False, "budget", 7)
    refused = cli("compare", "r", "r")
    assert (refused.code, "is partial (budget: 7 of 40 attempts)" in refused.sentence) == (2, True)
    assert cli(*asked).code == 0
    assert cli("compare", "r", "r").code == 0
