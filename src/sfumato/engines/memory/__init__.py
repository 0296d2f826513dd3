"""The memory engine: the whole table in codes in memory."""
