"""The two tables of Anatomy: the quasi-identifiers of every record with its group, and the values of each group.

Groups are numbered by what the release shows of them, and rows stand in the order of what they show, so that neither
tells anything of the input's order.
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
from sfumato.tables.coding.sorting import sort_rows


def separated(
    recoded: Recoded, sensitive: PassthroughColumn, rows: NDArray[np.uint32], group: NDArray[np.int64]
) -> tuple[pa.Table, pa.Table]:
    """The two tables. ``recoded`` has a class for every distinct record; ``group`` is that of each of the ``rows``."""
    rank, place = _ranks(sensitive)
    # 0.0 and -0.0 are one value, so are NaN and null: of those in a group, the first in this order is shown.
    line = np.argsort(place[rows])
    rows, group = rows[line], group[line]
    value = rank[rows]
    # A class that no row is of has no place in a dictionary.
    classes, shown = np.unique(recoded.class_of_row[rows], return_inverse=True)
    columns = [replace(column, entry=column.entry[classes]) for column in recoded.columns]
    number = _numbered(group, shown, value)
    order = np.lexsort([number, shown])
    released = [released_columns(column, lambda entries: entries[shown[order]], False)[0] for column in columns]
    first = pa.Table.from_arrays(
        [*(array for _, array in released), from_numpy(number[order])], names=[*(name for name, _ in released), GROUP]
    )
    values = int(value.max()) + 1
    pairs, at, count = np.unique(number * values + value, return_index=True, return_counts=True)
    second = pa.Table.from_arrays(
        [from_numpy(pairs // values), sensitive.take(rows[at]), from_numpy(count)], names=[GROUP, sensitive.name, COUNT]
    )
    return first, second


def _numbered(group: NDArray[np.int64], shown: NDArray[np.int64], value: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each row's group, from 1, in the order of what the groups show."""
    groups = int(group.max()) + 1
    sizes = np.bincount(group, minlength=groups)
    keys = []
    for column in (value, shown):
        line = np.lexsort([column, group])
        place = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        matrix = np.full((groups, int(sizes.max())), -1, np.int64)
        matrix[group[line], place] = column[line]
        keys += list(matrix.T[::-1])
    rank = np.empty(groups, np.int64)
    rank[np.lexsort(keys)] = np.arange(1, groups + 1)
    return rank[group]


def _ranks(sensitive: PassthroughColumn) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The place of each row's value in the order of the values, and the place of the row in that order."""
    codes, size = sensitive.distinct
    line = sort_rows(sensitive.fields(), len(codes)).rows
    _, first = np.unique(codes[line], return_index=True)
    present = codes[line][np.sort(first)]
    rank = np.zeros(size, np.int64)
    rank[present] = np.arange(len(present))
    place = np.empty(len(line), np.int64)
    place[line] = np.arange(len(line))
    return rank[codes], place
