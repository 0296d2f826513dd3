"""The disk engine: tables larger than memory, with the same kernels as in memory."""
