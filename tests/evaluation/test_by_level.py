"""A GAIA-style evaluation by level, and what a leaderboard is sent."""

from __future__ import annotations

import json
from pathlib import Path

from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Failure, Rollout
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Message, Step, ToolCall, ToolResult, Trajectory
from agentmem.domain.usage import Usage
from agentmem.evaluation.by_level import Attempt, LevelReport
from agentmem.evaluation.leaderboard import Submission
from agentmem.evaluation.report import EvaluationReport, Outcome

TASKS = [Task(id=id, input="?", answer="1", level=level) for id, level in (("a", "1"), ("b", "1"), ("c", "2"))]


def used(name: str, status: str = "", **arguments: str) -> ToolResult:
    call = ToolCall(id="c", name=name, arguments=json.dumps(arguments))
    return ToolResult(call=call, content="x", status="error" if status else "ok", error=status)


def rollout(id: str, score: float | None, output: str | None, *results: ToolResult) -> Rollout:
    step = Step(reply=Message(role="assistant"), results=results, usage=Usage(calls=1, dollars=0.5))
    failed = None if score is not None else Failure(kind="model_timeout", message="late")
    reward = Reward.of(score) if score is not None else Reward.unknown("failed", status="unverifiable")
    trajectory = Trajectory(steps=(step,), output=output)
    status = "failed" if failed else "ok"
    return Rollout.model_validate(
        {
            "task_id": id,
            "trajectory": trajectory,
            "reward": reward,
            "status": status,
            "failure": failed,
            "seconds": 2,
        }
    )


def level_report(*rollouts: Rollout) -> LevelReport:
    def read(output: str) -> tuple[str, bool]:
        return output.removeprefix("FINAL "), output.startswith("FINAL ")

    by_id = {task.id: task for task in TASKS}
    attempts = [Attempt.of(by_id[r.task_id], r, read=read, near_miss=lambda a, t: "close") for r in rollouts]
    report = EvaluationReport(outcomes=tuple(map(Outcome.of, rollouts)), usage=Usage(dollars=9.0))
    return LevelReport.of(report, TASKS, reversed(attempts))


def test_both_denominators_by_level_with_what_it_took() -> None:
    found = level_report(
        rollout("a", 1.0, "FINAL 1", used("python", code="http://not.asked/")),
        rollout("b", None, None),
        rollout("c", 0.0, "2"),
    )
    first, second = found.level("1"), found.level("2")
    assert (first.score, first.completed_score, first.n) == (0.5, 1.0, 2), (
        "a failure counts as wrong, or not at all"
    )
    assert (second.score, second.cost, second.seconds) == (0.0, 0.5, 2.0)
    rows = {row[0]: row[1:] for row in found.table().rows}
    assert list(rows) == ["level 1", "level 2", "all"]
    assert rows["level 1"][0] == "2"
    assert rows["level 1"][1].startswith("0.500 [")
    assert rows["level 1"][2].startswith("1.000 [")
    assert rows["level 1"][2].endswith("n = 1")
    assert rows["level 1"][3:] == ("1", "0", "0", "1.0", "0.5", "$1.00", "4.0 s")
    assert rows["level 2"][3:7] == ("0", "1", "1", "1.0"), "no marker, one near miss, and still wrong"
    assert "model_timeout 1" in str(found)
    assert "close 1" in str(found)


def test_addresses_are_noted_with_what_came_of_them() -> None:
    results = (
        used("fetch_page", url="http://a.test/x"),
        used("fetch_page", "denied", url="https://hf.co/gaia"),
        used("shell", command="curl http://b.test/"),
    )
    found = level_report(rollout("a", 1.0, "1", *results), rollout("b", 1.0, "1"), rollout("c", 1.0, "1"))
    assert [(v.tool, v.address, v.status) for v in found.visits] == [
        ("fetch_page", "http://a.test/x", "ok"),
        ("fetch_page", "https://hf.co/gaia", "denied"),
    ]
    assert "refused as mirrors of the set: 1" in str(found)
    assert LevelReport.model_validate_json(found.to_json()) == found


def test_a_whole_submission_has_a_proof(tmp_path: Path) -> None:
    attempts = [Attempt(task_id=id, index=n, answer=f"{id}{n}") for id in "cab" for n in (0, 1)]
    (tmp_path / "leaderboard.partial.jsonl").write_text("old")
    path = Submission.of(TASKS, attempts, counts={"1": 2, "2": 1}).write(tmp_path)
    assert path.name == "leaderboard.jsonl"
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"task_id": id, "model_answer": f"{id}0"} for id in "abc"
    ]
    assert not (tmp_path / "leaderboard.partial.jsonl").exists()
    proof = json.loads((tmp_path / "leaderboard.proof.json").read_text())
    assert (proof["complete"], proof["tasks"], proof["answers"]) == (True, 3, 3)
    assert proof["levels"] == {"1": 2, "2": 1}


def test_what_is_lacking_is_named_and_the_file_says_so(tmp_path: Path) -> None:
    attempts = [
        Attempt(task_id="a", answer="1"),
        Attempt(task_id="b", answer=" "),
        Attempt(task_id="x", answer="1"),
    ]
    found = Submission.of(TASKS, attempts, counts={"1": 2, "2": 1})
    assert found.faults == (
        "2 of 3 tasks have no answer: b, c",
        "answers to tasks that are not asked for: x",
        "the leaderboard wants 2 of level 1, 1 of level 2, and there are 1 of level 1",
    )
    assert found.write(tmp_path).name == "leaderboard.partial.jsonl"
    assert not json.loads((tmp_path / "leaderboard.proof.json").read_text())["complete"]
    twice = Submission.of([*TASKS, TASKS[0]], [Attempt(task_id=id, answer="1") for id in "abc"])
    assert twice.faults == ("ids that come twice: a",)
