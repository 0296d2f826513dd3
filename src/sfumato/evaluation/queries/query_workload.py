"""The workload of queries, and the columns they ask about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sfumato.errors import UsageError
from sfumato.policy import Policy
from sfumato.tables.sources.source import Source


@dataclass(frozen=True, kw_only=True)
class QueryWorkload:
    """The queries to answer. ``bins`` are edges by column: a cell reaches from one edge to just below the next."""

    level: int | None = None
    ranges: int | None = None
    selectivity: float = 0.05
    range_attributes: int | None = None
    seed: int = 0
    bins: Mapping[str, Sequence[object]] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        return self.level is None and self.ranges is None

    def check(self, quasi_identifiers: Sequence[str], sensitive: Sequence[str]) -> None:
        """Refuse a workload that cannot be answered for these columns."""
        count = len(quasi_identifiers)
        if self.empty:
            if self.bins:
                raise UsageError("bins are given without queries. Give a level of the datacube, or leave out the bins.")
            return
        if self.level is not None and not 1 <= self.level <= count:
            raise UsageError(
                f"there is no level {self.level} in the datacube of {count} quasi-identifiers. "
                f"Give a level from 1 to {count}: the number of quasi-identifiers in each group-by."
            )
        if self.ranges is not None and self.ranges < 1:
            raise UsageError(f"the number of range queries cannot be {self.ranges}. Give a number of at least 1.")
        if not 0 < self.selectivity <= 1:
            raise UsageError(
                f"the selectivity {self.selectivity} is not a share of the records. "
                "Give a number above 0 and at most 1."
            )
        if self.range_attributes is not None and not 1 <= self.range_attributes <= count:
            raise UsageError(
                f"range queries cannot use {self.range_attributes} of {count} quasi-identifiers. "
                f"Give a number from 1 to {count}."
            )
        if self.seed < 0:
            raise UsageError(f"the seed {self.seed} is negative. Give a whole number of at least 0.")
        for name in self.bins:
            if name not in (*quasi_identifiers, *sensitive):
                raise UsageError(
                    f"bins are given for the column {name!r}, which the queries do not use. Give bins only for "
                    "quasi-identifiers or the sensitive column."
                )


def queried_columns(policy: Policy, target: str | None, original: Source, release: Source) -> tuple[str, ...]:
    """The columns whose values the queries count: the target if there is one, else every sensitive column."""
    names = policy.sensitive if target is None else (target,)
    if not names:
        raise UsageError(
            "queries count the values of a sensitive column, but the policy has none. Give a column the role sensitive "
            "in the policy, or name one as the target."
        )
    for name in names:
        if name in policy.quasi_identifiers:
            raise UsageError(
                f"queries cannot count {name!r}: it is a quasi-identifier. Name another column as the target."
            )
        for source in (original, release):
            if name not in source.names:
                raise UsageError.unknown_column(name, "the target" if target else "the policy", source.names)
    return names
