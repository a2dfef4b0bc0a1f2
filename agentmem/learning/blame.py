"""Why a library believes something: from an experience back to the operations, gates and groups that made it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from agentmem import format as fmt
from agentmem.domain.experience import Experience
from agentmem.domain.origin import Origin
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Rollout
from agentmem.domain.value import Value
from agentmem.learning.diff import short, words
from agentmem.learning.history import History, Version, read_value
from agentmem.learning.undo import Applied, find
from agentmem.models.model import Reply


class Change(Value):
    """One thing that was done to an experience, or about it."""

    operation: str
    """`add`, `modify`, ...; `start` where the run began with it, `edit` where the file was changed by other means."""
    name: str = ""
    """What `revert` calls the operation, such as `3.2`."""
    version: int
    made_by: str
    step: int
    said: str
    """What the experience says since."""
    in_use: bool
    """Whether it is in use since; else it is retired."""
    why: str = ""
    """The reason that was given."""
    gate: str = ""
    """The evidence with which the version passed the gate."""
    groups: tuple[Origin, ...] = ()
    """The groups of rollouts that the operation rests on; the run's journal holds them."""


class Blame(Value):
    """All that made one experience what it is."""

    id: str
    says: str
    in_use: bool
    merged_into: str = ""
    """Of a retired one: the experience that replaced it."""
    changes: tuple[Change, ...]
    earlier: tuple[Origin, ...] = ()
    """The groups of earlier runs that taught it; this run's journal does not hold them."""
    parents: tuple[Blame, ...] = ()
    """Of a merged one: the same of each that it replaced."""

    @property
    def everyone(self) -> Iterator[Blame]:
        """This experience, its parents, theirs, and so on."""
        yield self
        for parent in self.parents:
            yield from parent.everyone

    @property
    def groups(self) -> tuple[Origin, ...]:
        """Every group of this run that had a part in it, each once."""
        every = (group for blame in self.everyone for change in blame.changes for group in change.groups)
        return tuple(dict.fromkeys(every))

    def table(self) -> fmt.Table:
        """One row for each thing that was done, those to its parents included."""
        many = len(list(self.everyone)) > 1
        rows = tuple(
            (
                *((blame.id,) if many else ()),
                str(change.version),
                f"{change.name} {change.operation}".strip(),
                short(change.said, 60) + ("" if change.in_use else " (retired)"),
                short(change.why, 60),
                "; ".join(map(_group, change.groups)),
                change.gate,
            )
            for blame in self.everyone
            for change in blame.changes
        )
        columns = ("version", "operation", "says since", "why", "taught by", "gate")
        notes = [f"Earlier runs taught it: {'; '.join(map(_group, self.earlier))}."] if self.earlier else []
        if not self.in_use:
            notes.append(
                f"It is retired; {self.merged_into} replaced it." if self.merged_into else "It is retired."
            )
        return fmt.Table(
            title=f"{self.id}: {short(self.says)}",
            columns=tuple((name, "left") for name in (*(("id",) if many else ()), *columns)),
            rows=rows,
            caption="\n".join(notes),
        )

    def to_json(self) -> str:
        """For a program."""
        return self.model_dump_json()

    def __str__(self) -> str:
        return str(self.table())


class Attempt(Value):
    """One rollout of a group that taught something."""

    index: int
    output: str | None
    score: float | None
    status: Literal["ok", "limit", "failed", "refined"]
    """`refined`: it is no attempt of the agent, but its best failure, refined after a critique."""
    feedback: str
    """What the reward, or the failure, said."""
    evidence: bool
    """Whether the operation rests on it."""
    prior: tuple[str, ...]
    """The experiences that it had seen, in their order."""


