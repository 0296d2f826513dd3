"""The page of the papers for a browser: ``docs/papers.md`` as one offline HTML file, with its pictures inside.

It knows the few forms of Markdown that the page has: headings, paragraphs, code, tables, pictures, and text that is
bold, code or a link.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from reproduce.page import PAGE, page_text
from reproduce.recording import FOLDER
from sfumato.pictures.picture import Picture
from sfumato.report.html import Markup
from sfumato.report.page import in_page_colours, page
from sfumato.texts import texts_in

HTML = FOLDER / "papers.html"
IMAGE = re.compile(r'<img src="([^"]+)" alt="([^"]+)" width="(\d+)%">')
COMMENT = re.compile(r"<!--.*-->")
HEADING = re.compile(r"(#{1,3}) (.*)")
INLINE = (
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"<strong>\1</strong>"),
    (re.compile(r"\[([^\]]+)\]\(([^)]+)\)"), r"\1"),  # files beside the page, which a browser would not show
)
STYLE = """
h3 { font-size: 1rem; margin: 2rem 0 .3rem; }
.pictures > div { flex: 0 1 calc(50% - var(--space)); }
.pictures > .whole { flex: 1 1 60rem; max-width: 72rem; }
td code { white-space: nowrap; }
td, th { text-align: left; }
td { white-space: normal; min-width: 8rem; }
"""


def write_html() -> Path:
    HTML.write_text(html_of(page_text(), PAGE.parent), "utf-8")
    return HTML


def html_of(markdown: str, folder: Path) -> str:
    """Return the page as HTML. The addresses of pictures are read from ``folder``."""
    blocks = re.split(r"\n{2,}", markdown.strip())
    (_, title) = HEADING.fullmatch(blocks[0]).groups()  # type: ignore[union-attr]
    return page(title, Markup("\n".join(_blocks(blocks, folder)) + "\n"), texts_in("en"), STYLE)


def _blocks(blocks: list[str], folder: Path) -> Iterator[str]:
    for block in blocks:
        if COMMENT.fullmatch(block):
            continue
        if heading := HEADING.fullmatch(block):
            level = len(heading[1])
            yield f"<h{level}>{_inline(heading[2])}</h{level}>"
        elif block.startswith("<img "):
            yield f'<div class="pictures">{"".join(_picture(line, folder) for line in block.splitlines())}</div>'
        elif block.startswith("| "):
            yield _table(block.splitlines())
        elif block.startswith("    "):
            yield f"<pre>{escape(block)}</pre>"
        else:
            yield f"<p>{_inline(block)}</p>"


def _picture(line: str, folder: Path) -> str:
    source, text, width = IMAGE.fullmatch(line).groups()  # type: ignore[union-attr]
    svg = (folder / source).read_text("utf-8")
    drawn = in_page_colours(Picture(text, text, svg))
    return f'<div class="whole">{drawn}</div>' if int(width) > 50 else f"<div>{drawn}</div>"


def _table(lines: list[str]) -> str:
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    head, _, *body = [[_inline(cell.replace("\\|", "|")) for cell in row] for row in rows]
    top = "".join(f"<th>{cell}</th>" for cell in head)
    rest = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in body)
    return f'<div class="table"><table>\n<tr>{top}</tr>\n{rest}</table></div>'


def _inline(text: str) -> str:
    written = escape(text, quote=False)
    for form, markup in INLINE:
        written = form.sub(markup, written)
    return written
