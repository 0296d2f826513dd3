"""Constants that kernels share. They are NumPy's: numba compiles a version of a kernel for every number of Python's."""

import numpy as np

NONE = np.int64(-1)  # no record, node, class or position
INFINITE = np.int64(1 << 62)  # more than any cost
ABOVE_CODES = np.int64(1 << 40)  # more than any code
STACK_SIZE = 128  # the longest stack of a depth-first search: two entries for each halving of up to 2 ** 32 items
