"""What is asked of a release, and what every part of one can answer.

A release is measured as parts that add up: records that share one way of being told. Parts differ in what a reader
knows of their records; the datacube and the range queries do not.
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
    """The original in codes, its sensitive values numbered from 0 to ``values`` - 1."""

    codes: Codes
    sensitive: Integers
    values: int


@dataclass(frozen=True)
class Points:
    """Cells of one group-by, each with a sensitive value: value v has the rows starts[v] to starts[v + 1] - 1 of cells.

    Column c of ``cells`` is that of quasi-identifier columns[c], which has sizes[c] cells.
    """

    columns: tuple[int, ...]
    sizes: tuple[int, ...]
    starts: Integers
    cells: Integers


@dataclass(frozen=True)
class RangeQuery:
    """Which codes of each of its quasi-identifiers a query asks for, and which sensitive values."""

    columns: tuple[int, ...]
    codes: tuple[Flags, ...]
    values: Flags


class CellEstimates(Protocol):
    """A part of a release, made ready for the cells of a datacube."""

    def at(self, points: Points) -> Floats:
        """How many of its records a reader expects at each point."""
        ...


class ReleasedPart(Protocol):
    """Records of a release, as far as its tables tell of them."""

    def in_cells(self, bounds: Sequence[Integers]) -> CellEstimates:
        """``bounds`` say by quasi-identifier where cells begin and end: cell c has the codes bounds[c] to
        bounds[c + 1] - 1.
        """
        ...

    def count(self, query: RangeQuery) -> float:
        """How many of its records a reader expects in the answer."""
        ...


def distinct_rows(
    sensitive: Integers, values: int, keys: Sequence[Integers], sizes: Sequence[int], weight: Floats | None
) -> tuple[Integers, Integers, Floats]:
    """Equal rows made one, by sensitive value: where each value starts, the keys of the rows, and their weight."""
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
    wanted: Floats,
) -> float:
    """The weight of all rows times the share of it that a query asks for.

    ``shares`` say by column of the query how much of each thing shown it asks for, ``wanted`` how much of each owner.
    """
    offsets = np.cumsum([0, *(len(share) for share in shares[:-1])])
    found: float = shared_weight(
        shown, owner, weight, np.array(columns, np.int64), offsets, np.concatenate(shares), wanted
    )
    return found


@kernel
def shared_weight(shown, owner, weight, columns, offsets, shares, wanted):
    """The sum of weight times shares.

    shown: int64[n, d]; owner: int64[n]; weight: float64[n]; columns, offsets: int64[attributes], where the shares of
    what a column shows begin in shares: float64[labels]; wanted: float64[owners].
    """
    total = 0.0
    for row in range(len(shown)):
        amount = weight[row] * wanted[owner[row]]
        for place in range(len(columns)):
            amount *= shares[offsets[place] + shown[row, columns[place]]]
        total += amount
    return total
