"""Tables as integer codes: profiling columns, domains, passthrough columns, sorting, NumPy and Arrow arrays."""
