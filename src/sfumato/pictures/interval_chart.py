"""Estimates with their intervals, in groups: a symbol where each is, a line as far as it may be off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.errors import UsageError
from sfumato.pictures.curves import SHAPES
from sfumato.pictures.picture import Picture, draw, readable
from sfumato.pictures.svg_marks import LETTER, fitting
from sfumato.pictures.theme import Theme, theme_named

WIDTH, NARROW = 420.0, 150.0  # of the plot, without names and numbers
ROW, HEADING, GAP = 21.0, 24.0, 10.0
LONGEST_NAME = 190.0
NUMBERS = 54.0  # the room for the numbers behind the plot


@dataclass(frozen=True)
class Estimated:
    """A named number with its interval, where there is one. ``shown`` is how people read it.

    ``reference`` is what the others are compared with: a line goes through its group.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    shown: str
    reference: bool = False


@dataclass(frozen=True)
class Group:
    """Estimates that are compared with each other."""

    name: str
    estimates: Sequence[Estimated]


def intervals(
    groups: Sequence[Group],
    *,
    title: str,
    x_title: str,
    subtitle: Sequence[str] = (),
    x_format: str | None = None,
    width: float = WIDTH,
    theme: str = "light",
) -> Picture:
    """A row for every estimate under the heading of its group; estimates of one name look alike everywhere."""
    look = theme_named(theme)
    groups = [group for group in groups if group.estimates]
    if not groups:
        raise UsageError("there is nothing to draw: nothing was estimated. Measure something.")
    names = list(dict.fromkeys(one.name for group in groups for one in group.estimates))
    longest = min(max(map(len, names)) * LETTER + 4, LONGEST_NAME)
    ends = [
        end for group in groups for one in group.estimates for end in (one.value, one.low, one.high) if end is not None
    ]
    reach = (max(ends) - min(ends)) or abs(ends[0]) or 1.0
    scale = {"domain": [min(ends) - 0.04 * reach, max(ends) + 0.04 * reach], "nice": False, "zero": False}
    axis: dict[str, Any] = {"title": readable(x_title), "tickCount": int(width // 70), "domain": False}
    axis |= {"ticks": False, "labelFlush": False}
    across = {"type": "quantitative", "scale": scale, "axis": axis | ({"format": x_format} if x_format else {})}
    layers, top = [], 0.0
    for group in groups:
        layers += _group_layers(group, names, top, across, longest, width, look)
        top += HEADING + ROW * len(group.estimates) + GAP
    told = "; ".join(
        f"{group.name}: {', '.join(f'{one.name} {one.shown}' for one in group.estimates)}" for group in groups
    )
    specification = {"width": width, "height": top - GAP, "layer": layers}
    return draw(
        specification,
        look,
        title=title,
        subtitle=list(subtitle),
        description=f"{x_title}. {told}.",
        before=longest + 8,
        facts={"groups": [group.name for group in groups], "names": names},
    )


def _group_layers(
    group: Group,
    names: Sequence[str],
    top: float,
    across: dict[str, Any],
    longest: float,
    width: float,
    look: Theme,
) -> list[dict[str, Any]]:
    """The heading of a group, and the name, line, symbol and number of each of its estimates."""
    layers: list[dict[str, Any]] = []
    text = {"type": "text", "aria": False, "baseline": "middle"}
    layers.append(
        {
            "data": {"values": [{}]},
            "mark": text | {"text": readable(group.name), "fontWeight": 600, "align": "left", "color": look.ink},
            "encoding": {"x": {"value": -longest - 8}, "y": {"value": top + HEADING / 2}},
        }
    )
    bottom = top + HEADING + ROW * len(group.estimates)
    for one in group.estimates:
        if one.reference:
            layers.append(
                {
                    "data": {"values": [{"value": one.value}]},
                    "mark": {"type": "rule", "aria": False, "color": look.line, "strokeDash": [4, 3]},
                    "encoding": {
                        "x": {"field": "value", **across},
                        "y": {"value": top + HEADING},
                        "y2": {"value": bottom},
                    },
                }
            )
    for place, one in enumerate(group.estimates):
        number = names.index(one.name)
        colour = look.soft if one.reference else look.series[number % len(look.series)]
        middle = {"value": top + HEADING + ROW * (place + 0.5)}
        data = {"values": [{"value": one.value, "low": one.low, "high": one.high}]}
        if one.low is not None and one.high is not None:
            layers.append(
                {
                    "data": data,
                    "mark": {"type": "rule", "aria": False, "color": colour, "strokeWidth": 2, "opacity": 0.75},
                    "encoding": {"x": {"field": "low", **across}, "x2": {"field": "high"}, "y": middle},
                }
            )
        symbol = {
            "type": "point",
            "aria": False,
            "shape": SHAPES[number % len(SHAPES)],
            "size": 70,
            "filled": True,
            "color": colour,
            "opacity": 1,
            "stroke": look.background,
            "strokeWidth": 1,
        }
        layers.append({"data": data, "mark": symbol, "encoding": {"x": {"field": "value", **across}, "y": middle}})
        shown = {"text": readable(fitting(one.name, longest)), "align": "right", "color": look.ink}
        layers.append({"data": data, "mark": text | shown, "encoding": {"x": {"value": -8}, "y": middle}})
        said = {"text": readable(one.shown), "align": "left", "color": look.soft}
        layers.append({"data": data, "mark": text | said, "encoding": {"x": {"value": width + 8}, "y": middle}})
    return layers
