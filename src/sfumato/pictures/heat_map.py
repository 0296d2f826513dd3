"""Two columns against each other: a field for every pair of values, the stronger its colour the more records."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.pictures.classes import amount_bounds
from sfumato.pictures.picture import Picture
from sfumato.pictures.svg_marks import LETTER, Box, Label, Mark, fitting, laid_out
from sfumato.pictures.theme import Theme, theme_named

WIDTH = 312.0
NAMES = 116.0
FIELD = 20.0
SLANT = -40
KEY = 12.0
COLUMNS = 3  # of the legend
LONGEST = 110.0  # of a name across
POINTS = (0.1, 0.5, 2.0)  # percentage points where a difference is drawn more strongly


def heat_map(
    x: str,
    x_names: Sequence[str],
    y: str,
    y_names: Sequence[str],
    records: NDArray[np.float64],
    *,
    theme: str = "light",
) -> Picture:
    """``records[y, x]`` of every pair."""
    look = theme_named(theme)
    counts = np.rint(records).astype(np.int64)
    some = counts[counts > 0]
    low, high = (int(some.min()), int(some.max())) if some.size else (1, 1)
    bounds = amount_bounds(low, high, len(look.amounts))
    shades = _shades(look, len(bounds))
    colours = [
        [look.band if count <= 0 else shades[bisect_right(bounds, count) - 1] for count in row]
        for row in counts.tolist()
    ]
    lasts = [*(bound - 1 for bound in bounds[1:]), high]
    legend = [
        (shade, f"{first:,}" if first == last else f"{first:,} \N{EN DASH} {last:,}")
        for shade, first, last in zip(shades, bounds, lasts, strict=True)
    ]
    description = (
        f"Records by {x} (across) and {y} (downward), {len(x_names)} by {len(y_names)} fields. The most records, about "
        f"{high:,}, have {_largest(counts, x_names, y_names)}."
    )
    return _drawn(x, x_names, y, y_names, colours, [*legend, (look.band, "none")], "records", description, look)


def difference_map(
    x: str,
    x_names: Sequence[str],
    y: str,
    y_names: Sequence[str],
    points: NDArray[np.float64],
    *,
    theme: str = "light",
) -> Picture:
    """``points[y, x]``: by how many percentage points the share of a pair is larger than it was."""
    look = theme_named(theme)
    bounds = [*(-point for point in reversed(POINTS)), *POINTS]
    colours = [[look.differences[bisect_right(bounds, point)] for point in row] for row in points.tolist()]
    steps = (
        f"over {POINTS[2]:g} less",
        f"{POINTS[1]:g} \N{EN DASH} {POINTS[2]:g} less",
        f"{POINTS[0]:g} \N{EN DASH} {POINTS[1]:g} less",
        "the same",
        f"{POINTS[0]:g} \N{EN DASH} {POINTS[1]:g} more",
        f"{POINTS[1]:g} \N{EN DASH} {POINTS[2]:g} more",
        f"over {POINTS[2]:g} more",
    )
    legend = list(zip(look.differences, steps, strict=True))
    largest = float(np.abs(points).max()) if points.size else 0.0
    description = (
        f"What the release says more or less often than the original, by {x} (across) and {y} (downward). The largest "
        f"difference is {largest:.2g} percentage points."
    )
    return _drawn(x, x_names, y, y_names, colours, legend, "percentage points", description, look)


def _drawn(
    x: str,
    x_names: Sequence[str],
    y: str,
    y_names: Sequence[str],
    colours: Sequence[Sequence[str]],
    legend: Sequence[tuple[str, str]],
    unit: str,
    description: str,
    look: Theme,
) -> Picture:
    wide = (WIDTH - NAMES) / max(len(x_names), 1)
    bottom = FIELD * len(y_names)
    marks: list[Mark] = [
        Box(
            NAMES + wide * at + 0.5, FIELD * line + 0.5, NAMES + wide * (at + 1) - 0.5, FIELD * (line + 1) - 0.5, colour
        )
        for line, row in enumerate(colours)
        for at, colour in enumerate(row)
    ]
    shown = [fitting(name, LONGEST) for name in x_names]
    room = min(max((len(name) for name in shown), default=0) * LETTER * 0.65 + 22, 92.0)
    marks += [
        Label(NAMES + wide * (place + 0.5) + 4, bottom + 7, name, look.soft, "end", angle=SLANT)
        for place, name in enumerate(shown)
    ]
    marks += [
        Label(NAMES - 7, FIELD * (place + 0.5), fitting(name, NAMES - 7), look.soft, "end")
        for place, name in enumerate(y_names)
    ]
    under = bottom + room + 6
    marks.append(Label(0.0, under, unit, look.soft))
    for place, (colour, text) in enumerate(legend):
        left, top = (place % COLUMNS) * WIDTH / COLUMNS, under + 18 + (place // COLUMNS) * 18
        marks.append(Box(left, top - KEY / 2, left + KEY, top + KEY / 2, colour))
        marks.append(Label(left + KEY + 6, top, text, look.soft))
    return laid_out(
        marks,
        WIDTH,
        under + 18 * -(-len(legend) // COLUMNS) + 8,
        look,
        title=f"{_short(y)} by {_short(x)}",
        subtitle=[f"{_short(x)} across, {_short(y)} downward"],
        description=description,
    )


def _shades(look: Theme, count: int) -> list[str]:
    """So many of the shades from little to much; the faintest is left out, which looks like no record at all."""
    shades = look.amounts
    if count == 1:
        return [shades[len(shades) // 2]]
    return [shades[round(place * (len(shades) - 1) / (count - 1))] for place in range(count)]


def _largest(counts: NDArray[np.int64], x_names: Sequence[str], y_names: Sequence[str]) -> str:
    if not counts.size:
        return "nothing"
    line, column = divmod(int(np.argmax(counts)), counts.shape[1])
    return f"{x_names[column]} and {y_names[line]}"


def _short(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "\N{HORIZONTAL ELLIPSIS}"
