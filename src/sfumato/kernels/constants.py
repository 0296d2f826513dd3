"""Numbers with which kernels say that something is missing."""

from __future__ import annotations

NONE = -1  # no row, class, node or attribute
INFINITE = 1 << 62  # more than any cost
