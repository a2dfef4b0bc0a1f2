"""Malformed extractor output of forty kinds: repaired or rejected with a reason, never applied half."""

from __future__ import annotations

import json

import pytest

from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add, Merge
from agentmem.learning.proposals import Proposals, limited, read_operation
from agentmem.models.structured import parse

GOOD = '{"op": "add", "text": "Check the units.", "when": "numbers have units"}'
LIBRARY = ExperienceLibrary().apply([Add(text="Old."), Add(text="Older.")])
OLD, OLDER = (e.id for e in LIBRARY)

REPAIRED = {
    "fenced": f'```json\n{{"operations": [{GOOD}]}}\n```',
    "prose before": f'Here is what I found: {{"operations": [{GOOD}]}}',
    "prose after": f'{{"operations": [{GOOD}]}} I hope this helps.',
    "single quotes": "{'operations': [{'op': 'add', 'text': 'Check the units.', 'when': 'numbers have units'}]}",
    "trailing commas": '{"operations": [{"op": "add", "text": "Check the units.", "when": "numbers have units",},],}',
    "missing last braces": f'{{"operations": [{GOOD}',
    "comments": f'{{"operations": [ // the lesson\n {GOOD}]}}',
    "unquoted keys": '{operations: [{op: "add", text: "Check the units.", when: "numbers have units"}]}',
    "upper-case op": f'{{"operations": [{GOOD.replace("add", "ADD", 1)}]}}',
    "op under another key": f'{{"operations": [{GOOD.replace("op", "operation", 1)}]}}',
    "another word for add": f'{{"operations": [{GOOD.replace("add", "create", 1)}]}}',
    "white space around": f'  \n\n {{"operations": [{GOOD.replace("Check the units.", "  Check the units.  ")}]}} \n',
    "unknown extra fields": f'{{"confidence": 3, "operations": [{GOOD[:-1]}, "mood": "good"}}]}}',
    "forged origins and marks": f'{{"operations": [{GOOD[:-1]}, "origins": [], "gated": false, "kind": "example"}}]}}',
    "null fields": f'{{"operations": [{GOOD[:-1]}, "when_not": null, "why": null}}]}}',
    "a newline in a string": f'{{"operations": [{GOOD.replace("units.", "units." + chr(10))}]}}',
    "two fences": f'```\nthinking\n```\n```json\n{{"operations": [{GOOD}]}}\n```',
    "byte order mark": f'\ufeff{{"operations": [{GOOD}]}}',
}
REFUSED_WHOLE = {
    "empty": "",
    "prose only": "I see no lesson here.",
    "a list": f"[{GOOD}]",
    "a string": '"add"',
    "a number": "42",
    "null": "null",
    "no operations": "{}",
    "operations as text": '{"operations": "add a lesson"}',
    "operations as object": f'{{"operations": {GOOD}}}',
    "another schema": '{"lessons": []}',
}
REFUSED_ONE = {
    "not an object": '"add"',
    "no op": '{"text": "x"}',
    "unknown op": '{"op": "explode", "text": "x"}',
    "empty text": '{"op": "add", "text": "  "}',
    "no text": '{"op": "add"}',
    "text as list": '{"op": "add", "text": ["x"]}',
    "huge text": json.dumps({"op": "add", "text": "x" * 5000}),
    "modify without id": '{"op": "modify", "text": "x"}',
    "modify of nothing": f'{{"op": "modify", "id": "{OLD}"}}',
    "merge of one": f'{{"op": "merge", "ids": ["{OLD}"], "text": "x"}}',
    "merge of the same": f'{{"op": "merge", "ids": ["{OLD}", "{OLD}"], "text": "x"}}',
    "merge without text": f'{{"op": "merge", "ids": ["{OLD}", "{OLDER}"]}}',
    "delete without id": '{"op": "delete"}',
    "keep of one": f'{{"op": "keep", "ids": ["{OLD}"]}}',
    "ids as text": f'{{"op": "keep", "ids": "{OLD}"}}',
}


def test_there_are_forty_kinds():
    assert len(REPAIRED) + len(REFUSED_WHOLE) + len(REFUSED_ONE) >= 40


@pytest.mark.parametrize("kind", REPAIRED)
def test_repaired(kind):
    proposals = parse(REPAIRED[kind], Proposals)
    (operation,) = proposals.operations
    assert isinstance(operation, Add)
    assert (operation.kind, operation.origins, operation.gated) == ("lesson", (), False)
    assert (operation.text.strip(), operation.when) == ("Check the units.", "numbers have units")
    assert LIBRARY.revise([operation]).decisions[0].accepted


@pytest.mark.parametrize("kind", REFUSED_WHOLE)
def test_refused_as_a_whole_with_a_reason(kind):
    with pytest.raises(ValueError, match=r"\w"):
        parse(REFUSED_WHOLE[kind], Proposals)


@pytest.mark.parametrize("kind", REFUSED_ONE)
def test_one_bad_proposal_has_its_reason_and_does_not_cost_the_others(kind):
    proposals = parse(
        f'{{"operations": [{GOOD}, {REFUSED_ONE[kind]}, {{"op": "delete", "id": "{OLD}"}}]}}', Proposals
    )
    assert [operation.op for operation in proposals.operations] == ["add", "delete"]
    assert len(proposals.unreadable) == 1
    assert proposals.unreadable[0].reason
    revision = LIBRARY.revise(proposals.operations)
    assert [decision.accepted for decision in revision.decisions] == [True, True]


def test_a_delete_needs_no_text():
    (operation,) = parse(
        f'{{"operations": [{{"op": "delete", "id": "{OLD}", "text": null}}]}}', Proposals
    ).operations
    assert OLD not in [e.id for e in LIBRARY.apply([operation])]


def test_additions_are_limited_and_the_rest_is_not():
    many = parse(
        f'{{"operations": [{GOOD}, {GOOD}, {{"op": "delete", "id": "{OLD}"}}, {GOOD}]}}', Proposals
    ).operations
    assert [operation.op for operation in limited(many, 2)] == ["add", "add", "delete"]


@pytest.mark.parametrize(("said", "tool"), [("fetch", "fetch"), ("", ""), ("all tools!", ""), (None, ""), (3, "")])
def test_an_addition_may_name_its_tool(said, tool):
    operation = read_operation({"op": "add", "text": "Use read_file.", "tool": said})
    assert operation.tool == tool


def test_of_merged_lessons_the_tool_stays_where_it_is_one():
    library = ExperienceLibrary().apply(
        [Add(text="One.", tool="fetch"), Add(text="Two.", tool="fetch"), Add(text="Three.")]
    )
    one, two, three = (e.id for e in library)
    same = library.apply([Merge(ids=(one, two), text="Both.")])
    other = library.apply([Merge(ids=(one, three), text="Both.")])
    assert [e.tool for e in same] == ["", "fetch"]
    assert [e.tool for e in other] == ["fetch", ""]
