"""Curves of a measured amount against a parameter, a line for each series, with its name at the end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.errors import UsageError
from sfumato.pictures.picture import Picture, draw, readable
from sfumato.pictures.theme import TEXT_SIZE, Theme, theme_named
from sfumato.texts import ENGLISH, Texts

Scale = Literal["linear", "log"]

WIDTH, HEIGHT = 460.0, 320.0
NARROW = 170.0  # a width for the window of a phone
LINE = TEXT_SIZE + 4.0  # the distance of names
ROOM = 1.75 * LINE  # height per line: with less, the names would be far from the ends of the lines
NEAR, FAR = 8.0, 26.0  # distances from the plot: where the lines to the names begin, and where the names begin
HEADROOM = 1.06
MOST_TICKS = 10
CROWD = 40  # up to this number of points, a line has symbols of full size
PLAIN = ",.12~r"  # numbers with all their digits
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left")
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))


@dataclass(frozen=True)
class PlotAxis:
    """One axis of the plot: a field of the rows, and the positions of its numbers."""

    field: str
    title: str
    scale: Scale
    low: float
    high: float
    length: float

    def position(self, number: float) -> float:
        """The distance of a number from the lower end, in units of the picture."""
        low, high, value = (
            (math.log(self.low), math.log(self.high), math.log(number))
            if self.scale == "log"
            else (self.low, self.high, number)
        )
        return (value - low) / (high - low) * self.length

    def ticks(self) -> dict[str, Any]:
        """The ticks of the axis, for Vega-Lite."""
        if self.scale == "log":
            return {"values": log_ticks(self.low, self.high)}
        return {"tickCount": int(self.length // 55)}

    def encoding(self, **axis: Any) -> dict[str, Any]:
        return {
            "field": self.field,
            "type": "quantitative",
            "scale": {"type": self.scale, "domain": [self.low, self.high], "nice": False, "zero": False},
            "axis": {"title": readable(self.title), **axis},
        }


@dataclass(frozen=True)
class Limit:
    """A horizontal line at one height, and the points to mark beside it, each with its name."""

    height: float
    title: str
    reached: Sequence[tuple[float, float, str]] = ()


def curves(
    rows: Iterable[Mapping[str, object]],
    *,
    x: str = "k",
    y: str = "gcp",
    series: str = "method",
    title: str,
    subtitle: str = "",
    x_title: str | None = None,
    y_title: str | None = None,
    x_scale: Scale = "linear",
    y_scale: Scale = "linear",
    y_format: str | None = None,
    from_zero: bool = True,
    limit: Limit | None = None,
    circled: Sequence[tuple[float, float]] = (),
    width: float = WIDTH,
    theme: str = "light",
    say: Texts = ENGLISH,
) -> Picture:
    """A line for every value of ``series``, in order of first appearance, with a symbol for each row.

    Rows whose ``x`` or ``y`` is no number are left out: a run that failed has none. ``y_format`` is a format of d3,
    such as ``.0%``. With ``from_zero``, a linear axis of ``y`` begins at 0. ``circled`` points of the lines have a ring
    around them. ``width`` is that of the plot, without the names.
    """
    look = theme_named(theme)
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        across, upward = _number(row.get(x)), _number(row.get(y))
        if across is not None and upward is not None:
            lines.setdefault(str(row.get(series)), []).append((across, upward))
    if not lines:
        raise UsageError(f"there is nothing to draw: no row has numbers for both {x!r} and {y!r}. Give such a row.")
    for points in lines.values():
        points.sort()
    points = [point for line in lines.values() for point in line]
    height = max(HEIGHT, ROOM * len(lines))
    horizontal = _plot_axis("x", x_title or x, x_scale, [point[0] for point in points], width, from_zero=False)
    heights = [point[1] for point in points] + ([] if limit is None else [limit.height])
    vertical = _plot_axis("y", y_title or y, y_scale, heights, height, from_zero=from_zero)
    measured = sorted({point[0] for point in points})
    ticks = {"values": measured} if len(measured) <= MOST_TICKS else horizontal.ticks()
    encoding = {
        "x": horizontal.encoding(grid=False, labelOverlap="greedy", format=PLAIN, **ticks),
        "y": vertical.encoding(format=y_format or PLAIN, domain=False, ticks=False, **vertical.ticks()),
    }
    specification = {
        "width": width,
        "height": height,
        "layer": [
            *([] if limit is None else _limit_layers(limit, encoding, look)),
            *_line_layers(lines, encoding, look),
            *([] if limit is None else _reached_layers(limit, encoding, look)),
            *_ring_layers(circled, encoding, look),
            *_name_layers(lines, horizontal, vertical, look),
        ],
    }
    description = say("pictures.curves", y=y_title or y, x=x_title or x, lines=", ".join(lines))
    if limit is not None:
        description += f" {limit.title}: {', '.join(name for _, _, name in limit.reached) or 'none'}."
    facts = {"x": x, "y": y, "series": list(lines)}
    return draw(
        specification,
        look,
        title=title,
        subtitle=[subtitle] if subtitle else [],
        description=description,
        facts=facts,
        say=say,
    )


def spread_apart(wanted: Sequence[float], gap: float, end: float) -> list[float]:
    """Positions from 0 to ``end``, at least ``gap`` apart and as near as possible to the ascending ``wanted``.

    Minimizes the sum of squared distances (pool adjacent violators). There must be room for all positions.
    """
    pools: list[tuple[float, int]] = []  # the mean and the number of neighbours that are pushed together
    for number, position in enumerate(wanted):
        mean, count = position - number * gap, 1
        while pools and pools[-1][0] > mean:
            before, others = pools.pop()
            mean, count = (before * others + mean * count) / (others + count), others + count
        pools.append((mean, count))
    last = end - gap * (len(wanted) - 1)
    starts = [min(max(mean, 0.0), last) for mean, count in pools for _ in range(count)]
    return [start + number * gap for number, start in enumerate(starts)]


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers from ``low`` to ``high``: powers of ten, with 2 and 5 times these if there are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = [(10.0**power, leading) for power in powers for leading in (1, 2, 5)]
    tens = [ten for ten, leading in steps if leading == 1 and low <= ten <= high]
    return tens if len(tens) > 3 else [ten * leading for ten, leading in steps if low <= ten * leading <= high]


def _plot_axis(
    field: str, title: str, scale: Scale, numbers: Sequence[float], length: float, *, from_zero: bool
) -> PlotAxis:
    low, high = min(numbers), max(numbers)
    if scale == "log":
        if low <= 0:
            raise UsageError(f"a logarithmic axis cannot show {title!r} of 0 or less. Use a linear axis.")
        room = (high / low) ** 0.04 if high > low else 2.0
        return PlotAxis(field, title, scale, low / room, high * room, length)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0) * HEADROOM
    else:
        low, high = low - (high - low) * 0.03, high + (high - low) * 0.03
    return PlotAxis(field, title, scale, low, high, length) if high > low else _around(field, title, low, length)


def _around(field: str, title: str, number: float, length: float) -> PlotAxis:
    """An axis around a single number."""
    return PlotAxis(field, title, "linear", number - max(abs(number), 1.0), number + max(abs(number), 1.0), length)


def _line_layers(
    lines: Mapping[str, Sequence[tuple[float, float]]], encoding: dict[str, Any], theme: Theme
) -> list[dict[str, Any]]:
    layers: list[dict[str, Any]] = []
    for number, line in enumerate(lines.values()):
        colour = theme.series[number % len(theme.series)]
        dash = DASHES[number // len(theme.series) % len(DASHES)]
        size, edge = (55, 1) if len(line) <= CROWD else (14, 0)  # many symbols would hide the line and each other
        layers.append(
            {
                "data": {"values": [{"x": across, "y": upward} for across, upward in line]},
                "mark": {
                    "type": "line",
                    "aria": False,
                    "color": colour,
                    "strokeWidth": 2,
                    "strokeDash": list(dash),
                    "strokeJoin": "round",
                    "point": {
                        "aria": False,
                        "shape": SHAPES[number % len(SHAPES)],
                        "size": size,
                        "fill": colour,
                        "fillOpacity": 1,
                        "stroke": theme.background,
                        "strokeWidth": edge,
                    },
                },
                "encoding": encoding,
            }
        )
    return layers


def _limit_layers(limit: Limit, encoding: dict[str, Any], theme: Theme) -> list[dict[str, Any]]:
    """The horizontal line."""
    style = {"type": "rule", "aria": False, "color": theme.soft, "strokeDash": [5, 4], "strokeWidth": 1.2}
    return [{"data": {"values": [{"y": limit.height}]}, "mark": style, "encoding": {"y": encoding["y"]}}]


def _reached_layers(limit: Limit, encoding: dict[str, Any], theme: Theme) -> list[dict[str, Any]]:
    """The name of the limit, and a ring and a name for each marked point.

    The name of the limit is above the line at its left end, on top of the curves so that it can be read. The name of a
    point is below it to the right, where the curve is not.
    """
    title = {"type": "text", "aria": False, "text": readable(limit.title), "align": "left", "baseline": "bottom"}
    title |= {"x": 0, "dx": 4, "dy": -3}
    at_limit = {"data": {"values": [{"y": limit.height}]}, "encoding": {"y": encoding["y"]}}
    data = {"values": [{"x": across, "y": upward, "name": readable(name)} for across, upward, name in limit.reached]}
    text = {"type": "text", "aria": False, "align": "left", "baseline": "top", "dx": 9, "dy": 5, "fontWeight": 600}
    return [
        {**at_limit, "mark": {**title, "color": theme.background, "stroke": theme.background, "strokeWidth": 5}},
        {**at_limit, "mark": {**title, "color": theme.soft}},
        *_ring_layers([(across, upward) for across, upward, _ in limit.reached], encoding, theme),
        {
            "data": data,
            "mark": {**text, "color": theme.ink},
            "encoding": {**encoding, "text": {"field": "name", "type": "nominal"}},
        },
    ]


def _ring_layers(points: Sequence[tuple[float, float]], encoding: dict[str, Any], theme: Theme) -> list[dict[str, Any]]:
    """A ring around each of the points, if there are any."""
    ring = {"type": "point", "aria": False, "shape": "circle", "size": 220, "filled": False, "strokeWidth": 1.8}
    data = {"values": [{"x": across, "y": upward} for across, upward in points]}
    return [{"data": data, "mark": {**ring, "stroke": theme.ink}, "encoding": encoding}] if points else []


def _name_layers(
    lines: Mapping[str, Sequence[tuple[float, float]]], horizontal: PlotAxis, vertical: PlotAxis, theme: Theme
) -> list[dict[str, Any]]:
    """The name of each line beside the plot, at the height where the line ends or as near as possible."""
    ends = [
        (vertical.length - vertical.position(line[-1][1]), horizontal.position(line[-1][0]), number, name)
        for number, (name, line) in enumerate(lines.items())
    ]
    ends.sort()
    heights = spread_apart([end[0] for end in ends], LINE, vertical.length)
    layers: list[dict[str, Any]] = []
    for (down, across, number, name), height in zip(ends, heights, strict=True):
        colour = theme.series[number % len(theme.series)]
        # A line that ends early must not seem to continue.
        style = {"strokeDash": [1, 3]} if across < horizontal.length * 0.9 else {}
        layers += [
            {
                "data": {"values": [{"x": across + NEAR, "x2": horizontal.length + FAR - 4, "y": down, "y2": height}]},
                "mark": {"type": "rule", "aria": False, "color": colour, "opacity": 0.6, "strokeWidth": 1} | style,
                "encoding": {
                    channel: {"field": channel, "type": "quantitative", "scale": None} for channel in ("x", "y")
                }
                | {channel: {"field": channel} for channel in ("x2", "y2")},
            },
            {
                "data": {"values": [{"x": horizontal.length + FAR, "y": height}]},
                "mark": {
                    "type": "text",
                    "aria": False,
                    "text": readable(name),
                    "align": "left",
                    "baseline": "middle",
                    "color": theme.ink,
                },
                "encoding": {
                    channel: {"field": channel, "type": "quantitative", "scale": None} for channel in ("x", "y")
                },
            },
        ]
    return layers


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
