"""How long a phase of a run will still take, in words that do not change from one moment to the next."""

from __future__ import annotations

import math
from dataclasses import dataclass

FIRST = 2.0  # seconds before an estimate is shown: it is worth nothing earlier
LEAST_SHARE = 0.02  # of the steps that must be done for an estimate, unless the phase has taken LONG
LONG = 20.0
SETTLING = 4.0  # seconds in which an estimate moves two thirds of the way to a new one
MOST_CHANGE = 0.05  # of the time that is left, per second
MINUTE = 60


@dataclass
class TimeLeft:
    """An estimate of when a phase ends, made when steps are done. In between it counts down.

    It goes by all steps since the beginning, not by the last ones, and moves towards a new estimate slowly, so that a
    step that is quick or slow does not make it jump.
    """

    started: float
    steps: float = 0.0
    updated: float = 0.0
    end: float | None = None

    def seconds(self, now: float, steps: float, total: float | None) -> float | None:
        """Return the seconds that are left; None if nothing is known about them."""
        if total is None or not 0 < steps < total:
            self.end = None
            return None
        elapsed = now - self.started
        if elapsed < FIRST or (steps < LEAST_SHARE * total and elapsed < LONG):
            return None
        if self.end is None or steps != self.steps:
            estimate = now + elapsed * (total - steps) / steps
            if self.end is None:
                self.end = estimate
            else:
                passed, left = now - self.updated, max(self.end - now, 1.0)
                change = (estimate - self.end) * (1 - math.exp(-passed / SETTLING))
                most = MOST_CHANGE * passed * left
                self.end += min(max(change, -most), most)
            self.steps, self.updated = steps, now
        left = self.end - now
        return left if left > 0 else None


def in_words(seconds: float) -> str:
    """Say a time roughly, the more roughly the longer it is."""
    if seconds < 10:
        return "a few seconds left"
    if seconds < MINUTE - 5:
        return f"about {5 * math.ceil(seconds / 5)} s left"
    if seconds < 10 * MINUTE - 10:
        whole = 10 * math.ceil(seconds / 10)
        minutes, rest = divmod(whole, MINUTE)
        return f"about {minutes} min {rest} s left" if rest else f"about {minutes} min left"
    minutes = math.ceil(seconds / MINUTE)
    if minutes < MINUTE:
        return f"about {minutes} min left"
    hours, rest = divmod(5 * math.ceil(minutes / 5), MINUTE)
    return f"about {hours} h {rest} min left" if rest else f"about {hours} h left"
