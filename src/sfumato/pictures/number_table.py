"""Tables of figures as pictures: cells with a text, those that belong together on the same ground."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.errors import UsageError
from sfumato.pictures.picture import Picture
from sfumato.pictures.svg_marks import LETTER, Box, Label, Mark, Stroke, picture_of_marks
from sfumato.pictures.theme import theme_named

ROW = 24.0
PADDING = 12.0  # beside the text of a cell


@dataclass(frozen=True)
class TableCell:
    """The text of a cell. ``marked`` cells have a coloured ground."""

    text: str
    marked: bool = False


def number_table(
    corner: str,
    columns: Sequence[str],
    rows: Sequence[tuple[str, Sequence[TableCell]]],
    *,
    title: str,
    subtitle: Sequence[str] = (),
    key: str = "",
    theme: str = "light",
) -> Picture:
    """A table whose columns are aligned to the right. ``corner`` is the heading of the names of the rows.

    ``key`` says under the table what the coloured ground means.
    """
    look = theme_named(theme)
    if not rows or any(len(cells) != len(columns) for _, cells in rows):
        raise UsageError("a table needs at least one row, and each row a cell for every column. Complete the rows.")
    texts = [[corner, *(name for name, _ in rows)]]
    texts += [[name, *(cells[place].text for _, cells in rows)] for place, name in enumerate(columns)]
    widths = [max(map(len, column)) * LETTER + 2 * PADDING for column in texts]
    ends = [sum(widths[: place + 1]) for place in range(len(widths))]
    marks: list[Mark] = [Label(0.0, ROW / 2, corner, look.ink, bold=True)]
    marks += [
        Label(end - PADDING, ROW / 2, name, look.ink, "end", bold=True)
        for name, end in zip(columns, ends[1:], strict=True)
    ]
    marks.append(Stroke(0.0, ROW, ends[-1], ROW, look.line))
    for number, (name, cells) in enumerate(rows, 1):
        top = ROW * number
        marks.append(Label(0.0, top + ROW / 2, name, look.ink, bold=True))
        for place, cell in enumerate(cells):
            if cell.marked:
                marks.append(Box(ends[place] + 1, top + 1, ends[place + 1] - 1, top + ROW - 1, look.amounts[0]))
            marks.append(Label(ends[place + 1] - PADDING, top + ROW / 2, cell.text, look.ink, "end"))
    height = ROW * (len(rows) + 1)
    if key:
        marks.append(Box(0.0, height + 12, 14.0, height + 26, look.amounts[0]))
        marks.append(Label(22.0, height + 19, key, look.soft))
        height += 32
    width = max(ends[-1], *(len(line) * LETTER for line in (title, *subtitle, key)))
    listed = "; ".join(
        f"{corner} {name}: {', '.join(f'{column} {cell.text}' for column, cell in zip(columns, cells, strict=True))}"
        for name, cells in rows
    )
    return picture_of_marks(marks, width, height, look, title=title, subtitle=subtitle, description=f"{listed}.")
