"""What can be set: one class each for budget, agent, learning and evaluation = API, TOML and flags.

A field's docstring is its documentation everywhere, `--help` included.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Literal, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from agentmem.domain.media import MediaKind
from agentmem.domain.value import Value
from agentmem.errors import InputError


class _Settings(Value):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def determining(self) -> dict[str, Any]:
        """What determines results, to be compared when a run is gone on with.

        A setting that is younger than stored runs is left out where it has the value that they were made under.
        """
        chosen = self.model_dump(exclude=FREE)
        return {name: value for name, value in chosen.items() if name not in _YOUNG or value != _YOUNG[name]}


S = TypeVar("S", bound=_Settings)

SandboxName = Literal["auto", "bubblewrap", "docker", "unsafe-local"]

FREE = {"concurrency", "max_error_share", "contamination"}
"""Settings that do not determine results, so a run may be gone on with under other ones."""


_YOUNG = {"ask_confidence": False, "rewards": "true", "patience": None}
"""Settings that came later, with the value that all runs before them had."""


class Budget(_Settings):
    """What a run may spend. Every limit is reserved before a request is sent, so concurrency cannot overshoot it.

    Example:
        >>> Budget(max_calls=500, max_cost=2.0)
        Budget(max_calls=500, max_tokens=None, max_cost=2.0, max_seconds=None)
    """

    max_calls: int | None = Field(default=None, ge=0)
    """HTTP attempts at most, retries included."""
    max_tokens: int | None = Field(default=None, ge=0)
    """Tokens read and written at most."""
    max_cost: float | None = Field(default=None, ge=0)
    """US dollars at most; needs a model with a known price."""
    max_seconds: float | None = Field(default=None, ge=0)
    """Seconds after which this command sends nothing more."""

    @property
    def buys_less(self) -> bool:
        """Whether it limits what may be bought, so that nothing should be that is not sure to be needed."""
        return (self.max_calls, self.max_tokens, self.max_cost) != (None, None, None)


class ModelSettings(_Settings):
    """How models are called."""

    max_in_flight: int = Field(default=64, ge=1)
    """Requests in flight at most; the gateway finds out how many the server takes, up to this."""
    attempts: int = Field(default=5, ge=1)
    """HTTP attempts for one call at most."""
    retry_seconds: float = Field(default=300.0, gt=0)
    """Seconds after its first attempt when a call is given up."""
    retry_wait: float = Field(default=1.0, ge=0)
    """Seconds of the first wait between two attempts at most; doubled each time, random below that."""
    timeout: float = Field(default=600.0, gt=0)
    """Seconds that one attempt may take."""
    prompt_price: float | None = Field(default=None, ge=0)
    """US dollars for a million prompt tokens; overrides the price table."""
    completion_price: float | None = Field(default=None, ge=0)
    """US dollars for a million completion tokens; overrides the price table."""
    accepts: tuple[MediaKind, ...] | None = None
    """What the model takes beside text: `image`, `audio`. By default what the price table says of it, and nothing where
    it is not listed."""


class AgentSettings(_Settings):
    """What one attempt may take."""

    max_steps: int = Field(default=10, ge=1)
    """Turns of the model in one attempt at most."""
    max_completion_tokens: int = Field(default=2048, ge=1)
    """Tokens that one turn may write."""
    max_rollout_tokens: int | None = Field(default=None, ge=1)
    """Tokens that one attempt may read and write over all its turns."""
    max_rollout_seconds: float = Field(default=1800.0, gt=0)
    """Seconds that one attempt may take; beyond that it counts as failed, not as wrong."""
    tool_seconds: float = Field(default=30.0, gt=0)
    """Seconds that one tool call may take."""
    sandbox: SandboxName = "auto"
    """Where the tools python and shell run. `auto`: bubblewrap, else docker, else they are refused. `unsafe-local`:
    as you, with your files and your network."""
    max_cycles: int = Field(default=3, ge=1)
    """Of a planner: plans in one attempt at most; a turn for the answer is kept in reserve. `max_steps` then counts
    for each subtask."""
    context_tokens: int = Field(default=100_000, ge=100)
    """Tokens that a conversation with tools may grow to; beyond that its oldest calls go, with their results
    (estimated: 4 bytes a token)."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus sampling: the probability mass that is sampled from."""
    logprobs: bool = False
    """Ask for the log-probabilities of the sampled tokens."""


