"""Lines of measured figures: values by x for every series, with one value for each trial."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from reproduce.figure import Result, Row
from sfumato.pictures.curves import Scale, curves
from sfumato.pictures.picture import Picture

Lines = dict[str, dict[float, list[float]]]


def lines(rows: Iterable[Row], x: str, y: str, series: str = "method") -> Lines:
    """Return the values of y by series and x, in the order of the rows. Points without a number are left out."""
    found: Lines = {}
    for row in rows:
        if row[y] is not None:
            found.setdefault(str(row[series]), {}).setdefault(row[x], []).append(row[y])
    return found


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def means(found: Mapping[str, Mapping[float, Sequence[float]]]) -> dict[str, dict[float, float]]:
    """Return the mean of the trials at every point."""
    return {name: {at: mean(values) for at, values in line.items()} for name, line in found.items()}


def mean_curves(
    result: Result,
    rows: Iterable[Row],
    *,
    x: str,
    y: str,
    title: str,
    series: str = "method",
    names: Mapping[str, str] | None = None,
    x_title: str | None = None,
    y_title: str | None = None,
    x_scale: Scale = "linear",
    y_scale: Scale = "linear",
) -> Picture:
    """Draw the mean of the trials, a line for every series. ``names`` are those of the lines; others are left out."""
    drawn = means(lines(rows, x, y, series))
    shown = {name: name for name in drawn} if names is None else names
    points = [
        {"series": shown[name], "x": at, "y": value}
        for name in shown
        for at, value in drawn.get(name, {}).items()
        if value > 0 or y_scale == "linear"
    ]
    return curves(
        points,
        x="x",
        y="y",
        series="series",
        title=title,
        subtitle=result.sizes,
        x_title=x_title or x,
        y_title=y_title or y,
        x_scale=x_scale,
        y_scale=y_scale,
    )
