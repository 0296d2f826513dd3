"""Heat maps of two columns: a cell for every pair of values; the stronger its colour, the more records."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.pictures.classes import amount_bounds, shades, step_texts
from sfumato.pictures.picture import Picture
from sfumato.pictures.svg_marks import LETTER, Box, Label, Mark, fit_text, picture_of_marks
from sfumato.pictures.theme import Theme, theme_named

WIDTH = 312.0
NAMES = 116.0
FIELD = 20.0
SLANT = -40
KEY = 12.0
COLUMNS = 3  # of the legend
LONGEST = 110.0  # the width of a name on the horizontal axis
POINTS = (0.1, 0.5, 2.0)  # percentage points from which on a difference has a stronger colour


def heat_map(
    x: str,
    x_names: Sequence[str],
    y: str,
    y_names: Sequence[str],
    records: NDArray[np.float64],
    *,
    theme: str = "light",
) -> Picture:
    """A heat map of ``records[y, x]``."""
    look = theme_named(theme)
    counts = np.rint(records).astype(np.int64)
    positive = counts[counts > 0]
    low, high = (int(positive.min()), int(positive.max())) if positive.size else (1, 1)
    bounds = amount_bounds(low, high, len(look.amounts))
    steps = shades(look.amounts, len(bounds))
    colours = [
        [look.band if count <= 0 else steps[bisect_right(bounds, count) - 1] for count in row]
        for row in counts.tolist()
    ]
    legend = list(zip(steps, step_texts(bounds, high), strict=True))
    description = (
        f"Records by {x} (horizontal) and {y} (vertical), {len(x_names)} by {len(y_names)} cells. The most records, "
        f"about {high:,}, have {_largest(counts, x_names, y_names)}."
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
    """A heat map of ``points[y, x]``: the percentage points by which a share in the release exceeds the original."""
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
        f"Where the release has more or fewer records than the original, by {x} (horizontal) and {y} (vertical). The "
        f"largest difference is {largest:.2g} percentage points."
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
    width = (WIDTH - NAMES) / max(len(x_names), 1)
    bottom = FIELD * len(y_names)
    marks: list[Mark] = [
        Box(
            NAMES + width * column + 0.5,
            FIELD * row + 0.5,
            NAMES + width * (column + 1) - 0.5,
            FIELD * (row + 1) - 0.5,
            colour,
        )
        for row, row_colours in enumerate(colours)
        for column, colour in enumerate(row_colours)
    ]
    shown = [fit_text(name, LONGEST) for name in x_names]
    room = min(max((len(name) for name in shown), default=0) * LETTER * 0.65 + 22, 92.0)
    marks += [
        Label(NAMES + width * (column + 0.5) + 4, bottom + 7, name, look.soft, "end", angle=SLANT)
        for column, name in enumerate(shown)
    ]
    marks += [
        Label(NAMES - 7, FIELD * (row + 0.5), fit_text(name, NAMES - 7), look.soft, "end")
        for row, name in enumerate(y_names)
    ]
    legend_top = bottom + room + 6
    marks.append(Label(0.0, legend_top, unit, look.soft))
    for entry, (colour, text) in enumerate(legend):
        left, top = (entry % COLUMNS) * WIDTH / COLUMNS, legend_top + 18 + (entry // COLUMNS) * 18
        marks.append(Box(left, top - KEY / 2, left + KEY, top + KEY / 2, colour))
        marks.append(Label(left + KEY + 6, top, text, look.soft))
    return picture_of_marks(
        marks,
        WIDTH,
        legend_top + 18 * -(-len(legend) // COLUMNS) + 8,
        look,
        title=f"{_short(y)} by {_short(x)}",
        subtitle=[f"{_short(x)} horizontally, {_short(y)} vertically"],
        description=description,
    )


def _largest(counts: NDArray[np.int64], x_names: Sequence[str], y_names: Sequence[str]) -> str:
    """The names of the pair with the most records."""
    if not counts.size:
        return "nothing"
    row, column = divmod(int(np.argmax(counts)), counts.shape[1])
    return f"{x_names[column]} and {y_names[row]}"


def _short(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "\N{HORIZONTAL ELLIPSIS}"
