"""Compiled kernels: the one decorator, the cache of machine code, threads."""
