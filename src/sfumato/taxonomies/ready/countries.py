"""Countries of ISO 3166-1 in the subregions and regions of the UN, by code of two or three letters, number or name."""

from __future__ import annotations

import re
import unicodedata

from sfumato.taxonomies.ready.country_codes import COUNTRIES
from sfumato.taxonomies.ready.ready_taxonomy import FixedTaxonomy, Writing

REGION, SUBREGION = 0, 2  # spaces before the name
NO_LETTERS = re.compile(r"\W+")


def countries() -> FixedTaxonomy:
    """Return the taxonomy of countries. Antarctica is in no region."""
    codes: list[tuple[str, str, str, list[str]]] = []
    regions, subregions = [], []
    region = subregion = ""
    for line in COUNTRIES.strip().splitlines():
        name = line.strip()
        indent = len(line) - len(name)
        if indent == REGION:
            region = name
        elif indent == SUBREGION:
            subregion = name
        else:
            two, three, number, names = name.split(maxsplit=3)
            codes.append((two, three, number, [spelling.strip() for spelling in names.split("|")]))
            alone = names == region
            subregions.append("" if alone else subregion)
            regions.append("" if alone else region)
    return FixedTaxonomy(
        source="ISO 3166-1 and the UN's M49",
        writings=(
            Writing.of("codes of two letters", [[two] for two, _, _, _ in codes], str.upper),
            Writing.of("codes of three letters", [[three] for _, three, _, _ in codes], str.upper),
            Writing.of("numbers", [[number] for _, _, number, _ in codes], _padded),
            Writing.of("English names", [names for _, _, _, names in codes], _plain),
        ),
        levels=(tuple(subregions), tuple(regions)),
    )


def _padded(text: str) -> str:
    """Return a number with three digits: a table of numbers has 8 for 008."""
    return text.zfill(3)


def _plain(text: str) -> str:
    """Return a name without case, accents, punctuation and "the"."""
    letters = unicodedata.normalize("NFKD", text.replace("&", " and ").casefold())
    words = NO_LETTERS.sub(" ", "".join(letter for letter in letters if not unicodedata.combining(letter))).split()
    return " ".join("saint" if word == "st" else word for word in words if word != "the")
