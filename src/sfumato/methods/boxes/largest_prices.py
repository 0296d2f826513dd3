"""The largest prices of the records in a box, counted with their copies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import inner_kernel


class LargestPrices(NamedTuple):
    """A list of prices in descending order, with room for one entry more than the copies that are kept.

    price: int64 or float64; copies: int64, how many records have it; record: int64, the entry's number.
    """

    price: NDArray[np.int64] | NDArray[np.float64]
    copies: NDArray[np.int64]
    record: NDArray[np.int64]


@inner_kernel
def add_price(price, copies, record, limit, size, held, total, largest):
    """Insert a price if it is among the ``limit`` largest; return the numbers of entries and copies, and their sum.

    size, held, total: the numbers of entries and copies and their sum before. largest: LargestPrices, changed.
    """
    if limit == 0 or (held >= limit and price <= largest.price[size - 1]):
        return size, held, total
    at = size
    while at > 0 and largest.price[at - 1] < price:
        largest.price[at], largest.copies[at] = largest.price[at - 1], largest.copies[at - 1]
        largest.record[at] = largest.record[at - 1]
        at -= 1
    copies = min(copies, limit)
    largest.price[at], largest.copies[at], largest.record[at] = price, copies, record
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
def shared_slack(spent, others, copies, size, largest):
    """Return what ``spent`` leaves for all copies of a record, and how many entries of the list come before them.

    Of k = others + copies records in a box, any number j of the copies and the k - j dearest others may form a class.
    All copies have one price, so together they have the least of copies / j * (spent - the k - j largest prices) over
    j from 1 on: others that are dearer than this price take the places of copies.
    """
    taken, used, left = np.int64(0), 0, spent
    slack, rest = spent, copies
    for entry in range(size):
        price, held = largest.price[entry], largest.copies[entry]
        first = min(held, others - taken)
        if first > 0:
            taken += first
            left -= first * price
            held -= first
            slack, used = left, entry + 1
        while held > 0 and rest > 1 and price * copies > slack:
            held -= 1
            rest -= 1
            left -= price
            slack, used = min(slack, left // rest * copies), entry + 1
        if held > 0:
            break
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
