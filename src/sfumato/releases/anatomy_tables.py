"""Build the two tables of Anatomy: the quasi-identifiers and group of every record, and the values of each group.

Groups are numbered, and rows sorted, by the released values alone, so that neither reveals the order of the input.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.methods.anatomy import COUNT, GROUP
from sfumato.releases.local_recoding import Recoded, released_columns
from sfumato.tables.coding.arrow_arrays import from_numpy
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.coding.sorting import row_order


def separated(
    recoded: Recoded, sensitive: PassthroughColumn, rows: NDArray[np.uint32], group: NDArray[np.int64]
) -> tuple[pa.Table, pa.Table]:
    """The two tables. ``recoded`` has a class for every distinct record; ``group`` is the group of each of ``rows``."""
    rank, position = _ranks(sensitive)
    # 0.0 and -0.0 are one value, and so are NaN and null: a group shows the first of them in this order.
    by_position = np.argsort(position[rows])
    rows, group = rows[by_position], group[by_position]
    value = rank[rows]
    # Leave out classes without rows: a dictionary holds only values that occur.
    classes, shown = np.unique(recoded.class_of_row[rows], return_inverse=True)
    columns = [replace(column, entry=column.entry[classes]) for column in recoded.columns]
    number = _numbered(group, shown, value)
    order = np.lexsort([number, shown])
    released = [released_columns(column, lambda entries: entries[shown[order]], bounds=False)[0] for column in columns]
    first = pa.Table.from_arrays(
        [*(array for _, array in released), from_numpy(number[order])], names=[*(name for name, _ in released), GROUP]
    )
    values = int(value.max()) + 1
    pairs, first_row, count = np.unique(number * values + value, return_index=True, return_counts=True)
    second = pa.Table.from_arrays(
        [from_numpy(pairs // values), sensitive.take(rows[first_row]), from_numpy(count)],
        names=[GROUP, sensitive.name, COUNT],
    )
    return first, second


def _numbered(group: NDArray[np.int64], shown: NDArray[np.int64], value: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each row's group, from 1, in the order of the released values of the groups."""
    groups = int(group.max()) + 1
    sizes = np.bincount(group, minlength=groups)
    keys = []
    for column in (value, shown):
        by_group = np.lexsort([column, group])
        index_in_group = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        matrix = np.full((groups, int(sizes.max())), -1, np.int64)
        matrix[group[by_group], index_in_group] = column[by_group]
        keys += list(matrix.T[::-1])
    rank = np.empty(groups, np.int64)
    rank[np.lexsort(keys)] = np.arange(1, groups + 1)
    return rank[group]


def _ranks(sensitive: PassthroughColumn) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rank of each row's value among the values, and the position of each row in that order."""
    codes, size = sensitive.distinct
    order = row_order(sensitive.fields(), len(codes))
    _, first = np.unique(codes[order], return_index=True)
    present = codes[order][np.sort(first)]
    rank = np.zeros(size, np.int64)
    rank[present] = np.arange(len(present))
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    return rank[codes], position
