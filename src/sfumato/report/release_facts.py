"""What a release shows, counted from its own rows: all that the shareable report is made of, but for scalar losses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluation.audit.anatomy_audit import GROUP, group_counts, value_counts
from sfumato.evaluation.audit.audit import class_key
from sfumato.policy import Policy
from sfumato.releases.certificate import without_counts
from sfumato.report.value_cells import ReleasedValuesOfColumn, cells_of, crossed, texts_shown, values_of
from sfumato.tables.coding.value_order import is_missing, text_of
from sfumato.tables.released_classes import Distribution, ReleasedClasses, distribution, find_classes
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.taxonomy import Taxonomy

MOST_COLUMNS = 24  # that are looked at one by one
MOST_CROSSED = 5  # quasi-identifiers that are crossed with each other
MOST_SENSITIVE = 6
MOST_PAIRS = 6
FIELDS = 9  # of a column that is crossed
DIGITS = 3  # of a loss: more would tell more of the original than a loss
LISTED = 12  # values of a column in the facts

Triples = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class ValueDiversity:
    """How sure somebody could be of a sensitive value who knows the class or group of a person."""

    name: str
    sizes: NDArray[np.int64] = field(repr=False)
    distinct: NDArray[np.int64] = field(repr=False)
    """Of each class, how many different values it has."""
    share: NDArray[np.float64] = field(repr=False)
    """Of each class, the share of its most frequent value among the records that have one."""
    commonest: float
    """The share of the most frequent value in the whole release."""
    limit: float | None
    """The share that the policy allows."""
    missing: int

    @property
    def mean(self) -> float:
        """The mean of the shares by records."""
        return float(np.average(self.share, weights=self.sizes)) if self.sizes.sum() else 0.0

    @property
    def revealed(self) -> int:
        """Records in classes whose records all have the same value."""
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
    """Two columns of the release against each other: ``records[x, y]``."""

    x: str
    y: str
    x_names: list[str] = field(repr=False)
    y_names: list[str] = field(repr=False)
    records: NDArray[np.float64] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ReleaseFacts:
    """All that is counted."""

    classes: ReleasedClasses | None = field(repr=False)
    """None for a release without a record, and for one in two tables."""
    sizes: NDArray[np.int64] = field(repr=False)
    columns: list[ReleasedValuesOfColumn]
    further: list[str]
    """Columns of the release that are not looked at one by one."""
    diversity: list[ValueDiversity]
    pairs: list[Pair]

    @property
    def records(self) -> int:
        return int(self.sizes.sum())

    def as_dict(self) -> dict[str, Any]:
        """For programs. Holds released values and counts of the release alone."""
        return {
            "class_sizes": {
                str(size): many
                for size, many in zip(
                    *(part.tolist() for part in np.unique(self.sizes, return_counts=True)), strict=True
                )
            },
            "released_columns": [_column(values) for values in self.columns],
            "further_columns": list(self.further),
            "diversity": [one.as_dict() for one in self.diversity],
            "pairs": [
                {
                    "x": pair.x,
                    "y": pair.y,
                    "x_values": pair.x_names,
                    "y_values": pair.y_names,
                    "records": np.rint(pair.records).astype(np.int64).tolist(),
                }
                for pair in self.pairs
            ],
        }


NOTHING = ReleaseFacts(
    classes=None, sizes=np.empty(0, np.int64), columns=[], further=[], diversity=[], pairs=[]
)  # of a release without a record


def facts_of(source: Source, second: Source | None, policy: Policy, taxonomies: Mapping[str, Taxonomy]) -> ReleaseFacts:
    """Count the rows of a finished release. ``second`` is the table of sensitive values, where they are apart."""
    key = class_key(policy, source.names)
    sensitive = [name for name in policy.sensitive if name in source.names][:MOST_SENSITIVE]
    classes = find_classes(source, key, by_row=bool(sensitive))
    nulls = policy.input.nulls
    columns = []
    for name in policy.quasi_identifiers:
        records = np.zeros(len(classes.values[name]), np.int64)
        np.add.at(records, classes.shown[name], classes.sizes)
        columns.append(_values(name, classes.values[name], records, policy, taxonomies))
    found: dict[str, Distribution] = {}
    diversity = []
    for name in sensitive:
        found[name] = distribution(source, classes, name, nulls, keep_null=True)
        records = np.zeros(len(found[name].values), np.int64)
        np.add.at(records, found[name].value, found[name].count)
        columns.append(_values(name, found[name].values, records, policy, taxonomies))
        counts = found[name].count
        known = ~columns[-1].is_null[found[name].value] | (policy.privacy.null_sensitive == "value")
        diversity.append(_shares(columns[-1], found[name].owner[known], counts[known], classes.sizes, policy))
    sizes = classes.sizes
    if second is not None:
        (name,) = policy.sensitive[:1] or ("",)
        columns.append(_values(name, *value_counts(second, name), policy, taxonomies))
        groups = group_counts(source, second, name, policy)
        sizes, histogram = groups.sizes, groups.histograms[name]
        diversity = [_shares(columns[-1], histogram.owner, histogram.count, sizes, policy)]
    there = {*key, *sensitive, *([GROUP] if second is not None else [])}
    others = [name for name in source.names if name not in there]
    looked_at = max(MOST_COLUMNS - len(columns), 0)
    for name in others[:looked_at]:
        kept = find_classes(source, [name])
        columns.append(_values(name, kept.values[name], kept.sizes[np.argsort(kept.shown[name])], policy, taxonomies))
    return ReleaseFacts(
        classes=classes if second is None else None,
        sizes=sizes,
        columns=columns[:MOST_COLUMNS],
        further=[*(column.name for column in columns[MOST_COLUMNS:]), *others[looked_at:]],
        diversity=diversity,
        pairs=_pairs(columns, classes, found),
    )


def _values(
    name: str,
    values: Sequence[object],
    records: NDArray[np.int64],
    policy: Policy,
    taxonomies: Mapping[str, Taxonomy],
) -> ReleasedValuesOfColumn:
    """The different texts of a column with their records: the same for every kind of file."""
    column = policy.columns.get(name)
    role = "other" if column is None else column.role
    texts = [None if is_missing(value, policy.input.nulls) else text_of(value) for value in values]
    return values_of(name, role, texts, records, column, taxonomies.get(name) if role == "quasi-identifier" else None)


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
        1 / int(asked.parameters()["l"])
        for asked in policy.privacy.sensitive
        if asked.attribute == values.name and asked.kind == "frequency"
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
    columns: Sequence[ReleasedValuesOfColumn], classes: ReleasedClasses, found: Mapping[str, Distribution]
) -> list[Pair]:
    """The pairs of columns that tell most of each other."""
    quasi = [column for column in columns if column.name in classes.shown and column.role == "quasi-identifier"]
    telling = sorted(quasi, key=lambda column: column.among(column.is_whole) - column.among(column.plain))
    chosen = [column for column in quasi if column in telling[:MOST_CROSSED]]
    chosen += [column for column in columns if column.name in found]
    cells = {column.name: cells_of(column, FIELDS) for column in chosen}
    pairs: list[tuple[float, Pair]] = []
    for one, other in combinations(chosen, 2):
        rows = _rows(one.name, other.name, classes, found)
        if rows is None or min(len(cells[one.name].names), len(cells[other.name].names)) < 2:
            continue
        counts = crossed(cells[one.name], rows[0], cells[other.name], rows[1], rows[2])
        pair = Pair(one.name, other.name, cells[one.name].names, cells[other.name].names, counts)
        pairs.append((association(counts), pair))
    # Of pairs that tell as much, the one that comes first.
    return [pair for _, pair in sorted(pairs, key=lambda rated: -round(rated[0], 9))[:MOST_PAIRS]]


def _rows(one: str, other: str, classes: ReleasedClasses, found: Mapping[str, Distribution]) -> Triples | None:
    """The values of both columns that rows show together, and the records that do."""
    if one in found:
        return None  # two sensitive columns: their values would have to be counted together
    if other in found:
        there = found[other]
        return classes.shown[one][there.owner], there.value, there.count
    return classes.shown[one], classes.shown[other], classes.sizes


def association(counts: NDArray[np.float64]) -> float:
    """How much two columns tell of each other, 0 to 1: mutual information over the smaller entropy."""
    joint = counts / max(float(counts.sum()), 1e-300)
    rows, columns = joint.sum(1), joint.sum(0)
    expected = np.outer(rows, columns)
    some = joint > 0
    information = float((joint[some] * np.log(joint[some] / expected[some])).sum())
    least = min(_entropy(rows), _entropy(columns))
    return information / least if least > 1e-12 else 0.0


def _entropy(shares: NDArray[np.float64]) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum())


def _column(values: ReleasedValuesOfColumn) -> dict[str, Any]:
    cells = cells_of(values, LISTED)
    shown = texts_shown(cells, cells.totals(values.records).tolist())
    return {
        "name": values.name,
        "role": values.role,
        "type": values.kind,
        "released_values": len(values.texts),
        "null": values.among(values.is_null),
        "whole": values.among(values.is_whole),
        "values": [{"value": name, "records": many} for name, many in shown],
    }


def _rounded(number: float) -> float:
    return round(number, DIGITS)


def scalars(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The summary of a run as far as it may be shared: no times, and of every loss three digits."""
    left_out = ("seconds", "warnings", "queries", "policy", "format")
    kept = {key: value for key, value in without_counts(summary).items() if key not in left_out}
    return {key: _shorter(value) for key, value in kept.items()}


def _shorter(value: Any) -> Any:
    if isinstance(value, float):
        return _rounded(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _shorter(one) for key, one in value.items()}
    return [_shorter(one) for one in value] if isinstance(value, list | tuple) else value
