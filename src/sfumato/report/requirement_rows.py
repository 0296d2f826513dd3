"""The requirements of a release, a row each: whether it holds, and what the release reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.report.audit_texts import audit_text
from sfumato.report.html import Markup, element, joined, table
from sfumato.texts import Texts

WORDS = {
    True: ("report.word.holds", "holds"),
    False: ("report.word.fails", "broken"),
    None: ("report.word.unchecked", "undecided"),
}
COUNTED = {"records": "report.audit.records", "persons": "report.audit.persons"}


def requirement_rows(lines: Sequence[Mapping[str, Any]], say: Texts, *, persons_counted: bool = False) -> Markup:
    """The lines of an audit as a table, and why some could not be checked.

    ``persons_counted``: the audit knew the person of each record.
    """
    if not lines:
        return joined([])
    reached = [reached_text(line, say) for line in lines]
    rows = [
        (
            audit_text(line["requirement"], say),
            element("span", say(WORDS[line["holds"]][0]), class_=WORDS[line["holds"]][1]),
            *([figure] if any(reached) else []),
        )
        for line, figure in zip(lines, reached, strict=True)
    ]
    heads = [say("report.audit.requirement"), say("report.audit.verdict")]
    if any(reached):
        heads.append(say("report.audit.reached"))
    caption = say("report.audit.with_persons" if persons_counted else "report.audit.caption")
    reasons = dict.fromkeys(line["reason"] for line in lines if line["holds"] is None)
    unchecked = [say("report.audit.not_checked", reason=audit_text(reason, say)) for reason in reasons if reason]
    return joined(
        [
            table(caption, heads, rows, text=(0, 1), look="audit"),
            *(element("p", text, class_="unsettled") for text in unchecked),
        ]
    )


def reached_text(line: Mapping[str, Any], say: Texts) -> str:
    """The value that the release reaches for a requirement with a bound; of others, it counts what breaks them."""
    if "=" not in line["requirement"] or "value" not in line:  # of persons there is the verdict alone
        return ""
    value = line["value"]
    if value is None:
        reached = say("report.audit.no_bound")
    else:
        reached = say.number(value) if isinstance(value, int) else say.number(value, ".4g")
    if "counted" not in line:
        return reached
    return say("report.audit.counted", reached=reached, counted=say(COUNTED[line["counted"]]))
