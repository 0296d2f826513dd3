"""Frequency l-diversity of ordered records by the frontier heuristic (Ghinita 2007, section 4.2, Fig. 8 and Fig. 9).

The records of each sensitive value form a bucket in the order of the line; the first record of each bucket that has no
class yet is on the frontier. A class takes at least l records of the frontier, all of different values, so that the
rest stays eligible (EG): no value has more than 1/l of the remaining records. The greedy step takes the lowest records
on the line; where that can never leave an eligible rest, the fall-back step takes the most frequent values. Then the
next record on the line joins too if it is nearer to the class than to the records it would otherwise be with (Fig. 9).

Why it never fails. Let R records remain, R = q l + s with s < l. EG says that no value has more than q of them, so
there are at least l values. After a class of l to l + s records a value may have q - 1: EG holds for the rest exactly
when the class has a record of every *critical* value, one that has q. A larger class never helps: after it a value may
have q - 2 at most, and a critical value still has q - 1; without a critical value l records were enough. With v >= l
critical values only s - (v - l) q other records remain, so there are at most l + s values and the greedy step takes all
of them. So the fall-back step has fewer than l critical values, and the l most frequent values include them. The end is
no exception: with q = 1 every remaining value is critical, and the last class takes all.

So EG needs one counter, a class has at most 2 l - 1 records before Fig. 9, and no step examines more than that.

Differs from the paper: with two heaps (by place, by count) and the number of values of each count, a record takes
O(log m), not O(m). A record without a sensitive value protects nobody: it is set aside, and joins the class of its
nearest neighbour on the line once all classes are formed. Ties go to the earlier place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.kernels.heap import pop, push, replace_lowest

# The weight of a count in the keys of the heap by place. It is typed: numba would compile again for the literal 0.
BY_PLACE = np.int64(0)


def frontier_classes(
    position: NDArray[np.int64],
    value: NDArray[np.uint32],
    values: int,
    l: int,
) -> tuple[NDArray[np.int64], int, int]:
    """Return the class of each place of the line, the number of classes, and how many took the fall-back step.

    position: int64[n], ascending, differences within 63 bits. value: uint32[n], 0..values-1, or ``values`` for null.
    Classes are numbered as they are formed. The table must be eligible.
    """
    known = np.flatnonzero(value < values)
    if l < 1 or len(known) == 0 or int(np.bincount(value[known]).max()) * l > len(known):
        raise ValueError("the table is not eligible: a value has more than 1/l of the records, or no record has one")
    whole = len(known) == len(value)
    class_of, following = np.empty((2, len(known)), np.int64)
    of_value, of_class = np.zeros((4, values + 1), np.int64), np.empty((2, 2 * l - 1), np.int64)
    with_count = np.zeros(len(known) // l + 1, np.int64)
    line = (position, value) if whole else (position[known], value[known])
    classes, fallbacks = form_classes(*line, values, l, class_of, following, of_value, with_count, of_class)
    return class_of if whole else class_of[_nearest(position, known)], int(classes), int(fallbacks)


def _nearest(position: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each place the nearest of the ``known`` places, as an index into them; the earlier of two."""
    place = np.arange(len(position))
    after = np.searchsorted(known, place)  # a known place finds itself
    before = np.maximum(after - 1, 0)
    after = np.minimum(after, len(known) - 1)
    itself = known[after] == place
    nearer = np.abs(position - position[known[before]]) <= np.abs(position[known[after]] - position)
    return np.where(nearer & ~itself, before, after)


