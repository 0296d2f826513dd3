"""The risks that remain in a release, in plain words: what k and l do not protect against.

The figures were measured by ``benchmarks/attacks.py``; a test compares them with what was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.policy import Policy
from sfumato.policy.column_forms import ColumnForm
from sfumato.report.html import Markup, joined, name_list
from sfumato.report.release_facts import ExactEnds
from sfumato.report.sentences import percent

# Phrases of the recorded section "attacks". Two tables are a generated census and Adult, three also its raw form.
GUESSED_WITHOUT_RELEASE = "11 and 34%"
GUESSED_BY_ANATOMY = "57 and 67%"
GUESSED_IN_CLASSES = "33 and 53%"
CERTAIN = "14%"
PLACED = "10 to 25%"
PLACED_WITH_ROUND = "4 to 13%"
LOSS_WITH_ROUND = "1.2 to 1.6 times"


@dataclass(frozen=True)
class RemainingRisk:
    """One thing to think about before sharing."""

    heading: str
    text: Markup


def risks(
    policy: Policy,
    kept: Sequence[str],
    ends: ExactEnds,
    *,
    suppressed: int,
    separated: bool,
    persons_counted: bool = False,
) -> list[RemainingRisk]:
    """The risks of a release under this policy. ``kept`` are the columns that it shows unchanged.

    ``persons_counted``: the audit knew the person of each record, so it found k persons in every class, not records.
    """
    required = {entry.attribute for entry in policy.privacy.sensitive}
    unprotected = [column for column in policy.sensitive if column not in required]
    group = "group" if separated else "class"
    persons = policy.privacy.person is not None
    counted = "persons" if persons_counted else "records"
    remaining = [_identity_is_seen() if separated else _who_not_what(policy.k, counted)]
    if unprotected:
        remaining.append(
            _risk(
                "Sensitive columns without a requirement",
                name_list(unprotected),
                " are released as they are" if len(unprotected) > 1 else " is released as it is",
                ". If all records of a class share a value, it is revealed: see the diversity below.",
            )
        )
    if required:
        remaining.append(
            _risk(
                "Different values may mean the same",
                "A class with several diagnoses protects little if all of them are cancers. Requirements count values, "
                "not meanings, and a value may still be more likely in a class than elsewhere.",
            )
        )
    remaining.append(
        _risk(
            "Background knowledge",
            f"Somebody who knows some persons of a {group}, or a fact about them, can rule out their records. Fewer "
            "records are then left to hide among.",
        )
    )
    if required:
        remaining.append(_correlation(separated=separated))
    if not separated:
        remaining.append(_minimality(diverse=bool(required)))
    if ends.columns:
        remaining.append(_ends(ends))
    remaining.append(
        _risk(
            "A second release",
            "Two releases about the same persons, made differently or at different times, can be intersected. The "
            f"records that fit a person in both may be fewer than a {group}. Think before you publish a second one.",
        )
    )
    if kept:
        remaining.append(
            _risk(
                "Kept columns",
                name_list(kept),
                " are" if len(kept) > 1 else " is",
                " released unchanged. A person who is known to have a rare value there can be singled out.",
            )
        )
    if policy.accept_linkable:
        remaining.append(
            _risk(
                "Accepted linkable columns",
                name_list(policy.accept_linkable),
                " could undo the anonymization if somebody else knows these values. The policy accepts this risk.",
            )
        )
    if policy.pseudonyms:
        remaining.append(_pseudonyms(policy.pseudonyms))
    if not persons:
        remaining.append(_records_not_persons())
    elif policy.privacy.person not in policy.pseudonyms:
        remaining.append(_persons_gone())
    if suppressed:
        remaining.append(
            _risk(
                "Records that were left out",
                "Somebody who knows that a person was in the original, and finds no class that fits, learns that the "
                "record was left out, and so that it was unusual.",
            )
        )
    if policy.asks_for("statistics"):
        remaining.append(
            _risk(
                "Ends of ranges and means",
                "A class shows the smallest and the largest value of its records, and their rounded mean. Some record "
                "has each of the two values. If a class has few different values, all of them may be deduced, though "
                "not whose they are.",
            )
        )
    if means := _with_form(policy, "mean"):
        remaining.append(
            _risk(
                "Means",
                "A class shows the rounded mean of ",
                name_list(means),
                ". With the ends of a range, all values of a class of few different ones may be deduced, though not "
                "whose they are.",
            )
        )
    if medians := _with_form(policy, "median"):
        remaining.append(
            _risk(
                "Medians",
                "A class shows the rounded median of ",
                name_list(medians),
                ". It is the value of one of its records, as the end of a range is.",
            )
        )
    if policy.release.keep_order:
        remaining.append(
            _risk(
                "The order of the rows",
                "Rows are in the order of the original. Somebody who knows that order knows which row is whose.",
            )
        )
    if separated and policy.release.seed is not None:
        remaining.append(
            _risk(
                "A known seed",
                "The groups were drawn with a seed, which the certificate shows. Somebody who knows most of the "
                "sensitive values can find the others by trial.",
            )
        )
    remaining.append(
        _risk(
            "The choice of quasi-identifiers",
            "Only the columns that the policy calls quasi-identifiers are protected: ",
            name_list(policy.quasi_identifiers),
            ". Anything else by which a person can be recognised is not. This is not differential privacy.",
        )
    )
    return remaining


def _who_not_what(k: int, counted: str) -> RemainingRisk:
    if k == 1:
        return _risk(
            "Identity is not hidden",
            "The policy sets no k. A record may be the only one that fits a person. Only the sensitive columns with a "
            "requirement are protected.",
        )
    return _risk(
        f"k = {k:,} hides who, not what",
        f"Somebody who knows the quasi-identifiers of a person finds at least {k:,} {counted} that fit and cannot tell "
        "which is the right one. If all of them agree in another column, its value is revealed all the same.",
    )


def _correlation(*, separated: bool) -> RemainingRisk:
    """What many groups have in common: the attack of Kifer 2009."""
    if separated:
        alone, guessed = "group", GUESSED_BY_ANATOMY
        learnt = (
            "This release shows everybody's quasi-identifiers, so all groups together tell which values go with them."
        )
    else:
        alone, guessed = "class", GUESSED_IN_CLASSES
        learnt = (
            "To somebody who knows everybody's quasi-identifiers, all classes together tell which values go with them."
        )
    return _risk(
        "What other persons tell",
        f"A requirement limits what a person's {alone} reveals by itself. {learnt} With l = 3, a simple model guessed "
        f"{guessed} of the values of two tables in this way, and {GUESSED_WITHOUT_RELEASE} without the release. What "
        "lowers this is a larger l and, at more loss, a larger k or t-closeness.",
    )


def _with_form(policy: Policy, form: ColumnForm) -> list[str]:
    return [name for name in policy.quasi_identifiers if policy.form_of(name) == form]


def _minimality(*, diverse: bool) -> RemainingRisk:
    if not diverse:
        return _risk(
            "Minimality",
            "Methods blur no more than they must. Somebody who knows the method can sometimes infer that the original "
            "cannot have had certain values, and so learn more than a class shows.",
        )
    return _risk(
        "Minimality",
        "Methods blur no more than they must. Somebody who knows the method and everybody's quasi-identifiers can try "
        "out which sensitive values would have led to this release. That made the value of a person certain in "
        f"{CERTAIN} of all tables of six persons, although l = 2 held. It did not happen where k alone formed the "
        "classes, and l held all the same: they do not depend on sensitive values then.",
    )


def _ends(ends: ExactEnds) -> RemainingRisk:
    return _risk(
        "Ranges end at true values",
        "A range of ",
        name_list(ends.columns),
        " is the smallest that holds the records of a class, so some record has exactly the value at each end. "
        f"{percent(ends.share)} of the records show such a range. If only one person fits a class and has the value at "
        "an end, that person is certainly in the table and in this class. With k = 5, somebody who knows everybody's "
        f"quasi-identifiers was certain of {PLACED} of the persons of three tables. Rounding to multiples of 5 left "
        f"{PLACED_WITH_ROUND}, at {LOSS_WITH_ROUND} the loss.",
    )


def _identity_is_seen() -> RemainingRisk:
    return _risk(
        "Anybody can see who is in the table",
        "The quasi-identifiers are released unchanged. Somebody who knows those of a person sees that the person is in "
        "the table. Hidden is only which sensitive value of the group is theirs.",
    )


def _records_not_persons() -> RemainingRisk:
    return _risk(
        "Several records of one person",
        "k counts records, not persons. If the table has several records of one person, a class has fewer persons than "
        "records.",
    )


def _persons_gone() -> RemainingRisk:
    return _risk(
        "Persons cannot be counted again",
        "k counts persons, but the release does not say which person a record belongs to. Only whoever makes a release "
        "can count them; the other figures on this page count records.",
    )


def _pseudonyms(columns: Sequence[str]) -> RemainingRisk:
    return _risk(
        "Pseudonyms",
        name_list(columns),
        " tells which records are of the same person, in this release and in every other with the same key. Somebody "
        "who recognises one of them has all of them, and several records together fit fewer persons than each by "
        "itself. k does not hold per person. Whoever has the key can find the pseudonym of anybody: keep it apart from "
        "the release.",
    )


def _risk(heading: str, *parts: object) -> RemainingRisk:
    return RemainingRisk(heading, joined(parts))
