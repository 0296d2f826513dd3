"""The gain of a split for classes (LeFevre 2008, eq. 1 and 3): parts in which one class prevails.

The purity of records is the sum over their classes c of n_c log n_c, minus n log n: minus their number times the
entropy of their class, so it is at most 0. The gain of a split is the purity of its parts minus that of the region.
With features other than the quasi-identifiers (section 3.1.3), n and n_c are counted for each combination of them.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.decorator import inlined_kernel, inner_kernel
from sfumato.methods.trees.split_targets import COUNT, SLOT, START


@inner_kernel
def log_units(count, tasks):
    """Return count log2 count, in units."""
    if count < len(tasks.logarithms):
        return tasks.logarithms[count]
    return np.int64(np.rint(count * np.log2(count) * tasks.scale))


@inlined_kernel
def purity_of_classes(begin, end, step, classes, tasks, counters, side):
    """Fill in the purity of the groups from ``begin`` to each group before ``end``.

    side: BEFORE or AFTER, the row of counters.groups to fill. Each entry is counted once: it changes the purity by the
    change of its own count and that of its cell.
    """
    start, purities, entries = counters.groups[START], counters.groups[side], counters.entries
    of_slot, of_cell = counters.sums[0], counters.sums[1]
    purity = np.int64(0)
    for group in range(begin, end, step):
        for entry in range(start[group], start[group + 1]):
            slot, more = entries[SLOT, entry], entries[COUNT, entry]
            cell = slot // classes
            purity += log_units(of_slot[slot] + more, tasks) - log_units(of_slot[slot], tasks)
            purity -= log_units(of_cell[cell] + more, tasks) - log_units(of_cell[cell], tasks)
            of_slot[slot] += more
            of_cell[cell] += more
        purities[group] = purity
    for group in range(begin, end, step):
        for entry in range(start[group], start[group + 1]):
            of_slot[entries[SLOT, entry]] = 0
            of_cell[entries[SLOT, entry] // classes] = 0
