"""What a run will take, before anything is spent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from agentmem import format as fmt
from agentmem.agents.agent import Agent
from agentmem.agents.attempt import JUDGE_TOKENS
from agentmem.domain.task import Task
from agentmem.domain.usage import Usage, estimate_tokens
from agentmem.models.gateway import price_for
from agentmem.models.prices import Price
from agentmem.rewards.judge import Judge
from agentmem.rewards.reward_function import RewardFunction
from agentmem.settings import ModelSettings


@dataclass(frozen=True)
class Estimate:
    """Attempts, calls, tokens and dollars of a run: the least and the most."""

    attempts: int
    """At most; a gate that decides early takes fewer."""
    calls: tuple[int, int]
    """One call an attempt, and as many as an attempt may have turns; one more where a model judges it. Retries come
    on top."""
    tokens: tuple[int, int]
    """Prompts estimated at 4 bytes a token; replies of 0 tokens, and of the most that a turn may have."""
    dollars: tuple[float, float] | None
    """None where the model has no known price."""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        agent: Agent,
        phases: Sequence[tuple[Sequence[Task], int]],
        *,
        reward: RewardFunction | None = None,
        prior_tokens: int | None = None,
        extra_calls: int = 0,
        extra_tokens: int = 0,
        notes: tuple[str, ...] = (),
    ) -> Estimate:
        """Add up phases, each tasks with their attempts per task.

        Args:
            agent: what acts.
            phases: tasks and attempts per task.
            reward: what scores the attempts; a `Judge` makes one call for each.
            prior_tokens: the most that the prior may grow to; by default the agent's prior as it is.
            extra_calls: calls at most that are no attempts, such as an extractor's.
            extra_tokens: tokens that each of those may take.
            notes: what else a person should know before spending.
        """
        turns = agent.most_turns
        fixed = estimate_tokens(agent.system + str(agent.prior))
        attempts = sum(len(tasks) * each for tasks, each in phases)
        prompts = sum((estimate_tokens(task.input) + fixed) * each for tasks, each in phases for task in tasks)
        grown = max((prior_tokens or 0) - fixed, 0) * attempts
        replies = attempts * agent.settings.max_completion_tokens
        most_prompts = (prompts + grown) * turns + replies * turns * (turns - 1) // 2
        read = most_prompts + extra_calls * extra_tokens
        most = Usage(prompt_tokens=read, completion_tokens=replies * turns)
        prices = [price_for(model.name, agent.calls) for model in agent.models] or [None]
        known = [price for price in prices if price is not None]
        # At least one call of the first model; at most all of them at the price of the dearest.
        dearest = max(known, key=lambda price: price.cost(most)) if len(known) == len(prices) else None
        costs = [(Usage(prompt_tokens=prompts), Usage(), prices[0]), (Usage(), most, dearest)]
        judged = 0
        if isinstance(reward, Judge):
            judged = attempts
            marked = sum(estimate_tokens(t.input + reward.rubric) * each for tasks, each in phases for t in tasks)
            at_most = Usage(prompt_tokens=marked + replies, completion_tokens=judged * JUDGE_TOKENS)
            costs.append((Usage(prompt_tokens=marked), at_most, _judge_price(reward, agent)))
        dollars = [(price.cost(low), price.cost(high)) for low, high, price in costs if price is not None]
        return cls(
            attempts=attempts,
            calls=(attempts + judged, attempts * turns + judged + extra_calls),
            tokens=(sum(low.tokens for low, _, _ in costs), sum(high.tokens for _, high, _ in costs)),
            dollars=(sum(low for low, _ in dollars), sum(high for _, high in dollars))
            if len(dollars) == len(costs)
            else None,
            notes=notes,
        )

    @classmethod
    def total(cls, parts: Sequence[Estimate], *, notes: tuple[str, ...] = ()) -> Estimate:
        """What several runs take together; dollars only where each has a price."""
        dollars = [part.dollars for part in parts if part.dollars is not None]
        return cls(
            attempts=sum(part.attempts for part in parts),
            calls=(sum(part.calls[0] for part in parts), sum(part.calls[1] for part in parts)),
            tokens=(sum(part.tokens[0] for part in parts), sum(part.tokens[1] for part in parts)),
            dollars=(sum(low for low, _ in dollars), sum(high for _, high in dollars))
            if len(dollars) == len(parts)
            else None,
            notes=notes,
        )

    def to_json(self) -> str:
        """The estimate for a program; pairs are the least and the most."""
        return json.dumps(asdict(self))

    def table(self) -> fmt.Table:
        """The estimate for a person."""
        low, high = self.dollars or (None, None)
        return fmt.Table(
            title="Dry run: nothing was sent",
            columns=(("", "left"), ("at least", "right"), ("at most", "right")),
            rows=(
                ("attempts", "", fmt.count(self.attempts)),
                ("calls", fmt.count(self.calls[0]), fmt.count(self.calls[1])),
                ("tokens", fmt.count(self.tokens[0]), fmt.count(self.tokens[1])),
                ("cost", fmt.dollars(low), fmt.dollars(high)),
            ),
            caption="\n".join(self.notes),
        )


def _judge_price(judge: Judge, agent: Agent) -> Price | None:
    model = judge.model if judge.model is not None else agent.model
    if model is None:
        return None
    # A price that was given is the agent's; another model has that of the table.
    own = model is agent.model
    return price_for(model if isinstance(model, str) else model.name, agent.calls if own else ModelSettings())
