"""Upright bars: side by side in groups, with intervals, or with their parts one above the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.errors import UsageError
from sfumato.pictures.curves import PLAIN
from sfumato.pictures.interval_chart import EstimateGroup
from sfumato.pictures.picture import Picture, draw, readable
from sfumato.pictures.theme import Theme, theme_named

HEIGHT = 260.0
BAR, GAP = 15.0, 22.0  # the width of a bar, and the distance of two groups
STACKED_BAR = 34.0
LEGEND_COLUMNS = 3
LEAST_WIDTH = 420.0  # with less there is no room for subtitle and legend


@dataclass(frozen=True)
class Stack:
    """A bar of named parts, in order from the bottom up."""

    name: str
    parts: Mapping[str, float]


def grouped_bars(
    groups: Sequence[EstimateGroup],
    *,
    title: str,
    x_title: str,
    y_title: str,
    subtitle: Sequence[str] = (),
    y_from: float = 0.0,
    y_format: str | None = None,
    theme: str = "light",
) -> Picture:
    """A bar for each estimate, from ``y_from`` on, and a line over it for its interval.

    Estimates with the same name have the same colour. No value may be below ``y_from``.
    """
    look = theme_named(theme)
    groups = [group for group in groups if group.estimates]
    _check_something(groups)
    estimates = [estimate for group in groups for estimate in group.estimates]
    names = list(dict.fromkeys(estimate.name for estimate in estimates))
    values = [
        {
            "group": readable(group.name),
            "name": readable(estimate.name),
            "value": estimate.value,
            "base": y_from,
            "low": estimate.low,
            "high": estimate.high,
        }
        for group in groups
        for estimate in group.estimates
    ]
    if any(estimate.value < y_from for estimate in estimates):
        raise UsageError(f"a bar would end below {y_from:g}, where the axis begins. Begin the axis lower.")
    top = max(end for estimate in estimates for end in (estimate.value, estimate.high) if end is not None)
    scale = {"domain": [y_from, top + 0.02 * (top - y_from)], "nice": False, "zero": False}
    y = {"type": "quantitative", "scale": scale, "axis": _value_axis(y_title, y_format)}
    across = {
        "x": _group_axis([group.name for group in groups], x_title),
        "xOffset": {"field": "name", "type": "nominal", "sort": None, "scale": {"paddingInner": 0.12}},
    }
    bars = {
        "mark": {"type": "bar", "aria": False},
        "encoding": {
            **across,
            "y": {"field": "base", **y},
            "y2": {"field": "value"},
            "color": _colours(names, look),
        },
    }
    intervals = {
        "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
        "mark": {"type": "rule", "aria": False, "color": look.ink, "strokeWidth": 1.2},
        "encoding": {**across, "y": {"field": "low", **y}, "y2": {"field": "high"}},
    }
    listed = "; ".join(
        f"{group.name}: {', '.join(f'{each.name} {each.shown}' for each in group.estimates)}" for group in groups
    )
    return draw(
        {
            "width": max(sum(BAR * len(names) + GAP for _ in groups), LEAST_WIDTH),
            "height": HEIGHT,
            "data": {"values": values},
            "layer": [bars, intervals],
        },
        look,
        title=title,
        subtitle=list(subtitle),
        description=f"{y_title} by {x_title}. {listed}.",
        facts={"groups": [group.name for group in groups], "names": names},
    )


def stacked_bars(
    stacks: Sequence[Stack],
    *,
    title: str,
    x_title: str,
    y_title: str,
    subtitle: Sequence[str] = (),
    top: float | None = None,
    theme: str = "light",
) -> Picture:
    """A bar for each stack. ``top`` is the end of the axis, for pictures that are compared with each other."""
    look = theme_named(theme)
    _check_something(stacks)
    names = list(dict.fromkeys(name for stack in stacks for name in stack.parts))
    values = [
        {"stack": readable(stack.name), "part": readable(name), "value": value, "order": names.index(name)}
        for stack in stacks
        for name, value in stack.parts.items()
    ]
    end = max(sum(stack.parts.values()) for stack in stacks) if top is None else top
    bars = {
        "mark": {"type": "bar", "aria": False, "size": STACKED_BAR},
        "encoding": {
            "x": {**_group_axis([stack.name for stack in stacks], x_title), "field": "stack"},
            "y": {
                "field": "value",
                "type": "quantitative",
                "stack": "zero",
                "scale": {"domain": [0, end * 1.04 or 1.0], "nice": False},
                "axis": _value_axis(y_title, None),
            },
            "color": {**_colours(names, look), "field": "part"},
            "order": {"field": "order", "type": "quantitative"},
        },
    }
    listed = "; ".join(
        f"{stack.name}: {', '.join(f'{name} {value:.3g}' for name, value in stack.parts.items())}" for stack in stacks
    )
    return draw(
        {
            "width": max((STACKED_BAR + GAP) * len(stacks), LEAST_WIDTH),
            "height": HEIGHT,
            "data": {"values": values},
            "layer": [bars],
        },
        look,
        title=title,
        subtitle=list(subtitle),
        description=f"{y_title} by {x_title}. {listed}.",
        facts={"stacks": [stack.name for stack in stacks], "parts": names},
    )


def _check_something(drawn: Sequence[object]) -> None:
    if not drawn:
        raise UsageError("there is nothing to draw: no group has a bar. Give at least one.")


def _group_axis(names: Sequence[str], title: str) -> dict[str, Any]:
    return {
        "field": "group",
        "type": "nominal",
        "sort": [readable(name) for name in names],
        "axis": {"title": readable(title), "labelAngle": 0, "ticks": False},
    }


def _value_axis(title: str, shown: str | None) -> dict[str, Any]:
    return {"title": readable(title), "format": shown or PLAIN, "domain": False, "ticks": False, "tickCount": 6}


def _colours(names: Sequence[str], look: Theme) -> dict[str, Any]:
    return {
        "field": "name",
        "type": "nominal",
        "scale": {
            "domain": [readable(name) for name in names],
            "range": [look.series[number % len(look.series)] for number in range(len(names))],
        },
        "legend": {"title": None, "orient": "bottom", "columns": LEGEND_COLUMNS},
    }
