"""A binary heap of int64 keys, the lowest first: heap[0] is the number of keys, which begin at heap[1]."""

from __future__ import annotations

from sfumato.kernels.decorator import inner_kernel


@inner_kernel
def push(heap, key):
    """Add a key. heap: int64, with room for one more."""
    heap[0] += 1
    i = heap[0]
    while i > 1 and heap[i // 2] > key:
        heap[i] = heap[i // 2]
        i //= 2
    heap[i] = key


@inner_kernel
def pop(heap):
    """Remove the lowest key."""
    heap[0] -= 1
    replace_lowest(heap, heap[heap[0] + 1])


@inner_kernel
def replace_lowest(heap, key):
    """Replace the lowest key by ``key``."""
    i = 1
    while 2 * i <= heap[0]:
        below = 2 * i
        if below < heap[0] and heap[below + 1] < heap[below]:
            below += 1
        if heap[below] >= key:
            break
        heap[i] = heap[below]
        i = below
    heap[i] = key
