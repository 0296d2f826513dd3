"""The style sheet: the colours and the font of all pictures and reports, then the rules of ``static/style.css``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sfumato.pictures.theme import DARK, FONT, LIGHT, Theme
from sfumato.report.stylesheet import SCROLLING, colour_names

RULES = Path(__file__).parent / "static" / "style.css"


@cache
def style_sheet() -> str:
    """The whole style sheet. The theme is what the page says, or else what the system says."""
    dark = f"{_variables(DARK)} color-scheme: dark;"
    return (
        f":root {{ --font: {FONT}; {_variables(LIGHT)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root[data-theme=auto] {{ {dark} }} }}\n"
        f":root[data-theme=dark] {{ {dark} }}\n"
        f"@media print {{ :root, :root[data-theme] {{ {_variables(LIGHT)} color-scheme: light; }} }}\n"
        f"{SCROLLING}{RULES.read_text('utf-8')}"
    )


def _variables(theme: Theme) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colour_names(theme).items())
