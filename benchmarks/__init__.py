"""What Sfumato costs and what it loses, measured: one module a question. Start with ``python -m benchmarks``."""
