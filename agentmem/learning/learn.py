"""Learning a library: a plan that can be looked at before it is paid for, and its execution."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from agentmem.agents.agent import Agent
from agentmem.agents.attempt import Conditions
from agentmem.agents.estimate import Estimate
from agentmem.agents.places import Places
from agentmem.agents.sampler import Sampler
from agentmem.domain.callable import name_of, source_hash
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.task import Task, TaskSet
from agentmem.errors import InputError
from agentmem.learning.extractor import ExtractorContext
from agentmem.learning.gate_bound import most_trials
from agentmem.learning.recipe import Recipe
from agentmem.learning.step import Parts
from agentmem.learning.teacher import Teacher
from agentmem.learning.training_free_grpo import TrainingFreeGRPO
from agentmem.memory.embedder import Embedder, open_embedder
from agentmem.models.gateway import Gateways
from agentmem.models.model import Model
from agentmem.prompts import fingerprint as prompts_fingerprint
from agentmem.rewards.reward_function import RewardFunction, Unscored, check_answers, describe
from agentmem.runs.run import Run
from agentmem.settings import LearnSettings

PROMPTS = (
    "answer_now",
    "cases",
    "consolidate",
    "contrast",
    "critique",
    "distil",
    "group_update",
    "left_out",
    "only_answer",
    "plan",
    "prior",
    "quoted",
    "results",
    "shown_files",
    "subtask",
    "subtask_asked",
    "summarise",
    "tips",
)
"""What learning may send to a model."""


@dataclass(frozen=True)
class Learning:
    """A learning run that is asked for."""

    agent: Agent
    train: TaskSet
    gate: TaskSet
    """Held out of the training tasks, or the caller's; empty where nothing is gated."""
    reward: RewardFunction
    settings: LearnSettings
    embedder: Embedder | None = None
    """Instead of the one that the settings name."""
    extractor: Callable[..., Any] | None = None
    """A function `(group, library) -> operations`, instead of the extractor that the settings name."""

    @classmethod
    def of(
        cls,
        agent: Agent,
        tasks: Iterable[Task],
        reward: RewardFunction,
        settings: LearnSettings | None = None,
        *,
        validation: Iterable[Task] | None = None,
        embedder: Embedder | None = None,
        extractor: Callable[..., Any] | None = None,
    ) -> Learning:
        """Check what is asked, and hold the gate's tasks out.

        Raises:
            InputError: there are too few tasks, or the reward can never score one of them.
        """
        settings = settings or LearnSettings()
        check_agent(agent, settings, extractor)
        train, gate = _hold_out(TaskSet.of(tasks), settings, validation)
        if settings.reference == "none":
            train = TaskSet((task.model_copy(update={"answer": None}) for task in train), name=train.name)
            check_answers(reward, gate)
        else:
            check_answers(reward, train, gate)
        agent = agent.with_experience(agent.library, prior_tokens=settings.prior_tokens)
        return cls(agent, train, gate, reward, settings, embedder, extractor)

    @property
    def models(self) -> tuple[str | Model | None, ...]:
        """What it will call."""
        distils = self.extractor is None and self.settings.extractor != "exemplar"
        return (*self.agent.models, self.settings.extractor_model if distils else None)

    @property
    def asked(self) -> dict[str, Any]:
        """What determines the results; see `Run.open`."""
        library = self.agent.library
        return {
            "verb": "learn",
            "agent": self.agent.describe(),
            "reward": describe(self.reward),
            "settings": self.settings.determining(),
            "extractor": f"{name_of(self.extractor)}#{source_hash(self.extractor)}" if self.extractor else None,
            "embedder": self.embedder.name if self.embedder else None,
            "fingerprints": {
                "tasks": self.train.fingerprint,
                "gate": self.gate.fingerprint,
                "library": library.hash if library else "",
                "prompts": prompts_fingerprint(*PROMPTS),
            },
        }

    def estimate(self) -> Estimate:
        """What it will take at most: a gate that decides early, or keeps the incumbent, takes less."""
        s = self.settings
        batch = max(min(s.batch_size or len(self.train), len(self.train)), 1)
        steps = s.epochs * -(-len(self.train) // batch)
        tries = most_trials(s, steps=steps, batch=batch, tasks=len(self.gate))
        phases = [(self.train, s.group_size * s.epochs), (self.gate, tries)]
        a_group = {"fused": 2, "faithful": s.group_size + 4}.get(s.extractor, 0) if self.extractor is None else 0
        calls = len(self.train) * s.epochs * (a_group + s.critique) + steps * 2 * bool(a_group)
        return Estimate.of(
            self.agent,
            phases,
            reward=self.reward,
            prior_tokens=s.prior_tokens,
            extra_calls=calls,  # with a re-ask each; all at the agent's price, also where another model distils
            extra_tokens=s.group_size * s.transcript_tokens + s.prior_tokens + s.extractor_tokens,
            notes=self.notes,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know before spending."""
        s = self.settings
        if s.gate == "always":
            return ("Every candidate library is taken unseen (gate = always), as in the paper.",)
        wanted = max(round(s.gate_share * (len(self.train) + len(self.gate))), s.gate_min_tasks)
        held = f"{len(self.train)} tasks teach, and {len(self.gate)} are held out for the gate"
        if len(self.gate) < min(wanted, s.gate_min_tasks):
            return (f"{held}: too few to decide much, so expect candidates to be refused. Give more tasks.",)
        return (f"{held}.",)

    async def execute(self, run: Run, gateways: Gateways) -> ExperienceLibrary:
        """Learn; the newest library that passed the gate is also in the run's `library.json`.

        Raises:
            BudgetExceeded: the budget is spent; what was paid for is stored.
            TooManyErrors: too many attempts failed for reasons that are not the agent's.
        """
        method = TrainingFreeGRPO(self.train, self.gate, self.parts(run, gateways))
        return await method.learn(self.agent, self.agent.library)

    def parts(self, run: Run, gateways: Gateways) -> Parts:
        """What its steps work with."""
        s = self.settings
        places = Places(s.concurrency)

        def sampler(temperature: float) -> Sampler:
            conditions = Conditions(gateways, self.reward, temperature=temperature, seed=s.seed)
            return Sampler(run, conditions, s.concurrency, s.max_error_share, places)

        rollouts = sampler(s.temperature)
        if s.reference == "none":
            # No reward may look at an answer: agreement within the group takes its place when the group is complete.
            blind = replace(rollouts.conditions, reward=Unscored())
            rollouts = replace(rollouts, conditions=blind)
        embedder = open_embedder(self.embedder or s.embedder)
        return Parts(
            settings=s,
            recipe=Recipe.of(s, embedder, gate_tasks=self.gate, extractor=self.extractor),
            rollouts=rollouts,
            trials=sampler(s.gate_temperature),
            teacher=Teacher(self.reward, rollouts.conditions),
            context=ExtractorContext(
                run=run,
                step=0,
                gateways=gateways,
                extractor_model=s.extractor_model or self.agent.model,
                settings=s,
                embedder=embedder,
                seed=s.seed,
            ),
        )


def check_agent(agent: Agent, settings: LearnSettings, extractor: Callable[..., Any] | None) -> None:
    """Make sure that this agent can learn.

    Raises:
        InputError: it writes to a memory meanwhile, or the extractor needs a model, and there is none.
    """
    if agent.memory is not None and agent.memory.settings.online:
        raise InputError(
            "learn() reads a memory and does not write to it: give the agent one with online=False, "
            "and fill it with evaluate()."
        )
    if extractor is None and settings.extractor != "exemplar" and not (settings.extractor_model or agent.model):
        raise InputError(
            f"extractor={settings.extractor!r} needs a model, and the agent is a callable without one: set "
            "extractor_model, give the agent model=..., or use extractor='exemplar'."
        )


def _hold_out(
    tasks: TaskSet, settings: LearnSettings, validation: Iterable[Task] | None
) -> tuple[TaskSet, TaskSet]:
    """Training tasks and gate tasks. At most half of the tasks are held out; with `gate="always"` none."""
    if settings.gate == "always":
        return tasks, TaskSet([], name="no gate")
    if validation is not None:
        gate = TaskSet(validation, name="validation")
        if both := {task.id for task in tasks} & {task.id for task in gate}:
            raise InputError(
                f"{len(both)} tasks are in the training and in the validation set, such as {min(both)!r}; "
                "a gate must not know them: take them out of one of the two."
            )
        return tasks, TaskSet.of(gate)
    if len(tasks) < 2:
        raise InputError(
            "One task cannot both teach and be held out for the gate; give more, or set gate='always'."
        )
    wanted = max(round(settings.gate_share * len(tasks)), settings.gate_min_tasks)
    gate, train = tasks.split(min(wanted, len(tasks) // 2) / len(tasks), seed=settings.seed)
    return train, gate