class MemorySettings(_Settings):
    """How an agent uses a case bank (2508.16153)."""

    cases: int = Field(default=4, ge=0)
    """Cases recalled for a task at most (the paper's K = 4)."""
    show: Literal["block", "turns"] = "block"
    """`block`: cases are quoted in the system text, successes and failures apart. `turns`: successes become turns of
    the conversation, which small models follow better."""
    cite: bool = False
    """Ask the answer to name the cases that it used; they alone are then credited."""
    online: bool = False
    """Write each task's outcome before the next one is recalled for; otherwise the memory is frozen."""
    memory_tokens: int = Field(default=2000, ge=1)
    """Tokens that the cases may take in a prompt (estimated: 4 bytes a token)."""


class EvalSettings(_Settings):
    """How an agent is judged."""

    samples: int = Field(default=1, ge=1)
    """Attempts per task; the score is the mean over them (Mean@k)."""
    temperature: float = Field(default=0.3, ge=0)
    """Sampling temperature (the paper evaluates at 0.3)."""
    seed: int = 0
    """All draws depend on it; two arms with the same seed see common random numbers."""
    ask_confidence: bool = False
    """Ask the model, in a turn of its own after each answer, how likely that is right: one call more an attempt."""
    online_batch: int = Field(default=1, ge=1)
    """With an online memory: tasks that are answered before any of them is written; 1 is strictly one by one."""
    contamination: Literal["words", "meaning", "none"] = "words"
    """Whether the tasks are compared with what the agent learned from, before anything is spent: `words` compares
    questions and answers as they stand, `meaning` their questions by an embedder as well."""
    concurrency: int = Field(default=96, ge=1)
    """Attempts under way at once; more than requests in flight, so that none of those waits for an attempt."""
    max_error_share: float = Field(default=0.5, ge=0, le=1)
    """The run stops early when more than this share of at least 20 attempts failed without being wrong."""


