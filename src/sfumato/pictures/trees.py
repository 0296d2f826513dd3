"""Draw trees of categories: what a release shows of a taxonomy, or a taxonomy with the records of a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sfumato.pictures.picture import Picture
from sfumato.pictures.svg_marks import LETTER, Box, Label, Mark, Stroke, fit_text, picture_of_marks
from sfumato.pictures.theme import theme_named
from sfumato.texts import ENGLISH, Texts

WIDTH = 372.0
ROW, THICK = 20.0, 11.0
INDENT = 14.0
BARS = 210.0  # where the bars begin at most
NUMBERS = 50.0
WIDE, LONGEST_NAME = 660.0, 400.0  # of a picture that stands alone
BOLD = 1.1  # the width of a bold letter beside the usual one


@dataclass(frozen=True)
class Branch:
    """A node of the tree, followed by the nodes under it. A node without ``records`` is not released itself."""

    name: str = field(repr=False)
    depth: int
    records: int


def tree(
    rows: Sequence[Branch],
    *,
    title: str,
    subtitle: Sequence[str] = (),
    theme: str = "light",
    say: Texts = ENGLISH,
) -> Picture:
    """The nodes from the top, indented by depth, each with a bar for the records that show it."""
    released = "; ".join(f"{row.name}: {say.number(row.records)}" for row in rows if row.records)
    description = say("pictures.tree", released=released)
    bars = min(_names(rows) + 12, BARS)
    return _drawn(rows, WIDTH, bars, description, title=title, subtitle=subtitle, theme=theme, say=say)


def whole_tree(
    rows: Sequence[Branch],
    *,
    title: str,
    subtitle: Sequence[str] = (),
    theme: str = "light",
    say: Texts = ENGLISH,
) -> Picture:
    """A taxonomy from the top, indented by depth, each node with a bar for the records under it."""
    counted = "; ".join(f"{row.name}: {say.number(row.records)}" for row in rows)
    description = say("pictures.whole_tree", released=counted)
    bars = min(_names(rows), LONGEST_NAME) + 20
    return _drawn(rows, WIDE, bars, description, title=title, subtitle=subtitle, theme=theme, say=say)


def _names(rows: Sequence[Branch]) -> float:
    """The width that the names need with their indents."""
    return max((row.depth * INDENT + len(row.name) * LETTER * BOLD for row in rows), default=0.0)


def _drawn(
    rows: Sequence[Branch],
    width: float,
    bars: float,
    description: str,
    *,
    title: str,
    subtitle: Sequence[str],
    theme: str,
    say: Texts,
) -> Picture:
    """Draw the rows. bars: where the bars begin."""
    look = theme_named(theme)
    most = max([1, *(row.records for row in rows)])
    longest = width - bars - NUMBERS
    last_of_depth: dict[int, int] = {}
    stems: dict[int, Mark] = {}  # by parent, so that each is drawn once
    marks: list[Mark] = []
    for index, row in enumerate(rows):
        middle, left = (index + 0.5) * ROW, row.depth * INDENT
        last_of_depth[row.depth] = index
        parent = last_of_depth.get(row.depth - 1)
        if row.depth and parent is not None:
            x = left - INDENT + 4
            stems[parent] = Stroke(x, (parent + 0.5) * ROW + 7, x, middle, look.line)
            marks.append(Stroke(x, middle, x + INDENT - 6, middle, look.line))
        colour = look.ink if row.records else look.soft
        marks.append(Label(left, middle, fit_text(row.name, bars - 10 - left), colour, bold=bool(row.records)))
        if row.records:
            end = bars + max(longest * row.records / most, 0.8)
            marks.append(Box(bars, middle - THICK / 2, end, middle + THICK / 2, look.series[0]))
            marks.append(Label(end + 6, middle, say.number(row.records), look.soft))
    height = max(ROW * len(rows), ROW)
    marks = [*stems.values(), *marks]
    return picture_of_marks(marks, width, height, look, title=title, subtitle=subtitle, description=description)
