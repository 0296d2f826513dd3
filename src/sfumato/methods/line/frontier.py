"""Frequency l-diversity of ordered records by a moving frontier (Ghinita 2007, section 4.2, Fig. 8 and Fig. 9).

The records of each sensitive value form a bucket in the order of the line; the first one of each bucket that is in no
class yet stands on the frontier. A class takes at least l records of the frontier, each of another value, in such a
way that the rest stays eligible (EG): no value has more than 1/l of the records that remain. The greedy step takes the
lowest on the line; where that can never leave an eligible rest, the fall-back step takes the most frequent values. Then
the next record on the line joins too if it lies nearer to the class than to those it would be with (Fig. 9).

Why it never fails. Let R records remain, R = q l + s with s < l. EG says that no value has more than q of them, so
there are at least l values. A class of l to l + s records leaves room for q - 1 of a value: EG holds for the rest
exactly when the class has a record of every *critical* value, one that has q. A larger class never helps: it leaves
room for q - 2 at most, and a critical value still has q - 1; without a critical value l records were enough. With
v >= l critical values only s - (v - l) q other records remain, so there are at most l + s values and the greedy step
gets all of them. The fall-back step is therefore met with fewer than l critical values, and the l most frequent ones
include them. The end is no exception: with q = 1 every value that remains is critical, and the last class takes all.

So EG is one counter, a class has at most 2 l - 1 records before Fig. 9, and no step looks at more than that.

Differs from the paper: with two heaps (by place, by count) and the number of values of each count a record costs
O(log m), not O(m). A record without a sensitive value protects nobody: it is left out, and joins the class of its
nearest neighbour on the line when all classes are there. Ties go to the earlier place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import kernel
from sfumato.kernels.heap import pop, push, sink

# The weight of a count in the keys of the heap by place. A typed number: numba would compile for the literal 0 as well.
BY_PLACE = np.int64(0)


def frontier_classes(
    position: NDArray[np.int64],
    value: NDArray[np.uint32],
    values: int,
    l: int,
) -> tuple[NDArray[np.int64], int, int]:
    """The class of each place of the line, the number of classes, and how many of them took the fall-back step.

    position: int64[n], ascending, differences within 63 bits. value: uint32[n], 0..values-1, or ``values`` for null.
    Classes are numbered as they are formed. The caller has made sure that the table is eligible.
    """
    known = np.flatnonzero(value < values)
    if l < 1 or len(known) == 0 or int(np.bincount(value[known]).max()) * l > len(known):
        raise ValueError("the table is not eligible: some value has more than 1/l of the records, or there is none")
    whole = len(known) == len(value)
    class_of_known, classes, fallbacks = form_classes(
        position if whole else position[known], value if whole else value[known], values, l
    )
    class_of = class_of_known if whole else class_of_known[_nearest(position, known)]
    return class_of, int(classes), int(fallbacks)


def _nearest(position: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each place the nearest of the ``known`` ones, as an index into them; of two equally near ones the earlier."""
    place = np.arange(len(position))
    after = np.searchsorted(known, place)  # a known place finds itself
    before = np.maximum(after - 1, 0)
    after = np.minimum(after, len(known) - 1)
    itself = known[after] == place
    nearer = np.abs(position - position[known[before]]) <= np.abs(position[known[after]] - position)
    return np.where(nearer & ~itself, before, after)


