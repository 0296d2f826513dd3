"""A chart of estimates with their confidence intervals, in groups: a symbol for the value, a line for the interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.errors import UsageError
from sfumato.pictures.curves import SHAPES
from sfumato.pictures.picture import Picture, draw, readable
from sfumato.pictures.svg_marks import LETTER, fit_text
from sfumato.pictures.theme import Theme, theme_named

WIDTH, NARROW = 420.0, 150.0  # widths of the plot, without names and numbers
ROW, HEADING, GAP = 21.0, 24.0, 10.0
LONGEST_NAME = 190.0
NUMBERS = 54.0  # the width for the numbers to the right of the plot


@dataclass(frozen=True)
class NamedEstimate:
    """A named number with its interval, if there is one. ``shown`` is its text for people.

    ``reference`` marks the estimate that the others are compared with: a line through its group shows it.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    shown: str
    reference: bool = False


@dataclass(frozen=True)
class EstimateGroup:
    """Estimates that are compared with each other."""

    name: str
    estimates: Sequence[NamedEstimate]


def intervals(
    groups: Sequence[EstimateGroup],
    *,
    title: str,
    x_title: str,
    subtitle: Sequence[str] = (),
    x_format: str | None = None,
    width: float = WIDTH,
    theme: str = "light",
) -> Picture:
    """A row for every estimate under the heading of its group. Estimates with the same name look the same."""
    look = theme_named(theme)
    groups = [group for group in groups if group.estimates]
    if not groups:
        raise UsageError("there is nothing to draw: no group has an estimate. Give at least one.")
    estimates = [estimate for group in groups for estimate in group.estimates]
    names = list(dict.fromkeys(estimate.name for estimate in estimates))
    longest = min(max(map(len, names)) * LETTER + 4, LONGEST_NAME)
    ends = [end for each in estimates for end in (each.value, each.low, each.high) if end is not None]
    reach = (max(ends) - min(ends)) or abs(ends[0]) or 1.0
    scale = {"domain": [min(ends) - 0.04 * reach, max(ends) + 0.04 * reach], "nice": False, "zero": False}
    axis: dict[str, Any] = {"title": readable(x_title), "tickCount": int(width // 70), "domain": False}
    axis |= {"ticks": False, "labelFlush": False}
    x = {"type": "quantitative", "scale": scale, "axis": axis | ({"format": x_format} if x_format else {})}
    layers, top = [], 0.0
    for group in groups:
        layers += _group_layers(group, names, top, x, longest, width, look)
        top += HEADING + ROW * len(group.estimates) + GAP
    listed = "; ".join(
        f"{group.name}: {', '.join(f'{each.name} {each.shown}' for each in group.estimates)}" for group in groups
    )
    specification = {"width": width, "height": top - GAP, "layer": layers}
    return draw(
        specification,
        look,
        title=title,
        subtitle=list(subtitle),
        description=f"{x_title}. {listed}.",
        before=longest + 8,
        facts={"groups": [group.name for group in groups], "names": names},
    )


def _group_layers(
    group: EstimateGroup,
    names: Sequence[str],
    top: float,
    x: dict[str, Any],
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
    for estimate in group.estimates:
        if estimate.reference:
            layers.append(
                {
                    "data": {"values": [{"value": estimate.value}]},
                    "mark": {"type": "rule", "aria": False, "color": look.line, "strokeDash": [4, 3]},
                    "encoding": {
                        "x": {"field": "value", **x},
                        "y": {"value": top + HEADING},
                        "y2": {"value": bottom},
                    },
                }
            )
    for row, estimate in enumerate(group.estimates):
        number = names.index(estimate.name)
        colour = look.soft if estimate.reference else look.series[number % len(look.series)]
        middle = {"value": top + HEADING + ROW * (row + 0.5)}
        data = {"values": [{"value": estimate.value, "low": estimate.low, "high": estimate.high}]}
        if estimate.low is not None and estimate.high is not None:
            layers.append(
                {
                    "data": data,
                    "mark": {"type": "rule", "aria": False, "color": colour, "strokeWidth": 2, "opacity": 0.75},
                    "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}, "y": middle},
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
        layers.append({"data": data, "mark": symbol, "encoding": {"x": {"field": "value", **x}, "y": middle}})
        name = {"text": readable(fit_text(estimate.name, longest)), "align": "right", "color": look.ink}
        layers.append({"data": data, "mark": text | name, "encoding": {"x": {"value": -8}, "y": middle}})
        value = {"text": readable(estimate.shown), "align": "left", "color": look.soft}
        layers.append({"data": data, "mark": text | value, "encoding": {"x": {"value": width + 8}, "y": middle}})
    return layers
