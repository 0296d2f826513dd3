"""What an ARX project says about columns: role, type, hierarchy and the levels that ARX may use."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from sfumato.errors import InputError
from sfumato.proposal.arx_archive import ArxArchive
from sfumato.taxonomies.taxonomy import ROOT

ROLES: Mapping[str, str] = {
    "IDENTIFYING_ATTRIBUTE": "identifier",
    "QUASI_IDENTIFYING_ATTRIBUTE": "quasi-identifier",
    "SENSITIVE_ATTRIBUTE": "sensitive",
    "INSENSITIVE_ATTRIBUTE": "other",
}
TYPES: Mapping[str, str] = {"Integer": "numeric", "Decimal": "numeric", "Date/Time": "date"}
_JAVA_DATES = {
    "yyyy": "%Y", "uuuu": "%Y", "yy": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%m", "dd": "%d", "d": "%d",
    "HH": "%H", "H": "%H", "hh": "%I", "h": "%I", "mm": "%M", "m": "%M", "ss": "%S", "s": "%S", "SSS": "%f", "a": "%p",
}  # fmt: skip
_JAVA_TOKEN = re.compile(r"'(?P<quoted>(?:[^']|'')*)'|(?P<letters>([A-Za-z])\3*)|(?P<other>[^A-Za-z'])")


@dataclass(frozen=True, repr=False)
class ArxAttribute:
    """A column of a project.

    hierarchy: rows from the value to the most general group, as ARX has them; empty if there is none. lowest, highest:
    the levels between which ARX generalizes; None for all. microaggregation: the function by which ARX joins values
    instead. is_response: whether models in ARX predict it.
    """

    name: str
    role: str
    datatype: str
    format: str | None
    hierarchy: tuple[tuple[str, ...], ...]
    lowest: int | None
    highest: int | None
    microaggregation: str | None
    is_response: bool

    @property
    def is_rooted(self) -> bool:
        """Whether all values are in one group on the last level of the hierarchy, whatever it is called."""
        return len({row[-1] for row in self.hierarchy}) == 1

    @property
    def last_level(self) -> int:
        return len(self.hierarchy[0]) - 1

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the rows of a taxonomy file, each with ``*`` at its end."""
        return (row if row[-1] == ROOT else (*row, ROOT) for row in self.hierarchy)

    @property
    def date_format(self) -> str | None:
        """The format of dates in the directives of strptime, or None if they cannot say it."""
        return None if self.format is None else strptime_format(self.format)


def read_attributes(archive: ArxArchive, separator: str) -> list[ArxAttribute]:
    """Read the columns of a project in the order of its table."""
    definition = archive.xml("input/definition.xml")
    attributes = [_attribute(archive, element, separator) for element in definition.iter("assigment")]
    names = [attribute.name for attribute in attributes]
    if not names or len(set(names)) < len(names) or not all(names):
        raise InputError(f"{archive.where} names no columns, or one twice. Save it again in ARX.")
    return attributes


def strptime_format(pattern: str) -> str | None:
    """Return a date format of Java in the directives of strptime, or None if it has something that they cannot say."""
    parts, position = [], 0
    for token in _JAVA_TOKEN.finditer(pattern):
        if token.start() != position:
            return None
        position = token.end()
        if token["letters"] is None:
            literal = token["other"] if token["quoted"] is None else token["quoted"].replace("''", "'")
            parts.append(literal.replace("%", "%%"))
        elif token["letters"] in _JAVA_DATES:
            parts.append(_JAVA_DATES[token["letters"]])
        else:
            return None
    return "".join(parts) if position == len(pattern) and any("%" in part for part in parts) else None


def text_of(element: Element, tag: str) -> str | None:
    """Return the text of a child, or None if there is none."""
    text = element.findtext(tag)
    return text if text else None


def _attribute(archive: ArxArchive, element: Element, separator: str) -> ArxAttribute:
    name = text_of(element, "name") or ""
    role = ROLES.get((text_of(element, "type") or "").strip())
    if role is None:
        raise InputError(
            f"{archive.where} gives the column {name!r} a role that ARX does not have. Save it again in ARX."
        )
    part = f"input/hierarchies/{name}.csv"
    return ArxAttribute(
        name=name,
        role=role,
        datatype=(text_of(element, "datatype") or "").strip(),
        format=text_of(element, "format"),
        hierarchy=_hierarchy(archive, part, name, separator) if part in archive else (),
        lowest=_level(archive, element, "min"),
        highest=_level(archive, element, "max"),
        microaggregation=text_of(element, "microAggregationFunction"),
        is_response=text_of(element, "responseVariable") == "true",
    )


def _hierarchy(archive: ArxArchive, part: str, name: str, separator: str) -> tuple[tuple[str, ...], ...]:
    reader = csv.reader(io.StringIO(archive.text(part), newline=""), delimiter=separator)
    try:
        rows = tuple(tuple(row) for row in reader if row)
    except csv.Error:
        raise InputError(f"{archive.where} has a hierarchy of the column {name!r} that is no CSV.") from None
    if len({len(row) for row in rows}) > 1:
        raise InputError(
            f"{archive.where} has a hierarchy of the column {name!r} whose rows differ in length. Save it again in ARX."
        )
    return rows


def _level(archive: ArxArchive, element: Element, tag: str) -> int | None:
    text = (text_of(element, tag) or "All").strip()
    if text == "All":
        return None
    if not re.fullmatch(r"\d{1,6}", text, re.ASCII):
        raise InputError(f"{archive.where} has a level that is no number. Save it again in ARX.")
    return int(text)