class LearnSettings(_Settings):
    """How a library is learned (Training-Free GRPO, 2510.08191)."""

    group_size: int = Field(default=5, ge=1)
    """Rollouts per task and epoch (G)."""
    epochs: int = Field(default=3, ge=1)
    """Passes over the training tasks."""
    batch_size: int | None = Field(default=None, ge=1)
    """Tasks per learning step; by default all of them."""
    temperature: float = Field(default=0.7, ge=0)
    """Sampling temperature of the rollouts (paper: 0.7)."""
    gap: float | None = Field(default=None, ge=0)
    """What best minus worst reward of a group must exceed; by default 0 for 0/1 rewards, else 0.1."""
    extractor: Literal["fused", "faithful", "exemplar", "tips"] = "fused"
    """How a group becomes operations. `fused`: one model call a group. `faithful`: the paper's calls: a summary for
    each rollout, a contrast and an update for each group, one consolidation. `exemplar`: no model; the group's best
    rollout is kept as a worked example, for models too small to write lessons. `tips`: advice without experience, the
    paper's control."""
    extractor_model: str | None = None
    """The model that distils; by default the agent's own."""
    extractor_temperature: float = Field(default=0.0, ge=0)
    """Sampling temperature of the extractor."""
    extractor_tokens: int = Field(default=2048, ge=1)
    """Tokens that one reply of the extractor may have."""
    reference: Literal["use", "none"] = "use"
    """`use`: rewards come from reference answers, and the extractor may see them. `none`: the majority answer of a
    group stands in for the truth, and neither answers, grades nor a verifier's words reach a prompt."""
    rewards: Literal["true", "shuffled"] = "true"
    """`shuffled`: a control: within each group rewards are dealt anew at random, so that what is learned cannot come
    from them. A gate still tries candidates on true ones."""
    agent_objective: str = ""
    """What the agent is for; told to the extractor."""
    learning_objective: str = ""
    """What should be learned; told to the extractor."""
    lessons_per_group: int = Field(default=2, ge=1)
    """Lessons that one group may add at most."""
    lesson_words: int = Field(default=32, ge=4)
    """Words that a lesson may have."""
    transcript_tokens: int = Field(default=1500, ge=50)
    """Tokens of each rollout that an extractor is shown (estimated: 4 bytes a token)."""
    critique: bool = False
    """In a group that is all wrong, one failed attempt is shown its feedback and refined (2506.03106)."""
    sampling: Literal["fixed", "adaptive"] = "fixed"
    """`fixed`: G rollouts a task. `adaptive`: 2 (3 where `inclusion` is below 1), then 2 more while they are all alike
    and not all right, up to G; a group that is all wrong is left to the critique where there is one; a task that was
    solved throughout in two epochs is sampled in every fourth epoch only."""
    inclusion: float = Field(default=1.0, gt=0, le=1)
    """Probability with which each rollout sees each experience; below 1, each experience's effect is measured."""
    prior: Literal["full", "retrieved"] = "full"
    """`full`: every rollout sees the whole library. `retrieved`: a core and what is nearest to its task."""
    prior_nearest: int = Field(default=8, ge=1)
    """Of `retrieved`: experiences by similarity to the task."""
    prior_core: int = Field(default=4, ge=0)
    """Of `retrieved`: the first experiences of the library, always shown."""
    embedder: str = "minilm"
    """What compares texts by meaning: `minilm`, or an API's model such as `openai/text-embedding-3-small`."""
    examples_per_step: int = Field(default=4, ge=1)
    """Of `exemplar`: worked examples proposed in one step at most, those of the hardest groups first."""
    gate: Literal["paired", "targeted", "always"] = "paired"
    """`paired`: a candidate library must prove itself on held-out tasks. `targeted`: each operation must, on those
    that it is about. `always`: the paper's rule."""
    gate_nearest: int = Field(default=8, ge=1)
    """Of `targeted`: held-out tasks that each operation is tried on."""
    gate_share: float = Field(default=0.2, ge=0, lt=1)
    """Share of the training tasks held out for the gate."""
    gate_min_tasks: int = Field(default=24, ge=1)
    """Tasks that the gate holds out at least; with 8 tasks a gate is a coin."""
    gate_rounds: int = Field(default=8, ge=1)
    """Times that each gate task is tried at most, for each side."""
    gate_temperature: float = Field(default=0.3, ge=0)
    """Sampling temperature of the gate's attempts; set it to that of the evaluation."""
    gate_risk: float = Field(default=0.1, gt=0, lt=0.5)
    """Accept once P(harm) is below it, reject once P(gain) is."""
    prior_tokens: int = Field(default=2000, ge=1)
    """Tokens that the library may take in a prompt (estimated: 4 bytes a token)."""
    seed: int = 0
    """All draws depend on it."""
    concurrency: int = Field(default=96, ge=1)
    """Attempts under way at once; more than requests in flight, so that none of those waits for an attempt."""
    max_error_share: float = Field(default=0.5, ge=0, le=1)
    """The run stops early when more than this share of at least 20 attempts failed without being wrong."""
    patience: int | None = Field(default=None, ge=1)
    """Steps without a new library after which learning ends; by default it goes through all epochs. With a gate, that
    is a stopping rule on its held-out tasks, and never on those of a test split. A stream is not ended by it."""


def settings_of(kind: type[S], base: S | None, changes: dict[str, Any]) -> S:
    """`base` (or the defaults) with `changes`, checked.

    Raises:
        InputError: an unknown name (the nearest known one is offered) or a value out of range.
    """
    for name in changes:
        if name not in kind.model_fields:
            near = get_close_matches(name, kind.model_fields, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InputError(f"{kind.__name__} has no {name!r}.{hint} Known: {', '.join(kind.model_fields)}.")
    try:
        return kind.model_validate({**(base or kind()).model_dump(), **changes})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{place} = {first['input']!r}: {first['msg']}.") from None
