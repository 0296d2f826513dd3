"""Bar charts of named values, and histograms along an axis of numbers or dates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sfumato.errors import UsageError
from sfumato.pictures.axis_drawing import date_ticks
from sfumato.pictures.curves import log_ticks
from sfumato.pictures.picture import Picture, draw, readable
from sfumato.pictures.svg_marks import LEFT, LETTER, RIGHT, Box, Label, Mark, fit_text, picture_of_marks
from sfumato.pictures.theme import Theme, theme_named
from sfumato.texts import ENGLISH, Texts

WIDTH, HEIGHT = 372.0, 160.0
ROW, THICK = 22.0, 14.0
NAMES = 150.0  # the largest width for the names
NAMES_GAP = 8.0
NUMBERS_GAP = 6.0
BOLD = 1.1  # the width of a bold letter beside the usual one
HEADROOM = 1.08
Along = Literal["numeric", "log", "date"]


@dataclass(frozen=True)
class Bar:
    """A named number of records. ``before`` is the number to compare it with.

    ``special`` marks a row that is no ordinary value, such as null. With ``several`` it stands for many values and has
    no bar, which would only make the others small.
    """

    name: str = field(repr=False)
    records: float
    special: bool = False
    before: float | None = None
    several: bool = False


@dataclass(frozen=True)
class MarkedLine:
    """A vertical line in a histogram, with its name."""

    at: float
    name: str


def bars(
    rows: Sequence[Bar], *, title: str, subtitle: Sequence[str] = (), theme: str = "light", say: Texts = ENGLISH
) -> Picture:
    """A bar for every row, from the top. Rows with a number to compare have a second bar."""
    look = theme_named(theme)
    barred = [row for row in rows if not row.several]
    most = max([1.0, *(row.records for row in barred), *(row.before or 0.0 for row in barred)])
    numbers = [say.number(round(row.records)) for row in rows]
    names = min(max((len(row.name) * LETTER for row in rows), default=0.0), NAMES)
    left = names + NAMES_GAP
    room = WIDTH - left - NUMBERS_GAP - max((len(number) * LETTER for number in numbers), default=0.0)
    compared = any(row.before is not None for row in rows)
    marks: list[Mark] = []
    for index, (row, number) in enumerate(zip(rows, numbers, strict=True)):
        middle = (index + 0.5) * ROW
        colour = look.line if row.special else look.series[0]
        parts = [(row.records, colour, -THICK / 2, 0.0 if compared else THICK / 2)]
        if compared:
            parts.append((row.before or 0.0, look.series[1], 1.0, THICK / 2))
        for amount, fill, top, bottom in () if row.several else parts:
            marks.append(Box(left, middle + top, left + max(room * amount / most, 0.5), middle + bottom, fill))
        longest = 0.0 if row.several else max(row.records, row.before or 0.0)
        marks.append(Label(names, middle, fit_text(row.name, names), look.ink, "end"))
        marks.append(Label(left + room * longest / most + NUMBERS_GAP, middle, number, look.soft))
    counts = "; ".join(_told(row, number, say) for row, number in zip(rows, numbers, strict=True))
    return picture_of_marks(
        marks,
        WIDTH,
        max(ROW * len(rows), ROW),
        look,
        title=title,
        subtitle=subtitle,
        description=say("pictures.by_value", counts=counts),
    )


def _told(row: Bar, number: str, say: Texts) -> str:
    """A row for readers who cannot see the picture."""
    if row.before is None:
        return say("pictures.bar", name=row.name, records=number)
    return say("pictures.bar_before", name=row.name, records=number, before=round(row.before))


@dataclass(frozen=True)
class RankedBar:
    """A named figure. ``shown`` is its text for people; a ``marked`` one stands out."""

    name: str
    value: float
    shown: str
    marked: bool = False


def ranked_bars(
    rows: Sequence[RankedBar],
    *,
    title: str,
    subtitle: Sequence[str] = (),
    width: float = WIDTH,
    theme: str = "light",
) -> Picture:
    """A bar for every row, the smallest figure first; rows with equal figures stay in their order."""
    look = theme_named(theme)
    if not rows:
        raise UsageError("there is nothing to draw: no row has a figure. Give at least one.")
    ranked = sorted(rows, key=lambda row: row.value)
    most = max(row.value for row in ranked) or 1.0
    names = min(max(len(row.name) for row in ranked) * LETTER * BOLD, NAMES)
    left = names + NAMES_GAP
    room = width - left - NUMBERS_GAP - max(len(row.shown) for row in ranked) * LETTER * BOLD
    marks: list[Mark] = []
    for index, row in enumerate(ranked):
        middle = (index + 0.5) * ROW
        end = left + max(room * row.value / most, 0.5)
        marks.append(Box(left, middle - THICK / 2, end, middle + THICK / 2, look.series[0 if row.marked else 1]))
        marks.append(Label(names, middle, fit_text(row.name, names), look.ink, "end", bold=row.marked))
        marks.append(Label(end + NUMBERS_GAP, middle, row.shown, look.soft, bold=row.marked))
    listed = "; ".join(f"{row.name} {row.shown}" for row in ranked)
    return picture_of_marks(
        marks, width, ROW * len(ranked), look, title=title, subtitle=subtitle, description=f"{title}. {listed}."
    )


def histogram(
    edges: Sequence[float],
    records: Sequence[float],
    *,
    title: str,
    x_title: str,
    y_title: str,
    subtitle: Sequence[str] = (),
    description: str,
    firm: Sequence[float] | None = None,
    before: Sequence[float] | None = None,
    along: Along = "numeric",
    domain: tuple[float, float] | None = None,
    line: MarkedLine | None = None,
    x_format: str | None = None,
    theme: str = "light",
    say: Texts = ENGLISH,
) -> Picture:
    """A bar for the records between each edge and the next. Dates are milliseconds since 1970.

    ``firm`` of the records are drawn in a strong colour, the others in a faint one. ``before`` is drawn as an outline
    for comparison. ``line`` is a vertical line with its name.
    """
    look = theme_named(theme)
    low, high = domain or (edges[0], edges[-1])
    top = max([1.0, *records, *(before or ())]) * HEADROOM
    rows = [
        {"left": left, "right": right, "all": count, "firm": count if firm is None else firm[index], "zero": 0}
        for index, (left, right, count) in enumerate(zip(edges, edges[1:], records, strict=False))
    ]
    x = _x_encoding(along, low, high, x_title, x_format, edges)
    y = {
        "type": "quantitative",
        "scale": {"domain": [0, top], "nice": False},
        "axis": {
            "title": y_title,
            "tickCount": 4,
            "format": "~s" if top >= 1_000_000 else ",d",
            "tickMinStep": 1,
            "domain": False,
            "ticks": False,
        },
    }

    def layer(height: str, base: str, **style: Any) -> dict[str, Any]:
        encoding = {"x": {"field": "left", **x}, "x2": {"field": "right"}}
        encoding |= {"y": {"field": height, **y}, "y2": {"field": base}}
        return {"data": {"values": rows}, "mark": {"type": "rect", "aria": False} | style, "encoding": encoding}

    gap = {"stroke": look.background, "strokeWidth": 0.6}
    layers = [layer("firm", "zero", color=look.series[0], **gap)]
    if firm is not None:
        # The outline is what can be seen on any background.
        layers.append(layer("all", "firm", color=look.amounts[0], stroke=look.series[0], strokeWidth=0.8))
    if before is not None:
        layers.append(_outline(edges, before, x, y, look))
    if line is not None:
        layers += _line(line, low, high, along, x, look)
    fitted = {"type": "fit-x", "contains": "padding"}  # as wide as the other pictures, whatever its numbers need
    specification = {"width": LEFT + WIDTH + RIGHT, "height": HEIGHT, "layer": layers, "autosize": fitted}
    return draw(specification, look, title=title, subtitle=subtitle, description=description, aligned=True, say=say)


def _x_encoding(
    along: Along, low: float, high: float, title: str, form: str | None, edges: Sequence[float]
) -> dict[str, Any]:
    scale: dict[str, Any] = {"domain": [low, high], "nice": False, "zero": False}
    axis: dict[str, Any] = {"title": readable(title), "grid": False, "tickCount": 5, "labelFlush": False}
    axis |= {"labelOverlap": "greedy", "labelSeparation": 8, "titleLimit": WIDTH}
    if form is not None:
        axis["format"] = form
    if along == "log":
        scale["type"] = "log"
        axis |= {"values": log_ticks(low, high), "format": ",~r" if high < 1_000_000 else "~s"}
    elif along == "date":
        scale["type"] = "utc"
        axis |= date_ticks(low, high, WIDTH)
    elif form is None:
        whole = all((2 * edge) % 1 == 0 for edge in edges)
        axis |= {"tickMinStep": 1} if whole else {}
        if max(abs(low), abs(high)) < 10_000 and whole:
            axis["format"] = "d"
        elif max(abs(low), abs(high)) >= 1_000_000:
            axis["format"] = "~s"
    return {"type": "temporal" if along == "date" else "quantitative", "scale": scale, "axis": axis}


def _outline(
    edges: Sequence[float], heights: Sequence[float], x: dict[str, Any], y: dict[str, Any], look: Theme
) -> dict[str, Any]:
    """A line along the tops of bars with these heights."""
    corners = [{"x": edges[0], "y": 0.0, "at": 0}]
    for left, right, height in zip(edges, edges[1:], heights, strict=False):
        corners += [{"x": left, "y": height, "at": len(corners)}, {"x": right, "y": height, "at": len(corners) + 1}]
    corners.append({"x": edges[-1], "y": 0.0, "at": len(corners)})
    return {
        "data": {"values": corners},
        "mark": {"type": "line", "aria": False, "color": look.series[1], "strokeWidth": 1.8, "interpolate": "linear"},
        "encoding": {
            "x": {"field": "x", **x},
            "y": {"field": "y", **y},
            "order": {"field": "at", "type": "quantitative"},
        },
    }


def _line(
    line: MarkedLine, low: float, high: float, along: Along, x: dict[str, Any], look: Theme
) -> list[dict[str, Any]]:
    in_right_half = line.at > (low * high) ** 0.5 if along == "log" else line.at > (low + high) / 2
    alignment = {"align": "right", "dx": -5} if in_right_half else {"align": "left", "dx": 5}
    data = {"values": [{"at": line.at, "text": readable(line.name)}]}
    position = {"x": {"field": "at", **x}}
    return [
        {
            "data": data,
            "mark": {"type": "rule", "aria": False, "color": look.ink, "strokeWidth": 1.5, "strokeDash": [4, 3]},
            "encoding": position,
        },
        {
            "data": data,
            "mark": {"type": "text", "aria": False, "baseline": "top", "fontWeight": 600, "color": look.ink}
            | alignment,
            "encoding": position | {"y": {"value": 0}, "text": {"field": "text", "type": "nominal"}},
        },
    ]
