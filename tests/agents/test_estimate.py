"""What a dry run says that a run will take."""

from __future__ import annotations

from agentmem.agents.agent import Agent
from agentmem.agents.estimate import Estimate
from agentmem.domain.task import Task
from agentmem.rewards.exact import Exact
from agentmem.rewards.judge import Judge
from agentmem.settings import ModelSettings
from agentmem.testing.scripted import ScriptedModel

TASKS = [Task(id=str(i), input="Say something nice.", answer="hello") for i in range(10)]
PRICED = ModelSettings(prompt_price=1.0, completion_price=2.0)
AGENT = Agent(ScriptedModel(["hello"]), calls=PRICED, max_steps=1, max_completion_tokens=100)


def test_a_judge_is_one_more_call_for_each_attempt():
    plain = Estimate.of(AGENT, [(TASKS, 3)], reward=Exact())
    judged = Estimate.of(AGENT, [(TASKS, 3)], reward=Judge(rubric="Polite."))
    assert (plain.calls, judged.calls) == ((30, 30), (60, 60))
    assert judged.attempts == 30
    assert all(more > less for more, less in zip(judged.tokens, plain.tokens, strict=True))
    assert all(more > less for more, less in zip(judged.dollars, plain.dollars, strict=True))
    # At most the judge reads 100 tokens of each answer beside the task, and writes 1024.
    assert judged.tokens[1] - plain.tokens[1] >= 30 * (100 + 1024)


def test_a_judge_without_a_known_price_leaves_the_cost_unknown():
    other = Judge("openai/nobody-knows-it", rubric="Polite.")
    assert Estimate.of(AGENT, [(TASKS, 1)], reward=other).dollars is None
    assert Estimate.of(AGENT, [(TASKS, 1)], reward=Judge(rubric="Polite.")).dollars is not None


def test_a_planners_dry_run_is_priced_by_the_dearer_of_its_models(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def most(planner, executor):
        agent = Agent(planner, style="planner", executor=executor, max_steps=2)
        return Estimate.of(agent, [(TASKS, 1)])

    cheap, dear = "openai/gpt-4.1-nano", "openai/gpt-4.1"
    assert most(cheap, dear).dollars[1] == most(dear, cheap).dollars[1] > most(cheap, cheap).dollars[1]
    assert most(cheap, dear).dollars[0] == most(cheap, cheap).dollars[0]
    assert most(cheap, "openai/nobody-knows-it").dollars is None
    assert most(cheap, dear).calls == (10, 10 * (3 * (2 + 8) + 2))