@kernel
def form_classes(position, value, values, l, class_of, following, of_value, with_count, of_class):
    """Apply Fig. 8 and 9 to an eligible table without nulls; return the number of classes and of fall-back steps.

    position: int64[n], ascending. value: uint[n], below ``values``. class_of: int64[n], filled with classes. following:
    int64[n], with the next place of the same value. of_value: int64[4, values + 1], with_count: int64[n // l + 1], all
    0, with the number of values by their number of records. of_class: int64[2, 2 l - 1], overwritten.
    """
    n = np.int64(len(value))
    count, first = of_value[0], of_value[1]  # H of the paper; the frontier
    for v in range(values):
        first[v] = NONE
    for place in range(n - 1, -1, -1):
        class_of[place] = NONE
        following[place] = first[value[place]]
        first[value[place]] = place
        count[value[place]] += 1
    # Both heaps hold one key for each remaining value (see ``lowest``): by place, and by count and place.
    near, frequent = of_value[2], of_value[3]
    for v in range(values):
        if count[v] > 0:
            with_count[count[v]] += 1
            push(near, first[v])
            push(frequent, n * (n - count[v]) + first[v])
    chosen, seen = of_class[0], of_class[1, :l]
    remaining, classes, fallbacks = n, np.int64(0), 0
    while remaining > 0:
        heap, scale = near, BY_PLACE
        quota, critical, size = remaining // l, with_count[remaining // l], 0
        while size < l or (critical > 0 and size < l + remaining % l):  # l. 7: greedy step
            chosen[size] = take_lowest(near, BY_PLACE, value, class_of, count, first)
            if count[value[chosen[size]]] == quota:
                critical -= 1
            size += 1
        if critical > 0:  # l. 11: fall-back step
            for i in range(size):
                push(near, chosen[i])
            heap, scale = frequent, n
            size = l  # always enough
            for i in range(l):
                chosen[i] = take_lowest(frequent, n, value, class_of, count, first)
            fallbacks += 1
        for i in range(size):  # l. 17: close the class
            v = value[chosen[i]]
            assign(chosen[i], classes, class_of, value, count, with_count, first, following)
            # Only the heap that the record was taken from has lost its key; the other heap renews it when it comes up.
            if count[v] > 0:
                push(heap, scale * (n - count[v]) + first[v])
        remaining -= size
        if remaining > 0 and l > 1:  # with l = 1 the two records that Fig. 9 compares are the same one
            place = joining_place(
                chosen[:size], seen, remaining, near, position, value, class_of, count, with_count, first
            )
            if place != NONE:
                assign(place, classes, class_of, value, count, with_count, first, following)
                remaining -= 1
        classes += 1
    return classes, fallbacks


@inner_kernel
def assign(place, number, class_of, value, count, with_count, first, following):
    """Put the frontier record at ``place`` into class ``number`` and advance the frontier of its value."""
    v = value[place]
    class_of[place] = number
    first[v] = following[place]
    with_count[count[v]] -= 1
    count[v] -= 1
    with_count[count[v]] += 1


@inlined_kernel
def joining_place(chosen, seen, remaining, near, position, value, class_of, count, with_count, first):
    """Apply Fig. 9: return the place of the record that joins the class of the ``chosen`` places, or NONE.

    seen: int64[l], overwritten, if needed, with the l lowest places of the frontier, r_A to r_B.
    """
    l = len(seen)
    record = lowest(near, BY_PLACE, value, class_of, count, first)
    leftmost = chosen[0]
    for i in range(len(chosen)):
        if value[chosen[i]] == value[record]:
            return NONE
        leftmost = min(leftmost, chosen[i])
    # EG without the record: where l divides the number left, the quota drops by one, and no other value may have it.
    quota = remaining // l
    own = 1 if count[value[record]] == quota else 0
    if remaining % l == 0 and with_count[quota] > own:
        return NONE
    for i in range(l):
        seen[i] = take_lowest(near, BY_PLACE, value, class_of, count, first)
    for i in range(l):
        push(near, seen[i])
    if abs(position[record] - position[leftmost]) < position[seen[l - 1]] - position[record]:
        return record
    return NONE


@inner_kernel
def lowest(heap, scale, value, class_of, count, first):
    """Return the place of the lowest key, after renewing or removing the keys of records that have a class by now.

    heap: int64[m + 1], the keys are scale * (n - count) + place of each remaining value, with scale 0 or n. A key only
    grows as records are assigned, so an outdated key reaches the root before the new one is due.
    """
    n = len(value)
    place = heap[1] % n
    while class_of[place] != NONE:
        v = value[place]
        if count[v] > 0:
            replace_lowest(heap, scale * (n - count[v]) + first[v])
        else:
            pop(heap)
        place = heap[1] % n
    return place


@inner_kernel
def take_lowest(heap, scale, value, class_of, count, first):
    """Return the place of the lowest key, and remove the key."""
    place = lowest(heap, scale, value, class_of, count, first)
    pop(heap)
    return place
