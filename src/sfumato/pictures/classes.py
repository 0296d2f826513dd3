"""Draw the classes of a release in two of its quasi-identifiers, as in Wang 2011, Fig. 4 to 7.

Every class is the rectangle that its two released values leave open; its colour shows how many records it has. Classes
that differ only in other quasi-identifiers have the same rectangle: they are drawn as one, with the sum of their
records. Small rectangles lie above large ones, whose outlines shine through. Everything is read from the release; a
taxonomy only gives the order of its categories.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.evaluation.audit.audit import class_key
from sfumato.methods import method_named
from sfumato.pictures.axes import Axis, axis_of
from sfumato.pictures.axis_drawing import Direction
from sfumato.pictures.picture import Picture, draw
from sfumato.pictures.theme import Theme, theme_named
from sfumato.policy import Policy
from sfumato.tables.released_classes import ReleasedClasses, find_classes
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.texts import ENGLISH, Texts

WIDTH, HEIGHT = 600.0, 460.0
FACTOR = 12  # amounts that differ by more than this factor are shown by their order of magnitude
COVER = 0.95  # the opacity of the average number of overlapping rectangles
FAINTEST = 0.8  # the lowest opacity: a rectangle must mainly show its own colour
OUTLINE = 0.5  # the opacity of outlines if rectangles do not overlap
FAINTEST_OUTLINE = 0.06
GRID = 128  # cells a side of the grid on which overlapping rectangles are counted


@dataclass(frozen=True)
class Rectangles:
    """Distinct rectangles (low and high of x, low and high of y), each with its number of records."""

    corners: NDArray[np.float64]
    records: NDArray[np.int64]


def plot_classes(
    source: Source,
    policy: Policy,
    taxonomies: Mapping[str, Taxonomy],
    x: str | None,
    y: str | None,
    *,
    title: str | None = None,
    theme: str = "light",
    say: Texts = ENGLISH,
) -> Picture:
    """Draw the classes of a finished release. By default the axes have the most different released values."""
    look = theme_named(theme)
    if method_named(policy.method.name).separates:
        raise UsageError(
            f"a release by {policy.method.name} shows its quasi-identifiers unchanged, so its groups are not "
            "rectangles. Draw a release by another method."
        )
    for name in (x, y):
        if name is not None:
            _check_column(name, source.names, policy.quasi_identifiers)
    if x is not None and x == y:
        raise UsageError(f"both axes are the column {x!r}. Name two different quasi-identifiers.")
    if len(policy.quasi_identifiers) < 2:
        raise UsageError("the picture needs two quasi-identifiers, and the release has one. Draw another release.")
    classes = find_classes(source, class_key(policy, source.names))
    return picture_of(classes, policy, taxonomies, x, y, look, title=title, say=say)


def picture_of(
    classes: ReleasedClasses,
    policy: Policy,
    taxonomies: Mapping[str, Taxonomy],
    x: str | None,
    y: str | None,
    theme: Theme,
    *,
    title: str | None = None,
    most: int | None = None,
    say: Texts = ENGLISH,
) -> Picture:
    """Draw classes in two columns. Of more than ``most`` rectangles, those with the most records are drawn."""
    distinct = {name: len(np.unique(classes.shown[name])) for name in policy.quasi_identifiers}
    x_name, y_name = chosen_axes(distinct, x, y)
    axes = [
        axis_of(
            name,
            classes.values[name],
            length,
            column=policy.columns[name],
            taxonomy=taxonomies.get(name),
            nulls=policy.input.nulls,
        )
        for name, length in ((x_name, WIDTH), (y_name, HEIGHT))
    ]
    remarks = [
        say("pictures.classes.unsorted", column=name)
        for name in (x_name, y_name)
        if policy.columns[name].taxonomy_file is not None and name not in taxonomies
    ]
    shown = classes.shown[x_name], classes.shown[y_name]
    return draw_classes(
        classes.sizes, axes[0], shown[0], axes[1], shown[1], theme, title=title, remarks=remarks, most=most, say=say
    )


def chosen_axes(distinct: Mapping[str, int], x: str | None, y: str | None) -> tuple[str, str]:
    """The columns of the two axes. If neither is named, the first of the two columns becomes x."""
    by_values = sorted(distinct, key=lambda name: -distinct[name])
    free = [name for name in by_values if name not in (x, y)]
    if x is None and y is None:
        names = [name for name in distinct if name in free[:2]]
        return names[0], names[1]
    return x or free[0], y or free[0]


def draw_classes(
    sizes: NDArray[np.int64],
    x: Axis,
    x_shown: NDArray[np.int64],
    y: Axis,
    y_shown: NDArray[np.int64],
    theme: Theme,
    *,
    title: str | None = None,
    remarks: Sequence[str] = (),
    most: int | None = None,
    say: Texts = ENGLISH,
) -> Picture:
    """Draw classes of these sizes. ``x_shown`` and ``y_shown`` are the indices of the values that each class shows.

    Of more than ``most`` rectangles, those with the most records are drawn.
    """
    every = rectangles = merge_rectangles(sizes, x.drawn()[x_shown], y.drawn()[y_shown])
    if most is not None and len(every.records) > most:
        kept = np.sort(np.argsort(-every.records, kind="stable")[:most])
        rectangles = Rectangles(every.corners[kept], every.records[kept])
        share = rectangles.records.sum() / every.records.sum()
        remarks = [*remarks, say("pictures.classes.most", count=most, share=say.number(share, ".0%"))]
    horizontal, vertical = Direction(x, "x", theme, say), Direction(y, "y", theme, say)
    specification = {
        "width": x.length,
        "height": y.length,
        "layer": [*horizontal.ground(), *vertical.ground(), _layer(rectangles, horizontal, vertical, theme, say)],
    }
    subtitle = _subtitle(sizes, every, say)
    description = say("pictures.classes.description", text=subtitle, x=x.name, y=y.name)
    if any(strip.name for axis in (x, y) for strip in axis.strips):
        description = say("pictures.classes.strip", text=description)
    return draw(
        specification,
        theme,
        title=say("pictures.classes.title", x=x.name, y=y.name) if title is None else title,
        subtitle=[subtitle],
        description=description,
        remarks=remarks,
        say=say,
        facts={
            "x": x.name,
            "y": y.name,
            "records": int(sizes.sum()),
            "classes": len(sizes),
            "rectangles": len(every.records),
        },
    )


def merge_rectangles(sizes: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]) -> Rectangles:
    """The distinct rectangles of the classes, the largest first."""
    corners, index = np.unique(np.hstack([x, y]), axis=0, return_inverse=True)
    records = np.zeros(len(corners), np.int64)
    np.add.at(records, index.reshape(-1), sizes)
    area = (corners[:, 1] - corners[:, 0]) * (corners[:, 3] - corners[:, 2])
    order = np.argsort(-area, kind="stable")
    return Rectangles(corners[order], records[order])


def mean_depth(corners: NDArray[np.float64]) -> float:
    """The mean number of rectangles that overlap at a point, over all points that are covered."""
    low, high = corners[:, ::2].min(0), corners[:, 1::2].max(0)
    fields = (corners.reshape(-1, 2, 2) - low[:, None]) / (high - low)[:, None] * GRID
    first = np.minimum(np.floor(fields[:, :, 0]), GRID - 1).astype(np.int64)
    after = np.maximum(np.round(fields[:, :, 1]).astype(np.int64), first + 1)
    changes = np.zeros((GRID + 1, GRID + 1), np.int64)
    for x, y, sign in ((first, first, 1), (after, first, -1), (first, after, -1), (after, after, 1)):
        np.add.at(changes, (x[:, 0], y[:, 1]), sign)
    depth = changes.cumsum(0).cumsum(1)
    return float(depth[depth > 0].mean())


def amount_bounds(low: int, high: int, most: int) -> list[int]:
    """The first numbers of at most ``most`` steps from ``low`` to ``high``: ``low``, then round numbers."""
    if high > FACTOR * low:
        steps = [leading * 10**power for power in range(len(str(high))) for leading in (1, 2, 5)]
        inner = [step for step in steps if low < step <= high]
        while len(inner) >= most:
            inner = inner[::-2][::-1]
        return [low, *inner]
    sizes = (leading * 10**power for power in range(len(str(high)) + 1) for leading in (1, 2, 5))
    size = next(size for size in sizes if high // size - low // size < most)
    return [low, *range((low // size + 1) * size, high + 1, size)]


def _check_column(name: str, available: Sequence[str], quasi_identifiers: Sequence[str]) -> None:
    if name not in available:
        raise UsageError.unknown_column(name, "the picture", available)
    if name not in quasi_identifiers:
        listed = ", ".join(map(repr, quasi_identifiers))
        raise UsageError(
            f"the column {name!r} is not a quasi-identifier, and only those define classes. Choose two of {listed}."
        )


def _layer(
    rectangles: Rectangles, horizontal: Direction, vertical: Direction, theme: Theme, say: Texts
) -> dict[str, Any]:
    low, high = int(rectangles.records.min()), int(rectangles.records.max())
    bounds = amount_bounds(low, high, len(theme.amounts))
    steps = (np.searchsorted(bounds, rectangles.records, side="right") - 1).tolist()
    rows = [
        {"left": left, "right": right, "bottom": bottom, "top": top, "step": step}
        for (left, right, bottom, top), step in zip(rectangles.corners.tolist(), steps, strict=True)
    ]
    depth = mean_depth(rectangles.corners)
    opacity = max(FAINTEST, 1.0 - (1.0 - COVER) ** (1.0 / depth))
    positions = {**horizontal.encoding("left", "right"), **vertical.encoding("bottom", "top")}
    colour = {
        "field": "step",
        "type": "ordinal",
        "scale": {"domain": list(range(len(bounds))), "range": shades(theme.amounts, len(bounds))},
        "legend": {
            "title": say("pictures.classes.records"),
            "symbolType": "square",
            "symbolSize": 200,
            "symbolOpacity": COVER,
            "symbolStrokeWidth": 0,
            "labelExpr": f"{json.dumps(step_texts(bounds, high, say))}[datum.value]",
        },
    }
    return {
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "rect", "aria": False, "fillOpacity": round(opacity, 2)},
                "encoding": {**positions, "color": colour},
            },
            {
                "mark": {
                    "type": "rect",
                    "aria": False,
                    "filled": False,
                    "stroke": theme.amounts[-1],
                    "strokeWidth": 0.8 if len(rows) <= 100 else 0.5,
                    "strokeOpacity": round(max(OUTLINE / depth, FAINTEST_OUTLINE), 2),
                },
                "encoding": positions,
            },
        ],
    }


def shades(amounts: Sequence[str], count: int) -> list[str]:
    """Choose ``count`` of the theme's shades, spread evenly over all of them; a single one is from the middle."""
    if count == 1:
        return [amounts[len(amounts) // 2]]
    return [amounts[round(index * (len(amounts) - 1) / (count - 1))] for index in range(count)]


def step_texts(bounds: Sequence[int], high: int, say: Texts) -> list[str]:
    """The texts of the steps for a legend, such as "10 to 19" with a dash."""
    lasts = [*(bound - 1 for bound in bounds[1:]), high]
    return [
        say.number(low) if low == last else f"{say.number(low)} \N{EN DASH} {say.number(last)}"
        for low, last in zip(bounds, lasts, strict=True)
    ]


def _subtitle(sizes: NDArray[np.int64], rectangles: Rectangles, say: Texts) -> str:
    least, most, different = int(sizes.min()), int(sizes.max()), len(rectangles.records)
    span = say.number(least) if least == most else say("pictures.classes.span", low=least, high=most)
    text = say("pictures.classes.counted", count=len(sizes), span=span, records=int(sizes.sum()))
    return text if different == len(sizes) else say("pictures.classes.merged", text=text, count=different)
