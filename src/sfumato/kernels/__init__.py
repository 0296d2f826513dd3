"""Compiled kernels: the one decorator, the cache of machine code, the compiler, threads, a heap, shared constants."""
