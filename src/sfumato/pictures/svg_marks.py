"""The marks of pictures that are written as SVG directly: boxes, lines and texts for bar charts, trees and heat maps.

These pictures have no axis of numbers or dates, for whose ticks Vega-Lite is needed. A report has dozens of them, and
drawing them with Vega-Lite would take longer than the run that it reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal

from sfumato.pictures.picture import Picture, accessible, readable
from sfumato.pictures.theme import FONT, TEXT_SIZE, TITLE_SIZE, Theme

LETTER = 6.4  # the usual width of a letter
MIDDLE = 0.35 * TEXT_SIZE  # from the middle of a line of text to its baseline
LEFT, TOP, RIGHT, BOTTOM = 18, 18, 22, 16  # the padding around the picture, as in the theme
TITLE_LINE, SUBTITLE_LINE, UNDER_TITLE = 22, 18, 16

Anchor = Literal["start", "end"]


@dataclass(frozen=True)
class Box:
    """A filled rectangle."""

    left: float
    top: float
    right: float
    bottom: float
    fill: str

    def svg(self) -> str:
        width, height = _short(self.right - self.left), _short(self.bottom - self.top)
        return f'<path d="M{_short(self.left)},{_short(self.top)}h{width}v{height}h-{width}Z" fill="{self.fill}"/>'


@dataclass(frozen=True)
class Stroke:
    """A straight line."""

    x: float
    y: float
    to_x: float
    to_y: float
    colour: str

    def svg(self) -> str:
        shape = f"M{_short(self.x)},{_short(self.y)}L{_short(self.to_x)},{_short(self.to_y)}"
        return f'<path d="{shape}" stroke="{self.colour}" stroke-width="1" fill="none"/>'


@dataclass(frozen=True)
class Label:
    """A line of text with its middle at ``y``."""

    x: float
    y: float
    text: str = field(repr=False)
    colour: str
    anchor: Anchor = "start"
    bold: bool = False
    angle: float = 0.0

    def svg(self) -> str:
        rotation = f" rotate({_short(self.angle)})" if self.angle else ""
        position = f'transform="translate({_short(self.x)},{_short(self.y)}){rotation}" dy="{_short(MIDDLE)}"'
        weight = ' font-weight="600"' if self.bold else ""
        text = escape(readable(self.text), quote=False)
        return f'<text {position} text-anchor="{self.anchor}" fill="{self.colour}"{weight}>{text}</text>'


Mark = Box | Stroke | Label


def picture_of_marks(
    marks: Iterable[Mark],
    width: float,
    height: float,
    theme: Theme,
    *,
    title: str,
    subtitle: Sequence[str] = (),
    description: str,
) -> Picture:
    """A picture of the marks under a title. ``width`` and ``height`` are without title and padding."""
    headings = [_heading(TOP, title, TITLE_SIZE, f'fill="{theme.ink}" font-weight="600"')]
    for number, line in enumerate(subtitle):
        line_top = TOP + TITLE_LINE + SUBTITLE_LINE * number
        headings.append(_heading(line_top, line, TEXT_SIZE + 1, f'fill="{theme.soft}"'))
    top = TOP + TITLE_LINE + SUBTITLE_LINE * len(subtitle) + UNDER_TITLE
    whole_width, whole_height = _short(LEFT + width + RIGHT), _short(top + height + BOTTOM)
    size = f'width="{whole_width}" height="{whole_height}" viewBox="0 0 {whole_width} {whole_height}"'
    drawn = "".join(mark.svg() for mark in marks)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
        f'<rect width="{whole_width}" height="{whole_height}" fill="{theme.background}"/>'
        f'<g font-family="{FONT}" font-size="{TEXT_SIZE}">{"".join(headings)}'
        f'<g transform="translate({LEFT},{_short(top)})">{drawn}</g></g></svg>'
    )
    return Picture(title, description, accessible(svg, title, description))


def _heading(top: float, text: str, size: int, style: str) -> str:
    shown = escape(readable(text), quote=False)
    return f'<text x="{LEFT}" y="{_short(top + size - 3)}" font-size="{size}" {style}>{shown}</text>'


def fit_text(text: str, room: float) -> str:
    """Shorten a text to ``room`` units. Its middle is left out, because names often differ at their ends."""
    letters = max(int(room / LETTER + 0.01), 3)  # sums of widths that fit exactly may be a hair too small
    if len(text) <= letters:
        return text
    front = letters // 2
    return f"{text[:front].rstrip()}\N{HORIZONTAL ELLIPSIS}{text[len(text) - (letters - 1 - front) :].lstrip()}"


def _short(number: float) -> str:
    """A number rounded to a hundredth of a unit, which nobody can see."""
    return f"{number:.2f}".rstrip("0").rstrip(".")
