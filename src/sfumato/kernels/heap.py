"""A binary heap of whole numbers for kernels.

heap: int64[n + 1]. ``heap[0]`` is the number of keys, ``heap[1]`` the lowest key; the keys below a key i are 2 i and
2 i + 1.
"""

from __future__ import annotations

from sfumato.kernels.decorator import kernel


@kernel
def push(heap, key):
    """Add a key. The array needs a free place at its end."""
    heap[0] += 1
    i = heap[0]
    while i > 1 and heap[i // 2] > key:
        heap[i] = heap[i // 2]
        i //= 2
    heap[i] = key


@kernel
def pop(heap):
    """Remove the lowest key. The heap must not be empty."""
    heap[0] -= 1
    sink(heap, heap[heap[0] + 1])


@kernel
def sink(heap, key):
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
