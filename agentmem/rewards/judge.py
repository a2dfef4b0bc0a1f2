"""A language model as judge: it compares, says why, and gives a score between 0 and 1."""

from __future__ import annotations

from pydantic import Field

from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Message, Trajectory
from agentmem.domain.value import Value, fingerprint
from agentmem.errors import ModelError
from agentmem.models.model import Model
from agentmem.rewards.reward_function import RewardContext
from agentmem.rewards.statement import readable


class Verdict(Value):
    """What the judge answers."""

    reasoning: str
    """Why, before the score, so that the score follows from it."""
    score: float = Field(ge=0, le=1)


class Judge:
    """A language model marks the output, by the reference answer, by a rubric, or by both. A task may have a rubric of
    its own, `metadata["rubric"]`, which counts beside the judge's.

    A judge that fails or cannot be understood gives a reward with status `error`, never a score of 0.

    Args:
        model: the model that judges, by name or object; None: the one that the caller provides.
        rubric: what a good answer is, in words; with one, tasks need no reference answer.
        name: what results call it; two judges in one run need two names.

    Example:
        >>> Judge("openai/gpt-4.1-mini", rubric="Polite, and at most two sentences.").needs_answer
        False
    """

    def __init__(
        self, model: str | Model | None = None, rubric: str | None = None, *, name: str = "judge"
    ) -> None:
        self.name = name
        self.model = model
        self.rubric = (rubric or "").strip()
        self.needs_answer = not self.rubric

    async def __call__(self, task: Task, trajectory: Trajectory, context: RewardContext) -> Reward:
        """Score one attempt.

        Raises:
            AgentMemError: what stops the run anyway, such as a spent budget or a refused key.
        """
        from agentmem.models.structured import structured
        from agentmem.prompts import render

        if why := self.unscorable(task):
            return Reward.unknown(why, source=self.name, status="unverifiable")
        output = trajectory.output or ""
        if not output.strip():
            return Reward.of(0.0, feedback="no answer", source=self.name)
        answer = task.answer if (task.answer or "").strip() else None
        prompt = render(
            "judge", input=task.input, answer=answer, output=readable(output), rubric=self._rubric_for(task)
        )
        try:
            handle = context.model(self.model)
            verdict = await structured(handle, [Message(role="user", content=prompt)], Verdict)
        except ModelError as error:
            if error.stops_run:
                raise
            return Reward.unknown(f"the judge failed: {error}", source=self.name)
        return Reward.of(verdict.score, feedback=verdict.reasoning, source=self.name)

    def describe(self) -> str:
        """What determines its scores."""
        model = self.model if isinstance(self.model, str | None) else self.model.name
        server = getattr(self.model, "base_url", None)
        where = f" at {str(server).rpartition('@')[2]}" if server else ""
        return f"{self.name}: model {model or 'of the agent'}{where}, rubric {fingerprint(self.rubric, length=8)}"

    def unscorable(self, task: Task) -> str:
        """Why no attempt at this task can be judged; empty where it can."""
        if not (task.answer or "").strip() and not self._rubric_for(task):
            return "the task has no reference answer, and the judge no rubric"
        return ""

    def _rubric_for(self, task: Task) -> str:
        own = str(task.metadata.get("rubric") or "").strip()
        return "\n\n".join(text for text in (self.rubric, own) if text)


def judge(model: str | Model | None = None, rubric: str | None = None) -> Judge:
    """A language model as judge; see `Judge`.

    Example:
        >>> judge(rubric="Answers in French.").name
        'judge'
    """
    return Judge(model, rubric)
