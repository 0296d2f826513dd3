"""What an audit said, in another language.

The lines of an audit are English sentences: certificates hold them, and programs read them. The English catalogue has
their patterns, so a line is recognised by its words, and its values are put into the text of the other language. A line
of a plug-in is not recognised and stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from string import Formatter

from sfumato.texts import ENGLISH, Texts

# The first that fits is taken: what is more special stands before what is more general.
LINES = (
    "audit.jointly",
    "audit.k_in_persons",
    "audit.k_anonymity",
    "audit.distinct",
    "audit.frequency",
    "audit.entropy",
    "audit.recursive",
    "audit.variance",
    "audit.alpha_k",
    "audit.enhanced_beta",
    "audit.beta",
    "audit.delta",
    "audit.t_equal",
    "audit.t_ordered",
    "audit.t_hierarchical",
    "audit.finest",
    "audit.coarsest",
    "audit.same_groups",
    "audit.first_alone",
    "audit.second_alone",
    "audit.identifier_withheld",
    "audit.column_withheld",
    "audit.certified_file",
    "audit.certified_files",
    "audit.certified_table",
    "audit.certified_tables",
    "audit.level.single",
    "audit.level.numbered",
    "audit.level.intervals",
    "audit.level.character",
    "audit.level.characters",
    "audit.level.day",
    "audit.level.week",
    "audit.level.month",
    "audit.level.quarter",
    "audit.level.year",
    "audit.level.decade",
    "audit.level.country",
    "audit.level.subregion",
    "audit.level.region",
    "audit.level.half_year",
    "audit.level.weekday",
    "audit.level.week_part",
    "audit.level.code",
    "audit.level.category",
    "audit.level.block",
    "audit.level.chapter",
    "audit.reason.persons",
    "audit.reason.taxonomy",
    "audit.remark.no_certificate",
    "audit.remark.joined_pseudonyms",
    "audit.remark.joined_records",
    "audit.remark.joined_columns",
    "audit.remark.joined_quasi_identifiers",
    "audit.remark.in_persons",
    "audit.remark.linked",
    "audit.remark.pseudonyms",
    "audit.remark.null_is_value",
    "audit.remark.not_hidden",
    "audit.remark.seeded",
)
NAME = re.compile(r"'([^']*)'")  # a name in an English sentence
FIGURE = re.compile(r"\d{1,3}(?:,\d{3})*(?:\.\d+)?%?")
OPTIONAL = ("why", "called", "unsaid")  # placeholders whose value may be empty
NESTED = ("requirement", "requirements", "level")  # placeholders whose value is a line itself, or several


def audit_text(text: str, say: Texts) -> str:
    """A line, reason or remark of an audit in the language of the texts; as it is, if it is not recognised."""
    return recognised_text(text, say, LINES, NESTED)


def recognised_text(
    text: str, say: Texts, keys: Sequence[str], nested: Sequence[str], parts: Sequence[str] = ()
) -> str:
    """An English text of one of the keys in another language; as it is, if none fits.

    nested: placeholders whose value is such a text itself, or that of one of the keys in ``parts``. Other figures and
    names get the marks of the language, but for the placeholder ``setting``, whose value is to be put into a policy.
    """
    if say.language.code == ENGLISH.language.code:
        return text
    for key in keys:
        if (match := _pattern(key).fullmatch(text)) is not None:
            values = {
                name: "; ".join(_inside(line, say, (*parts, *keys), nested) for line in value.split("; "))
                if name in nested
                else value
                if name == "setting"
                else _marked(value, say)
                for name, value in match.groupdict().items()
            }
            return say(key, **values)
    return text


def _inside(text: str, say: Texts, keys: Sequence[str], nested: Sequence[str]) -> str:
    """A text inside of another: recognised itself, or else a figure or a name."""
    said = recognised_text(text, say, keys, nested)
    return _marked(text, say) if said == text else said


def _marked(value: str, say: Texts) -> str:
    """A figure or names with the marks of the language."""
    return say.with_marks(value) if FIGURE.fullmatch(value) else NAME.sub(r"\1".join(say.language.quotes), value)


@cache
def _pattern(key: str) -> re.Pattern[str]:
    """The English text of a key as a pattern with a group for each value."""
    parts = [
        re.escape(text) + ("" if name is None else f"(?P<{name}>.{'*' if name in OPTIONAL else '+'})")
        for text, name, _, _ in Formatter().parse(ENGLISH.template(key))
    ]
    return re.compile("".join(parts), re.DOTALL)
