"""History: every version with what made it, and every experience back to the rollouts that taught it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import aevaluate, alearn
from agentmem.domain.experience import Effect, ExperienceLibrary
from agentmem.domain.operation import Add, Decision
from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Message
from agentmem.errors import BudgetExceeded, InputError, JournalError, RunBusy
from agentmem.learning.blame import blame, explain
from agentmem.learning.display import Shown
from agentmem.learning.history import History
from agentmem.learning.revise import revise
from agentmem.learning.step import StepRecord
from agentmem.learning.undo import revert, rollback
from agentmem.library_files import load_library, save_library
from agentmem.models.model import Reply
from agentmem.runs.run import take_lock
from agentmem.settings import Budget
from agentmem.testing.scripted import ScriptedModel, load_script


def by_text(history, text):
    """The id of the experience that says this in some version."""
    every = [e for v in history.versions for e in (*v.library, *v.library.retired)]
    return next(e.id for e in every if e.text == text)


def undo(folder, name, **options):
    return revise(folder, "revert", lambda history, now: revert(now, history.operation(name)), **options)


def back(folder, number, **options):
    return revise(folder, "rollback", lambda history, now: rollback(now, history.library(number)), **options)


def test_every_version_is_there_with_what_made_it(taught):
    history = History.of(taught)
    made = [(v.number, v.made_by, v.step, [o.op for o in v.operations], len(v.library)) for v in history.versions]
    assert made == [
        (0, "start", -1, [], 0),
        (1, "learning", 0, ["add", "add", "add"], 3),
        (2, "learning", 1, ["modify", "merge"], 2),
        (3, "learning", 2, ["delete", "add"], 2),
    ]
    assert [d.reason for d in history.version(1).proposed if not d.accepted] == ["no experience 'e-unknown'"]
    assert history.version(1).verdict.reason == "taken unseen (gate = always)"
    assert history.library() == load_library(taught) == history.library(3)
    assert history.library(0) == ExperienceLibrary()
    with pytest.raises(InputError, match="has no version 7; it has 0 to 3"):
        history.library(7)


def test_a_diff_tells_added_changed_merged_and_retired_with_their_words(taught):
    history = History.of(taught)
    first, second = history.diff(1, 2).differences
    assert (first.change, first.before, first.after) == ("changed", ("Check the carry.",), "Check every carry.")
    assert second.change == "merged"
    assert second.before == ("Add the tens first. (when: two digits)", "Write it down.")
    assert second.after == "Write the tens down first."
    assert [(d.change, d.before or d.after) for d in history.diff(2).differences] == [
        ("added", "Guess less."),
        ("retired", ("Check every carry.",)),
    ]
    assert [d.change for d in history.diff(3, 2).differences] == ["restored", "retired"]
    assert "The same experiences." in str(history.diff(2, 2))
    assert "Check the carry." in str(history.diff(1, 2))


def test_blame_walks_through_the_parents_of_a_merge(taught):
    history = History.of(taught)
    merged = blame(history, by_text(history, "Write the tens down first."))
    assert [(c.name, c.operation, c.version, c.why) for c in merged.changes] == [("2.2", "merge", 2, "the same")]
    assert [parent.says for parent in merged.parents] == [
        "Add the tens first. (when: two digits)",
        "Write it down.",
    ]
    for parent in merged.parents:
        assert [(c.name, c.operation) for c in parent.changes][1] == ("2.2", "merge")
        assert not parent.in_use
        assert parent.merged_into == merged.id
    assert {group.step for group in merged.groups} == {0, 1}
    assert all(group.extractor == "tutor" and len(group.rewards) == 4 for group in merged.groups)
    assert "taken unseen" in merged.changes[0].gate
    for word in ("2.2 merge", "the same", "1.2 add", "rewards"):
        assert word in str(merged)


def test_blame_tells_what_became_of_a_lesson(taught):
    history = History.of(taught)
    traced = blame(history, by_text(history, "Check every carry."))
    assert [(c.operation, c.said, c.in_use) for c in traced.changes] == [
        ("add", "Check the carry.", True),
        ("modify", "Check every carry.", True),
        ("delete", "Check every carry.", False),
    ]
    assert [c.why for c in traced.changes] == ["it was dropped", "sharper", "no use"]
    assert "It is retired." in str(traced)


def test_explain_shows_the_rollouts_as_the_journal_has_them(taught):
    history = History.of(taught)
    walk = explain(history, by_text(history, "Guess less."))
    (teaching,) = walk.teachings
    assert teaching.input == f"What is {teaching.group.task_id.replace('+', ' + ')}?"
    assert [a.index for a in teaching.attempts] == [0, 1, 2, 3]
    assert tuple(a.score for a in teaching.attempts) == teaching.group.rewards
    assert tuple(a.index for a in teaching.attempts if a.evidence) == teaching.group.rollouts
    assert all(a.output for a in teaching.attempts)
    # What they saw is version 2, in its order.
    assert teaching.prior_version == 2
    assert {a.prior for a in teaching.attempts} == {tuple(e.id for e in history.library(2))}
    assert teaching.input in str(walk)
    merged = explain(history, by_text(history, "Write the tens down first."))
    assert [t.prior_version for t in merged.teachings] == [1, 0]
    assert merged.teachings[1].attempts[0].prior == ()


async def test_what_an_earlier_run_taught_is_not_looked_up_in_this_one(taught, tmp_path):
    library = load_library(taught)
    tasks = [
        Task(id=f"{a}+{b}", input=f"What is {a} + {b}?", answer=str(a + b)) for a in range(5) for b in range(4)
    ]
    agent = Agent(ScriptedModel(load_script("coin?p=0.5"))).with_experience(library)
    on = tmp_path / "on"
    await alearn(
        agent,
        tasks,
        reward="numeric",
        extractor="exemplar",
        group_size=2,
        epochs=1,
        gate="always",
        run=on,
        listeners=(),
    )
    history = History.of(on)
    assert history.versions[0].library == library
    walk = explain(history, library.experiences[0].id)
    assert [c.operation for c in walk.blame.changes] == ["start"]
    assert walk.blame.earlier == library.experiences[0].origins
    assert walk.teachings == ()
    with pytest.raises(InputError, match="the run began with it"):
        history.operation(library.experiences[0].id)


def test_a_revert_becomes_a_version_of_the_run_and_is_seen_by_blame(taught):
    rows = _rows(taught, "SELECT * FROM steps") + _rows(taught, "SELECT * FROM libraries")
    made = undo(taught, "3.1")
    assert made.library.version == 4
    assert load_library(taught) == made.library
    history = History.of(taught)
    assert (history.newest.made_by, history.newest.base, history.current.number) == ("revert", 3, 4)
    traced = blame(history, by_text(history, "Check every carry."))
    assert (traced.changes[-1].operation, traced.changes[-1].why) == ("restore", "revert of 3.1")
    assert traced.in_use
    # What learning wrote is as it was.
    assert _rows(taught, "SELECT * FROM steps") + _rows(taught, "SELECT * FROM libraries") == rows
    undo(taught, "4.1")
    assert [e.id for e in load_library(taught)] == [e.id for e in history.library(3)]


def test_an_experience_names_the_last_operation_that_touched_it(taught):
    history = History.of(taught)
    id = by_text(history, "Check every carry.")
    assert history.operation(id).name == "3.1"
    assert history.operation("2.1").operation.op == "modify"
    undo(taught, id)
    assert load_library(taught)[id].text == "Check every carry."


def test_a_rollback_is_a_version_too_and_its_numbers_go_on(taught):
    assert back(taught, 1).library.version == 4
    history = History.of(taught)
    assert [e.text for e in history.library()] == ["Check the carry.", "Add the tens first.", "Write it down."]
    assert history.library().experiences[1] == history.library(1).experiences[1]
    assert back(taught, 3).library.version == 5
    assert [e.id for e in load_library(taught)] == [e.id for e in history.library(3)]
    with pytest.raises(InputError, match="Version 3 is what the library holds already"):
        back(taught, 3)


def test_out_leaves_the_run_as_it_is(taught, tmp_path):
    before = {p.name: p.read_bytes() for p in taught.iterdir() if p.name != "lock"}
    made = back(taught, 1, out=tmp_path / "new.json")
    assert load_library(tmp_path / "new.json") == made.library
    assert {p.name: p.read_bytes() for p in taught.iterdir() if p.name in before} == before


def test_a_file_that_was_edited_is_a_version_of_its_own_and_nothing_of_it_is_lost(taught):
    library = load_library(taught)
    kept, cut = library.experiences
    edited = kept.model_copy(update={"text": "By my own hand."})
    save_library(library.model_copy(update={"experiences": (edited,)}), taught / "library.json")
    history = History.of(taught)
    assert (history.newest.made_by, history.newest.number) == ("edit", 4)
    assert [e.text for e in history.library()] == ["By my own hand."]
    assert cut.id in {e.id for e in history.library().retired}
    assert blame(history, edited.id).changes[-1].operation == "edit"
    assert not blame(history, cut.id).in_use
    assert back(taught, 3).library.version == 5
    assert [e.text for e in load_library(taught)] == [kept.text, cut.text]
    again = History.of(taught)
    assert [v.made_by for v in again.versions][-2:] == ["edit", "rollback"]
    assert again.library(4).experiences == (edited,)


def test_parents_that_go_round_in_circles_end(taught):
    library = load_library(taught)
    a, b = library.experiences
    circle = (a.model_copy(update={"parents": (b.id,)}), b.model_copy(update={"parents": (a.id,)}))
    save_library(library.model_copy(update={"experiences": circle}), taught / "library.json")
    assert [each.id for each in blame(History.of(taught), a.id).everyone] == [a.id, b.id]


def test_a_library_file_that_cannot_be_read_is_not_written_over(taught):
    (taught / "library.json").write_text('{"version": 3,')
    history = History.of(taught)
    assert len(history.library(3)) == 2
    with pytest.raises(InputError, match=r"no experience library.*name a version, or move the file away"):
        history.library()
    with pytest.raises(InputError, match="move the file away"):
        back(taught, 1)
    assert (taught / "library.json").read_text() == '{"version": 3,'
    (taught / "library.json").unlink()
    assert History.of(taught).library().version == 3


def test_an_older_library_file_that_was_put_back_is_the_current_one(taught):
    save_library(History.of(taught).library(2), taught / "library.json")
    history = History.of(taught)
    assert history.current.number == 2
    made = undo(taught, "2.1")
    assert made.library.version == 4
    assert [e.text for e in made.library] == ["Check the carry.", "Write the tens down first."]
    assert History.of(taught).newest.base == 2
    assert blame(History.of(taught), made.library.experiences[0].id).changes[-1].operation == "restore"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("3.3", r"has no operation '3.3'\. Did you mean '.\..'\?"),
        ("e-00000000", r"has no experience 'e-00000000'\."),
    ],
)
def test_an_unknown_name_offers_the_nearest(taught, name, sentence):
    with pytest.raises(InputError, match=sentence):
        History.of(taught).operation(name)


def test_an_id_with_a_slip_is_recognised(taught):
    history = History.of(taught)
    id = by_text(history, "Guess less.")
    slip = id[:-1] + ("0" if id[-1] != "0" else "1")
    with pytest.raises(InputError, match=rf"no experience '{slip}'\. Did you mean '{id}' \(Guess less\.\)\?"):
        blame(history, slip)


async def test_a_run_that_never_finished_a_step(tmp_path):
    tasks = [Task(id=str(i), input=f"What is {i} + 1?", answer=str(i + 1)) for i in range(20)]
    options = {
        "reward": "numeric",
        "extractor": "exemplar",
        "gate": "always",
        "listeners": (),
        "run": tmp_path / "r",
    }
    agent = Agent(ScriptedModel(load_script("coin?p=0.5")))
    with pytest.raises(BudgetExceeded):
        await alearn(agent, tasks, budget=Budget(max_calls=10), **options)
    with pytest.raises(InputError, match="has finished no learning step yet"):
        History.of(tmp_path / "r")


async def test_a_run_inside_a_step_keeps_its_library(tmp_path):
    tasks = [Task(id=str(i), input=f"What is {i} + 1?", answer=str(i + 1)) for i in range(10)]
    options = {
        "reward": "numeric",
        "extractor": "exemplar",
        "gate": "always",
        "listeners": (),
        "group_size": 2,
        "run": tmp_path / "r",
    }
    agent = Agent(ScriptedModel(load_script("learner?p=0.5")))
    with pytest.raises(BudgetExceeded):
        await alearn(agent, tasks, epochs=3, budget=Budget(max_calls=30), **options)
    assert History.of(tmp_path / "r").newest.number == 1
    with pytest.raises(InputError, match="stopped inside step 2; start its command again"):
        back(tmp_path / "r", 0)
    assert len(back(tmp_path / "r", 0, out=tmp_path / "empty.json").library) == 0
    whole = await alearn(agent, tasks, epochs=3, **options)
    assert load_library(tmp_path / "r") == whole


async def test_a_replay_does_not_write_over_what_a_person_did(tmp_path):
    tasks = [Task(id=str(i), input=f"What is {i} + 1?", answer=str(i + 1)) for i in range(10)]
    options = {
        "reward": "numeric",
        "extractor": "exemplar",
        "gate": "always",
        "listeners": (),
        "group_size": 2,
        "run": tmp_path / "r",
    }
    agent = Agent(ScriptedModel(load_script("learner?p=0.5")))
    learned = await alearn(agent, tasks, epochs=2, **options)
    revised = back(tmp_path / "r", 1).library
    assert await alearn(agent, tasks, epochs=2, **options) == learned
    assert load_library(tmp_path / "r") == revised


async def test_an_evaluation_has_no_library(tmp_path):
    await aevaluate(
        Agent(lambda task, prior: "2"),
        [Task(id="t", input="1 + 1?", answer="2")],
        reward="exact",
        run=tmp_path / "e",
        listeners=(),
    )
    with pytest.raises(InputError, match="is a run of `agentmem eval`, which learns nothing"):
        History.of(tmp_path / "e")


def test_a_callable_agent_shows_its_answers_though_nobody_saw_its_prompt(taught):
    with closing(sqlite3.connect(taught / "journal.sqlite")) as connection, connection:
        connection.execute(
            "UPDATE steps SET result=json_set(result, '$.trajectory.prompt', json('[]')) WHERE purpose='rollout'"
        )
    history = History.of(taught)
    (teaching,) = explain(history, by_text(history, "Guess less.")).teachings
    assert teaching.input is None
    assert "its text is not in the journal" in str(teaching.table())


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("UPDATE steps SET result='{}' WHERE purpose='decision' AND step=1", "decision of step 1: .*restore it"),
        ("UPDATE libraries SET library='{' WHERE step=1", "step 1 is no experience library"),
        ("INSERT INTO revisions VALUES (1, 2, 4, '{}', '{}', 0)", "revision 1: Field required at verb"),
    ],
)
def test_a_row_that_was_changed_is_named(taught, sql, sentence):
    with closing(sqlite3.connect(taught / "journal.sqlite")) as connection, connection:
        connection.execute(sql)
    with pytest.raises(JournalError, match=sentence):
        History.of(taught)


def test_a_busy_run_is_read_but_not_revised(taught):
    import os

    lock = take_lock(taught)
    try:
        assert History.of(taught).newest.number == 3
        with pytest.raises(RunBusy):
            back(taught, 1)
    finally:
        os.close(lock)


def test_an_import_is_a_version_too(taught):
    elsewhere = load_library(taught).experiences[0].origins  # of another run, whose places have the same names
    add = Add(text="From outside.", why="imported", origins=elsewhere)
    made = revise(taught, "import", lambda _, now: now.revise([add]))
    assert History.of(taught).newest.made_by == "import"
    walk = explain(History.of(taught), made.library.experiences[-1].id)
    assert walk.blame.changes[0].why == "imported"
    assert walk.teachings == ()


def _rows(folder, sql):
    with closing(sqlite3.connect(folder / "journal.sqlite")) as connection:
        return connection.execute(sql).fetchall()


def _measured(folder):
    """The run as if credit had measured its lessons in its last step, and evicted one before anything was proposed."""
    with closing(sqlite3.connect(folder / "journal.sqlite")) as connection, connection:
        (text,) = connection.execute("SELECT library FROM libraries WHERE step=1").fetchone()
        before = ExperienceLibrary.from_json(text)
        where = "purpose='decision' AND step=2"
        record = StepRecord.model_validate_json(
            connection.execute(f"SELECT result FROM steps WHERE {where}").fetchone()[0]
        )
        gone, added = record.kept
        evicted = gone.model_copy(update={"why": "P(effect < 0) = 0.97 over 41 exposures"})
        effects = {e.id: Effect(mean=-0.25, sd=0.1, exposures=41) for e in before}
        library = before.with_effects(effects).apply([evicted]).apply([added])
        record = record.model_copy(
            update={"evicted": (Decision(operation=evicted, accepted=True),), "kept": (added,), "proposed": ()}
        )
        connection.execute(f"UPDATE steps SET result=? WHERE {where}", (record.model_dump_json(),))
        connection.execute(
            "UPDATE libraries SET version=?, library=? WHERE step=2", (library.version, library.to_json())
        )
    save_library(library, folder / "library.json")
    return library


def test_what_credit_measured_and_evicted_is_told_apart_from_what_the_gate_let_in(taught):
    library = _measured(taught)
    history = History.of(taught)
    assert (history.newest.number, history.newest.base, history.current.library) == (4, 2, library)
    evicted = blame(history, by_text(history, "Check every carry.")).changes[-1]
    assert (evicted.name, evicted.operation, evicted.gate) == ("4.1", "delete", "")
    assert "P(effect < 0) = 0.97" in evicted.why
    added = blame(history, by_text(history, "Guess less.")).changes[-1]
    assert (added.name, added.gate) == ("4.2", "taken unseen (gate = always)")
    # That an effect was measured is no edit.
    merged = blame(history, by_text(history, "Write the tens down first."))
    assert [c.operation for c in merged.changes] == ["merge"]
    assert "1 evicted, 1 add" in str(Shown(library, history).table())
    assert "-0.250 ± 0.100 (41 exposures)" in str(Shown(library, history).table())
    back_again = undo(taught, "4.1").library
    assert back_again[by_text(history, "Check every carry.")].effect.exposures == 41


def test_a_step_that_only_measured_has_no_operation_and_the_newest_figures(taught):
    with closing(sqlite3.connect(taught / "journal.sqlite")) as connection, connection:
        library = History.of(taught).library()
        measured = library.with_effects({e.id: Effect(mean=0.1, sd=0.1, exposures=7) for e in library})
        connection.execute("INSERT INTO libraries VALUES (3, ?, ?)", (measured.version, measured.to_json()))
    save_library(measured, taught / "library.json")
    history = History.of(taught)
    assert not history.newest.changed
    assert history.library(3) == history.library() == measured
    assert [c.operation for c in blame(history, by_text(history, "Guess less.")).changes] == ["add"]


def test_a_refined_attempt_is_shown_behind_the_others(taught):
    history = History.of(taught)
    id = by_text(history, "Guess less.")
    (group,) = blame(history, id).groups
    with closing(sqlite3.connect(taught / "journal.sqlite")) as connection, connection:
        row = (
            "INSERT INTO steps (phase, step, task, rollout, purpose, ordinal, request, result, written_at) VALUES"
        )
        reply = Reply(message=Message(role="assistant", content="After all, 7."))
        for rollout, purpose, result in ((0, "critique", reply), (4, "reward", Reward.of(1.0))):
            values = (group.step, group.task_id, rollout, purpose, result.model_dump_json())
            connection.execute(f"{row} ('learn', ?, ?, ?, ?, 0, '', ?, 0)", values)
        refined = group.model_copy(update={"rollouts": (4,), "rewards": (*group.rewards, 1.0)})
        for table, column in (("steps", "result"), ("libraries", "library")):
            for key, text in connection.execute(f"SELECT rowid, {column} FROM {table} WHERE step=2").fetchall():
                kind = StepRecord if table == "steps" else ExperienceLibrary
                if "Guess less." not in text or ("kept" in text) != (table == "steps"):
                    continue
                shown = kind.model_validate_json(text).model_dump_json(by_alias=True)
                changed = shown.replace(group.model_dump_json(), refined.model_dump_json())
                connection.execute(f"UPDATE {table} SET {column}=? WHERE rowid=?", (changed, key))
    save_library(History.of(taught).library(3), taught / "library.json")
    (teaching,) = explain(History.of(taught), id).teachings
    last = teaching.attempts[-1]
    assert (last.index, last.status, last.output, last.score, last.evidence) == (
        4,
        "refined",
        "After all, 7.",
        1.0,
        True,
    )
    assert "4 (refined)" in str(teaching.table())
    assert "Rewards as distilled" not in str(teaching.table())


def test_rewards_that_were_made_by_comparing_the_attempts_are_said(taught):
    history = History.of(taught)
    (teaching,) = explain(history, by_text(history, "Guess less.")).teachings
    other = teaching.model_copy(
        update={"group": teaching.group.model_copy(update={"rewards": (0.5, 0.5, 0.0, 1.0)})}
    )
    assert "Rewards as distilled: 0.5 0.5 0 1." in str(other.table())
