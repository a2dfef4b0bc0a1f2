"""Options from a file."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest


def test_a_recipe_fills_what_no_flag_gave(cli, sums) -> None:
    Path("r.toml").write_text(
        'model = "scripted/learner?p=0.3"\ngroup_size = 4\nepochs = 1\n"gate-rounds" = 2\n'
        'tool = ["python"]\nlogprobs = true\nlimit = 30\nmax_calls = 1000\nsystem = """two\nlines"""\n'
    )
    done = cli("learn", sums, "--config", "r.toml", "--group-size", 3, "--run", "r")
    assert done.code == 0, done.err
    asked = tomllib.loads(Path("r/run.toml").read_text())
    assert (asked["settings"]["group_size"], asked["settings"]["epochs"], asked["settings"]["gate_rounds"]) == (
        3,
        1,
        2,
    )
    assert (asked["agent"]["tools"], asked["agent"]["system"]) == (["python"], "two\nlines")
    assert asked["agent"]["settings"]["logprobs"] is True


def test_a_flag_can_take_back_what_a_recipe_sets(cli, sums) -> None:
    Path("r.toml").write_text('model = "scripted/echo"\nlogprobs = true\nlimit = 2\n')
    assert cli("eval", sums, "--config", "r.toml", "--logprobs=false", "--run", "r").code == 0
    assert tomllib.loads(Path("r/run.toml").read_text())["agent"]["settings"]["logprobs"] is False


def test_even_the_tasks_may_stand_in_it(cli, sums) -> None:
    Path("r.toml").write_text(f'model = "scripted/echo"\nlimit = 2\ntasks = "{sums}"\n')
    assert "2 tasks of 'sums'" in cli("eval", "--config", "r.toml").out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("group_sise = 3", "r.toml: learn has no option 'group_sise'. Did you mean 'group_size'?"),
        ("samples = 3", "r.toml: learn has no option 'samples'."),
        ("learn = 1", "r.toml: learn has no option 'learn'."),
        ("help = true", "r.toml: learn has no option 'help'."),
        ('config = "r.toml"', "r.toml: learn has no option 'config'."),
        ("[learning]\nepochs = 1", "r.toml: 'learning' is a table; write its keys at the top level"),
        ("epochs = ", "r.toml is no TOML: Invalid value (at"),
        ("epochs = 1.5", "r.toml: epochs = '1.5': Input should be a valid integer"),
        ("gate_share = 1.5", "r.toml: gate_share = '1.5': Input should be less than 1"),
        ("limit = 0", "[limit] provided by r.toml. Must be >= 1"),
        ('model = ["a", "b"]', "[model] from r.toml"),
        ("\xe9 = 1", "is not UTF-8"),
    ],
)
def test_what_is_wrong_with_a_recipe_is_named(cli, sums, content, said) -> None:
    Path("r.toml").write_bytes(content.encode("latin-1"))
    done = cli("learn", sums, "--config", "r.toml")
    assert said in done.sentence
    assert done.code == 2


def test_a_missing_recipe_is_named(cli, sums) -> None:
    assert "There is no recipe 'no.toml'." in cli("learn", sums, "--config", "no.toml").sentence
