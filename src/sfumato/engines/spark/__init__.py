"""The Spark engine: tables larger than a machine, with the same kernels as in memory.

A run is a chain of jobs. Each job reads files that an earlier one has finished: the input, the coded table, the classes
and the rows in canonical order. A lost task that runs again therefore reads the same bytes and gives the same result.
Records come together in buckets, which are ranges of the line of an ordering or regions of a tree. In each bucket a
method of the memory engine forms the classes.
"""