@kernel
def form_classes(position, value, values, l):
    """Fig. 8 and Fig. 9 on an eligible table without nulls: int64[n] classes, their number, fall-back steps.

    position: int64[n], ascending. value: uint[n], below ``values``. Neither is modified.
    """
    n = np.int64(len(value))
    class_of, following = np.zeros(n, np.int64), np.zeros(n, np.int64)  # following: the next place of the same value
    count, first = np.zeros(values, np.int64), np.zeros(values, np.int64)  # H of the paper; the frontier
    for one in range(values):
        first[one] = NONE
    for place in range(n - 1, -1, -1):
        class_of[place] = NONE
        following[place] = first[value[place]]
        first[value[place]] = place
        count[value[place]] += 1
    with_count = np.zeros(n // l + 1, np.int64)  # how many values have so many records
    # Both heaps hold one key for each value that remains (see lowest): by place, and by count and place.
    near, frequent = np.zeros(values + 1, np.int64), np.zeros(values + 1, np.int64)
    for one in range(values):
        if count[one] > 0:
            with_count[count[one]] += 1
            push(near, first[one])
            push(frequent, n * (n - count[one]) + first[one])
    chosen, seen = np.zeros(2 * l - 1, np.int64), np.zeros(l, np.int64)
    remaining, classes, fallbacks = n, np.int64(0), 0
    while remaining > 0:
        heap, scale = near, BY_PLACE
        room, critical, size = remaining // l, with_count[remaining // l], 0
        while size < l or (critical > 0 and size < l + remaining % l):  # l. 7: greedy step
            chosen[size] = take_lowest(near, BY_PLACE, value, class_of, count, first)
            if count[value[chosen[size]]] == room:
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
            one = value[chosen[i]]
            assign(chosen[i], classes, class_of, value, count, with_count, first, following)
            # Only the heap that the record was taken from has lost its key; that of the other is renewed when met.
            if count[one] > 0:
                push(heap, scale * (n - count[one]) + first[one])
        remaining -= size
        if remaining > 0 and l > 1:  # with l = 1 the two records that Fig. 9 compares are the same one
            place = joins(chosen[:size], seen, remaining, near, position, value, class_of, count, with_count, first)
            if place != NONE:
                assign(place, classes, class_of, value, count, with_count, first, following)
                remaining -= 1
        classes += 1
    return class_of, classes, fallbacks


@kernel
def assign(place, number, class_of, value, count, with_count, first, following):
    """Put the record of the frontier at ``place`` into class ``number`` and advance the frontier behind it."""
    one = value[place]
    class_of[place] = number
    first[one] = following[place]
    with_count[count[one]] -= 1
    count[one] -= 1
    with_count[count[one]] += 1


@kernel
def joins(chosen, seen, remaining, near, position, value, class_of, count, with_count, first):
    """Fig. 9: the place of the record that joins the class of the ``chosen`` places, or NONE.

    seen: int64[l], overwritten with the l lowest places of the frontier, r_A to r_B, if it comes to that.
    """
    l = len(seen)
    record = lowest(near, BY_PLACE, value, class_of, count, first)
    leftmost = chosen[0]
    for i in range(len(chosen)):
        if value[chosen[i]] == value[record]:
            return NONE
        leftmost = min(leftmost, chosen[i])
    # EG without the record: where l divides what remains there is room for one less, and no other value may need it.
    room = remaining // l
    own = 1 if count[value[record]] == room else 0
    if remaining % l == 0 and with_count[room] > own:
        return NONE
    for i in range(l):
        seen[i] = take_lowest(near, BY_PLACE, value, class_of, count, first)
    for i in range(l):
        push(near, seen[i])
    if abs(position[record] - position[leftmost]) < position[seen[l - 1]] - position[record]:
        return record
    return NONE


@kernel
def lowest(heap, scale, value, class_of, count, first):
    """The place of the lowest key, once those of records that are in a class by now are renewed or gone.

    heap: int64[m + 1], its size, then the keys: scale * (n - count) + place, with scale 0 or n, of each value that
    remains. A key only grows as records are assigned, so an old one is met at the root before the new one is due.
    """
    n = len(value)
    place = heap[1] % n
    while class_of[place] != NONE:
        one = value[place]
        if count[one] > 0:
            sink(heap, scale * (n - count[one]) + first[one])
        else:
            pop(heap)
        place = heap[1] % n
    return place


@kernel
def take_lowest(heap, scale, value, class_of, count, first):
    """The same, and the key is taken away."""
    place = lowest(heap, scale, value, class_of, count, first)
    pop(heap)
    return place
