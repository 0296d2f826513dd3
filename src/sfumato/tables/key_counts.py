"""Counts by key without sorting: how much weight each different number has, by open addressing."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.decorator import kernel

FREE = -1


@kernel
def weights_of_keys(keys, weights):
    """Return the sum of the weights of each different key, and one of the rows that have it.

    keys: int64[n], none negative; weights: int64[n]; neither is modified. Both results: int64[different], in no
    particular order.
    """
    slots = 1
    while slots < 2 * len(keys):  # at most half of the slots are taken, so that a free one is near
        slots *= 2
    number = np.full(slots, FREE, np.int64)
    total = np.empty(len(keys), np.int64)
    one = np.empty(len(keys), np.int64)
    different = 0
    for row in range(len(keys)):
        # Keys are mixed, because those of neighbouring rows differ in their last digits alone.
        mixed = np.uint64(keys[row]) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64(mixed >> np.uint64(20)) & (slots - 1)
        while number[slot] != FREE and keys[one[number[slot]]] != keys[row]:
            slot = (slot + 1) & (slots - 1)
        if number[slot] == FREE:
            number[slot] = different
            total[different], one[different] = 0, row
            different += 1
        total[number[slot]] += weights[row]
    return total[:different].copy(), one[:different].copy()
