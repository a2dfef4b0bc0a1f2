"""The bank: what an attempt writes, what is merged, quarantined, let go, corrected, and what bad input gets."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from agentmem.domain.case import Case, Provenance
from agentmem.domain.reward import Reward
from agentmem.domain.write_rules import MOST_CHARACTERS, WriteRules
from agentmem.errors import EmbedderMismatch, InputError, MemoryStoreError
from agentmem.memory.case_bank import CaseBank
from agentmem.testing.hash_embedder import HashEmbedder

EMBEDDER = HashEmbedder(64)
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def bank(tmp_path):
    with closing(CaseBank(tmp_path / "bank", embedder=EMBEDDER)) as bank:
        yield bank


def reset(action="IT desk", **more):
    return Case.of("Reset my password", action, **more)


class TestAttempts:
    def test_case_and_credit_are_one_change(self, bank):
        bank.add(reset(reward=1.0))
        used = bank.recall("My password is lost")
        bank.retain(Case.of("My password is lost", "IT desk"), used=used, reward=Reward.of(1.0), key="a")
        assert bank.seq == 2
        assert bank.show(used.ids[0]).uses[0].model_dump() == {
            "seq": 2,
            "state": "My password is lost",
            "value": 0.5,  # more than what is expected before the first attempt
            "reward": 1.0,
            "propensity": None,
            "share": 1.0,
        }

    def test_a_replayed_attempt_writes_nothing_twice(self, bank):
        bank.add(reset(reward=1.0))
        used = bank.recall("My password is lost")
        case = Case.of("My password is lost", "IT desk", reward=1.0)
        first = bank.retain(case, used=used, key="a")
        before = bank.snapshot, bank.seq, bank.stats()
        assert bank.retain(case, used=used, key="a") == first
        bank.credit(used, Reward.of(0.0), key="a")
        bank.add_many([reset("HR"), reset("Mail room")], key="bulk")
        again = bank.snapshot, bank.seq
        assert bank.add_many([reset("HR"), reset("Mail room")], key="bulk") == ()
        assert (bank.snapshot, bank.seq) == again
        bank.rollback(2)
        assert (bank.snapshot, bank.stats().uses) == (before[0], before[2].uses)

    def test_a_key_is_not_used_up_by_a_write_that_failed(self, bank):
        with pytest.raises(ZeroDivisionError), bank.store.writing():
            raise ZeroDivisionError
        bank.store._writer.execute("PRAGMA max_page_count=1")
        with pytest.raises(MemoryStoreError, match="the disk is full"):
            bank.add(Case.of("x" * 9000, "y"), key="a")
        bank.store._writer.execute("PRAGMA max_page_count=1000000")
        bank.add(Case.of("x" * 9000, "y"), key="a")
        assert len(bank) == 1

    def test_an_unknown_reward_writes_no_value(self, bank):
        used = bank.recall("anything")
        bank.retain(reset(), used=used, reward=Reward.unknown("no judge"))
        bank.credit(used, Reward.unknown("no judge"), key="k")
        assert (bank.stats().attempts, bank.store.mean_reward(), bank.list()[0].reward) == (0, None, None)

    def test_running_means_follow_what_is_written_and_undone(self, bank):
        bank.credit(bank.recall("a"), Reward.of(1.0), key="1")
        bank.add(reset(reward=1.0))
        bank.credit(bank.recall("Reset my password"), Reward.of(0.0), key="2")
        assert (bank.store.mean_reward(), bank.store.mean_reward(without_case=True)) == (0.5, 1.0)
        bank.undo(1)
        assert (bank.store.mean_reward(), bank.store.mean_reward(without_case=True)) == (0.0, None)
        bank.undo(4)
        assert bank.store.mean_reward() == 0.5


class TestMerging:
    def test_the_same_again_is_one_case_with_the_mean_reward(self, bank):
        first = bank.add(reset(reward=1.0))
        for reward in (0.0, 0.0):
            kept = bank.add(reset(reward=reward))
        assert (kept.id, kept.attempts, round(kept.reward, 6), kept.revision) == (first.id, 3, 0.333333, 3)
        assert bank.list() == (kept,)
        assert bank.log()[0].notes == (f"Merged into {first.id}, which says the same.",)

    def test_a_near_copy_merges_only_where_it_did_the_same_and_ended_alike(self, bank):
        state = "please reset the password of my account on the mail server of the second floor today"
        near = state.replace("please ", "please, ")
        cosine = float(np.prod([1.0]) * (EMBEDDER.embed([state])[0] @ EMBEDDER.embed([near])[0]))
        assert cosine > 0.97
        first = bank.add(Case.of(state, "IT desk", reward=1.0))
        assert bank.add(Case.of(near, "IT desk", reward=0.0)).id != first.id
        assert bank.add(Case.of(near, "HR", reward=1.0)).id != first.id
        other = Case.of(near + "!", "IT desk", reward=1.0)
        kept = bank.add(other)
        assert (kept.id, kept.attempts, kept.parents) == (first.id, 2, (other.id,))

    def test_a_far_one_does_not_merge(self, bank):
        bank.add(reset(reward=1.0))
        bank.add(Case.of("Where is my parcel?", "IT desk", reward=1.0))
        assert len(bank) == 2

    def test_merging_by_hand_moves_the_uses_and_can_be_undone(self, bank):
        a, b = bank.add(reset(reward=1.0)), bank.add(reset("HR", reward=0.0))
        bank.credit(bank.recall("Reset my password"), Reward.of(1.0), key="u")
        before = bank.snapshot
        kept = bank.merge([b.id, a.id])
        assert (kept.id, kept.reward, kept.parents) == (a.id, 0.5, (b.id,))
        assert len(bank.show(a.id).uses) == 2
        assert not bank.show(b.id).living
        bank.undo(bank.seq)
        assert bank.snapshot == before
        with pytest.raises(InputError, match="two different"):
            bank.merge([a.id, a.id])


class TestTrust:
    WEB = Provenance(source="web", untrusted=True)

    def test_what_rests_on_untrusted_text_is_not_recalled(self, bank):
        case = bank.add(reset(reward=1.0, provenance=self.WEB))
        assert case.trust == "quarantined"
        assert bank.recall("Reset my password").ids == ()
        assert bank.list(trust="quarantined") == (case,)
        bank.promote(case.id, why="read it")
        assert bank.recall("Reset my password").ids == (case.id,)
        bank.quarantine(case.id)
        assert bank.recall("Reset my password").ids == ()
        bank.undo(bank.seq)
        assert bank.recall("Reset my password").ids == (case.id,)

    @pytest.mark.parametrize(
        ("reward", "trust"),
        [
            (Reward.of(1.0, source="exact"), "trusted"),
            (Reward.of(0.0, source="exact"), "quarantined"),
            (Reward.of(1.0, source="judge"), "quarantined"),
            (Reward.of(1.0), "quarantined"),
        ],
    )
    def test_only_a_verified_success_lets_it_in(self, bank, reward, trust):
        assert bank.retain(reset(provenance=self.WEB), reward=reward).trust == trust

    def test_a_verified_repetition_promotes_it(self, bank):
        case = bank.add(reset(reward=1.0, provenance=self.WEB))
        again = bank.retain(reset(provenance=self.WEB), reward=Reward.of(1.0, source="exact"))
        assert (again.id, again.trust, again.attempts) == (case.id, "trusted", 2)

    def test_a_quarantined_one_never_changes_a_trusted_one(self, bank):
        good = bank.add(reset(reward=1.0))
        bad = bank.add(reset(reward=0.0, provenance=self.WEB))
        assert bad.id != good.id
        assert bank[good.id] == good
        with pytest.raises(InputError, match="is quarantined and the others are not"):
            bank.merge([good.id, bad.id])

    def test_many_quarantined_ones_do_not_crowd_out_the_rest(self, bank):
        good = bank.add(reset(reward=1.0))
        bank.add_many(Case.of(f"Reset my password {i}", f"Evil {i}", provenance=self.WEB) for i in range(80))
        assert bank.recall("Reset my password 3").ids == (good.id,)


class TestRoom:
    def test_a_bank_keeps_its_capacity_and_what_helps(self, tmp_path):
        bank = CaseBank(tmp_path / "b", embedder=EMBEDDER, rules=WriteRules(capacity=10))
        good = bank.add(reset(reward=1.0))
        for i in range(5):
            bank.credit(bank.recall("Reset my password"), Reward.of(1.0), key=f"g{i}")
            bank.credit(bank.recall("nothing like it"), Reward.of(0.0), key=f"n{i}")
        for i in range(40):
            bank.add(Case.of(f"Question {i} of {i * 7919}", f"Answer {i}"))
            assert len(bank) <= 10
        assert good.id in {case.id for case in bank}
        assert bank.log()[0].notes[0].endswith("gave way: the bank has 10.")
        assert bank.show(bank.log()[0].notes[0].split()[0]).living is False
        bank.close()

    def test_one_source_cannot_flood_a_bank(self, tmp_path):
        bank = CaseBank(tmp_path / "b", embedder=EMBEDDER, rules=WriteRules(per_source=3))
        good = [bank.add(Case.of(f"Mine {i}", f"A{i}", provenance=Provenance(source="me"))) for i in range(3)]
        bank.add_many(Case.of(f"Spam {i}", f"S{i}", provenance=Provenance(source="spam")) for i in range(20))
        assert bank.stats().sources == {"me": 3, "spam": 3}
        assert set(bank.list(source="me")) == set(good)
        bank.close()

    def test_an_id_is_never_given_again(self, bank):
        first = bank.add(reset())
        bank.remove(first.id)
        again = bank.add(reset())
        assert again.id != first.id
        bank.undo(2)
        assert {case.id for case in bank} == {first.id, again.id}


class TestCorrecting:
    def test_another_action_begins_with_a_clean_record(self, bank):
        case = bank.add(reset("HR", reward=1.0))
        bank.credit(bank.recall("Reset my password"), Reward.of(0.0), key="u")
        new = bank.correct(case.id, action="IT desk", why="HR sent it back")
        assert (new.id, new.action, new.reward, new.revision) == (case.id, "IT desk", None, 2)
        assert bank.show(case.id).uses == ()
        assert bank.store.mean_reward() == 0.0  # the attempt itself happened
        bank.undo(bank.seq)
        assert bank[case.id] == case
        assert len(bank.show(case.id).uses) == 1

    def test_another_state_is_found_by_it(self, bank):
        case = bank.add(reset(reward=1.0))
        bank.correct(case.id, state="Zebra crossing")
        assert bank.recall("Zebra").ids == (case.id,)
        assert bank.recall("Reset my password").ids == ()
        bank.undo(bank.seq)
        assert bank.recall("Reset my password").ids == (case.id,)

    def test_nothing_to_correct_and_no_such_case(self, bank):
        case = bank.add(reset(reward=1.0))
        with pytest.raises(InputError, match="says this already"):
            bank.correct(case.id, action="IT desk")
        with pytest.raises(InputError, match="No case 'c-x'"):
            bank.correct("c-x", action="y")
        bank.remove(case.id)
        with pytest.raises(InputError, match="was removed"):
            bank.promote(case.id)


class TestBadInput:
    @pytest.mark.parametrize("state", ["", "  \n"])
    def test_an_empty_state(self, bank, state):
        with pytest.raises(InputError, match="needs a state"):
            Case.of(state, "x")
        with pytest.raises(InputError, match="needs a state"):
            bank.add(reset().model_copy(update={"state": state}))
        with pytest.raises(InputError, match="nothing to compare in an empty state"):
            bank.recall(state)

    @pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
    def test_a_reward_that_is_no_number(self, reward):
        with pytest.raises(InputError, match="must be a finite number, not"):
            Case.of("s", "a", reward=reward)

    def test_case_and_reward_that_disagree(self, bank):
        with pytest.raises(InputError, match="worth 1, and the reward says 0"):
            bank.retain(reset(reward=1.0), reward=Reward.of(0.0))

    def test_ten_megabytes_are_shortened_with_a_mark_and_said(self, bank):
        huge = "begin " + "x" * 10_000_000 + " end"
        case = bank.add(Case.of("s", huge, trace=[huge] * 3 + ["step"] * 500))
        assert case.action.startswith("begin ")
        assert case.action.endswith(" end")
        assert "characters left out" in case.action
        assert len(case.action) < MOST_CHARACTERS + 100
        assert sum(map(len, case.trace)) < 5 * MOST_CHARACTERS
        notes = "\n".join(bank.show(case.id).log[0].notes)
        assert "The action has 10,000,010 characters" in notes
        assert f"limit {MOST_CHARACTERS:,}" in notes
        assert "The trace has 503 steps" in notes

    def test_half_characters_become_question_marks(self, bank):
        case = bank.add(Case.of("bad \udce9 state", "a\ud800"))
        assert (case.state, case.action) == ("bad ? state", "a?")
        assert bank.recall("bad \udce9 state").ids == (case.id,)
        with pytest.raises(InputError, match="state: "):
            Case.of(b"\xff\xfe", "a")  # type: ignore[arg-type]

    def test_a_state_beyond_the_embedders_window_is_said_and_kept(self, tmp_path):
        class Narrow(HashEmbedder):
            window = 16

        bank = CaseBank(tmp_path / "b", embedder=Narrow(64))
        case = bank.add(Case.of("word " * 100, "a"))
        assert bank[case.id].state == "word " * 100
        assert "compares the first 16 alone" in bank.log()[0].notes[0]
        bank.close()

    def test_secrets_do_not_reach_the_disk(self, bank, tmp_path):
        case = bank.add(
            Case.of(f"Log in with {TOKEN}", f"curl https://me:hunter22@x.org -H {TOKEN}", trace=[f"token={TOKEN}"])
        )
        bank.retain(Case.of("s", "a", reward=1.0), used=bank.recall(f"again {TOKEN}"), key="k")
        bank.correct(case.id, action=f"use {TOKEN}")
        assert case.state == "Log in with [redacted: GitHub token]"
        assert "The state held a secret (GitHub token); it was taken out." in bank.show(case.id).log[-1].notes
        bank.close()
        held = b"".join(file.read_bytes() for file in (tmp_path / "bank").iterdir())
        assert TOKEN.encode() not in held
        assert b"hunter22" not in held

    def test_another_embedder(self, bank, tmp_path):
        case = bank.add(reset(reward=1.0))
        with pytest.raises(EmbedderMismatch, match=r"written with the embedder hash-64 .*not with hash-128"):
            CaseBank(tmp_path / "bank", embedder=HashEmbedder(128))
        with closing(CaseBank(tmp_path / "bank")) as other:  # what needs no embedder works without it
            assert other.list() == (case,)
            with pytest.raises(EmbedderMismatch, match="hash-64, which has to be given"):
                other.recall("Reset")

    def test_a_bank_is_embedded_again(self, bank, tmp_path):
        case = bank.add(reset(reward=1.0))
        bank.credit(bank.recall("Reset my password"), Reward.of(1.0), key="u")
        before = bank.snapshot
        bank.recall("Reset")
        with closing(CaseBank(tmp_path / "bank")) as other:
            other.reembed(HashEmbedder(128))
            assert other.recall("Reset my password").ids == (case.id,)
            assert [len(state) for state, _ in other.store.uses([case.id])[case.id]] == [128]
            assert other.snapshot == before
        with pytest.raises(EmbedderMismatch):
            bank.recall("Reset my password")
        with pytest.raises(EmbedderMismatch):
            bank.add(Case.of("another", "x"))

    def test_all_is_embedded_again_while_a_text_is_embedded(self, bank, tmp_path, monkeypatch):
        """Loading an embedder, or asking one by API, takes seconds; vectors of two must not be compared."""
        bank.add(reset(reward=1.0))
        embed = bank.embedder.embed

        other = HashEmbedder(64)
        other.name = "other"

        def meanwhile(texts):
            monkeypatch.undo()
            with closing(CaseBank(tmp_path / "bank")) as another:
                another.reembed(other)
            return embed(texts)

        monkeypatch.setattr(bank.embedder, "embed", meanwhile)
        with pytest.raises(EmbedderMismatch, match="written with the embedder other"):
            bank.recall("Something new")

    def test_an_embedder_that_gives_nonsense(self, tmp_path):
        class Broken:
            name = "broken"

            def embed(self, texts):
                return np.full((len(texts), 4), np.nan, np.float32)

        bank = CaseBank(tmp_path / "b", embedder=Broken())
        with pytest.raises(InputError, match="must give one finite vector a text"):
            bank.add(reset())
        assert len(bank) == 0
        bank.close()

    def test_a_newer_schema(self, bank, tmp_path):
        bank.store._writer.execute("PRAGMA user_version=99")
        with pytest.raises(MemoryStoreError, match="schema 99, newer than this agentmem reads"):
            CaseBank(tmp_path / "bank", embedder=EMBEDDER)

    def test_places_that_are_no_bank(self, tmp_path):
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "a.txt").write_text("x")
        with pytest.raises(InputError, match=r"is no case bank: it holds a.txt but no cases.sqlite"):
            CaseBank(tmp_path / "notes")
        with pytest.raises(InputError, match="is a file; a case bank is a folder"):
            CaseBank(tmp_path / "notes" / "a.txt")
        with pytest.raises(InputError, match="There is no case bank at"):
            CaseBank(tmp_path / "nowhere", create=False)
        assert not (tmp_path / "nowhere").exists()

    def test_another_programs_database_and_a_damaged_one(self, tmp_path):
        for name in ("other", "broken"):
            (tmp_path / name).mkdir()
        with closing(sqlite3.connect(tmp_path / "other" / "cases.sqlite")) as db:
            db.execute("CREATE TABLE t (x)")
        with pytest.raises(InputError, match="is a database, but no case bank's"):
            CaseBank(tmp_path / "other")
        (tmp_path / "broken" / "cases.sqlite").write_bytes(b"no database at all " * 100)
        with pytest.raises(MemoryStoreError, match="is damaged"):
            CaseBank(tmp_path / "broken")

    def test_a_full_disk_loses_nothing(self, bank, tmp_path):
        kept = [bank.add(Case.of(f"state {i}", f"{i}" * 500)) for i in range(20)]
        pages = bank.store._writer.execute("PRAGMA page_count").fetchone()[0]
        bank.store._writer.execute(f"PRAGMA max_page_count={pages + 2}")
        with pytest.raises(MemoryStoreError, match="All that it had acknowledged is still in it"):
            bank.add_many([Case.of(f"more {i}", "b" * 500) for i in range(100)])
        with closing(CaseBank(tmp_path / "bank", embedder=EMBEDDER)) as other:
            assert other.list() == bank.list() == tuple(kept)
            other.add(reset())


class TestQuestions:
    def test_search_says_why(self, bank):
        case = bank.add(reset(reward=1.0))
        found = bank.search("Reset my password").cases[0]
        assert (found.case, round(found.similarity, 4)) == (case, 1.0)
        assert 0.9 < found.mu0 == found.mu

    def test_the_hash_is_of_content_and_not_of_how_it_came(self, tmp_path):
        one, two = (CaseBank(tmp_path / name, embedder=EMBEDDER) for name in "ab")
        cases = [Case.of(f"state {i}", f"action {i}", reward=1.0) for i in range(4)]
        one.add_many(cases)
        for case in reversed(cases):
            two.add(case)
        extra = two.add(reset())
        assert one.snapshot != two.snapshot
        two.remove(extra.id)
        assert one.snapshot == two.snapshot
        one.credit(one.recall("state 1", k=1), Reward.of(1.0), key="x")
        assert one.snapshot != two.snapshot
        two.credit(two.recall("state 1", k=1), Reward.of(1.0), key="another")
        assert one.snapshot == two.snapshot
        one.close(), two.close()

    def test_an_audit_names_what_may_be_wrong(self, tmp_path):
        bank = CaseBank(tmp_path / "b", embedder=EMBEDDER, rules=WriteRules(merge_at=None))
        assert str(bank.audit()) == "0 cases audited.\nNothing found."
        a = bank.add(Case.of("Reset my password", "IT desk", reward=1.0))
        b = bank.add(Case.of("Reset my password!", "IT desk", reward=1.0))
        web = Provenance(source="web", untrusted=True)
        bank.add_many(Case.of(f"topic {i * 7919}", f"x{i}", provenance=web, gated=i == 0) for i in range(30))
        for i in range(25):
            bank.credit(bank.recall("Reset my password", k=1), Reward.of(0.0), key=str(i))
        with bank.store.writing() as db:  # as an older table of secrets would have let through
            body = a.model_copy(update={"trace": (TOKEN,)}).model_dump_json()
            db.execute("UPDATE cases SET body = ? WHERE id = ?", (body, a.id))
        found = {finding.kind: finding for finding in bank.audit().findings}
        assert set(found) == {"duplicates", "secrets", "source", "retrieval", "quarantined", "gated"}
        assert found["duplicates"].ids == (a.id, b.id)
        assert found["secrets"].ids == (a.id,)
        assert "94% of the cases come from 'web'" in found["source"].text
        assert "was in 100% of 25 recalls, which were worth 0.00" in found["retrieval"].text
        bank.close()

    def test_stats(self, bank):
        bank.add(reset(reward=1.0))
        bank.add(reset("HR", reward=0.0))
        gone = bank.add(Case.of("x", "y"))
        bank.add(Case.of("z", "y", gated=True))
        bank.remove(gone.id)
        stats = bank.stats()
        assert (stats.cases, stats.removed, stats.succeeded, stats.failed, stats.unknown) == (3, 1, 1, 1, 1)
        assert (stats.gated, stats.embedder, stats.dimensions, stats.changes) == (1, "hash-64", 64, 5)


class TestFiles:
    def test_export_and_import_give_the_same_bank(self, bank, tmp_path):
        bank.add_many(
            Case.of(f"state {i}\u2028\x00", f"a {i}", reward=i % 2, trace=("1", "2"), cluster="c")
            for i in range(9)
        )
        case = bank.add(reset("HR", reward=1.0, provenance=Provenance(source="web", place="3", untrusted=True)))
        bank.promote(case.id)
        for i in range(5):
            bank.credit(bank.recall(f"state {i}"), Reward.of(i / 3), key=str(i))
        bank.correct(bank.list()[0].id, action="other", reward=0.1 + 0.2)
        file = tmp_path / "bank.jsonl"
        assert bank.export(file) == 10
        with closing(CaseBank(tmp_path / "copy", embedder=EMBEDDER)) as copy:
            copy.import_file(file)
            assert copy.snapshot == bank.snapshot
            assert copy.store.mean_reward() == pytest.approx(bank.store.mean_reward())
            copy.export(tmp_path / "again.jsonl")
            assert (tmp_path / "again.jsonl").read_bytes() == file.read_bytes()
            copy.import_file(file)  # and nothing comes twice
            assert copy.snapshot == bank.snapshot
            copy.rollback(0)
            assert (len(copy), copy.stats().uses) == (0, 0)

    def test_a_gated_bank_is_exported_only_when_that_is_said(self, bank, tmp_path):
        bank.add(reset(gated=True))
        with pytest.raises(InputError, match="gated data set had a part in 1 case"):
            bank.export(tmp_path / "x")
        assert not (tmp_path / "x").exists()
        assert bank.export(tmp_path / "x", allow_gated=True) == 1
        with closing(CaseBank(tmp_path / "copy", embedder=EMBEDDER)) as copy:
            assert copy.import_file(tmp_path / "x")[0].gated

    def test_mementos_three_schemas(self, bank, tmp_path):
        rows = [
            {"question": "Q1", "plan": {"plan": [{"id": 1, "description": "d"}]}, "reward": 1},
            {"case": "Q2", "plan": "p2", "case_label": "negative"},
            {"query": "Q9", "case": "Q3", "plan": "p3", "case_label": "positive", "truth_label": False},
            {"question": "Q4", "plan": "p4"},
        ]
        (tmp_path / "memory.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        cases = bank.import_file(tmp_path / "memory.jsonl")
        assert [(case.state, case.reward) for case in cases] == [
            ("Q1", 1.0),
            ("Q2", 0.0),
            ("Q3", 1.0),
            ("Q4", None),
        ]
        assert cases[0].action == '{"plan": [{"id": 1, "description": "d"}]}'
        assert cases[1].provenance == Provenance(source="memory.jsonl", place="memory.jsonl:2")

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            (b'{"question": "q", "plan": "p"}\n{oops', "line 2 is no JSON"),
            (b"[1]", "line 1 is no case, but list"),
            (b'{"a": 1}', "line 1 is no case: it has a; it needs 'question' and 'plan'"),
            (b'{"question": "q", "plan": "p", "reward": "perhaps"}', "the label 'perhaps' is not known"),
            (b'{"question": "q", "plan": "p", "reward": NaN}', "must be a finite number, not nan"),
            (b'{"question": "", "plan": "p"}', "needs a state"),
            (b'{"question": "\xff", "plan": "p"}', "UTF-8"),
            (b'{"form": "agentmem cases", "schema": 9}', "schema 9 is newer"),
            (b'{"case": {"id": "c-1"}}', "line 1 is no case: state"),
            (b"\n", "holds no case"),
        ],
    )
    def test_a_bad_file_is_said_and_nothing_is_written(self, bank, tmp_path, text, says):
        (tmp_path / "f.jsonl").write_bytes(text)
        with pytest.raises(InputError, match=says):
            bank.import_file(tmp_path / "f.jsonl")
        assert bank.seq == 0