class Teaching(Value):
    """One group that taught something, as the journal holds it."""

    group: Origin
    prior_version: int | None
    """The version of the library that its rollouts were drawn under; None where it is not known."""
    input: str | None
    """The task; None where the agent was a callable, whose prompt nobody saw."""
    attempts: tuple[Attempt, ...]

    def table(self) -> fmt.Table:
        """One row for each rollout; a star marks the evidence."""
        under = "" if self.prior_version is None else f", under version {self.prior_version}"
        title = f"task {self.group.task_id}, step {self.group.step + 1}{under}"
        if not self.attempts:
            return fmt.Table(title, (), (), caption="This run's journal does not hold its rollouts.")
        drawn = [a for a in self.attempts if a.status != "refined"]
        apart = len({a.prior for a in drawn}) > 1  # with masks, each saw a part of its own
        # Without references, rewards are made by comparing the attempts, after they were stored.
        judged = tuple(a.score for a in self.attempts if a.score is not None)
        rows = tuple(
            (
                "*" if a.evidence else "",
                f"{a.index} (refined)" if a.status == "refined" else str(a.index),
                a.status if a.score is None else fmt.number(a.score),
                *((_seen(a.prior),) if apart else ()),
                short(a.feedback if a.output is None else a.output),
            )
            for a in self.attempts
        )
        return fmt.Table(
            title=f"{title}: {short(self.input or 'its text is not in the journal', 160)}",
            columns=(
                *(("", "left"), ("attempt", "right"), ("reward", "right")),
                *((("saw", "left"),) if apart else ()),
                ("said", "left"),
            ),
            rows=rows,
            caption="\n".join(
                [
                    "* what it rests on",
                    *([] if apart else [f"Each saw {_seen(drawn[0].prior if drawn else ())}."]),
                    *([] if judged == self.group.rewards else [f"Rewards as distilled: {_rewards(self.group)}."]),
                ]
            ),
        )


class Explanation(Value):
    """The walk from an experience to the rollouts that taught it."""

    blame: Blame
    teachings: tuple[Teaching, ...]

    def table(self) -> fmt.Tables:
        """What was done, then each group."""
        return fmt.Tables((self.blame.table(), *(teaching.table() for teaching in self.teachings)))

    def to_json(self) -> str:
        """For a program; outputs and feedback are whole."""
        return self.model_dump_json()

    def __str__(self) -> str:
        return str(self.table())


def blame(history: History, id: str) -> Blame:
    """What made one experience what it is.

    Args:
        history: of the run.
        id: an experience that some version of it knows.

    Raises:
        InputError: no version knows it; near matches are offered.
    """
    history.require(id)
    return _blame(history, id)


def explain(history: History, id: str) -> Explanation:
    """`blame`, and the rollouts of every group that had a part in it.

    Raises:
        InputError: no version knows the experience; near matches are offered.
    """
    traced = blame(history, id)
    return Explanation(blame=traced, teachings=tuple(_teaching(history, group) for group in traced.groups))


def _blame(history: History, id: str, below: frozenset[str] = frozenset()) -> Blame:
    changes: list[Change] = []
    earlier: tuple[Origin, ...] = ()
    parents: tuple[str, ...] = ()
    last: tuple[Experience | None, bool] = (None, False)
    for version, done in history.applied:
        if version.base is None:  # what the run began with
            experience, in_use = find(version.library, id)
            if experience is not None:
                earlier = experience.origins
                changes.append(_change(version, "start", experience, in_use))
        for applied in done:
            if applied.touches(id):
                changes.append(_by_operation(version, applied, id))
        before, now = last, find(version.library, id)
        if not done and version.base is not None and now[0] is not None and _content(now) != _content(before):
            changes.append(_change(version, "edit", now[0], now[1]))
        last = now if now[0] is not None else last
        if now[0] is not None:
            parents = now[0].parents
    experience, in_use = find(history.newest.library, id)
    experience = experience or last[0]
    assert experience is not None  # see `require`
    library = history.newest.library
    children = [] if in_use else [e.id for e in (*library, *library.retired) if id in e.parents]
    below |= {id}  # a file that was edited may go round in circles
    known = [parent for parent in parents if parent in history.experience_ids and parent not in below]
    return Blame(
        id=id,
        says=words(experience),
        in_use=in_use,
        merged_into=children[0] if children else "",
        changes=tuple(changes),
        earlier=earlier,
        parents=tuple(_blame(history, parent, below) for parent in known),
    )


