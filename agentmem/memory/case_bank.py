"""The memory M of the M-MDP (2508.16153): cases that a state recalls, and that outcomes are written to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentmem.domain.case import Case, Recall, Recalled
from agentmem.domain.reward import Reward
from agentmem.domain.seed import split_seed
from agentmem.domain.usage import estimate_tokens
from agentmem.domain.value import encodable
from agentmem.domain.write_rules import WriteRules
from agentmem.errors import InputError
from agentmem.memory import case_embedding, case_files
from agentmem.memory.case_change import changing
from agentmem.memory.case_desk import CaseDesk
from agentmem.memory.case_index import CaseIndex
from agentmem.memory.case_policy import CasePolicy
from agentmem.memory.case_reading import CaseReading, LearningPolicy
from agentmem.memory.case_store import CaseStore
from agentmem.memory.case_writing import Credit, prepared, put, write_uses
from agentmem.memory.embedder import Embedder, open_embedder
from agentmem.memory.policies import open_policy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 1000
"""Cases in one change of `add_many`: others may write in between."""


class CaseBank(CaseDesk):
    """Past cases, and which of them resemble the present state.

    Several processes may use one bank at once. Every write is one change with a number, on disk when the call returns.

    Args:
        path: the bank's folder; made where there is none.
        embedder: what turns states into vectors; the bank keeps to the first one. None: the bank's own, or `minilm`.
        rules: what is merged, and how much is kept.
        index: what finds the nearest cases: `auto` (all are compared below 10,000, then `ivf`; on macOS below
            20,000, then `chroma`), `exact`, `ivf` (FAISS, in memory), `chroma` (beside the bank), or the address of a
            Chroma server. `exact` finds all; the others may miss about one near case in a hundred.
        create: make the bank where there is none; else that is an error.

    Raises:
        InputError: the folder is no bank, or there is no such index.
        EmbedderMismatch: the bank was written with another embedder.
        MemoryStoreError: it is damaged, was written by a newer agentmem, or may not be written.

    Example:
        >>> from agentmem.testing.hash_embedder import HashEmbedder
        >>> bank = CaseBank(tmp / "doc-bank", embedder=HashEmbedder())
        >>> _ = bank.retain(Case.of("Reset my password", "IT desk", reward=1.0))
        >>> [item.case.action for item in bank.recall("My password does not work").cases]
        ['IT desk']
    """

    def __init__(
        self,
        path: str | Path,
        *,
        embedder: str | Embedder | None = None,
        rules: WriteRules | None = None,
        index: str = "auto",
        create: bool = True,
    ) -> None:
        self.path = Path(path)
        self.rules = rules or WriteRules()
        given = None if embedder is None else open_embedder(embedder)
        self.store = CaseStore(self.path, create=create)
        self.embedder = given or case_embedding.own(self.store)
        try:
            self.store.check_embedder(self.embedder.name)
            self.index = CaseIndex(self.store, index=index)
        except BaseException:
            self.store.close()
            raise
        self.reading = CaseReading(self.store)
        self._learner: LearningPolicy | None = None

    def recall(
        self, state: str, *, k: int = 4, policy: str | CasePolicy = "similarity", seed: int = 0, task_id: str = ""
    ) -> Recall:
        """The cases that this state recalls. Embedding may take milliseconds: async code calls it in a thread.

        Args:
            state: what is asked now.
            k: cases at most (the paper's K = 4).
            policy: which cases: `similarity`, which draws nothing; `kernel_q`, `parametric_q`, `thompson` or `ucb`,
                which learn; or an object.
            seed: all draws depend on it, and on the state.
            task_id: in evaluation: the task whose own cases must not be recalled, nor those of nearly the same
                states (cosine .97); `withheld` counts them. Empty for no such guard.

        Raises:
            InputError: the state is empty, or there is no such policy.
        """
        chosen = open_policy(policy)
        vector = self._embed([state])[0]
        if isinstance(chosen, LearningPolicy):
            self._learner = chosen
            self.reading.refresh(chosen)
        pool = self.reading.pool(vector, partial(self.index.nearest, vector), task_id=task_id)
        slate = chosen.choose(pool.candidates, k, seed=split_seed(seed, "recall", state))
        cases = {case.id: case for case in self.store.cases([pool.ids[row] for row in slate.rows])}
        if len(cases) < len(slate.rows):  # one was removed since it was found
            return self.recall(state, k=k, policy=policy, seed=seed, task_id=task_id)
        return Recall(
            state=state,
            policy=chosen.name,
            seq=pool.seq,
            cases=tuple(
                Recalled(
                    case=cases[pool.ids[row]],
                    similarity=float(pool.candidates.cosines[row]),
                    mu0=float(slate.mu0[row]),
                    q=None if slate.q is None else float(slate.q[row]),
                    mu=float(slate.mu[row]),
                    propensity=None if slate.propensities is None else slate.propensities[place],
                )
                for place, row in enumerate(slate.rows)
            ),
            ended=slate.ended,
            dropped="" if slate.dropped is None else pool.ids[slate.dropped],
            whole=slate.whole,
            withheld=pool.withheld,
        )

    def search(self, query: str, *, k: int = 10, policy: str | CasePolicy = "similarity") -> Recall:
        """What a query would recall, and why: similarity, mu0, Q, mu and propensity of each case. Writes nothing."""
        return self.recall(query, k=k, policy=policy)

    def retain(
        self,
        case: Case,
        *,
        used: Recall | None = None,
        reward: Reward | None = None,
        cited: Collection[str] = (),
        key: str | None = None,
        why: str = "",
    ) -> Case:
        """Write what an attempt did, and credit the cases that it used: one change, on disk when this returns.

        What repeats a case is merged into it; what rests on untrusted text is quarantined, unless the reward verifies
        it; secrets are taken out and long texts shortened (`show(id).log` tells). An unknown reward credits nothing.

        Args:
            case: what was done; see `Case.of`.
            used: what was recalled for it; None where nothing was asked.
            reward: what it was worth; by default the case's own.
            cited: the cases that the answer named.
            key: names the attempt: one that is replayed writes nothing twice.
            why: the reason, in words.

        Returns:
            The case as it is in the bank now, which may be an older one that it was merged into.

        Raises:
            InputError: the state is empty, or case and reward do not agree.
            MemoryStoreError: it could not be written; nothing was.
        """
        if reward is None and case.reward is not None:
            reward = Reward.of(case.reward)
        case, notes = prepared(case, reward)
        vector, *states = self._embed([case.state, *([used.state] if used else [])])
        credit = self._credit(used, reward, states[0], cited) if used and reward else None
        with changing(self.store, "add", key=key, why=why) as change:
            if change.replayed:
                return change.read(change.case_id, gone=True) if change.case_id else case
            change.notes += [*notes, *self._window(case.state)]
            kept = put(change, case, vector, model=self.embedder.name, rules=self.rules)
            change.case_id = kept.id
            if credit:
                write_uses(change, credit, model=self.embedder.name)
            change.make_room(self.rules, case.provenance.source)
        return kept

    def add(self, case: Case, *, why: str = "", key: str | None = None) -> Case:
        """Write a case that no attempt brought, such as a correction; see `retain`."""
        return self.retain(case, why=why, key=key)

    def add_many(self, cases: Iterable[Case], *, why: str = "", key: str | None = None) -> tuple[Case, ...]:
        """Write many cases, a thousand a change; with a `key` that wrote before, nothing happens twice.

        Raises:
            InputError: one of them is no case; the thousands before it are written.
        """
        written: list[Case] = []
        waiting = list(cases)
        for first in range(0, len(waiting), BATCH):
            batch = [prepared(case) for case in waiting[first : first + BATCH]]
            vectors = self._embed([case.state for case, _ in batch])
            part = None if key is None else f"{key}#{first // BATCH}"
            with changing(self.store, "add", key=part, why=why) as change:
                if change.replayed:
                    continue
                for (case, notes), vector in zip(batch, vectors, strict=True):
                    change.notes += [f"{case.id}: {note}" for note in (*notes, *self._window(case.state))]
                    written.append(put(change, case, vector, model=self.embedder.name, rules=self.rules))
                for source in dict.fromkeys(case.provenance.source for case, _ in batch):
                    change.make_room(self.rules, source)
        return tuple(written)

    def credit(self, recall: Recall, reward: Reward, *, key: str, cited: Collection[str] = ()) -> None:
        """Tell the bank what an attempt with these cases was worth: one update of Q; unknown rewards write nothing.

        Args:
            recall: what was recalled for the attempt.
            reward: what the attempt was worth.
            key: names the attempt: one that is replayed writes nothing twice.
            cited: the cases that the answer named.
        """
        if reward.score is None:
            return
        vector = self._embed([recall.state])[0]
        credit = self._credit(recall, reward, vector, cited)
        with changing(self.store, "use", key=key) as change:
            if not change.replayed:
                write_uses(change, credit, model=self.embedder.name)

    def correct(
        self,
        id: str,
        *,
        state: str | None = None,
        action: str | None = None,
        reward: float | None = None,
        why: str = "",
        key: str | None = None,
    ) -> Case:
        """Change what a case says; None leaves a field as it is.

        With another action, what came of the old one counts no longer, neither its reward nor its uses.

        Raises:
            InputError: there is no such case, or nothing to correct.
        """
        given = {"state": state, "action": action, "reward": reward}
        given = {field: value for field, value in given.items() if value is not None}
        vector = self._embed([prepared(Case.of(state, ""))[0].state])[0] if state is not None else None
        with changing(self.store, "correct", key=key, why=why) as change:
            old = change.read(id, gone=change.replayed)
            if change.replayed:
                return old
            said = old.model_dump() | ({"reward": None} if action not in (None, old.action) else {}) | given
            case, notes = prepared(Case.of(**said).model_copy(update={"id": id}))
            case = case.model_copy(update={"id": id, "trust": old.trust})
            if case == old:
                raise InputError(f"Nothing to correct in {id!r}: it says this already.")
            if (case.action, case.reward) != (old.action, old.reward):
                case = case.model_copy(update={"attempts": 1})
            if vector is not None:
                change.vector(case.state, vector, self.embedder.name)
            change.write(case.model_copy(update={"revision": old.revision + 1}))
            if (case.state, case.action) != (old.state, old.action):
                for use in change.uses_of(id):
                    change.move_use(use, void=2)
            change.case_id = id
            change.notes += notes
        return self[id]

    def import_file(self, path: str | Path, *, why: str = "", key: str | None = None) -> tuple[Case, ...]:
        """Add the cases of a file: an export (with its uses; what is there already is passed over), or Memento's.

        Raises:
            InputError: there is no such file, or a line of it is no case; then nothing was written.
        """
        found = case_files.read(path)
        why = why or f"import of {Path(path).name}"
        if not found.whole:
            return self.add_many(found.cases, why=why, key=key)
        # A person's export is to be believed: what was promoted stays so.
        cases = [prepared(case)[0].model_copy(update={"trust": case.trust}) for case in found.cases]
        vectors = self._embed([*(case.state for case in cases), *(use.state for use in found.uses)])
        with changing(self.store, "import", key=key, why=why) as change:
            if change.replayed:
                return ()
            return case_files.take_in(change, found, cases, vectors, model=self.embedder.name)

    def reembed(self, embedder: str | Embedder) -> None:
        """Embed all texts again, with another embedder; from then on the bank is that one's."""
        self.embedder = open_embedder(embedder)
        case_embedding.reembed(self.store, self.embedder)
        self.reading.forget()

    def reindex(self) -> str:
        """Build the index that is derived from the cases anew, and wait for it; returns what serves afterwards.

        Raises:
            MemoryIndexError: it cannot be built; all cases are compared instead, and nothing is lost.
        """
        return self.index.reindex()

    def close(self) -> None:
        """Close its files, and end what works in the background."""
        self.index.close()
        super().close()

    def _credit(
        self, recall: Recall, reward: Reward, vector: NDArray[np.float32], cited: Collection[str]
    ) -> Credit:
        """What is to be written, with new weights of the policy that recalled last where it is time for them."""
        trained = self.reading.train(self._learner) if self._learner else None
        return Credit(recall, reward, vector, self.reading.baseline(vector), cited, trained)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector a text; those that the bank has are not embedded again."""
        if (blank := next((text for text in texts if not text.strip()), None)) is not None:
            raise InputError(f"There is nothing to compare in an empty state; got {blank!r}.")
        return case_embedding.vectors(self.store, self.embedder, [encodable(text) for text in texts])

    def _window(self, state: str) -> tuple[str, ...]:
        """Says so where a state is longer than what the embedder compares."""
        window, tokens = getattr(self.embedder, "window", None), estimate_tokens(state)
        if window is None or tokens <= window:
            return ()
        return (
            f"The state has about {tokens:,} tokens; {self.embedder.name} compares the first {window:,} alone.",
        )
