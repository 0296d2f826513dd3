"""Many runs: comparisons, trade-offs, learning, bounds and risk."""
