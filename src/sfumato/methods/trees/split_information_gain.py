"""The split rule for classes (LeFevre 2008, eq. 1 and 3): parts in which one class prevails.

The purity of records is the sum over their classes c of n_c log n_c, less n log n: minus their number times the entropy
of their class, so it is at most 0. What a split gains is the purity of its parts less that of the region. With features
other than the quasi-identifiers (section 3.1.3), n and n_c are counted for each combination of them apart.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.decorator import kernel
from sfumato.methods.trees.split_targets import COUNT, SLOT, START


@kernel
def log_units(count, tasks):
    """count log2 count, in units."""
    if count < len(tasks.logarithms):
        return tasks.logarithms[count]
    return np.int64(np.rint(count * np.log2(count) * tasks.scale))


@kernel
def purity_of_classes(begin, end, step, classes, tasks, counters, side):
    """Fill in the purity of the groups from ``begin`` to each, up to ``end``, which is left out.

    side: BEFORE or AFTER, where in counters.groups.

    Entries are counted once: each changes the purity by what its own count and that of its cell change.
    """
    start, found, entries = counters.groups[START], counters.groups[side], counters.entries
    of_slot, of_cell = counters.sums[0], counters.sums[1]
    purity = np.int64(0)
    for group in range(begin, end, step):
        for entry in range(start[group], start[group + 1]):
            place, more = entries[SLOT, entry], entries[COUNT, entry]
            cell = place // classes
            purity += log_units(of_slot[place] + more, tasks) - log_units(of_slot[place], tasks)
            purity -= log_units(of_cell[cell] + more, tasks) - log_units(of_cell[cell], tasks)
            of_slot[place] += more
            of_cell[cell] += more
        found[group] = purity
    for group in range(begin, end, step):
        for entry in range(start[group], start[group + 1]):
            of_slot[entries[SLOT, entry]] = 0
            of_cell[entries[SLOT, entry] // classes] = 0