def _content(found: tuple[Experience | None, bool]) -> tuple[Experience | None, bool]:
    """What people or operations change; what is measured changes by itself."""
    experience, in_use = found
    return experience and experience.model_copy(update={"effect": None}), in_use


def _by_operation(version: Version, applied: Applied, id: str) -> Change:
    experience, in_use = find(applied.after, id)
    operation = applied.operation
    assert experience is not None  # it was touched, and nothing is ever forgotten
    verdict = None if operation in version.evicted else version.verdict
    groups = tuple(origin for origin in operation.origins if version.made_by == "learning")
    return Change(
        operation=operation.op,
        name=applied.name,
        version=version.number,
        made_by=version.made_by,
        step=version.step,
        said=words(experience),
        in_use=in_use,
        why=operation.why,
        gate=verdict.reason if verdict else "",
        groups=groups,
    )


def _change(version: Version, operation: str, experience: Experience, in_use: bool) -> Change:
    return Change(
        operation=operation,
        version=version.number,
        made_by=version.made_by,
        step=version.step,
        said=words(experience),
        in_use=in_use,
    )


def _teaching(history: History, group: Origin) -> Teaching:
    query = (
        "SELECT result FROM steps WHERE phase='learn' AND purpose='rollout' AND failure IS NULL AND step=? AND task=?"
        " ORDER BY rollout"
    )
    (rows,) = history.records.rows((query, (group.step, group.task_id)))
    place = f"{history.records.journal}, task {group.task_id!r} of step {group.step}"
    rollouts = [read_value(Rollout, row[0], place) for row in rows]
    asked = (m.content for r in rollouts for m in reversed(r.trajectory.prompt) if m.role == "user")
    under = [v for v in history.versions if v.step < group.step and v.made_by in ("start", "learning")]
    refined = _refined(history, group, len(rollouts)) if len(rollouts) in group.rollouts else ()
    return Teaching(
        group=group,
        prior_version=under[-1].number if under else None,
        input=next(asked, None),
        attempts=tuple(
            Attempt(
                index=rollout.index,
                output=rollout.output,
                score=rollout.score,
                status=rollout.status,
                feedback=rollout.failure.message if rollout.failure else rollout.reward.feedback,
                evidence=rollout.index in group.rollouts,
                prior=rollout.mask,
            )
            for rollout in rollouts
        )
        + refined,
    )


def _refined(history: History, group: Origin, index: int) -> tuple[Attempt, ...]:
    """The refined attempt, which joins its group behind the others: its reply, and its reward."""
    where = "FROM steps WHERE phase='learn' AND failure IS NULL AND step=? AND task=?"
    replies, rewards = history.records.rows(
        (f"SELECT result {where} AND purpose='critique'", (group.step, group.task_id)),
        (f"SELECT result {where} AND purpose='reward' AND rollout=?", (group.step, group.task_id, index)),
    )
    if not replies or not rewards:
        return ()
    place = f"{history.records.journal}, critique of task {group.task_id!r}, step {group.step}"
    reward = read_value(Reward, rewards[0][0], place)
    attempt = Attempt(
        index=index,
        output=read_value(Reply, replies[0][0], place).text,
        score=reward.score,
        status="refined",
        feedback=reward.feedback,
        evidence=True,
        prior=(),
    )
    return (attempt,)


def _seen(ids: tuple[str, ...]) -> str:
    return fmt.some(ids, 12) or "no experience"


def _group(origin: Origin) -> str:
    """`task sums-3, step 2: attempt 1 of 0 1 0 0`."""
    if origin.step < 0:  # no group: it was imported
        return f"{origin.task_id} ({origin.extractor})"
    attempts = ", ".join(map(str, origin.rollouts))
    return (
        f"task {origin.task_id}, step {origin.step + 1}: attempt {attempts or '–'} of rewards {_rewards(origin)}"
    )


def _rewards(origin: Origin) -> str:
    return " ".join(f"{reward:g}" for reward in origin.rewards) or fmt.MISSING
