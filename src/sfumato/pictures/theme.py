"""The theme of all pictures: fonts, sizes and colours, light and dark.

People with any kind of colour vision can distinguish the series, and lines and symbols differ as well; amounts differ
in lightness. Every colour of a series has a contrast of at least 3 : 1 with its background, text of at least 4.5 : 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.errors import UsageError

# All of these fonts have the same widths, so the layout of a picture fits with any of them.
FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
TEXT_SIZE = 12
TITLE_SIZE = 17


@dataclass(frozen=True, kw_only=True)
class Theme:
    """The colours of a picture."""

    name: str
    background: str
    ink: str
    """Titles and other text that must be read."""
    soft: str
    """Less important text: subtitles and the labels of axes."""
    line: str
    """Frames and ticks."""
    grid: str
    band: str
    """The background of a strip that is not part of the axis beside it."""
    good: str
    """A requirement that holds. This and the next two are for text, and for the ground of text."""
    bad: str
    """A requirement that fails, and what must not be done."""
    unsure: str
    """What could not be checked."""
    series: tuple[str, ...]
    amounts: tuple[str, ...]
    """From few to many."""
    differences: tuple[str, ...]
    """From much less through equal to much more."""

    def config(self) -> dict[str, Any]:
        """The configuration that all Vega-Lite specifications share."""
        return {
            "background": self.background,
            "font": FONT,
            "padding": {"left": 18, "top": 18, "right": 22, "bottom": 16},
            "view": {"stroke": None},
            "title": {
                "anchor": "start",
                "frame": "group",
                "color": self.ink,
                "fontSize": TITLE_SIZE,
                "fontWeight": 600,
                "subtitleColor": self.soft,
                "subtitleFontSize": TEXT_SIZE + 1,
                "subtitleLineHeight": 18,
                "subtitlePadding": 6,
                "lineHeight": 22,
                "offset": 16,
            },
            "axis": {
                "domainColor": self.line,
                "tickColor": self.line,
                "tickSize": 4,
                "gridColor": self.grid,
                "labelColor": self.soft,
                "labelFontSize": TEXT_SIZE,
                "labelPadding": 5,
                "titleColor": self.ink,
                "titleFontSize": TEXT_SIZE + 1,
                "titleFontWeight": 600,
                "titlePadding": 10,
            },
            "legend": {
                "labelColor": self.soft,
                "labelFontSize": TEXT_SIZE,
                "titleColor": self.ink,
                "titleFontSize": TEXT_SIZE,
                "titleFontWeight": 600,
                "rowPadding": 4,
                "offset": 20,
            },
            "text": {"color": self.ink, "fontSize": TEXT_SIZE},
        }


LIGHT = Theme(
    name="light",
    background="#ffffff",
    ink="#22313f",
    soft="#56636f",
    line="#8a97a5",
    grid="#e8ecf0",
    band="#f3f5f7",
    good="#1a6b50",
    bad="#b3261e",
    unsure="#8a5700",
    series=("#c9601e", "#1f4e8c", "#398b72", "#a059b1", "#5c94f0", "#834243", "#284002", "#5f055b"),
    amounts=("#f3c9a5", "#e5a06c", "#d27a3d", "#ad5a22", "#7c3b12", "#4a2008"),
    differences=("#12467f", "#5b8cc4", "#b7cfea", "#eceff1", "#f6d2b3", "#d9813f", "#8a3f10"),
)
DARK = Theme(
    name="dark",
    background="#151a21",
    ink="#e9edf1",
    soft="#a9b4bf",
    line="#667482",
    grid="#262e37",
    band="#1e252d",
    good="#63d6ab",
    bad="#ff9184",
    unsure="#f0bd5c",
    series=("#f0935a", "#6ea8f0", "#26d9ac", "#e8bbf3", "#d5f077", "#c35141", "#2e8c7c", "#955dbc"),
    amounts=("#5a3117", "#854a22", "#b4682f", "#dd8d4f", "#f2b88a", "#fde6d2"),
    differences=("#8cbcf5", "#4c82c0", "#2b496b", "#2a323b", "#66401f", "#bd6f34", "#f7b988"),
)
THEMES = {theme.name: theme for theme in (LIGHT, DARK)}


def theme_named(name: str) -> Theme:
    """The theme of this name."""
    if name not in THEMES:
        raise UsageError.unknown_choice("theme", name, THEMES)
    return THEMES[name]
