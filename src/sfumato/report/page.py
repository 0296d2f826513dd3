"""The HTML page that all reports share: its head, its frame, and pictures in its colours."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from html import escape

from sfumato._version import __version__
from sfumato.pictures.picture import Picture
from sfumato.pictures.theme import LIGHT
from sfumato.report.html import Markup, element, joined, scrolling, section
from sfumato.report.stylesheet import colour_names, stylesheet
from sfumato.tables.targets.replacement import Signature
from sfumato.texts import Texts

PAGE = Signature(
    re.compile(rb"<!doctype html>\n<html lang=\"[a-z]{2}\">"),
    re.compile(rb"<footer>Sfumato [^<]*</footer>\n</body>\n</html>\n\Z"),
)
TAG = re.compile(r"<[^<>]*>")
COLOUR = re.compile(r'(fill|stroke)="(#[0-9a-f]{6})"')


def page(title: str, body: Markup, say: Texts, style: str = "") -> str:
    """A whole HTML file in the language of its texts. style: rules beside those that all pages have."""
    return (
        f'<!doctype html>\n<html lang="{say.language.code}">\n<head>\n<meta charset="utf-8">\n'
        # Forbid the browser to load anything.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{stylesheet()}{style}</style>\n"
        f"</head>\n<body>\n{body}<footer>Sfumato {escape(__version__)}</footer>\n</body>\n</html>\n"
    )


def with_contents(sections: Sequence[tuple[str, str, Markup]], say: Texts) -> Markup:
    """Sections, each with its anchor and title, beside a list of links to them."""
    links = [element("li", element("a", title, href=f"#{anchor}")) for anchor, title, _ in sections]
    contents = element("nav", element("ul", *links), aria_label=say("report.contents"))
    main = element("main", *(section(anchor, title, content) for anchor, title, content in sections))
    return element("div", contents, main, class_="beside")


def in_widths(draw: Callable[[str, bool], Picture]) -> Markup:
    """A picture for every width of the page: ``draw`` takes the theme, and whether the window is narrow."""
    broad, narrow = (in_page_colours(draw(LIGHT.name, narrow)) for narrow in (False, True))
    return element("div", element("div", broad, class_="broad"), element("div", narrow, class_="narrowed"))


def in_page_colours(picture: Picture) -> Markup:
    """A picture of the light theme that takes the colours of the page: drawn once, it works in light and dark."""
    names = {colour: name for name, colour in colour_names(LIGHT).items()}

    def variable(match: re.Match[str]) -> str:
        colour = names.get(match[2])
        return match[0] if colour is None else f'{match[1]}="var(--{colour})"'

    return Markup(TAG.sub(lambda tag: COLOUR.sub(variable, tag[0]), picture.svg))


def row_table(heads: Sequence[str], rows: Iterable[Markup], label: str, *, text: Collection[str]) -> Markup:
    """A table of finished rows, which readers who cannot see it know by its label.

    The headings in ``text`` are aligned to the left.
    """
    top = element("tr", *(element("th", head, scope="col", class_="text" if head in text else None) for head in heads))
    inside = element("table", element("thead", top), element("tbody", *rows))
    return scrolling(inside, label)


def definitions(entries: Mapping[str, str], say: Texts) -> Markup:
    """The closing section of a page, which explains the figures."""
    listed = (joined([element("dt", term), element("dd", text)]) for term, text in entries.items())
    return section("figures", say("report.definitions"), element("dl", *listed))
