"""The classes of a finished release, recomputed from its rows alone.

This module shares no code with the methods and recoding, on purpose: the audit must not inherit their mistakes. A class
is a set of rows with equal values in all columns of the class key; null equals null and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.kernels.threads import in_threads, slices
from sfumato.tables.coding.arrow_arrays import to_numpy, to_python
from sfumato.tables.coding.value_order import ascending, is_missing, text_of
from sfumato.tables.key_counts import weights_of_keys
from sfumato.tables.sources.source import Source
from sfumato.tables.sources.source_batches import FEW_ROWS

LARGEST = 1 << 62
CHUNK = 1 << 16  # rows numbered at once: they fit in a core's cache


@dataclass(frozen=True)
class ReleasedClasses:
    """The size of each class, and the value it shows in a column: values[column][shown[column][class_id]].

    counts: the number of records that each row stands for, or None if it is one record.
    """

    sizes: NDArray[np.int64]
    values: dict[str, list[object]]
    shown: dict[str, NDArray[np.int64]]
    class_of_row: NDArray[np.int64] | None
    counts: NDArray[np.int64] | None = None

    @property
    def records(self) -> int:
        return int(self.sizes.sum())

    def members(self, keys: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of different keys among the rows of each class. keys: by row."""
        assert self.class_of_row is not None
        return _different(self.class_of_row, keys, len(self.sizes))


def find_classes(
    source: Source, key: Sequence[str], *, by_row: bool = False, counts: NDArray[np.int64] | None = None
) -> ReleasedClasses:
    """Group the rows of ``source`` by the columns ``key``; with ``by_row``, also record the class of each row.

    counts: by row, the number of equal records that the row stands for; by default one.
    """
    numbering = {name: _Numbering() for name in key}
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in key}
    for batch in source.batches(list(key)):
        number = partial(_number, batch, numbering, parts)
        in_threads(number, key) if batch.num_rows > FEW_ROWS else list(map(number, key))
    joined = in_threads(lambda arrays: np.concatenate(arrays or [np.empty(0, np.uint32)]), list(parts.values()))
    columns = dict(zip(parts, joined, strict=True))
    parts.clear()
    group = group_rows(list(columns.values()), [max(len(numbering[name].values), 1) for name in key])
    # The rows of a class are mostly adjacent, so sorting runs is faster than sorting rows.
    runs = np.flatnonzero(_begins(group))
    lengths = np.diff(np.append(runs, group.size))
    _, first, class_of_run = np.unique(group[runs], return_index=True, return_inverse=True)
    sizes = np.zeros(len(first), np.int64)
    np.add.at(sizes, class_of_run, lengths if counts is None else np.add.reduceat(counts, runs))
    shown = {name: column[runs[first]].astype(np.int64) for name, column in columns.items()}
    class_of_row = np.repeat(class_of_run, lengths) if by_row else None
    return ReleasedClasses(sizes, {name: numbering[name].values for name in key}, shown, class_of_row, counts)


