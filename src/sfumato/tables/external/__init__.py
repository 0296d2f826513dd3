"""Sorting and partitioning beyond memory."""
