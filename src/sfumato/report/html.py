"""HTML that is safe by construction: everything that is not already markup is escaped when it is inserted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from sfumato.pictures.picture import readable
from sfumato.texts import Texts

LONGEST = 120  # characters of a name or value; longer ones are shortened
VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Markup(str):
    """Text that is markup. Made by ``element`` and ``joined``, or from a picture that Sfumato drew."""

    __slots__ = ()


def element(tag: str, *content: object, **attributes: str | bool | None) -> Markup:
    """An element with its content. A trailing ``_`` avoids Python's keywords; other ``_`` become dashes."""
    written = "".join(
        f" {name.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(readable(str(value)))}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    return Markup(f"<{tag}{written}>" + ("" if tag in VOID else f"{joined(content)}</{tag}>"))


def joined(content: Iterable[object]) -> Markup:
    """Concatenate markup and text; text is escaped."""
    return Markup("".join(part if isinstance(part, Markup) else escape(readable(str(part))) for part in content))


def name(text: str | None, null: str = "null") -> Markup:
    """A name or value of the table, shortened if too long, and isolated so that it cannot reverse its surroundings.

    ``null`` stands for a missing value.
    """
    if text is None:
        return element("em", null)
    return element("bdi", shortened(text), title=text[: 10 * LONGEST] if len(text) > LONGEST else None)


def capitalised(text: str) -> str:
    """The text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def shortened(text: str, most: int = LONGEST) -> str:
    """The text, with an ellipsis if it has more than ``most`` characters."""
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def name_list(texts: Sequence[str], say: Texts, most: int = 12) -> Markup:
    """Several names as part of a sentence: the first ``most``, and the number of the others."""
    shown = [name(text) for text in texts[:most]]
    if len(texts) > most:
        shown.append(joined([say("report.more_names", count=len(texts) - most)]))
    if len(shown) < 2:
        return joined(shown)
    return joined(say.parts("words.and", first=Markup(", ".join(shown[:-1])), last=shown[-1]))


def table(
    caption: str,
    heads: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    text: Sequence[int] = (0,),
    look: str | None = None,
) -> Markup:
    """A table in which the first cell of each row is its heading. The columns ``text`` are aligned to the left."""

    def alignment(column: int) -> str | None:
        return "text" if column in text else None

    head = element("tr", *(element("th", cell, scope="col", class_=alignment(c)) for c, cell in enumerate(heads)))
    body = [
        element(
            "tr",
            element("th", row[0], scope="row", class_=alignment(0)),
            *(element("td", cell, class_=alignment(c)) for c, cell in enumerate(row[1:], start=1)),
        )
        for row in rows
    ]
    inside = element("table", element("caption", caption), element("thead", head), element("tbody", *body), class_=look)
    return scrolling(inside, caption)


def scrolling(inside: object, label: str) -> Markup:
    """Wide content that scrolls within its frame, also by keyboard."""
    return element("div", inside, class_="table", role="group", aria_label=label, tabindex="0")


def preformatted(text: str, label: str) -> Markup:
    """Text whose lines and spaces matter."""
    return element("pre", element("code", text), tabindex="0", role="group", aria_label=label)


def folded(summary: object, *content: object) -> Markup:
    """Content that opens on demand."""
    return element("details", element("summary", summary), *content)


def meter(share: float) -> Markup:
    """A bar for a share from 0 to 1; the figure stands beside it. It has no style of its own, only attributes."""
    wide = f"{100 * min(max(share, 0.0), 1.0):.1f}%"
    ground = element("rect", width="100%", height="100%", rx="2", fill="var(--band)")
    return element(
        "svg",
        ground,
        element("rect", width=wide, height="100%", rx="2", fill="var(--series-0)"),
        class_="bar",
        aria_hidden="true",
    )


def section(anchor: str, title: str, *content: object) -> Markup:
    """A section with a heading."""
    heading = element("h2", title, id=f"{anchor}-title")
    return element("section", heading, *content, id=anchor, aria_labelledby=f"{anchor}-title")
