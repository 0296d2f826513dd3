"""What could still go wrong with a release, in plain words: what k and l do not protect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.policy import Policy
from sfumato.report.html import Markup, joined, named


@dataclass(frozen=True)
class RemainingRisk:
    """One thing to think about before sharing."""

    heading: str
    text: Markup


def risks(policy: Policy, kept: Sequence[str], *, suppressed: int, separated: bool) -> list[RemainingRisk]:
    """Those that a release under this policy has; ``kept`` are columns that it shows unchanged."""
    required = {asked.attribute for asked in policy.privacy.sensitive}
    bare = [column for column in policy.sensitive if column not in required]
    group = "group" if separated else "class"
    persons = policy.privacy.person is not None
    found = [_identity_is_seen() if separated else _who_not_what(policy.k, "persons" if persons else "records")]
    if bare:
        found.append(
            _risk(
                "Sensitive columns without a requirement",
                named(bare),
                " are released as they are" if len(bare) > 1 else " is released as it is",
                ". Where all records of a class share a value, it is revealed: see the diversity below.",
            )
        )
    if required:
        found.append(
            _risk(
                "Different values may mean the same",
                "A class with several diagnoses protects little if all of them are cancers. Requirements count values, "
                "not their meaning, and a class may still make a value more likely than it is elsewhere.",
            )
        )
    found.append(
        _risk(
            "Background knowledge",
            f"Whoever can rule out some records of a {group}, because they know these persons or a fact about them, is "
            "left with fewer.",
        )
    )
    if not separated:
        found.append(
            _risk(
                "Minimality",
                "Methods blur no more than they must. Somebody who knows the method can sometimes tell that a grouping "
                "of the original is impossible, and so learn more than a class shows.",
            )
        )
    found.append(
        _risk(
            "A second release",
            "Two releases of the same persons, made differently or at different times, can be laid over each other, "
            f"and what both leave open may be less than a {group}. Publish one, and think before the next.",
        )
    )
    if kept:
        found.append(
            _risk(
                "Kept columns",
                named(kept),
                " are" if len(kept) > 1 else " is",
                " released unchanged. Somebody who is known to have a rare value there may be singled out.",
            )
        )
    if policy.accept_linkable:
        found.append(
            _risk(
                "Linkable columns that were accepted",
                named(policy.accept_linkable),
                " could undo the release if anybody else knows these values. The policy accepts that.",
            )
        )
    found.append(_persons_gone() if persons else _records_not_persons())
    if suppressed:
        found.append(
            _risk(
                "Records that were left out",
                "Whoever knows that a person was in the original and finds no class that fits can tell that the record "
                "was left out, and so that it was unusual.",
            )
        )
    if policy.release.form == "statistics":
        found.append(
            _risk(
                "Ends of ranges and means",
                "A class shows the smallest and the largest value of its records and their mean, rounded: some record "
                "has each of the two, and where a class has few different values, all of them may be told, though not "
                "whose they are.",
            )
        )
    if policy.release.keep_order:
        found.append(
            _risk(
                "The order of the rows",
                "Rows stand in the order of the original. Whoever knows that order knows whose they are.",
            )
        )
    if separated and policy.release.seed is not None:
        found.append(
            _risk(
                "A known seed",
                "The groups were drawn with a seed that the certificate shows. Whoever knows most of the sensitive "
                "values can try out the others.",
            )
        )
    found.append(
        _risk(
            "The choice of quasi-identifiers",
            "Only what the policy calls a quasi-identifier is looked after: ",
            named(policy.quasi_identifiers),
            ". Anything else by which somebody can be recognised is not protected. This is not differential privacy.",
        )
    )
    return found


def _who_not_what(k: int, counted: str) -> RemainingRisk:
    if k == 1:
        return _risk(
            "Nothing hides who a record belongs to",
            "No k was asked for. A record may be the only one that fits a person; what is protected are the sensitive "
            "columns that have a requirement.",
        )
    return _risk(
        f"k = {k:,} hides who, not what",
        f"Whoever knows the quasi-identifiers of a person finds at least {k:,} {counted} that fit and cannot tell "
        "which is theirs. If these agree in something else, that is learnt all the same.",
    )


def _identity_is_seen() -> RemainingRisk:
    return _risk(
        "Who is in the table can be seen",
        "The quasi-identifiers are released as they are. Whoever knows them sees that a person is in the table; what "
        "is hidden is which sensitive value of the group is theirs.",
    )


def _records_not_persons() -> RemainingRisk:
    return _risk(
        "Several records of one person",
        "Records are counted, not persons. If the table has several records of somebody, fewer persons than records "
        "share a class.",
    )


def _persons_gone() -> RemainingRisk:
    return _risk(
        "Persons cannot be counted again",
        "k counts persons, and the release does not say whose its records are. They were counted when it was made; the "
        "figures on this page count records.",
    )


def _risk(heading: str, *parts: object) -> RemainingRisk:
    return RemainingRisk(heading, joined(parts))
