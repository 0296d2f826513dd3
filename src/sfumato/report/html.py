"""HTML that is safe by construction: whatever is not markup already is escaped where it is put in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from sfumato.pictures.picture import readable

LONGEST = 120  # characters of a name or value; longer ones are cut
VOID = frozenset({"br", "hr", "meta"})


class Markup(str):
    """Text that is markup. Made by ``element`` and ``joined``, or of a picture that was drawn here."""

    __slots__ = ()


def element(tag: str, *content: object, **attributes: str | bool | None) -> Markup:
    """An element with its content. Attributes that are Python's words have a ``_`` behind; ``_`` inside is a dash."""
    said = "".join(
        f" {name.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(readable(str(value)))}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    return Markup(f"<{tag}{said}>" + ("" if tag in VOID else f"{joined(content)}</{tag}>"))


def joined(content: Iterable[object]) -> Markup:
    """One after the other; text among it is escaped."""
    return Markup("".join(one if isinstance(one, Markup) else escape(readable(str(one))) for one in content))


def name(text: str | None) -> Markup:
    """A name or value of the table: cut where it is too long, and kept from turning round what is beside it."""
    if text is None:
        return element("em", "null")
    return element("bdi", cut(text), title=text[: 10 * LONGEST] if len(text) > LONGEST else None)


def cut(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def named(texts: Sequence[str], most: int = 12) -> Markup:
    """Several names in a sentence."""
    shown = [name(text) for text in texts[:most]]
    if len(texts) > most:
        shown.append(joined([f"{len(texts) - most:,} more"]))
    if len(shown) < 2:
        return joined(shown)
    return joined([Markup(", ".join(shown[:-1])), " and ", shown[-1]])


def table(
    caption: str,
    heads: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    text: Sequence[int] = (0,),
    look: str | None = None,
) -> Markup:
    """A table whose first cell of each row is its heading; the columns ``text`` are read from the left."""

    def aligned(place: int) -> str | None:
        return "text" if place in text else None

    head = element("tr", *(element("th", one, scope="col", class_=aligned(at)) for at, one in enumerate(heads)))
    body = [
        element(
            "tr",
            element("th", row[0], scope="row", class_=aligned(0)),
            *(element("td", one, class_=aligned(at)) for at, one in enumerate(row[1:], start=1)),
        )
        for row in rows
    ]
    inside = element("table", element("caption", caption), element("thead", head), element("tbody", *body), class_=look)
    return scrolling(inside, caption)


def scrolling(inside: object, label: str) -> Markup:
    """Something wide that can be moved within its frame, also by keyboard."""
    return element("div", inside, class_="table", role="region", aria_label=label, tabindex="0")


def folded(summary: object, *content: object) -> Markup:
    """What is shown when somebody asks for it."""
    return element("details", element("summary", summary), *content)
