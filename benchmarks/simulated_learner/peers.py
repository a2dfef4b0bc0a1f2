"""gepa and dspy.GEPA in the simulated world: the same tasks, the same instruction to begin with, the same feedback.

They need the extra `bench`. Each runs with its defaults and with the settings that suit it best here, with a stop at
the best possible score on the validation tasks, which a user would not know, and without a cache.
"""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from agentmem.domain.task import Task
from benchmarks.simulated_learner.curve import Curve
from benchmarks.simulated_learner.distiller import Distiller
from benchmarks.simulated_learner.server import Simulation, serve
from benchmarks.simulated_learner.world import SYSTEM, World, judge

SETTINGS: dict[str, dict[str, Any]] = {
    # gepa's best here: the lowest median of `sweep.py` among settings that reach the target on 8 of 10 seeds.
    "gepa": {"reflection_minibatch_size": 3, "candidate_selection_strategy": "current_best"},
    "gepa_defaults": {"reflection_minibatch_size": 3},
    "dspy_gepa": {"reflection_minibatch_size": 3, "candidate_selection_strategy": "current_best"},
    "dspy_gepa_defaults": {"reflection_minibatch_size": 3},
    # Kinder than what our own distiller gets: each reflection names a lesson for every failing family that it sees.
    # Chosen by the same rule.
    "gepa_every_failure": {"reflection_minibatch_size": 8, "every_failure": True},
    "dspy_gepa_every_failure": {"reflection_minibatch_size": 8, "every_failure": True},
}


def optimise(system: str, seed: int, *, cap: int, settings: dict[str, Any] | None = None) -> dict[str, Any]:
    """One run of a peer.

    Args:
        system: a name in `SETTINGS`.
        seed: of the world, of the server's draws and of the peer.
        cap: calls at most; checked between its iterations, so it goes a little beyond.
        settings: instead of those in `SETTINGS`.
    """
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it would try to download a price list
    settings = dict(SETTINGS[system] if settings is None else settings)
    world = World(seed)
    simulation = Simulation(world, Distiller(world, every_failure=settings.pop("every_failure", False)))
    watch = Watch(Curve(world, simulation.tally))
    run = _dspy_gepa if system.startswith("dspy") else _gepa
    with serve(simulation, seed=seed) as server:
        run(world, server.base_url, watch, seed=seed, cap=cap, **settings)
    ended = "cap" if simulation.tally.calls >= cap else "done"
    return {"ended": ended, "settings_not_available": {}, **watch.curve.figures()}


class Watch:
    """Callbacks of gepa: each candidate that was scored on the validation tasks, and which is the best now."""

    def __init__(self, curve: Curve) -> None:
        self.curve = curve

    def on_proposal_end(self, event: Any) -> None:
        for text in event["new_instructions"].values():
            self.curve.proposed(text)

    def on_valset_evaluated(self, event: Any) -> None:
        if event["is_best_program"]:
            self.curve.now(next(iter(event["candidate"].values())))

    def stoppers(self, cap: int) -> list[Callable[[Any], bool]]:
        """The best possible score was measured, or the cap is reached."""
        from gepa.utils import ScoreThresholdStopper

        return [ScoreThresholdStopper(self.curve.world.best), lambda state: self.curve.tally.calls >= cap]


class Quiet:
    """A logger that says nothing."""

    def log(self, message: str) -> None:
        """Forget it."""


def _gepa(world: World, base_url: str, watch: Watch, *, seed: int, cap: int, **settings: Any) -> None:
    import gepa
    from gepa.adapters.default_adapter.default_adapter import EvaluationResult
    from openai import OpenAI

    # A callable instead of a name: the same requests, without litellm's 9 ms for each.
    client = OpenAI(base_url=base_url, api_key="none", max_retries=0)

    def ask(messages: Sequence[Any]) -> str:
        reply = client.chat.completions.create(model="simulated", messages=list(messages))
        return reply.choices[0].message.content or ""

    def evaluator(data: Any, response: str) -> EvaluationResult:
        verdict = judge(world.by_code[data["additional_context"]["code"]], response)
        return EvaluationResult(score=verdict.score or 0.0, feedback=verdict.feedback)

    def items(tasks: Sequence[Task]) -> list[Any]:
        return [
            {"input": task.input, "answer": task.answer, "additional_context": {"code": task.id}} for task in tasks
        ]

    gepa.optimize(
        seed_candidate={"instruction": SYSTEM},
        trainset=items(world.train),
        valset=items(world.validation),
        task_lm=ask,
        evaluator=evaluator,
        reflection_lm=lambda prompt: ask([{"role": "user", "content": prompt}]),
        stop_callbacks=watch.stoppers(cap),
        callbacks=[watch],
        logger=Quiet(),
        seed=seed,
        **settings,
    )
    client.close()


def _dspy_gepa(world: World, base_url: str, watch: Watch, *, seed: int, cap: int, **settings: Any) -> None:
    import dspy

    logging.getLogger("dspy").setLevel(logging.ERROR)
    # Its cache would answer repeated requests with the first answer.
    lm = dspy.LM("openai/simulated", api_base=base_url, api_key="none", cache=False, num_retries=0)

    def metric(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> Any:
        verdict = judge(world.by_code[gold.code], pred.answer)
        return dspy.Prediction(score=verdict.score, feedback=verdict.feedback)

    def items(tasks: Sequence[Task]) -> list[Any]:
        return [dspy.Example(question=task.input, code=task.id).with_inputs("question") for task in tasks]

    # Its progress bars go to both streams, and no switch turns them off.
    nowhere = io.StringIO()
    with redirect_stdout(nowhere), redirect_stderr(nowhere), dspy.context(lm=lm):
        dspy.GEPA(
            metric=metric,
            max_metric_calls=cap,
            reflection_lm=lm,
            num_threads=8,
            seed=seed,
            gepa_kwargs={"stop_callbacks": watch.stoppers(cap), "callbacks": [watch]},
            **settings,
        ).compile(
            dspy.Predict(dspy.Signature("question -> answer", SYSTEM)),
            trainset=items(world.train),
            valset=items(world.validation),
        )
