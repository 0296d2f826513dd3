"""Constants that kernels share."""

NONE = -1  # no record, node, class or position
INFINITE = 1 << 62  # more than any cost
ABOVE_CODES = 1 << 40  # more than any code
STACK_SIZE = 128  # the longest stack of a depth-first search: two entries for each halving of up to 2 ** 32 items
