"""A finished picture, and how to draw one from a Vega-Lite specification."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from sfumato.errors import UsageError
from sfumato.pictures.theme import Theme
from sfumato.tables.targets.replacement import check_replaceable
from sfumato.tables.targets.staging import Stage, cannot_write, check_target
from sfumato.texts import ENGLISH, Texts

FORMATS = (".svg", ".png", ".pdf")
SHARPNESS = 2.0  # pixels of a PNG for each unit of the picture
VEGA_LITE = "v5.21"
PATH = re.compile(r' d="[^"]*"')
SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"')
LONG_NUMBER = re.compile(r"\d+\.\d{3,}")
# Characters that XML cannot hold, not even escaped, and those that reverse the text beside them.
UNWRITABLE = re.compile(
    "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


@dataclass(frozen=True)
class Picture:
    """A picture as SVG. Notebooks show it; ``write`` saves it as a file."""

    title: str
    description: str
    svg: str
    facts: Mapping[str, object] = field(default_factory=dict)
    """The content of the picture, for programs."""
    remarks: tuple[str, ...] = ()
    """What else a reader should know; the picture shows it as well."""

    def __repr__(self) -> str:
        return f"<Picture: {self.title}>"  # the description may hold values of the table

    def _repr_svg_(self) -> str:
        return self.svg

    def write(self, path: str | Path, *, force: bool = False, private: bool = False) -> Path:
        """Write the picture, whole or not at all, in the format of the suffix: .svg, .png or .pdf.

        An existing file is replaced only with ``force``: nothing in a picture says who has made it. Only its owner can
        read a ``private`` file.
        """
        target = Path(path)
        check_picture(target, force=force)
        content = self._content(target.suffix.lower())
        with Stage() as stage:
            staged = stage.path(target, private=private)
            try:
                staged.write_bytes(content)
            except OSError as error:
                raise cannot_write(target, error) from None
            stage.publish()
        return target

    def _content(self, suffix: str) -> bytes:
        if suffix == ".png":
            return bytes(_converter().svg_to_png(self.svg, scale=SHARPNESS))
        if suffix == ".pdf":
            return bytes(_converter().svg_to_pdf(self.svg))
        return self.svg.encode()


def check_picture(path: Path, *, force: bool = False) -> None:
    """Refuse a target that cannot hold a picture, or that exists and is not forced, before it is drawn."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(
            f"the output {path.name!r} has no suffix that names a picture format. Use one of {', '.join(FORMATS)}."
        )
    check_target(path)
    check_replaceable(path, "picture", force=force)


def check_drawing() -> None:
    """Refuse a machine that cannot draw, before any work is done."""
    _converter()


def draw(
    specification: Mapping[str, Any],
    theme: Theme,
    *,
    title: str,
    subtitle: Sequence[str],
    description: str,
    facts: Mapping[str, object] | None = None,
    remarks: Sequence[str] = (),
    before: float = 0.0,
    aligned: bool = False,
    say: Texts = ENGLISH,
) -> Picture:
    """Draw a Vega-Lite specification under a title. ``description`` is for readers who cannot see the picture.

    ``before``: how far names extend to the left of the plot; the title starts above them. ``aligned``: it starts
    at the left end of the whole picture. ``say``: the language of the
    numbers and months on the axes.
    """
    heading: dict[str, Any] = {"text": readable(title), **({"frame": "bounds"} if aligned else {})}
    if before:
        heading["dx"] = -before
    if subtitle or remarks:
        heading["subtitle"] = [readable(line) for line in (*subtitle, *remarks)]
    whole = {"autosize": {"type": "pad"}, **specification, "title": heading, "config": theme.config()}
    drawn = _converter().vegalite_to_svg(
        whole,
        vl_version=VEGA_LITE,
        allowed_base_urls=[],  # nothing may be loaded from any address: the specification holds all data
        format_locale=say.language.number_format(),
        time_format_locale=say.language.locale,
    )
    return Picture(title, description, accessible(_rounded(drawn), title, description), facts or {}, tuple(remarks))


def side_by_side(pictures: Sequence[Picture], *, title: str, description: str, columns: int | None = None) -> Picture:
    """Join several pictures of one theme into one, from left to right, in rows of ``columns`` if given."""
    sizes = [tuple(map(float, SIZE.search(picture.svg).groups())) for picture in pictures]  # type: ignore[union-attr]
    columns = columns or len(pictures)
    parts, width, height = [], 0.0, 0.0
    for first in range(0, len(pictures), columns):
        left = 0.0
        row = zip(pictures[first : first + columns], sizes[first : first + columns], strict=True)
        for picture, (picture_width, _) in row:
            position = f'x="{left:g}" y="{height:g}"' if height else f'x="{left:g}"'
            parts.append(picture.svg.replace("<svg ", f"<svg {position} ", 1))
            left += picture_width
        width, height = max(width, left), height + max(size[1] for size in sizes[first : first + columns])
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}"'
    whole = f'{opening} viewBox="0 0 {width:g} {height:g}">{"".join(parts)}</svg>'
    return Picture(title, description, accessible(whole, title, description))


def readable(text: str) -> str:
    """The text with a replacement for each character that a picture cannot hold."""
    return UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _rounded(svg: str) -> str:
    """Round the corners of shapes to a hundredth of a unit, which nobody can see."""
    return PATH.sub(lambda path: LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", path[0]), svg)


def accessible(svg: str, title: str, description: str) -> str:
    """Mark the SVG as one image with a name and a description, for screen readers."""
    opening, rest = svg.split(">", 1)
    texts = (escape(readable(text), quote=False) for text in (title, description))
    return f'{opening} role="img">' + "<title>{}</title><desc>{}</desc>".format(*texts) + rest


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise UsageError(
            "pictures need the package vl-convert-python, which is not installed. "
            "Install it with: pip install vl-convert-python"
        ) from None
    return vl_convert
