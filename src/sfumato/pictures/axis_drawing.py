"""Draw an axis of released values: ticks and names, the borders of categories, the strips of ``*`` and null."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from textwrap import wrap
from typing import Any

from sfumato.pictures.axes import DAY, Axis
from sfumato.pictures.picture import readable
from sfumato.pictures.theme import TEXT_SIZE, Theme
from sfumato.texts import ENGLISH, Texts

LETTER = 0.55 * TEXT_SIZE  # the usual width of a letter
LONGEST_NAME = 180
MOST_LINES = 3
SLANT = -40
TICK = 70  # the distance of ticks
NEAR, FAR = 5, 9  # from the axis to the name of a strip; the names of categories have no ticks
MOST_BORDERS = 60  # more lines between categories would merge into grey


def date_ticks(low: float, high: float, length: float) -> dict[str, Any]:
    """The ticks of an axis of dates: years, months or days, in one format, and no more than fit side by side."""
    days = (high - low) / DAY
    form, letters = ("%Y", 4) if days > 3 * 366 else ("%b %Y", 8) if days > 92 else ("%e %b", 6)
    return {"format": form, "tickCount": max(int(length / (2.2 * letters * LETTER)), 2)}


@dataclass(frozen=True)
class Direction:
    """An axis with the direction in which it is drawn, horizontal or vertical."""

    axis: Axis
    channel: str  # x | y
    theme: Theme
    say: Texts = ENGLISH

    def encoding(self, low: str, high: str | None = None) -> dict[str, Any]:
        """The encoding of marks whose positions are in these fields."""
        axis = self.axis
        scale: dict[str, Any] = {"domain": [axis.low, axis.end], "nice": False, "zero": False}
        if axis.kind == "date":
            scale["type"] = "utc"
        if axis.kind == "categorical" and self.channel == "y":
            scale["reverse"] = True  # names are read from the top
        position = {
            "field": low,
            "type": "temporal" if axis.kind == "date" else "quantitative",
            "scale": scale,
            "axis": self._style(),
        }
        return {self.channel: position} | ({} if high is None else {f"{self.channel}2": {"field": high}})

    def ground(self) -> list[dict[str, Any]]:
        """The layers under the classes: the borders of categories, and the strips of ``*`` and null."""
        layers = []
        borders = self.axis.labels.borders if self.axis.labels is not None else []
        if 0 < len(borders) <= MOST_BORDERS:
            layers.append(
                {
                    "data": {"values": [{"low": border} for border in borders]},
                    "mark": {"type": "rule", "aria": False, "color": self.theme.grid},
                    "encoding": self.encoding("low"),
                }
            )
        for strip in self.axis.strips:
            edge: dict[str, Any] = {"y": {"value": "height"}} if self.channel == "x" else {"x": {"value": 0}}
            offset: dict[str, Any] = {"dy": NEAR, "baseline": "top"}
            if self.channel == "y":
                offset = {"dx": -NEAR if self.axis.labels is not None else -FAR, "align": "right"}
            elif self.axis.labels is None:  # below the axis are the labels of ticks, which may be wide
                edge, offset = {"y": {"value": 0}}, {"dy": -NEAR, "baseline": "bottom"}
            name = {"text": strip.name or self.say("pictures.null"), "fontStyle": "normal" if strip.name else "italic"}
            ends = {"values": [{"low": strip.low, "high": strip.high, "middle": (strip.low + strip.high) / 2}]}
            layers += [
                {
                    "data": ends,
                    "mark": {"type": "rect", "aria": False, "color": self.theme.band},
                    "encoding": self.encoding("low", "high"),
                },
                {
                    "data": ends,
                    "mark": {"type": "text", "color": self.theme.soft} | name | offset,
                    "encoding": self.encoding("middle") | edge,
                },
            ]
        return layers

    def _style(self) -> dict[str, Any]:
        axis = self.axis
        style: dict[str, Any] = {"title": readable(axis.name), "labelLimit": LONGEST_NAME}
        if axis.labels is not None:
            names = [readable(text) for text in axis.labels.texts]
            lines = self._wrapped(names) if self.channel == "x" else [[name] for name in names]
            style |= {
                "values": axis.labels.middles,
                "labelExpr": f"{json.dumps(lines or names)}[indexof({json.dumps(axis.labels.middles)}, datum.value)]",
                "grid": False,
                "ticks": False,
                "labelOverlap": False,
            }
            if lines is None:
                style |= {"labelAngle": SLANT, "labelAlign": "right", "labelBaseline": "top"}
            return style
        style |= {"tickCount": int(axis.length // TICK), "labelFlush": False, "labelOverlap": "greedy"}
        if axis.kind == "date":
            style |= date_ticks(axis.low, axis.high, axis.length)
        if axis.kind == "numeric" and axis.whole:
            style["tickMinStep"] = 1
            if max(abs(axis.low), abs(axis.high)) < 10_000:
                style["format"] = "d"  # mainly for years
        if axis.strips:  # they have no ticks
            for part in ("labelOpacity", "tickOpacity", "gridOpacity"):
                style[part] = {"condition": {"test": f"+datum.value > {axis.high}", "value": 0}, "value": 1}
        return style

    def _wrapped(self, names: Sequence[str]) -> list[list[str]] | None:
        """The names, wrapped into lines that fit side by side, or None if a name is too long."""
        assert self.axis.labels is not None
        unit = self.axis.length / (self.axis.end - self.axis.low)
        room = min((after - before for before, after in pairwise(self.axis.labels.middles)), default=self.axis.high)
        letters = max(int(room * unit / LETTER) - 1, 1)
        lines = [wrap(name, letters, break_long_words=False, break_on_hyphens=False) or [""] for name in names]
        fits = all(len(wrapped) <= MOST_LINES and max(map(len, wrapped)) <= letters for wrapped in lines)
        return lines if fits else None
