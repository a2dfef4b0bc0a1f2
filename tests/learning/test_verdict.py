"""The verdict's law: what is called certain to stay open does stay open, whatever comes in."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agentmem.learning.verdict import Missing, decide, stays_open

differences = st.one_of(st.sampled_from([-1.0, 0.0, 1.0]), st.floats(-1, 1))


@st.composite
def rounds(draw):
    """Known differences, missing ones, and one way in which those may come in."""
    known = draw(st.lists(differences, min_size=draw(st.sampled_from([0, 10, 40])), max_size=60))
    missing, came = [], []
    for _ in range(draw(st.integers(0, 6))):
        least, most = sorted((draw(differences), draw(differences)))
        certain = draw(st.booleans())
        missing.append(Missing(least, most, certain))
        if certain or draw(st.booleans()):
            came.append(draw(st.one_of(st.sampled_from([least, most]), st.floats(least, most))))
    return known, missing, came


@given(rounds(), st.sampled_from([0.05, 0.1, 0.3]), st.sampled_from([0.05, 0.25]))
@settings(max_examples=400, deadline=None)
def test_what_is_certain_to_stay_open_does(case, risk, effect_sd):
    known, missing, came = case
    if stays_open(known, missing, risk=risk, effect_sd=effect_sd) and (known or came):
        assert decide([*known, *came], 1, risk=risk, effect_sd=effect_sd).outcome == "undecided"


def test_it_is_not_too_careful():
    straggler = Missing(-1.0, 1.0)
    assert stays_open([0.0] * 93, [straggler], risk=0.1)
    # With one more the candidate would be accepted, should both gain.
    decisive = next(n for n in range(93) if decide([0.0] * 93 + [1.0] * n, 1, risk=0.1).accepted)
    assert stays_open([0.0] * 93, [straggler] * (decisive - 1), risk=0.1)
    assert not stays_open([0.0] * 93, [straggler] * decisive, risk=0.1)
    # Where tasks differ as they mostly do, it takes many to decide.
    assert stays_open([1.0, -1.0, 0.0, 0.0] * 23, [straggler] * 5, risk=0.1)


def test_nothing_missing_is_decided_or_not():
    assert not stays_open([1.0] * 24, [], risk=0.1)
    assert stays_open([0.0] * 24, [], risk=0.1)
