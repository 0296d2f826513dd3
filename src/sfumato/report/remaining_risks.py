"""The risks that remain in a release, in plain words: what k and l do not protect against.

The figures were measured by ``benchmarks/attacks.py``; a test compares them with what was recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.policy import Policy
from sfumato.policy.column_forms import ColumnForm
from sfumato.report.html import Markup, joined, name_list
from sfumato.report.release_facts import ExactEnds
from sfumato.texts import Texts

# Phrases of the recorded section "attacks". Two tables are a generated census and Adult, three also its raw form.
GUESSED_WITHOUT_RELEASE = "11 and 34%"
GUESSED_BY_ANATOMY = "57 and 67%"
GUESSED_IN_CLASSES = "34 and 52%"
CERTAIN = "22%"
PLACED = "9 to 25%"
PLACED_WITH_ROUND = "3 to 12%"
LOSS_WITH_ROUND = "1.3 to 1.7 times"
PHRASE = re.compile(r"(?:(?P<first>[\d.]+) (?P<link>and|to) )?(?P<last>[\d.]+)(?P<unit>%| times)")


@dataclass(frozen=True)
class RemainingRisk:
    """One thing to think about before sharing."""

    heading: str
    text: Markup


def risks(
    policy: Policy,
    kept: Sequence[str],
    ends: ExactEnds,
    say: Texts,
    *,
    suppressed: int,
    separated: bool,
    persons_counted: bool = False,
) -> list[RemainingRisk]:
    """The risks of a release under this policy. ``kept`` are the columns that it shows unchanged.

    ``persons_counted``: the audit knew the person of each record, so it found k persons in every class, not records.
    """
    group = say("report.group.singular" if separated else "report.class.singular")
    found = [*_of_identity(policy, say, separated=separated, persons_counted=persons_counted)]
    found += _of_values(policy, say, group, separated=separated)
    if ends.columns:
        found.append(
            _risk(
                say,
                "risks.ends.heading",
                "risks.ends.text",
                columns=name_list(ends.columns, say),
                share=say.percent(ends.share),
                placed=measured(PLACED, say),
                rounded=measured(PLACED_WITH_ROUND, say),
                loss=measured(LOSS_WITH_ROUND, say),
            )
        )
    found.append(_risk(say, "risks.second.heading", "risks.second.text", group=group))
    if kept:
        found.append(_of_columns(say, "risks.kept.heading", "risks.kept.text", kept))
    if policy.accept_linkable:
        found.append(_of_columns(say, "risks.accepted.heading", "risks.accepted.text", policy.accept_linkable))
    if policy.pseudonyms:
        found.append(_of_columns(say, "risks.pseudonyms.heading", "risks.pseudonyms.text", policy.pseudonyms))
    if policy.privacy.person is None:
        found.append(_risk(say, "risks.persons.records_heading", "risks.persons.records"))
    elif policy.privacy.person not in policy.pseudonyms:
        found.append(_risk(say, "risks.persons.gone_heading", "risks.persons.gone"))
    if suppressed:
        found.append(_risk(say, "risks.left_out.heading", "risks.left_out.text"))
    found += _of_forms(policy, say)
    if separated and policy.release.seed is not None:
        found.append(_risk(say, "risks.seed.heading", "risks.seed.text"))
    found.append(_of_columns(say, "risks.choice.heading", "risks.choice.text", policy.quasi_identifiers))
    return found


def _of_identity(policy: Policy, say: Texts, *, separated: bool, persons_counted: bool) -> Iterator[RemainingRisk]:
    if separated:
        yield _risk(say, "risks.identity.seen_heading", "risks.identity.seen")
    elif policy.k == 1:
        yield _risk(say, "risks.identity.no_k_heading", "risks.identity.no_k")
    else:
        text = "risks.identity.k_persons" if persons_counted else "risks.identity.k_records"
        yield _risk(say, "risks.identity.k_heading", text, k=policy.k)


def _of_values(policy: Policy, say: Texts, group: str, *, separated: bool) -> Iterator[RemainingRisk]:
    """What a class tells about sensitive values; what many of them have in common is the attack of Kifer 2009."""
    required = {entry.attribute for entry in policy.privacy.sensitive}
    unprotected = [column for column in policy.sensitive if column not in required]
    if unprotected:
        yield _of_columns(say, "risks.unprotected.heading", "risks.unprotected.text", unprotected)
    if required:
        yield _risk(say, "risks.meaning.heading", "risks.meaning.text")
    yield _risk(say, "risks.knowledge.heading", "risks.knowledge.text", group=group)
    if required:
        yield _risk(
            say,
            "risks.correlation.heading",
            "risks.correlation.separated" if separated else "risks.correlation.classes",
            guessed=measured(GUESSED_BY_ANATOMY if separated else GUESSED_IN_CLASSES, say),
            without=measured(GUESSED_WITHOUT_RELEASE, say),
        )
    if not separated:
        text = "risks.minimality.diverse" if required else "risks.minimality.plain"
        yield _risk(say, "risks.minimality.heading", text, certain=measured(CERTAIN, say))


def _of_forms(policy: Policy, say: Texts) -> Iterator[RemainingRisk]:
    """What the release shows beside labels, and the order of its rows."""
    if policy.asks_for("statistics"):
        yield _risk(say, "risks.statistics.heading", "risks.statistics.text")
    if means := _with_form(policy, "mean"):
        yield _of_columns(say, "risks.means.heading", "risks.means.text", means)
    if medians := _with_form(policy, "median"):
        yield _of_columns(say, "risks.medians.heading", "risks.medians.text", medians)
    if policy.release.keep_order:
        yield _risk(say, "risks.order.heading", "risks.order.text")


def measured(phrase: str, say: Texts) -> str:
    """A recorded phrase, such as "9 to 25%", in the language of the texts."""
    match = PHRASE.fullmatch(phrase)
    assert match is not None
    if match["unit"] == "%":
        last = say.number(float(match["last"]) / 100, ".0%")
        if match["first"] is None:
            return last
        return say(
            "risks.measured.two" if match["link"] == "and" else "risks.measured.range", first=match["first"], last=last
        )
    first, last = (say.number(float(match[end]), "g") for end in ("first", "last"))
    return say("risks.measured.times", first=first, last=last)


def _with_form(policy: Policy, form: ColumnForm) -> list[str]:
    return [name for name in policy.quasi_identifiers if policy.form_of(name) == form]


def _of_columns(say: Texts, heading: str, text: str, columns: Sequence[str]) -> RemainingRisk:
    return _risk(say, heading, text, columns=name_list(columns, say), count=len(columns))


def _risk(say: Texts, heading: str, text: str, **values: Any) -> RemainingRisk:
    return RemainingRisk(say(heading, **values), joined(say.parts(text, **values)))
