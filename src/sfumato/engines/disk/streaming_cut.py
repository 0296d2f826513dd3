"""The best cut of a line that does not fit into memory (Ghinita 2007, sections 3 and 5.1): one scan of sorted data.

The records are sorted by their keys range by range, and the dynamic programme runs over each range in turn. From one
range to the next it keeps only what it looks back at: the last 2k - 2 records and as many costs. For every prefix of
the line it writes a small number to a file, which says where the last class of the prefix begins. Once the file is
complete, it is followed from its end back to its start. The cuts are those of the memory engine, whatever the ranges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.disk.class_file import SIZE, ClassFile
from sfumato.engines.disk.coded_table import CodedTable, run_starts
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
from sfumato.tables.external.external_sort import MOST_RANGES, sorted_ranges
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.packed_records import CODES, PackedFile, Rows, packed_file
from sfumato.tables.external.scratch import Scratch


def cut_line(
    table: CodedTable,
    method: OptimalOneDimensional,
    k: int,
    budget: MemoryBudget,
    scratch: Scratch,
    progress: Progress,
    *,
    splits: Sequence[int] = (),
) -> ClassFile:
    """Cut the line of the method's ordering into classes of at least k records. The table has at least k records.

    splits: positions on the line, ascending, that no class crosses; at least k records lie between two of them.
    """
    most = budget.rows(table.file.kind.itemsize)
    # Short ranges, so that one is cut while the next is sorted; but not so short that they would be divided twice.
    most = min(most, max(most // 4, 2 * table.count // MOST_RANGES))
    line_file = packed_file(scratch, "line", table.file.kind)
    choices = packed_file(scratch, "choices", choice_type(k))
    whole = table.count < 2 * k and not splits
    recurrence = _Recurrence(table, method, k)
    with progress.phase("partition", table.count):
        for rows, line in ahead(ranges_along_line(table, method, most, scratch)):
            if not whole:
                cost_inputs = recurrence.cost_inputs(table.codes_of(rows), line)
                within = [split - line_file.count for split in splits if 0 <= split - line_file.count < len(rows)]
                for begin, end in pairwise([0, *within, len(rows)]):
                    if begin in within:
                        recurrence.restart()
                    choices.append(recurrence.extend(cost_inputs[begin:end], progress))
            else:
                progress.advance(len(rows))
            line_file.append(rows)
        sizes = packed_file(scratch, "sizes", SIZE)
        if whole:
            sizes.append(np.array([table.count]))
        else:
            _follow_back(choices, k, budget, sizes, scratch)
    choices.remove()
    return ClassFile(line_file, sizes)


def ranges_along_line(
    table: CodedTable, method: OptimalOneDimensional, most: int, scratch: Scratch
) -> Iterator[tuple[Rows, Line]]:
    """Sort the records by their keys. Records of equal keys are in the order of the memory engine.

    Yields at most ``most`` packed records at a time, in that order, and their line.
    """
    keys_of = method.ordering.fitted(
        np.empty((0, len(table.domains)), table.file.kind[CODES].base), np.empty(0, np.int64), table.domains, 0
    )
    sizes = [bits_for(domain.size) for domain in table.domains]

    def fields_of(rows: Rows) -> list[Field]:
        codes = table.codes_of(rows)
        starts = run_starts(codes)  # the table is in the order of its codes, so equal records are together
        keys, times = keys_of(np.take(codes, starts[:-1], axis=0)).fields(), np.diff(starts)
        by_key = [Field(np.repeat(field.values, times), field.bits) for field in keys]
        return [*by_key, *(Field(codes[:, q], bits) for q, bits in enumerate(sizes))]

    for rows in sorted_ranges(table.file, fields_of, most, scratch):
        line = line_of(table.records(rows, shuffled=bool(table.sensitive)), method.ordering)
        yield np.take(rows, line.rows), line


class _Recurrence:
    """The state of the dynamic programme between two ranges."""

    def __init__(self, table: CodedTable, method: OptimalOneDimensional, k: int) -> None:
        self._table, self._method, self._k = table, method, k
        self.restart()

    def restart(self) -> None:
        """Forget all records before this point."""
        self._recent = {self._k: no_prefixes(self._k)}
        self._last: NDArray[Any] | None = None  # what costs depend on, for the last 2k - 2 records

    def cost_inputs(self, codes: Codes, line: Line) -> NDArray[Any]:
        """Return what the costs depend on, for every record: its codes, or its position on the line."""
        if self._method.cost == "box":
            return codes
        return extent_positions(line.keys, self._table.count)[line.at]

    def extend(self, cost_inputs: NDArray[Any], progress: Progress) -> NDArray[np.unsignedinteger]:
        """Return the choices for the next records of the line."""
        before = 0
        if self._last is not None:
            before = len(self._last)
            cost_inputs = np.concatenate([self._last, cost_inputs])
        choices = np.zeros(len(cost_inputs), choice_type(self._k))
        costs_of = self._boxes if self._method.cost == "box" else extent_costs_of
        extend_cuts(costs_of(cost_inputs), before, len(cost_inputs), self._recent, {self._k: choices}, progress)
        self._last = cost_inputs[max(len(cost_inputs) - (2 * self._k - 2), 0) :].copy()
        return choices[before:]

    def _boxes(self, codes: NDArray[Any]) -> BlockCosts:
        return box_costs_of(codes, np.arange(len(codes), dtype=np.uint32), self._table.costs)


def _follow_back(choices: PackedFile, k: int, budget: MemoryBudget, sizes: PackedFile, scratch: Scratch) -> None:
    """Write the sizes of the classes, in the order of the line, by following the choices back from the end."""
    most = budget.rows(1)
    backward = packed_file(scratch, "backward", SIZE)
    end = choices.count
    while end > 0:
        first = max(end - most, 0)
        sizes_from_end, end = sizes_back(choices.read(first, end), first, end, k)
        backward.append(sizes_from_end)
    for last in range(backward.count, 0, -most):
        sizes.append(backward.read(max(last - most, 0), last)[::-1])
    backward.remove()


@kernel
def sizes_back(choices, first, end, k):
    """Return the sizes of the classes that end in first+1..end, last class first, and the end of the class before them.

    choices: uint[end - first], those of the positions from ``first`` on.
    """
    sizes = np.empty(len(choices) // k + 1, np.uint32)
    count = 0
    while end > first:
        size = np.int64(choices[end - 1 - first]) + k
        sizes[count] = size
        count += 1
        end -= size
    return sizes[:count], end
