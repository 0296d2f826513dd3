"""The questions that are asked of a release, and the protocol by which every part of a release answers them.

A release is measured in parts whose answers add up. Each part has records that are released in the same way:
generalized, suppressed, or in groups. The datacube and the range queries treat all parts alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import kernel
from sfumato.tables.coding.domains import Codes
from sfumato.tables.coding.sorting import Field, bits_for, sort_rows

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Original:
    """The original as codes; its sensitive values are numbered from 0 to ``values`` - 1."""

    codes: Codes
    sensitive: Integers
    values: int


@dataclass(frozen=True)
class Points:
    """Cells of one group-by, each with a sensitive value: value v has the rows starts[v] to starts[v + 1] - 1 of cells.

    Column c of ``cells`` belongs to quasi-identifier columns[c], which has sizes[c] cells.
    """

    columns: tuple[int, ...]
    sizes: tuple[int, ...]
    starts: Integers
    cells: Integers


@dataclass(frozen=True)
class RangeQuery:
    """A query: the codes of each of its quasi-identifiers, and the sensitive values, that it asks for."""

    columns: tuple[int, ...]
    codes: tuple[Flags, ...]
    values: Flags


class CellEstimates(Protocol):
    """A part of a release, prepared for the cells of a datacube."""

    def at(self, points: Points) -> Floats:
        """The number of records of this part that a reader expects at each point."""
        ...


class ReleasedPart(Protocol):
    """Records of a release, as a reader knows them."""

    def in_cells(self, bounds: Sequence[Integers]) -> CellEstimates:
        """Prepare the part for cells. By quasi-identifier, cell c has the codes bounds[c] to bounds[c + 1] - 1."""
        ...

    def count(self, query: RangeQuery) -> float:
        """The number of records of this part that a reader expects in the answer."""
        ...


def distinct_rows(
    sensitive: Integers, values: int, keys: Sequence[Integers], sizes: Sequence[int], weight: Floats | None
) -> tuple[Integers, Integers, Floats]:
    """Collapse equal rows, sorted by sensitive value: the start of each value, the keys of the rows, their weights."""
    fields = [Field(sensitive.view(np.uint64), bits_for(values))]
    fields += [Field(key.view(np.uint64), bits_for(size)) for key, size in zip(keys, sizes, strict=True)]
    line = sort_rows(fields, len(sensitive))
    rows, begins = line.rows[line.starts[:-1]], line.starts[:-1]
    total = np.diff(line.starts).astype(np.float64) if weight is None else np.add.reduceat(weight[line.rows], begins)
    starts = np.searchsorted(sensitive[rows], np.arange(values + 1))
    return starts, np.stack([key[rows] for key in keys], axis=1), total


def weight_within(
    shown: Integers,
    owner: Integers,
    weight: Floats,
    columns: tuple[int, ...],
    shares: Sequence[Floats],
    share_of_owner: Floats,
) -> float:
    """Sum the weight of all rows, each times the share of it that a query asks for.

    ``shares`` holds, by column of the query, the share of each label that it asks for; ``share_of_owner`` the share of
    each owner.
    """
    offsets = np.cumsum([0, *(len(share) for share in shares[:-1])])
    total: float = shared_weight(
        shown, owner, weight, np.array(columns, np.int64), offsets, np.concatenate(shares), share_of_owner
    )
    return total


@kernel
def shared_weight(shown, owner, weight, columns, offsets, shares, share_of_owner):
    """The sum of weights times shares.

    shown: int64[n, d]; owner: int64[n]; weight: float64[n]; columns, offsets: int64[attributes], where the shares of
    a column's labels begin in shares: float64[labels]; share_of_owner: float64[owners].
    """
    total = 0.0
    for row in range(len(shown)):
        amount = weight[row] * share_of_owner[owner[row]]
        for c in range(len(columns)):
            amount *= shares[offsets[c] + shown[row, columns[c]]]
        total += amount
    return total
