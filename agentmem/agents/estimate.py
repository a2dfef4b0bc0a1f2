"""What a run will take, before anything is spent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from agentmem import format as fmt
from agentmem.agents.agent import Agent
from agentmem.domain.task import Task
from agentmem.domain.usage import Usage, estimate_tokens
from agentmem.models.gateway import price_for


@dataclass(frozen=True)
class Estimate:
    """Attempts, calls, tokens and dollars of a run: the least and the most."""

    attempts: int
    """At most; a gate that decides early takes fewer."""
    calls: tuple[int, int]
    """One call an attempt, and as many as an attempt may have turns; retries come on top."""
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
        prior_tokens: int | None = None,
        extra_calls: int = 0,
        extra_tokens: int = 0,
        notes: tuple[str, ...] = (),
    ) -> Estimate:
        """Add up phases, each tasks with their attempts per task.

        Args:
            agent: what acts.
            phases: tasks and attempts per task.
            prior_tokens: the most that the prior may grow to; by default the agent's prior as it is.
            extra_calls: calls at most that are no attempts, such as an extractor's.
            extra_tokens: tokens that each of those may take.
            notes: what else a person should know before spending.
        """
        turns = agent.settings.max_steps if agent.tools.specs else 1
        fixed = estimate_tokens(agent.system + str(agent.prior))
        attempts = sum(len(tasks) * each for tasks, each in phases)
        prompts = sum((estimate_tokens(task.input) + fixed) * each for tasks, each in phases for task in tasks)
        grown = max((prior_tokens or 0) - fixed, 0) * attempts
        replies = attempts * agent.settings.max_completion_tokens
        most_prompts = (prompts + grown) * turns + replies * turns * (turns - 1) // 2
        read = most_prompts + extra_calls * extra_tokens
        price = price_for(agent.model.name, agent.calls) if agent.model else None
        return cls(
            attempts=attempts,
            calls=(attempts, attempts * turns + extra_calls),
            tokens=(prompts, read + replies * turns),
            dollars=None
            if price is None
            else (
                price.cost(Usage(prompt_tokens=prompts)),
                price.cost(
                    Usage(
                        prompt_tokens=most_prompts + extra_calls * extra_tokens, completion_tokens=replies * turns
                    )
                ),
            ),
            notes=notes,
        )

    def plus(self, other: Estimate, *, notes: tuple[str, ...]) -> Estimate:
        """Both together, with these notes."""
        dollars = None
        if self.dollars and other.dollars:
            dollars = (self.dollars[0] + other.dollars[0], self.dollars[1] + other.dollars[1])
        return Estimate(
            attempts=self.attempts + other.attempts,
            calls=(self.calls[0] + other.calls[0], self.calls[1] + other.calls[1]),
            tokens=(self.tokens[0] + other.tokens[0], self.tokens[1] + other.tokens[1]),
            dollars=dollars,
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
