"""Suggest a role for a column, with its reason, and what it would be as a quasi-identifier.

Values with the form of an identifier decide first; then the name, if the values agree with it; then dates, words of
demographic columns, and whether every record has a different value. If none of these settle the role, it is "decide".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfumato.evaluation.linkability.column_facts import ColumnFacts
from sfumato.evaluation.linkability.column_names import ColumnMeaning, NameHints
from sfumato.evaluation.linkability.identifiers import VARIED, fits, identifier_reason, looks_postal
from sfumato.evaluation.linkability.value_forms import holds_email, looks_like_persons, share, vocabulary_of
from sfumato.policy.column_settings import Role
from sfumato.proposal.proposed_levels import NEARLY_UNIQUE, ProposedLevels, propose_levels

UNIQUE = 0.95  # of the records with a value have one that no other record has
FEWEST_RECORDS = 20  # with fewer, different values say little
LONG_TEXT = 40
SENTENCE = 4  # words


@dataclass(frozen=True)
class Suggestion:
    """A suggested role and its reason. ``levels`` holds the settings as a quasi-identifier, if it could be one."""

    role: Role
    reason: str
    levels: ProposedLevels | None = None


def suggest(facts: ColumnFacts, hints: NameHints) -> Suggestion:
    """Suggest the role of a column, and say why."""
    role, reason, kind = _role(facts, hints)
    levels = None if facts.kind in ("nothing", "unusable") else propose_levels(facts, kind)
    return Suggestion(role, reason, levels)


def _role(facts: ColumnFacts, hints: NameHints) -> tuple[Role, str, str | None]:
    """Return the role, the reason, and the kind of thing that the column is about."""
    meaning = hints.meaning
    if facts.kind == "nothing":
        return "decide", "no record has a value", None
    if facts.kind == "unusable":
        return "decide", "a quasi-identifier cannot have its type: convert it to text, numbers or dates", None
    if facts.dated:
        return "quasi-identifier", "its dates have another format than other columns, so they are read as text", None
    if looks_postal(facts):
        return "quasi-identifier", "its values look like postal codes", "postal"
    identifier = identifier_reason(facts, hints)
    if identifier is not None:
        return "identifier", identifier, None
    if meaning is not None and fits(facts, meaning):
        if meaning.role == "decide":
            emails = "; some of its texts contain e-mail addresses" if holds_email(facts.texts) else ""
            return "decide", f"its name suggests {meaning.description}{emails}", meaning.kind
        return meaning.role, f"its name suggests {meaning.description}, and its values fit", meaning.kind
    if facts.kind == "date":
        return "quasi-identifier", "its values are dates, which others may know", "date"
    vocabulary = vocabulary_of(facts.texts) if facts.kind == "text" else None
    if vocabulary is not None:
        return "quasi-identifier", f"its values are {vocabulary.description}", vocabulary.kind
    if facts.distinct > 1 and facts.alone_share >= UNIQUE:
        return _by_uniqueness(facts)
    return "decide", _undecided(facts, meaning), None


def _by_uniqueness(facts: ColumnFacts) -> tuple[Role, str, str | None]:
    alone = _alone(facts)
    if facts.known < FEWEST_RECORDS:
        return "decide", f"{alone}, but only {facts.known} records have one", None
    if facts.kind == "decimal":
        return "decide", f"{alone}: exact measures single people out if somebody knows them", None
    if facts.kind == "text" and looks_like_persons(facts.texts):
        return "identifier", f"{alone}, and the values look like names of persons", None
    if facts.kind == "text" and share(facts.texts, lambda text: len(text.split()) >= SENTENCE) >= 0.5:
        return "drop", f"{alone}, and the values are sentences: nothing can be counted by them", None
    return "identifier", alone, None


def _undecided(facts: ColumnFacts, meaning: ColumnMeaning | None) -> str:
    """Say why no role is proposed, and what may help to decide."""
    parts = []
    if meaning is not None:
        parts.append(f"its name suggests {meaning.description.partition(':')[0]}, but its values do not look like it")
    if facts.distinct == 1:
        parts.append("it is the same in every record that has a value")
    elif facts.kind == "text" and holds_email(facts.texts):
        parts.append("some of its texts contain e-mail addresses")
    elif facts.kind == "text" and facts.varied >= VARIED and looks_like_persons(facts.texts):
        parts.append("its values may be names of persons")
    elif facts.kind == "text" and facts.width >= LONG_TEXT:
        parts.append("long texts may name persons")
    elif facts.kind == "text" and _are_codes(facts):
        parts.append("codes of one length, which may be postal codes or numbers of persons")
    if facts.distinct > 1 and facts.alone_share >= NEARLY_UNIQUE:
        parts.append(_alone(facts))
    return "; ".join(parts) or "neither its name nor its values show what it is"


def _are_codes(facts: ColumnFacts) -> bool:
    return share(facts.texts, lambda text: len(text) == facts.width and text.isdecimal()) >= 0.9


def _alone(facts: ColumnFacts) -> str:
    part = "all records" if facts.alone == facts.known else f"{math.floor(facts.alone_share * 100)}% of the records"
    return f"{part} have a value that no other record has"
