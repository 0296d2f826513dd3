"""A row of bars without axes: what a column holds, at a glance."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.pictures.picture import Picture, accessible
from sfumato.pictures.svg_marks import Box
from sfumato.pictures.theme import theme_named

WIDTH, HEIGHT = 240.0, 48.0
GAP = 1.0
LOWEST = 1.5  # so that a single record is seen


def small_bars(records: Sequence[int], *, title: str, description: str, theme: str = "light") -> Picture:
    """Draw numbers of records as bars of equal width, from left to right."""
    look = theme_named(theme)
    top, width = max([*records, 1]), WIDTH / max(len(records), 1)
    bars = []
    for index, count in enumerate(records):
        height = max(LOWEST, HEIGHT * count / top) if count else 0.0
        if height:
            left = index * width
            bars.append(Box(left, HEIGHT - height, left + max(width - GAP, 0.5), HEIGHT, look.series[0]).svg())
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none">'
    return Picture(title, description, accessible(f"{opening}{''.join(bars)}</svg>", title, description))