def _begins(group: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each row has another number than the row before."""
    begins = np.ones(len(group), np.bool_)

    def compare(part: tuple[int, int]) -> None:
        first, end = max(part[0], 1), part[1]
        np.not_equal(group[first:end], group[first - 1 : end - 1], out=begins[first:end])

    in_threads(compare, slices(len(group), CHUNK))
    return begins


def group_rows(columns: list[NDArray[Any]], sizes: list[int]) -> NDArray[np.int64]:
    """Return a number for every row. Two rows have the same number exactly if they are equal in all columns.

    The columns are the digits of the number. Before it would overflow, the numbers that occur are renumbered from 0.
    """
    group = np.zeros(len(columns[0]), np.int64)
    distinct, begin = 1, 0
    while begin < len(columns):
        end = begin
        while end < len(columns) and distinct * sizes[end] <= LARGEST:
            distinct *= sizes[end]
            end += 1
        if end == begin:
            groups, group = np.unique(group, return_inverse=True)
            distinct = len(groups)
            continue
        in_threads(partial(_append_digits, group, columns[begin:end], sizes[begin:end]), slices(len(group), CHUNK))
        begin = end
    return group


def _append_digits(
    group: NDArray[np.int64], columns: list[NDArray[Any]], sizes: list[int], part: tuple[int, int]
) -> None:
    group_part = group[part[0] : part[1]]
    for column, size in zip(columns, sizes, strict=True):
        group_part *= size
        group_part += column[part[0] : part[1]]


def refine(
    source: Source, classes: ReleasedClasses, columns: Sequence[str], tokens: Collection[str]
) -> tuple[ReleasedClasses, NDArray[np.int64]]:
    """Split the classes further by ``columns``. Return the finer classes, and the original class of each of them."""
    assert classes.class_of_row is not None
    group = classes.class_of_row
    for column in columns:
        ranks, values, _ = _ranked(source, column, tokens, keep_null=True)
        _, group = np.unique(group * max(len(values), 1) + ranks, return_inverse=True)
    sizes = _records(group, classes.counts)
    parent = np.empty(len(sizes), np.int64)
    parent[group] = classes.class_of_row
    return ReleasedClasses(sizes, {}, {}, group, classes.counts), parent


def _records(
    owner: NDArray[np.int64], counts: NDArray[np.int64] | None, owners: int | None = None
) -> NDArray[np.int64]:
    """Return the number of records of each owner; ``counts`` is the number of records of each row, by default one."""
    least = owners or 0
    if counts is None:
        return np.bincount(owner, minlength=least)
    return np.bincount(owner, weights=counts, minlength=least).astype(np.int64)  # exact: tables have less than 2 ** 53


@dataclass(frozen=True)
class MergedClasses:
    """Classes that were merged because fewer columns are compared: the number of records of each, and its size.

    one: for each merged class, one of the classes it was merged from.
    """

    records: NDArray[np.int64]
    sizes: NDArray[np.int64]
    one: NDArray[np.int64]


def merge_classes(classes: ReleasedClasses, columns: Sequence[str], person: str | None = None) -> MergedClasses:
    """Merge the classes that show the same values in ``columns``. The result has no particular order.

    The size of a class is its number of records or, with ``person`` (a column of the key), its number of persons.
    """
    widths = [max(len(classes.values[name]), 1) for name in columns]
    group = group_rows([classes.shown[name] for name in columns], widths)
    if person is None:
        records, one = weights_of_keys(group, classes.sizes)
        return MergedClasses(records, records, one)
    order = np.argsort(group)
    begins = np.flatnonzero(np.append(True, np.diff(group[order]) != 0))
    records = np.add.reduceat(classes.sizes[order], begins)
    number = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, group.size)))
    return MergedClasses(records, _different(number, classes.shown[person][order], len(begins)), order[begins])


def unify_nulls(classes: ReleasedClasses, columns: Sequence[str], tokens: Collection[str]) -> ReleasedClasses:
    """Replace the null tokens that classes show by a single null. Several classes may then show the same values."""
    shown = dict(classes.shown)
    for name in columns:
        missing = [index for index, value in enumerate(classes.values[name]) if is_missing(value, tokens)]
        if len(missing) > 1:
            shown[name] = np.where(np.isin(shown[name], missing), missing[0], shown[name])
    return replace(classes, shown=shown)


def sizes_in_other_table(
    classes: ReleasedClasses, elsewhere: ReleasedClasses, columns: Sequence[str], tokens: Collection[str] = ()
) -> NDArray[np.int64]:
    """Return for each class how many records of another table have the same text in all ``columns``.

    Null and the null tokens equal null.
    """
    numbered, widths = [], []
    for name in columns:
        number: dict[str | None, int] = {}
        both = []
        for table in (classes, elsewhere):
            texts = [None if is_missing(value, tokens) else text_of(value) for value in table.values[name]]
            number_of_value = np.array([number.setdefault(text, len(number)) for text in texts], np.int64)
            both.append(number_of_value[table.shown[name]])
        numbered.append(np.concatenate(both))
        widths.append(max(len(number), 1))
    groups, group = np.unique(group_rows(numbered, widths), return_inverse=True)
    counts = np.zeros(len(groups), np.int64)
    np.add.at(counts, group[len(classes.sizes) :], elsewhere.sizes)
    return counts[group[: len(classes.sizes)]]


@dataclass(frozen=True)
class Distribution:
    """How often each value of a column occurs in each class: owner (the class), value and count of every pair.

    Values are numbered in ascending order. reference: the share of each value in all classes together. numbers: each
    value as a number, NaN if the values are not numbers. known: the number of rows of each class that have a value.
    """

    owner: NDArray[np.int64]
    value: NDArray[np.int64]
    count: NDArray[np.int64]
    reference: NDArray[np.float64]
    numbers: NDArray[np.float64]
    known: NDArray[np.int64]
    values: list[object]


@dataclass(frozen=True)
class ColumnTotals:
    """The values of a column in a whole release, for callers that see one part of it at a time.

    rank: the index of everything written among ``values``, which ascend; one past the last for null. numbers,
    reference: see Distribution.
    """

    rank: dict[object, int]
    values: list[object]
    numbers: NDArray[np.float64]
    reference: NDArray[np.float64]

    @classmethod
    def of(cls, written: Mapping[object, int], tokens: Collection[str], *, keep_null: bool) -> ColumnTotals:
        """Summarize a column. written: how often each value, and null, occurs in the release."""
        rank, values, numbers = _in_order(list(written), tokens, keep_null=keep_null)
        total = np.zeros(len(values) + 1, np.int64)
        np.add.at(total, rank, list(written.values()))
        rank_of_value = dict(zip(written, rank.tolist(), strict=True))
        return cls(rank_of_value, values, numbers, _shares(total[: len(values)]))


def distribution(
    source: Source,
    classes: ReleasedClasses,
    column: str,
    tokens: Collection[str] = (),
    where: str = "the policy",
    *,
    keep_null: bool = False,
    persons: NDArray[np.integer] | None = None,
    totals: ColumnTotals | None = None,
) -> Distribution:
    """Count the values of ``column`` in each class. Null and the null tokens are a value only with ``keep_null``.

    With ``persons``, by row, a person counts once for each value in a class. With ``totals``, the classes are part of a
    release, and values are numbered and compared as in the whole release.
    """
    if column not in source.names:
        raise UsageError.unknown_column(column, where, source.names)
    assert classes.class_of_row is not None
    ranks, values, numbers = _ranked(source, column, tokens, keep_null=keep_null, totals=totals)
    width = max(len(values), 1)
    keep = ranks < len(values)
    owner, ranks = classes.class_of_row[keep], ranks[keep]
    pairs = owner * width + ranks
    if persons is None:
        counts = None if classes.counts is None else classes.counts[keep]
        known, total = _records(owner, counts, len(classes.sizes)), _records(ranks, counts, len(values))
        if counts is None:
            distinct, count = np.unique(pairs, return_counts=True)
        else:
            distinct, pair_index = np.unique(pairs, return_inverse=True)
            count = _records(pair_index, counts, len(distinct))
    else:
        keys = persons[keep]
        known, total = _different(owner, keys, len(classes.sizes)), _different(ranks, keys, len(values))
        distinct, pair_index = np.unique(pairs, return_inverse=True)
        count = _different(pair_index, keys, len(distinct))
    reference = _shares(total) if totals is None else totals.reference
    return Distribution(distinct // width, distinct % width, count, reference, numbers, known, values)


def _shares(total: NDArray[np.int64]) -> NDArray[np.float64]:
    return total / max(int(total.sum()), 1)


def _ranked(
    source: Source, column: str, tokens: Collection[str], *, keep_null: bool, totals: ColumnTotals | None = None
) -> tuple[NDArray[np.int64], list[object], NDArray[np.float64]]:
    """Return the rank of each row's value in ascending order, the values in that order, and each value as a number.

    Null and the null tokens rank one past the last known value; they are a value only with ``keep_null``.
    """
    numbering = _Numbering()
    number_of_row = np.concatenate([numbering.numbers(batch.column(0)) for batch in source.batches([column])])
    occurring = numbering.values
    if totals is not None:
        rank = np.array([totals.rank[value] for value in occurring], np.int64)
        return rank[number_of_row], totals.values, totals.numbers
    rank, values, numbers = _in_order(occurring, tokens, keep_null=keep_null)
    return rank[number_of_row], values, numbers


def _in_order(
    occurring: list[object], tokens: Collection[str], *, keep_null: bool
) -> tuple[NDArray[np.int64], list[object], NDArray[np.float64]]:
    """Return the rank of each occurring value in ascending order, the values in that order, and each as a number.

    Null and the null tokens rank one past the last known value; they are a value only with ``keep_null``.
    """
    known = [index for index, value in enumerate(occurring) if not is_missing(value, tokens)]
    order, numbers = ascending([occurring[index] for index in known])
    ordered_indices = np.array(known, np.int64)[order]
    rank = np.full(len(occurring), len(known), np.int64)
    rank[ordered_indices] = np.arange(len(known))
    values, numbers = [occurring[index] for index in ordered_indices], numbers[order]
    if keep_null and len(known) < len(occurring):
        values, numbers = [*values, None], np.append(numbers, np.nan)
    return rank, values, numbers


def _different(owner: NDArray[np.integer], keys: NDArray[np.integer], count: int) -> NDArray[np.int64]:
    """Return the number of different keys of each owner. owner, keys: int[n], not negative. count: of owners."""
    width = int(keys.max()) + 1 if keys.size else 1
    if count * width <= LARGEST:  # one number per pair sorts much faster than pairs
        pairs = np.sort(owner.astype(np.int64) * width + keys)  # np.unique would take many times as long
        return np.bincount(pairs[_begins(pairs)] // width, minlength=count)
    different = np.unique(np.stack([owner.astype(np.int64), keys.astype(np.int64)], axis=1), axis=0)
    return np.bincount(different[:, 0], minlength=count)


def majorities(source: Source, classes: ReleasedClasses, column: str) -> NDArray[np.int64]:
    """Return for each class how many of its records have its most frequent value in ``column``."""
    counts = distribution(source, classes, column, where="the target", keep_null=True)
    return np.maximum.reduceat(counts.count, np.flatnonzero(np.append(True, counts.owner[1:] != counts.owner[:-1])))


def _number(
    batch: pa.RecordBatch, numbering: dict[str, _Numbering], parts: dict[str, list[NDArray[Any]]], name: str
) -> None:
    parts[name].append(numbering[name].numbers(batch.column(name)))


class _Numbering:
    """Numbers the distinct values of a column across batches."""

    def __init__(self) -> None:
        self._number: dict[object, int] = {}

    @property
    def values(self) -> list[object]:
        return list(self._number)

    def numbers(self, column: pa.Array) -> NDArray[Any]:
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        values = [_hashable(value) for value in to_python(encoded.dictionary)]
        indices = encoded.indices
        number_of_index = np.zeros(len(values) + 1, np.min_scalar_type(len(self._number) + len(values) + 1))
        for index, value in enumerate(values):
            number_of_index[index] = self._number.setdefault(value, len(self._number))
        if indices.null_count:
            number_of_index[-1] = self._number.setdefault(None, len(self._number))
        numbers: NDArray[Any] = number_of_index[to_numpy(indices, null=len(values))]
        return numbers


def _hashable(value: object) -> object:
    """Replace NaN by null: NaN is not equal to itself and would make every row a class of its own."""
    return None if isinstance(value, float) and math.isnan(value) else value
