"""The largest prices of the records in a box, counted with their copies, and with a limit on equal sensitive values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import inner_kernel


class LargestPrices(NamedTuple):
    """A list of prices in descending order, with room for one entry more than the copies that are kept.

    price: int64 or float64; copies: int64, how many records have it; record: int64, the entry's number; value: int64,
    their sensitive value, NONE where the number of equal values has no limit; spare: int64, working space.
    """

    price: NDArray[np.int64] | NDArray[np.float64]
    copies: NDArray[np.int64]
    record: NDArray[np.int64]
    value: NDArray[np.int64]
    spare: NDArray[np.int64]


@inner_kernel
def add_price(price, copies, value, record, limit, size, held, total, largest):
    """Insert a price if it is among the ``limit`` largest; return the numbers of entries and copies, and their sum.

    size, held, total: the numbers of entries and copies and their sum before. largest: LargestPrices, changed. If equal
    values are limited, ``make_room`` comes first: it is not called from here, since then numba counts references.
    """
    if copies == 0 or limit == 0 or (held >= limit and price <= largest.price[size - 1]):
        return size, held, total
    copies = min(copies, limit)
    at = size
    while at > 0 and largest.price[at - 1] < price:
        largest.price[at], largest.copies[at] = largest.price[at - 1], largest.copies[at - 1]
        largest.record[at], largest.value[at] = largest.record[at - 1], largest.value[at - 1]
        at -= 1
    largest.price[at], largest.copies[at], largest.record[at], largest.value[at] = price, copies, record, value
    size += 1
    held += copies
    total += copies * price
    while held > limit:
        last = size - 1
        removed = min(held - limit, largest.copies[last])
        held -= removed
        total -= removed * largest.price[last]
        largest.copies[last] -= removed
        if largest.copies[last] == 0:
            size -= 1
    return size, held, total


@inner_kernel
def make_room(price, copies, value, most, limit, size, held, total, largest):
    """Return how many of some copies are among the ``most`` largest prices of their value, and what add_price returns.

    Others of this value that are dearer come first; cheaper ones leave the list. A price that leaves it, or does not
    come into it, is not among the largest of more records either.
    """
    if held < limit or price > largest.price[size - 1]:
        dearer = np.int64(0)
        for entry in range(size):
            if largest.value[entry] == value and largest.price[entry] >= price:
                dearer += largest.copies[entry]
        copies = min(copies, most - dearer)
        room, kept = most - dearer - copies, 0
        for entry in range(size):
            stays = largest.copies[entry]
            if largest.value[entry] == value and largest.price[entry] < price:
                stays = min(stays, room)
                room -= stays
                held -= largest.copies[entry] - stays
                total -= (largest.copies[entry] - stays) * largest.price[entry]
            if stays > 0:
                largest.price[kept], largest.copies[kept] = largest.price[entry], stays
                largest.record[kept], largest.value[kept] = largest.record[entry], largest.value[entry]
                kept += 1
        size = kept
    return copies, size, held, total


@inner_kernel
def shared_slack(spent, others, copies, value, room, size, total, largest):
    """Return what ``spent`` leaves for all copies of a record, and how many entries of the list come before them.

    Of k = others + copies records in a box, any number j of the copies and the k - j dearest others may form a class.
    All copies have one price, so together they have the least of copies / j * (spent - the k - j largest prices) over
    j from 1 on: others that are dearer than this price take the places of copies. Beside all copies, ``room`` others
    may have the record's own value. total: the sum of the list, which has no more than k - 1 copies.
    """
    if copies == 1:
        return spent - total, size
    taken, used, left = np.int64(0), 0, spent
    for entry in range(size):
        first = min(largest.copies[entry], others - taken)
        if value != NONE and largest.value[entry] == value:
            first = min(first, room)
            room -= first
        largest.spare[entry] = largest.copies[entry] - first
        if first > 0:
            taken += first
            left -= first * largest.price[entry]
            used = entry + 1
    slack, rest = left, copies
    for entry in range(size):
        price, held = largest.price[entry], largest.spare[entry]
        while held > 0 and rest > 1 and price * copies > slack:
            held -= 1
            rest -= 1
            left -= price
            slack, used = min(slack, left // rest * copies), max(used, entry + 1)
    return slack, used


@inner_kernel
def largest_sum(best, others, copies, size, largest):
    """Return a limit on the sum of k prices in a box if all copies of a record have ``best``: see shared_slack."""
    level, taken, rest, total = best // copies, np.int64(0), copies, best
    for entry in range(size):
        price, held = largest.price[entry], largest.copies[entry]
        first = min(held, others - taken)
        taken += first
        total += first * price
        more = min(held - first, rest - 1)
        if more > 0 and price > level:
            rest -= more
            total += more * (price - level)
    return total
