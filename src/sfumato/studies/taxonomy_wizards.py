"""Wizards: a taxonomy for a column from its values and their counts, by one of several recipes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from sfumato.errors import UsageError
from sfumato.policy import ColumnSettings, Grouping
from sfumato.policy.taxonomy_paths import FLAT
from sfumato.tables.coding.counted_values import CellNames, CountedValues
from sfumato.taxonomies.derived_taxonomies import prefix_labels
from sfumato.taxonomies.frequent_values import OTHERS, frequent_levels
from sfumato.taxonomies.order_groups import (
    NameOf,
    names_of_labels,
    names_of_ranges,
    names_of_texts,
    names_of_values,
    order_levels,
)
from sfumato.taxonomies.ready import ready_taxonomy
from sfumato.taxonomies.taxonomy_rows import TaxonomyRows
from sfumato.taxonomies.widening import UNITS


@dataclass(frozen=True)
class DraftTaxonomy:
    """A taxonomy for a column.

    rule: what a policy has to say for the same taxonomy without a file; None if it takes a file. outside: values that
    the taxonomy does not have. remark: why.
    """

    rows: TaxonomyRows
    rule: str | dict[str, Any] | None = None
    outside: tuple[str, ...] = field(default=(), repr=False)
    remark: str = ""


@dataclass(frozen=True, kw_only=True)
class TaxonomyWizard:
    """The recipe of a taxonomy: at most one of five, and groups in the order of the values on top of three of them.

    Without any it is the skeleton: every value directly under ``*``.
    """

    intervals: Sequence[float] = ()
    calendar: Sequence[str] = ()
    prefix: Sequence[int] = ()
    frequent: Sequence[int] = ()
    ready: str | None = None
    groups: Sequence[int] = ()
    others: str = OTHERS

    def __post_init__(self) -> None:
        asked = self.asked
        if len([name for name in asked if name != "groups"]) > 1:
            raise UsageError(f"{' and '.join(asked)} do not go together. Choose one of them.")
        if self.groups and (self.frequent or self.ready is not None):
            other = "frequent" if self.frequent else "ready"
            raise UsageError(
                f"groups and {other} do not go together. Groups in the order of the values go on top of intervals, "
                "calendar or prefix, or stand alone."
            )
        for name, counts, least in (("groups", self.groups, 2), ("frequent", self.frequent, 1)):
            if any(isinstance(count, bool) or not isinstance(count, int) or count < least for count in counts):
                raise UsageError(f"{name} takes whole numbers of at least {least}, such as 8,4,2.")
        if self.others != OTHERS and not self.frequent:
            raise UsageError("others names what is not among the most frequent values. Give frequent too.")
        if self.ready is not None:
            ready_taxonomy(self.ready)

    @property
    def asked(self) -> tuple[str, ...]:
        """The names of the recipes that are asked for."""
        names = ("intervals", "calendar", "prefix", "frequent", "ready", "groups")
        return tuple(name for name in names if getattr(self, name))

    @property
    def words(self) -> str:
        """What is asked for, in words."""
        parts = []
        for name in self.asked:
            given = getattr(self, name)
            parts.append(f"{name} {given if isinstance(given, str) else ', '.join(map(str, given))}")
        return " and ".join(parts) or "skeleton"

    def settings(self, column_type: Any) -> ColumnSettings:
        """Return how the column has to be read. column_type: as the policy says, if it says so."""
        if self.intervals or self.calendar:
            return ColumnSettings(role="quasi-identifier", taxonomy=Grouping(**self._rule()))
        if self.prefix or self.ready is not None:
            column_type = "categorical"
        return ColumnSettings(role="quasi-identifier", type=column_type)

    def draft(self, counted: CountedValues) -> DraftTaxonomy:
        """Make the taxonomy of a column that was read with these settings."""
        if self.ready is not None:
            ready = ready_taxonomy(self.ready).rows(counted.values)
            remark = ready.explanation if ready.outside else ""
            return DraftTaxonomy(ready.rows, self._rule(), ready.outside, remark)
        if self.frequent:
            counts = sorted(set(self.frequent), reverse=True)
            records = counted.records.tolist()
            levels = frequent_levels(counted.values, records, counts, self.others, counted.column)
            return DraftTaxonomy(_rows(counted.values, levels))
        levels, cells = self._named(counted)
        if not self.groups:
            return DraftTaxonomy(_rows(counted.values, levels), self._rule() if self.asked else FLAT)
        return DraftTaxonomy(_rows(counted.values, [*levels, *self._in_order(counted, levels, cells)]))

    def _rule(self) -> dict[str, Any]:
        """Return what a policy has to say, from fine to coarse."""
        if self.intervals:
            return {"intervals": sorted(set(self.intervals))}
        if self.calendar:
            known = [unit for unit in UNITS if unit in self.calendar]
            return {"calendar": [*known, *(unit for unit in self.calendar if unit not in UNITS)]}
        return {"prefix": sorted(set(self.prefix))} if self.prefix else {"ready": self.ready}

    def _named(self, counted: CountedValues) -> tuple[list[list[str]], list[CellNames] | None]:
        """Return the levels of intervals, periods or prefixes, and the cells of the coarsest if these are ranges."""
        if self.intervals or self.calendar:
            cells = counted.cell_names()
            return [[cell.name for cell in level] for level in cells], cells[-1]
        if self.prefix:
            lengths = sorted(Grouping(prefix=tuple(sorted(set(self.prefix)))).prefix or (), reverse=True)
            return [prefix_labels(counted.values, length) for length in lengths], None
        return [], None

    def _in_order(
        self, counted: CountedValues, levels: list[list[str]], cells: list[CellNames] | None
    ) -> list[list[str]]:
        """Return the levels of groups in the order of the values. A group consists of whole groups below."""
        below = levels[-1] if levels else list(counted.values)
        runs = [[position for position, _ in run] for _, run in groupby(enumerate(below), key=lambda pair: pair[1])]
        counts = sorted(set(self.groups), reverse=True)
        if counts[0] >= len(runs):
            what = "groups below" if levels else "different values"
            raise UsageError(
                f"column {counted.column!r} has {len(runs):,} {what}, which {counts[0]:,} groups would not make "
                "coarser. Give a smaller number."
            )
        weights = [int(counted.records[run].sum()) for run in runs]
        grouped = order_levels(weights, counts, _names(counted, [run[0] for run in runs], levels, cells))
        part = [number for number, run in enumerate(runs) for _ in run]
        return [[level[number] for number in part] for level in grouped]


def _names(
    counted: CountedValues, firsts: Sequence[int], levels: list[list[str]], cells: list[CellNames] | None
) -> NameOf:
    """Return how groups of parts are named. firsts: the position of the first value of each part."""
    if cells is not None:
        return names_of_ranges([cells[first].low for first in firsts], [cells[first].high for first in firsts])
    if levels:
        return names_of_labels([levels[-1][first] for first in firsts])
    if counted.kind == "categorical":
        return names_of_texts(counted.values)
    return names_of_values(counted.values, dates=counted.kind != "numeric")


def _rows(values: Sequence[str], levels: Sequence[Sequence[str]]) -> TaxonomyRows:
    return TaxonomyRows(tuple(values), tuple(tuple(level) for level in levels))
