"""The Spark engine: tables larger than a machine, with the same kernels as in memory.

A run is a chain of jobs, each of which reads files that an earlier one has finished: the values of the columns, the
coded table, the buckets, the released rows, the rows in canonical order. A lost task that is run again therefore reads
the same bytes and does the same. Records come together in buckets, ranges of the line that an ordering makes of the
table, and inside each a method of the memory engine forms the classes.
"""
