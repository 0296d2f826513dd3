"""Errors, warnings and remarks in another language. They are English: commands print them, and programs read them.

The English catalogue has their patterns, so a message is recognised by its words. What is not recognised, such as a
rare error or one of a plug-in, is shown as it is, and marked as English.
"""

from __future__ import annotations

import re

from sfumato.app.message_keys import MESSAGES, PARTS
from sfumato.app.reason_texts import NESTED as NESTED_IN_REASONS
from sfumato.app.reason_texts import REASONS
from sfumato.report.audit_texts import LINES, recognised_text
from sfumato.report.audit_texts import NESTED as NESTED_IN_LINES
from sfumato.report.html import Markup, capitalised, element, joined
from sfumato.texts import ENGLISH, Texts

NESTED = (
    *NESTED_IN_LINES,
    *NESTED_IN_REASONS,
    "reason",
    "reasons",
    "why",
    "intersected",
    "times",
    "runs",
    "part",
    "columns",
    "others",
    "place",
    "what",
    "given",
    "remark",
    "values",
    "file",
    "wanted",
    "found",
    "counted",
)

WORD = re.compile(r"[^\W\d_]{2}")


def part_of_sentence(text: str, say: Texts) -> str:
    """A message in the language of the texts, to be put into a sentence; as it is, if it is not recognised."""
    return recognised_text(text, say, (*MESSAGES, *LINES), NESTED, (*PARTS, *REASONS))


def message_text(text: str, say: Texts) -> Markup:
    """A message in the language of the texts, or in English and marked as such."""
    said = part_of_sentence(text, say)
    shown = capitalised(said) if WORD.match(said) else said  # commands say it behind "error:"; k is no word
    is_english = said == text and say.language.code != ENGLISH.language.code
    return element("span", shown, lang="en") if is_english else joined([shown])
