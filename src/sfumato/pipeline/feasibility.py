"""Whether each requirement of a policy can be met by a table, before any class is formed.

Classes can always be joined, so a table as a whole, or each of the parts that the coarsest levels divide it into,
decides what can be met. The checks are those of a release (``methods/suppression.py``), here for one requirement at a
time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from sfumato.engines.memory.classes import most_left_out
from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.errors import InfeasibleError
from sfumato.methods.class_counting import Counting
from sfumato.methods.level_parts import divided
from sfumato.methods.suppression import surplus_rows
from sfumato.requirements import Requirement


@dataclass(frozen=True)
class Feasibility:
    """What a table says about one requirement.

    requirement: in the words of the audit. feasible: whether it can be met; None if that depends on records that are
    left out, which the policy allows. value: what the table reaches as one class, or the worst of its ``parts``.
    left_out: how many records have to be, if it depends on that. reason: why, and what would help; empty where nothing
    has to be said.
    """

    requirement: str
    feasible: bool | None
    value: float | int
    parts: int
    left_out: int = 0
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The entries that ``sfumato anonymize --dry-run --json`` prints. JSON has no infinity."""
        return {
            "requirement": self.requirement,
            "feasible": self.feasible,
            "value": self.value if math.isfinite(self.value) else None,
            "parts": self.parts,
            "left_out": self.left_out,
            **({"reason": self.reason} if self.reason else {}),
        }


def feasibility_of(table: TableInMemory) -> list[Feasibility]:
    """Say of every requirement whether the table can meet it."""
    return [_feasibility(table, part) for part in table.job.requirements.parts]


def _feasibility(table: TableInMemory, requirement: Requirement) -> Feasibility:
    records, alone = table.records, replace(table.job.requirements, parts=(requirement,))
    parts = divided(records, alone)
    verdict = reduce(requirement.worse, (requirement.verdict(Counting(part, alone).whole) for part in parts))
    found = Feasibility(verdict.requirement, True, verdict.value, len(parts))
    try:
        left_out = len(surplus_rows(records, alone, most_left_out(table)))
    except InfeasibleError as error:
        return replace(found, feasible=False, reason=str(error))
    if not left_out:
        return found
    reason = (
        f"{left_out:,} of the {table.count:,} records ({left_out / table.count:.2%}) have to be left out for it, which "
        "max_suppressed_fraction allows"
    )
    return replace(found, feasible=None, left_out=left_out, reason=reason)
