"""A taxonomy as the release cuts it: what is released, and the groups above, with the records of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sfumato.pictures.picture import Picture
from sfumato.pictures.svg_marks import Box, Label, Mark, Stroke, fitting, laid_out
from sfumato.pictures.theme import theme_named

WIDTH = 312.0
ROW, THICK = 20.0, 11.0
INDENT = 14.0
BARS = 190.0  # where they begin
NUMBERS = 50.0


@dataclass(frozen=True)
class Branch:
    """A node of the tree, those under it right behind it. One with no ``records`` of its own is only on the way."""

    name: str = field(repr=False)
    depth: int
    records: int


def tree(rows: Sequence[Branch], *, title: str, subtitle: Sequence[str] = (), theme: str = "light") -> Picture:
    """The nodes from the top, each as far to the right as it is deep, and a bar for the records that show it."""
    look = theme_named(theme)
    most = max([1, *(row.records for row in rows)])
    longest = WIDTH - BARS - NUMBERS
    last_at: dict[int, int] = {}
    stems: dict[int, Mark] = {}  # by parent, so that each is drawn once
    marks: list[Mark] = []
    for place, row in enumerate(rows):
        middle, left = (place + 0.5) * ROW, row.depth * INDENT
        last_at[row.depth] = place
        parent = last_at.get(row.depth - 1)
        if row.depth and parent is not None:
            x = left - INDENT + 4
            stems[parent] = Stroke(x, (parent + 0.5) * ROW + 7, x, middle, look.line)
            marks.append(Stroke(x, middle, x + INDENT - 6, middle, look.line))
        colour = look.ink if row.records else look.soft
        marks.append(Label(left, middle, fitting(row.name, BARS - 10 - left), colour, bold=bool(row.records)))
        if row.records:
            end = BARS + max(longest * row.records / most, 0.8)
            marks.append(Box(BARS, middle - THICK / 2, end, middle + THICK / 2, look.series[0]))
            marks.append(Label(end + 6, middle, f"{row.records:,}", look.soft))
    height = max(ROW * len(rows), ROW)
    released = "; ".join(f"{row.name}: {row.records:,}" for row in rows if row.records)
    description = f"Groups and values that the release shows, with their records. {released}."
    every = [*stems.values(), *marks]
    return laid_out(every, WIDTH, height, look, title=title, subtitle=subtitle, description=description)
