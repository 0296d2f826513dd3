"""Measure what Sfumato costs and what it loses: one module per question. Start with ``python -m benchmarks``."""
