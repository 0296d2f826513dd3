"""The facts of a release, counted from its own rows: what the shareable report shows beside the public figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluation.audit.anatomy_audit import GROUP, group_counts, value_counts
from sfumato.evaluation.audit.audit import class_key
from sfumato.policy import Policy
from sfumato.report.value_cells import (
    ReleasedValuesOfColumn,
    ValueCells,
    cells_of,
    cross_tabulate,
    texts_shown,
    values_of,
)
from sfumato.tables.coding.value_order import is_missing, text_of
from sfumato.tables.released_classes import Distribution, ReleasedClasses, distribution, find_classes
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.taxonomy import Taxonomy

MOST_COLUMNS = 24  # columns that are examined one by one
MOST_CROSSED = 5  # quasi-identifiers that are crossed with each other
MOST_SENSITIVE = 6
MOST_PAIRS = 6
FIELDS = 9  # cells of a column that is crossed with another
DIGITS = 3  # decimals of a share
LISTED = 12  # values of a column in the facts

Triples = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class ValueDiversity:
    """How sure somebody who knows a person's class or group could be of the person's sensitive value."""

    name: str
    sizes: NDArray[np.int64] = field(repr=False)
    distinct: NDArray[np.int64] = field(repr=False)
    """The number of different values in each class."""
    share: NDArray[np.float64] = field(repr=False)
    """The share of the most frequent value in each class, among the records that have a value."""
    commonest: float
    """The share of the most frequent value in the whole release."""
    limit: float | None
    """The share that the policy allows."""
    missing: int

    @property
    def mean(self) -> float:
        """The mean share over all records."""
        return float(np.average(self.share, weights=self.sizes)) if self.sizes.sum() else 0.0

    @property
    def revealed(self) -> int:
        """The number of records in classes with a single value."""
        return int(self.sizes[self.distinct == 1].sum())

    def as_dict(self) -> dict[str, Any]:
        return {
            "column": self.name,
            "fewest_values": int(self.distinct.min()) if self.distinct.size else 0,
            "largest_share": _rounded(float(self.share.max()) if self.share.size else 0.0),
            "mean_share": _rounded(self.mean),
            "commonest": _rounded(self.commonest),
            "revealed": self.revealed,
            "missing": self.missing,
        }


@dataclass(frozen=True)
class Pair:
    """The cross-tabulation of two columns of the release: ``records[x, y]``."""

    x: str
    y: str
    x_cells: ValueCells = field(repr=False)
    y_cells: ValueCells = field(repr=False)
    records: NDArray[np.float64] = field(repr=False)


@dataclass(frozen=True)
class ExactEnds:
    """The columns with ranges whose ends are values of records, and the share of the records that show such a range."""

    columns: list[str]
    share: float


@dataclass(frozen=True, kw_only=True)
class ReleaseFacts:
    """The counts of a release."""

    classes: ReleasedClasses | None = field(repr=False)
    """None for a release without records, and for one in two tables."""
    sizes: NDArray[np.int64] = field(repr=False)
    columns: list[ReleasedValuesOfColumn]
    further: list[str]
    """Columns of the release that are not examined one by one."""
    diversity: list[ValueDiversity]
    pairs: list[Pair]

    @property
    def records(self) -> int:
        return int(self.sizes.sum())

    def exact_ends(self, policy: Policy) -> ExactEnds:
        """The ranges that end at values of records: those of the smallest boxes, if nothing widens the column."""
        names = []
        shows_one = np.zeros(len(self.sizes), np.bool_)
        if self.classes is not None and policy.release.boxes == "smallest":
            for column in self.columns:
                rule = policy.columns.get(column.name)
                if column.role == "quasi-identifier" and rule is not None and rule.round is None and not rule.taxonomy:
                    is_range = column.is_range[self.classes.shown[column.name]]
                    names += [column.name] if is_range.any() else []
                    shows_one |= is_range
        return ExactEnds(names, float(self.sizes[shows_one].sum() / max(self.records, 1)))

    def as_dict(self) -> dict[str, Any]:
        """The facts as JSON values. They hold only released values and counts of the release."""
        sizes, counts = np.unique(self.sizes, return_counts=True)
        return {
            "class_sizes": {str(size): count for size, count in zip(sizes.tolist(), counts.tolist(), strict=True)},
            "released_columns": [_column(values) for values in self.columns],
            "further_columns": list(self.further),
            "diversity": [column.as_dict() for column in self.diversity],
            "pairs": [
                {
                    "x": pair.x,
                    "y": pair.y,
                    "x_values": pair.x_cells.names,
                    "y_values": pair.y_cells.names,
                    "records": np.rint(pair.records).astype(np.int64).tolist(),
                }
                for pair in self.pairs
            ],
        }


NOTHING = ReleaseFacts(
    classes=None, sizes=np.empty(0, np.int64), columns=[], further=[], diversity=[], pairs=[]
)  # the facts of a release without records


def facts_of(source: Source, second: Source | None, policy: Policy, taxonomies: Mapping[str, Taxonomy]) -> ReleaseFacts:
    """Count the rows of a finished release. ``second`` is the second table, with the sensitive values, if any."""
    key = class_key(policy, source.names)
    sensitive = [name for name in policy.sensitive if name in source.names][:MOST_SENSITIVE]
    classes = find_classes(source, key, by_row=bool(sensitive))
    nulls = policy.input.nulls
    columns = []
    for name in policy.quasi_identifiers:
        records = np.zeros(len(classes.values[name]), np.int64)
        np.add.at(records, classes.shown[name], classes.sizes)
        columns.append(column_values(name, classes.values[name], records, policy, taxonomies))
    distributions: dict[str, Distribution] = {}
    diversity = []
    for name in sensitive:
        spread = distributions[name] = distribution(source, classes, name, nulls, keep_null=True)
        records = np.zeros(len(spread.values), np.int64)
        np.add.at(records, spread.value, spread.count)
        columns.append(column_values(name, spread.values, records, policy, taxonomies))
        known = ~columns[-1].is_null[spread.value] | (policy.privacy.null_sensitive == "value")
        diversity.append(_shares(columns[-1], spread.owner[known], spread.count[known], classes.sizes, policy))
    sizes = classes.sizes
    if second is not None:
        (name,) = policy.sensitive[:1] or ("",)
        columns.append(column_values(name, *value_counts(second, name), policy, taxonomies))
        groups = group_counts(source, second, name, policy)
        sizes, histogram = groups.sizes, groups.histograms[name]
        diversity = [_shares(columns[-1], histogram.owner, histogram.count, sizes, policy)]
    done = {*key, *sensitive, *([GROUP] if second is not None else [])}
    others = [name for name in source.names if name not in done]
    room = max(MOST_COLUMNS - len(columns), 0)
    for name in others[:room]:
        kept = find_classes(source, [name])
        columns.append(
            column_values(name, kept.values[name], kept.sizes[np.argsort(kept.shown[name])], policy, taxonomies)
        )
    return ReleaseFacts(
        classes=classes if second is None else None,
        sizes=sizes,
        columns=columns[:MOST_COLUMNS],
        further=[*(column.name for column in columns[MOST_COLUMNS:]), *others[room:]],
        diversity=diversity,
        pairs=_pairs(columns, classes, distributions),
    )


def column_values(
    name: str,
    values: Sequence[object],
    records: NDArray[np.int64],
    policy: Policy,
    taxonomies: Mapping[str, Taxonomy],
) -> ReleasedValuesOfColumn:
    """The different values of a column as texts, which are the same for every kind of file, with their records."""
    column = policy.columns.get(name)
    role = "other" if column is None else column.role
    texts = [None if is_missing(value, policy.input.nulls) else text_of(value) for value in values]
    taxonomy = taxonomies.get(name) if role == "quasi-identifier" else None
    return values_of(name, role, texts, records, column, taxonomy, commas=policy.input.decimal == ",")


def _shares(
    values: ReleasedValuesOfColumn,
    owner: NDArray[np.int64],
    count: NDArray[np.int64],
    sizes: NDArray[np.int64],
    policy: Policy,
) -> ValueDiversity:
    distinct = np.bincount(owner, minlength=len(sizes))
    known = np.bincount(owner, weights=count, minlength=len(sizes))
    largest = np.zeros(len(sizes))
    np.maximum.at(largest, owner, count)
    limits = [
        1 / int(entry.parameters()["l"])
        for entry in policy.privacy.sensitive
        if entry.attribute == values.name and entry.kind == "frequency"
    ]
    counted = values.records if policy.privacy.null_sensitive == "value" else values.records[~values.is_null]
    return ValueDiversity(
        name=values.name,
        sizes=sizes,
        distinct=distinct,
        share=largest / np.maximum(known, 1),
        commonest=float(counted.max() / counted.sum()) if counted.sum() else 0.0,
        limit=min(limits, default=None),
        missing=values.among(values.is_null),
    )


def _pairs(
    columns: Sequence[ReleasedValuesOfColumn], classes: ReleasedClasses, distributions: Mapping[str, Distribution]
) -> list[Pair]:
    """The pairs of columns that say most about each other."""
    quasi = [column for column in columns if column.name in classes.shown and column.role == "quasi-identifier"]
    informative = sorted(quasi, key=lambda column: column.among(column.is_whole) - column.among(column.plain))
    chosen = [column for column in quasi if column in informative[:MOST_CROSSED]]
    chosen += [column for column in columns if column.name in distributions]
    cells = {column.name: cells_of(column, FIELDS) for column in chosen}
    pairs: list[tuple[float, Pair]] = []
    for x, y in combinations((column.name for column in chosen), 2):
        rows = _rows(x, y, classes, distributions)
        if rows is None or min(len(cells[x].names), len(cells[y].names)) < 2:
            continue
        x_values, y_values, records = rows
        counts = cross_tabulate(cells[x], x_values, cells[y], y_values, records)
        pairs.append((association(counts), Pair(x, y, cells[x], cells[y], counts)))
    # The sort is stable: of pairs with equal association, the first stays first.
    return [pair for _, pair in sorted(pairs, key=lambda rated: -round(rated[0], 9))[:MOST_PAIRS]]


def _rows(x: str, y: str, classes: ReleasedClasses, distributions: Mapping[str, Distribution]) -> Triples | None:
    """The values of two columns that occur together, and the number of records with both."""
    if x in distributions:
        return None  # two sensitive columns: their values would have to be counted together
    if y in distributions:
        spread = distributions[y]
        return classes.shown[x][spread.owner], spread.value, spread.count
    return classes.shown[x], classes.shown[y], classes.sizes


def association(counts: NDArray[np.float64]) -> float:
    """How much two columns say about each other, 0 to 1: mutual information over the smaller entropy."""
    joint = counts / max(float(counts.sum()), 1e-300)
    rows, columns = joint.sum(1), joint.sum(0)
    expected = np.outer(rows, columns)
    positive = joint > 0
    information = float((joint[positive] * np.log(joint[positive] / expected[positive])).sum())
    least = min(_entropy(rows), _entropy(columns))
    return information / least if least > 1e-12 else 0.0


def _entropy(shares: NDArray[np.float64]) -> float:
    positive = shares[shares > 0]
    return float(-(positive * np.log(positive)).sum())


def _column(values: ReleasedValuesOfColumn) -> dict[str, Any]:
    cells = cells_of(values, LISTED)
    shown = texts_shown(cells.names, cells.totals(values.records).tolist())
    return {
        "name": values.name,
        "role": values.role,
        "type": values.kind,
        "released_values": len(values.texts),
        "null": values.among(values.is_null),
        "whole": values.among(values.is_whole),
        "values": [{"value": name, "records": count} for name, count in shown],
    }


def _rounded(number: float) -> float:
    return round(number, DIGITS)
