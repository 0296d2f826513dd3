"""Records along a line: the result of an ordering, which does not depend on the requirements."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads, slices
from sfumato.orderings.ordering import Keys

EXPANDED = 1 << 15  # distinct records whose rows one thread writes at once


@dataclass(frozen=True)
class Line:
    """A line of records. keys: of the distinct records. order: uint32[m], the distinct records along the line.

    at: uint32[n], the distinct record at each place. table_rows: uint32[n] and starts: int64[m + 1], see Records.
    cuts: int64[classes + 1], where the line is cut, by kind of cost and k, as far as this was computed in advance.
    """

    keys: Keys
    order: NDArray[np.uint32]
    at: NDArray[np.uint32]
    table_rows: NDArray[np.uint32]
    starts: NDArray[np.int64]
    cuts: dict[tuple[str, int], NDArray[np.int64]] = field(default_factory=dict)

    @cached_property
    def rows(self) -> NDArray[np.uint32]:
        """Return the row at each place."""
        return rows_along(self.table_rows, self.starts, self.order)


def rows_along(rows: NDArray[np.uint32], starts: NDArray[np.int64], order: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the row at each place of a line, given as the distinct records in order. rows, starts: see Records."""
    result = np.empty_like(rows)
    places = np.append(0, np.cumsum(np.diff(starts)[order]))

    def fill(part: tuple[int, int]) -> None:
        expand(rows, starts, order[slice(*part)], result[places[part[0]] : places[part[1]]])

    in_threads(fill, slices(len(order), EXPANDED))
    return result


@kernel
def expand(rows, starts, line, result):
    """Write the rows of distinct records in the order of ``line``. rows, result: uint32[n]; starts: int64[m + 1]."""
    place = 0
    for i in range(len(line)):
        for row in range(starts[line[i]], starts[line[i] + 1]):
            result[place] = rows[row]
            place += 1
