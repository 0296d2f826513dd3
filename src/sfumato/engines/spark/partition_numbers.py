"""Numbers that Spark puts into a partition of its own each, by the hash with which it divides rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def partition_numbers(count: int) -> list[int]:
    """Return, for each of ``count`` partitions, a number that Spark puts into that partition.

    Range partitioning would draw a sample of its own. Hashing the bucket would put several into one partition.
    """
    number_of = np.full(count, -1, np.int64)
    first, step = 0, 16 * count + 64
    while (number_of < 0).any():
        numbers = np.arange(first, first + step, dtype=np.uint32)
        partition = partition_of(numbers, count)
        taken = number_of[partition[::-1]]
        number_of[partition[::-1]] = np.where(taken < 0, numbers[::-1], taken)
        first += step
    return [int(number) for number in number_of]


def partition_of(numbers: NDArray[np.uint32], count: int) -> NDArray[np.int64]:
    """Return the partition of each integer when Spark repartitions by it: MurmurHash3 (x86, 32 bits, seed 42)."""
    mixed = numbers * np.uint32(0xCC9E2D51)
    mixed = ((mixed << np.uint32(15)) | (mixed >> np.uint32(17))) * np.uint32(0x1B873593)
    mixed = np.uint32(42) ^ mixed
    mixed = ((mixed << np.uint32(13)) | (mixed >> np.uint32(19))) * np.uint32(5) + np.uint32(0xE6546B64)
    mixed ^= np.uint32(4)  # the bytes of an integer
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        mixed = (mixed ^ (mixed >> np.uint32(shift))) * np.uint32(factor)
    return mixed.view(np.int32).astype(np.int64) % count
