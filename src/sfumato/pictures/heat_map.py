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
from sfumato.texts import ENGLISH, Texts

WIDTH = 372.0
NAMES = 140.0  # the largest width for the names
FIELD = 22.0
SLANT = -40
KEY = 12.0
MOST_COLUMNS = 4  # of the legend
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
    say: Texts = ENGLISH,
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
    legend = [*zip(steps, step_texts(bounds, high, say), strict=True), (look.band, say("pictures.heat.none"))]
    description = say(
        "pictures.heat.description",
        x=x,
        y=y,
        columns=len(x_names),
        rows=len(y_names),
        most=high,
        where=_largest(counts, x_names, y_names, say),
    )
    return _drawn(x, x_names, y, y_names, colours, legend, say("pictures.heat.records"), description, look, say)


def difference_map(
    x: str,
    x_names: Sequence[str],
    y: str,
    y_names: Sequence[str],
    points: NDArray[np.float64],
    *,
    theme: str = "light",
    say: Texts = ENGLISH,
) -> Picture:
    """A heat map of ``points[y, x]``: the percentage points by which a share in the release exceeds the original."""
    look = theme_named(theme)
    bounds = [*(-point for point in reversed(POINTS)), *POINTS]
    colours = [[look.differences[bisect_right(bounds, point)] for point in row] for row in points.tolist()]
    small, middle, large = (say.number(point, "g") for point in POINTS)
    steps = (
        say("pictures.heat.over_less", high=large),
        say("pictures.heat.less", low=middle, high=large),
        say("pictures.heat.less", low=small, high=middle),
        say("pictures.heat.same"),
        say("pictures.heat.more", low=small, high=middle),
        say("pictures.heat.more", low=middle, high=large),
        say("pictures.heat.over_more", high=large),
    )
    legend = list(zip(look.differences, steps, strict=True))
    largest = say.number(float(np.abs(points).max()) if points.size else 0.0, ".2g")
    description = say("pictures.heat.difference", x=x, y=y, largest=largest)
    return _drawn(x, x_names, y, y_names, colours, legend, say("pictures.heat.points"), description, look, say)


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
    say: Texts,
) -> Picture:
    names = min(max((len(name) * LETTER for name in y_names), default=0.0) + 7, NAMES)
    width = (WIDTH - names) / max(len(x_names), 1)
    bottom = FIELD * len(y_names)
    marks: list[Mark] = [
        Box(
            names + width * column + 0.5,
            FIELD * row + 0.5,
            names + width * (column + 1) - 0.5,
            FIELD * (row + 1) - 0.5,
            colour,
        )
        for row, row_colours in enumerate(colours)
        for column, colour in enumerate(row_colours)
    ]
    shown = [fit_text(name, LONGEST) for name in x_names]
    room = min(max((len(name) for name in shown), default=0) * LETTER * 0.65 + 22, 92.0)
    marks += [
        Label(names + width * (column + 0.5) + 4, bottom + 7, name, look.soft, "end", angle=SLANT)
        for column, name in enumerate(shown)
    ]
    marks += [
        Label(names - 7, FIELD * (row + 0.5), fit_text(name, names - 7), look.soft, "end")
        for row, name in enumerate(y_names)
    ]
    legend_top = bottom + room + 6
    marks.append(Label(0.0, legend_top, unit, look.soft))
    longest = max(len(text) * LETTER for _, text in legend) + KEY + 18
    columns = min(max(int(WIDTH // longest), 1), MOST_COLUMNS)
    for entry, (colour, text) in enumerate(legend):
        left, top = (entry % columns) * WIDTH / columns, legend_top + 18 + (entry // columns) * 18
        marks.append(Box(left, top - KEY / 2, left + KEY, top + KEY / 2, colour))
        marks.append(Label(left + KEY + 6, top, text, look.soft))
    return picture_of_marks(
        marks,
        WIDTH,
        legend_top + 18 * -(-len(legend) // columns) + 8,
        look,
        title=say("pictures.heat.title", x=_short(x), y=_short(y)),
        subtitle=[say("pictures.heat.axes", x=_short(x), y=_short(y))],
        description=description,
    )


def _largest(counts: NDArray[np.int64], x_names: Sequence[str], y_names: Sequence[str], say: Texts) -> str:
    """The names of the pair with the most records."""
    if not counts.size:
        return say("pictures.heat.nothing")
    row, column = divmod(int(np.argmax(counts)), counts.shape[1])
    return say("pictures.heat.both", x=x_names[column], y=y_names[row])


def _short(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "\N{HORIZONTAL ELLIPSIS}"
