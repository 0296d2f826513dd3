"""The HTML page that all reports share: its head, its style, and pictures in its colours."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from html import escape

from sfumato._version import __version__
from sfumato.pictures.picture import Picture
from sfumato.pictures.theme import DARK, FONT, LIGHT, Theme
from sfumato.report.html import Markup
from sfumato.tables.targets.replacement import Signature

STYLE = """
body { margin: 0 auto; padding: 2rem 1.5rem 3rem; max-width: 84rem; background: var(--background); color: var(--ink);
  font: 15px/1.5 FONT; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .4rem; }
p { margin: .3rem 0; max-width: 60rem; }
.soft, footer { color: var(--soft); }
.pictures { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1.2rem 0 0 -18px; }
.pictures > div { flex: 1 1 34rem; min-width: min(34rem, 100%); max-width: 46rem; }
.pictures svg { width: 100%; height: auto; }
.dark, .narrow { display: none; }
@media (max-width: 36rem) {
  .wide { display: none; }
  .narrow { display: block; }
}
/* The edge of a table is shaded where it continues beyond the window. */
.table { overflow-x: auto; background:
  linear-gradient(to right, var(--background) 40%, transparent) 0 0 / 3rem 100% no-repeat local,
  linear-gradient(to left, var(--background) 40%, transparent) 100% 0 / 3rem 100% no-repeat local,
  linear-gradient(to right, var(--edge), transparent) 0 0 / 1rem 100% no-repeat scroll,
  linear-gradient(to left, var(--edge), transparent) 100% 0 / 1rem 100% no-repeat scroll;
  --edge: color-mix(in srgb, var(--line) 45%, transparent); }
table { border-collapse: collapse; margin: .8rem 0; font-size: .9rem; }
th, td { padding: .28rem .75rem .28rem 0; text-align: right; vertical-align: top; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
th { border-bottom: 1px solid var(--line); vertical-align: bottom; white-space: normal; }
td { border-bottom: 1px solid var(--grid); }
tr.first td { border-top: 2px solid var(--line); }
.text { text-align: left; }
td.long { white-space: normal; min-width: 18rem; }
.least { font-weight: 700; }
dt { font-weight: 600; margin-top: .5rem; }
dd { margin: 0; max-width: 60rem; }
footer { margin-top: 2.5rem; font-size: .85rem; }
@media screen and (prefers-color-scheme: dark) {
  :root { DARK }
  .light { display: none; }
  .dark { display: block; }
}
"""
PAGE = Signature(
    re.compile(rb"<!doctype html>\n<html lang=\"en\">"),
    re.compile(rb"<footer>Sfumato [^<]*</footer>\n</body>\n</html>\n\Z"),
)
TAG = re.compile(r"<[^<>]*>")
COLOUR = re.compile(r'(fill|stroke)="(#[0-9a-f]{6})"')


def page(title: str, body: str, style: str = "") -> str:
    """A whole HTML file. ``body`` is markup; ``style`` follows the style that all pages share."""
    shared = STYLE.replace("FONT", FONT).replace("DARK", _colours(DARK))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        # Forbid the browser to load anything.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n:root {{ {_colours(LIGHT)} }}{shared}{style}</style>\n"
        f"</head>\n<body>\n{body}<footer>Sfumato {escape(__version__)}</footer>\n</body>\n</html>\n"
    )


def themed(draw: Callable[[str, bool], Picture]) -> str:
    """A picture for every theme and width of the page: ``draw`` takes the theme, and whether the window is narrow."""
    parts = []
    for theme in (LIGHT.name, DARK.name):
        wide, narrow = draw(theme, False).svg, draw(theme, True).svg
        parts.append(f'<div class="{theme}"><div class="wide">{wide}</div><div class="narrow">{narrow}</div></div>')
    return "".join(parts) + "\n"


def in_page_colours(picture: Picture) -> Markup:
    """A picture of the light theme that takes the colours of the page: drawn once, it works in light and dark."""
    names = {colour: name for name, colour in _colour_names(LIGHT).items()}

    def variable(match: re.Match[str]) -> str:
        colour = names.get(match[2])
        return match[0] if colour is None else f'{match[1]}="var(--{colour})"'

    return Markup(TAG.sub(lambda tag: COLOUR.sub(variable, tag[0]), picture.svg))


def _colour_names(theme: Theme) -> dict[str, str]:
    """The colours of a theme by the names of the page's variables."""
    names = {name: getattr(theme, name) for name in ("background", "ink", "soft", "line", "grid", "band")}
    for family in ("series", "amounts", "differences"):
        names |= {f"{family}-{index}": colour for index, colour in enumerate(getattr(theme, family))}
    return names


def class_attribute(name: str) -> str:
    """The class attribute of an element, or nothing if the name is empty."""
    return f' class="{name}"' if name else ""


def plain_table(heads: Sequence[str], rows: Iterable[str], *, text: Collection[str] = ("method",)) -> str:
    """A table of finished rows. The headings in ``text`` are aligned to the left."""
    top = "".join(f"<th{class_attribute('text' if head in text else '')}>{escape(head)}</th>" for head in heads)
    return f'<div class="table"><table>\n<tr>{top}</tr>\n{"".join(rows)}</table></div>\n'


def definitions(entries: Mapping[str, str]) -> str:
    """The closing section of a page, which explains the figures."""
    listed = "".join(f"<dt>{term}</dt><dd>{escape(text)}</dd>" for term, text in entries.items())
    return f"<h2>What the figures mean</h2>\n<dl>{listed}</dl>\n"


def _colours(theme: Theme) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in _colour_names(theme).items())
