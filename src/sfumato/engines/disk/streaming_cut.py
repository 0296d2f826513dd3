"""The best cut of a line that does not fit into memory (Ghinita 2007, sections 3 and 5.1): one scan of sorted data.

The records are brought into the order of their keys range by range, and the dynamic programme goes over each range as
it comes. What it carries from one to the next is what it looks back at: the last 2k - 2 records and as many costs.
Where the last class of each prefix begins is one small number a record; these go to a file, which is followed back from
its end once all are there. The cuts are those of the memory engine, whatever the ranges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.disk.class_file import SIZE, ClassedFile
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import ahead
from sfumato.methods.line.line import Line
from sfumato.methods.line.optimal_cut import (
    BlockCosts,
    OptimalOneDimensional,
    box_costs_of,
    choice_type,
    extend_cuts,
    extent_costs_of,
    extent_positions,
    line_of,
    no_prefixes,
)
from sfumato.progress import Progress
from sfumato.tables.coding.domains import Codes
from sfumato.tables.coding.sorting import Field, bits_for
from sfumato.tables.external.external_sort import in_ranges
from sfumato.tables.external.memory_budget import Budget
from sfumato.tables.external.packed_records import CODES, PackedFile, Rows, packed_file
from sfumato.tables.external.scratch import Scratch


def cut_line(
    table: CodedTable,
    method: OptimalOneDimensional,
    k: int,
    budget: Budget,
    scratch: Scratch,
    progress: Progress,
    *,
    splits: Sequence[int] = (),
) -> ClassedFile:
    """The classes of at least k records along the ordering of the method. The table has at least k.

    splits: places on the line, ascending, that no class crosses; at least k records lie between two of them.
    """
    most = budget.rows(table.file.kind.itemsize)
    placed = packed_file(scratch, "line", table.file.kind)
    choices = packed_file(scratch, "choices", choice_type(k))
    whole = table.count < 2 * k and not splits
    recurrence = _Recurrence(table, method, k)
    with progress.phase("partition", table.count):
        for rows, line in ahead(lined(table, method, most, scratch)):
            if not whole:
                seen = recurrence.seen(table.codes_of(rows), line)
                within = [place - placed.count for place in splits if 0 <= place - placed.count < len(rows)]
                for begin, end in pairwise([0, *within, len(rows)]):
                    if begin in within:
                        recurrence.restart()
                    choices.append(recurrence.extend(seen[begin:end], progress))
            else:
                progress.advance(len(rows))
            placed.append(rows)
        sizes = packed_file(scratch, "sizes", SIZE)
        if whole:
            sizes.append(np.array([table.count]))
        else:
            _follow_back(choices, k, budget, sizes, scratch)
    choices.remove()
    return ClassedFile(placed, sizes)


def lined(table: CodedTable, method: OptimalOneDimensional, most: int, scratch: Scratch) -> Iterator[tuple[Rows, Line]]:
    """The records in the order of their keys, then of their codes, then of the input, at most ``most`` at a time.

    Yields the packed records in that order, and the line that says where they lie.
    """
    keys_of = method.ordering.fitted(
        np.empty((0, len(table.domains)), table.file.kind[CODES].base), np.empty(0, np.int64), table.domains, 0
    )
    sizes = [bits_for(domain.size) for domain in table.domains]

    def fields_of(rows: Rows) -> list[Field]:
        codes = table.codes_of(rows)
        return [*keys_of(codes).fields(), *(Field(codes[:, q], bits) for q, bits in enumerate(sizes))]

    for rows in in_ranges(table.file, fields_of, most, scratch):
        line = line_of(table.records(rows), method.ordering)
        yield np.take(rows, line.rows), line


class _Recurrence:
    """The dynamic programme between two ranges."""

    def __init__(self, table: CodedTable, method: OptimalOneDimensional, k: int) -> None:
        self._table, self._method, self._k = table, method, k
        self.restart()

    def restart(self) -> None:
        """As if no record came before."""
        self._recent = {self._k: no_prefixes(self._k)}
        self._last: NDArray[Any] | None = None  # what is seen of the last 2k - 2 records

    def seen(self, codes: Codes, line: Line) -> NDArray[Any]:
        """What costs are made of, for every place: the codes, or the position on the line."""
        if self._method.cost == "box":
            return codes
        return extent_positions(line.keys, self._table.count)[line.at]

    def extend(self, seen: NDArray[Any], progress: Progress) -> NDArray[np.unsignedinteger]:
        """The choices at some more places."""
        before = 0
        if self._last is not None:
            before = len(self._last)
            seen = np.concatenate([self._last, seen])
        choices = np.zeros(len(seen), choice_type(self._k))
        costs_of = self._boxes if self._method.cost == "box" else extent_costs_of
        extend_cuts(costs_of(seen), before, len(seen), self._recent, {self._k: choices}, progress)
        self._last = seen[max(len(seen) - (2 * self._k - 2), 0) :].copy()
        return choices[before:]

    def _boxes(self, codes: NDArray[Any]) -> BlockCosts:
        return box_costs_of(codes, np.arange(len(codes), dtype=np.uint32), self._table.costs)


def _follow_back(choices: PackedFile, k: int, budget: Budget, sizes: PackedFile, scratch: Scratch) -> None:
    """The sizes of the classes that the choices lead back to from the end, in the order of the line."""
    most = budget.rows(1)
    backward = packed_file(scratch, "backward", SIZE)
    end = choices.count
    while end > 0:
        first = max(end - most, 0)
        found, end = sizes_back(choices.read(first, end), first, end, k)
        backward.append(found)
    for last in range(backward.count, 0, -most):
        sizes.append(backward.read(max(last - most, 0), last)[::-1])
    backward.remove()


@kernel
def sizes_back(choices, first, end, k):
    """The sizes of the classes that end at ``end`` and before, as far as their ends are above ``first``; the next end.

    choices: uint[end - first], those of the places from ``first`` on.
    """
    sizes = np.empty(len(choices) // k + 1, np.uint32)
    count = 0
    while end > first:
        size = np.int64(choices[end - 1 - first]) + k
        sizes[count] = size
        count += 1
        end -= size
    return sizes[:count], end
