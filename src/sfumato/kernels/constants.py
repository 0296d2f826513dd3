"""Constants that kernels share. They are NumPy's: numba compiles a version of a kernel for every number of Python's."""

from typing import Any

import numpy as np

NONE: Any = np.int64(-1)  # no record, node, class or position
INFINITE: Any = np.int64(1 << 62)  # more than any cost
ABOVE_CODES: Any = np.int64(1 << 40)  # more than any code
STACK_SIZE = 128  # the longest stack of a depth-first search: two entries for each halving of up to 2 ** 32 items
