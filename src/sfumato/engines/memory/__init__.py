"""The memory engine: the whole table as codes in memory."""
