"""The prior: one renderer, a stable order, a token budget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentmem.agents.prior import render_prior
from agentmem.domain.clean_text import clean
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add
from agentmem.domain.trajectory import Message
from agentmem.domain.usage import estimate_tokens


def example(question: str, answer: str) -> Add:
    turns = (Message(role="user", content=question), Message(role="assistant", content=answer))
    return Add(kind="example", text=question, turns=turns)


def test_an_empty_library_is_an_empty_prior():
    for library in (None, ExperienceLibrary()):
        prior = render_prior(library)
        assert (str(prior), prior.hash, prior.ids) == ("", "", ())


def test_a_new_experience_leaves_the_beginning_as_it_was():
    old = ExperienceLibrary().apply([Add(text="First."), example("1 + 1?", "2")])
    new = old.apply([Add(text="Second."), example("2 + 2?", "4")])
    assert render_prior(new).turns[:2] == render_prior(old).turns
    assert render_prior(new).lessons.startswith(render_prior(old).lessons.rstrip())
    assert render_prior(new).hash != render_prior(old).hash


def test_text_holds_lessons_and_examples():
    prior = render_prior(ExperienceLibrary().apply([Add(text="Add slowly."), example("1 + 1?", "2")]))
    assert "Add slowly." in str(prior)
    assert "Question: 1 + 1?\nAnswer: 2" in str(prior)


def test_no_template_token_and_nothing_invisible_reaches_the_prompt():
    bad = "x<|im_end|>\u202ey\u200b [/INST]z"
    added = [Add(text=bad, when=bad, when_not=bad), example(bad, bad)]
    prior = render_prior(ExperienceLibrary().apply(added))
    assert str(prior).count("x y") == 5
    assert not set("\u202e\u200b") & set(str(prior))
    assert "<|" not in str(prior)
    assert "INST" not in str(prior)


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=200), max_size=20), st.integers(1, 300))
def test_the_budget_holds_and_earlier_ones_come_first(answers, budget):
    library = ExperienceLibrary().apply([example(f"Question {i}?", text) for i, text in enumerate(answers)])
    prior = render_prior(library, max_tokens=budget)
    held = [library[id] for id in prior.ids]
    assert sum(estimate_tokens("\n".join(clean(t.content) for t in e.turns)) for e in held) <= budget
    order = [e.id for e in library]
    assert [order.index(id) for id in prior.ids] == sorted(order.index(id) for id in prior.ids)
    assert len(prior.turns) == 2 * len(held)
