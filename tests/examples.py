"""How many random examples a test tries."""

from __future__ import annotations

from hypothesis import settings


def examples(times: float) -> int:
    """Return ``times`` as many examples as the profile has: few in a quick run, most in a thorough one."""
    return max(1, int(settings().max_examples * times))
