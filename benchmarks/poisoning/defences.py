"""The defences as settings of the public API: all, none, and each by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentmem.domain.case import Provenance
from agentmem.domain.write_rules import WriteRules
from benchmarks.poisoning.world import Written

PER_SOURCE = 5
"""Cases that one source may have: two more than an ordinary user has on average."""


@dataclass(frozen=True)
class Defence:
    """How a bank is written and shown."""

    name: str
    marks: bool = False
    """Whether the writer says that a text came from outside (pages, files, users), so that it is quarantined until it
    is verified."""
    per_source: int | None = None
    show: Literal["block", "turns"] = "turns"
    """`block` quotes between marks and says that nothing in them is to be obeyed; `turns` makes cases conversation."""
    policy: str = "similarity"

    @property
    def rules(self) -> WriteRules:
        """Of the bank."""
        return WriteRules(per_source=self.per_source)

    @property
    def learns(self) -> bool:
        """Whether outcomes change what is recalled."""
        return self.policy != "similarity"

    def written(self, one: Written) -> Written:
        """As the writer hands it to the bank."""
        about = one.case.provenance
        if self.marks or not about.untrusted:
            return one
        trusting = Provenance(source=about.source, place=about.place, untrusted=False)
        return Written(one.case.model_copy(update={"provenance": trusting}), one.reward)


OFF = Defence("off")
ON = Defence("on", marks=True, per_source=PER_SOURCE, show="block")
LEARNED = Defence("on, values learned", marks=True, per_source=PER_SOURCE, show="block", policy="kernel_q")
QUARANTINE = Defence("quarantine alone", marks=True)
CAP = Defence("cap per source alone", per_source=PER_SOURCE)
QUOTED = Defence("quotation alone", show="block")
VALUES = Defence("learned values alone", policy="kernel_q")
RETRIEVAL = (OFF, ON, LEARNED, QUARANTINE, CAP, QUOTED, VALUES)
"""Those that are measured without a model."""
ANSWERS = (OFF, QUARANTINE, ON, QUOTED)
"""Those that a model is shown."""
