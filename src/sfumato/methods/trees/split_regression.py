"""The gain of a split for numbers (LeFevre 2008, eq. 2 and 4): parts whose numbers are near their mean.

The sum of squared distances from the mean is the sum of the squares minus S * S / n, where S is the sum of n numbers. A
split does not change the squares, so the purity of records is S * S / n alone: the gain of a split is the purity of its
parts minus that of the region. With features other than the quasi-identifiers (section 3.1.3), S and n are taken for
each combination of them.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.decorator import inlined_kernel, inner_kernel
from sfumato.methods.trees.split_targets import COUNT, SLOT, START, TOTAL


@inner_kernel
def square_units(total, count):
    """Return total squared divided by count, rounded to an integer so that sums are exact."""
    if count == 0:
        return np.int64(0)
    return np.int64(np.rint(np.float64(total) * np.float64(total) / count))


@inlined_kernel
def purity_of_numbers(begin, end, step, counters, side):
    """Fill in the purity of the groups from ``begin`` to each group before ``end``.

    side: BEFORE or AFTER, the row of counters.groups to fill.
    """
    start, purities, entries = counters.groups[START], counters.groups[side], counters.entries
    of_cell, sum_of_cell = counters.sums[1], counters.sums[2]
    purity = np.int64(0)
    for group in range(begin, end, step):
        for entry in range(start[group], start[group + 1]):
            cell = entries[SLOT, entry]
            purity -= square_units(sum_of_cell[cell], of_cell[cell])
            of_cell[cell] += entries[COUNT, entry]
            sum_of_cell[cell] += entries[TOTAL, entry]
            purity += square_units(sum_of_cell[cell], of_cell[cell])
        purities[group] = purity
    for group in range(begin, end, step):
        for entry in range(start[group], start[group + 1]):
            of_cell[entries[SLOT, entry]], sum_of_cell[entries[SLOT, entry]] = 0, 0
