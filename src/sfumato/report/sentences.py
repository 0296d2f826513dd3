"""The sentences of the report: the verdict, the losses in words, and how sure a guess could be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.policy import Grouping, Policy
from sfumato.report.audit_texts import audit_text
from sfumato.report.html import Markup, joined, name
from sfumato.report.release_facts import ValueDiversity
from sfumato.report.value_cells import ReleasedValuesOfColumn, median_width
from sfumato.taxonomies.ready import ready_taxonomy
from sfumato.taxonomies.taxonomy import ROOT, Taxonomy
from sfumato.texts import Texts

YEAR = 365.25  # days
# The largest blur, from 0 to 1, that a word describes.
DEGREES = (
    (0.0005, "report.degree.single"),
    (0.05, "report.degree.hardly"),
    (0.2, "report.degree.somewhat"),
    (0.5, "report.degree.blurred"),
    (0.8, "report.degree.strongly"),
    (1.01, "report.degree.nothing"),
)
WHERE = {"released file": "report.where.file", "finished table": "report.where.table"}


def verdict(
    summary: Mapping[str, Any],
    policy: Policy,
    where: str,
    say: Texts,
    *,
    separated: bool = False,
    persons: bool = False,
) -> str:
    """The verdict of the report in a sentence or two.

    ``separated``: sensitive values are in a second table. ``persons``: the audit knew the person of each record.
    """
    if not summary["released"]:
        return say("report.verdict.empty")
    place = say(WHERE[where])
    failed = [line["requirement"] for line in summary["audit"] if line["holds"] is False]
    if failed:
        return say("report.verdict.failed", where=place, requirements=_requirements(failed, say))
    cost = [left_out(summary["suppressed"], summary["records"], say)]
    if separated:
        cost.append(say("report.verdict.unchanged"))
    elif "blur" in summary:
        cost.append(say("report.verdict.blur", blur=say.percent(summary["blur"])))
    unchecked = [line["requirement"] for line in summary["audit"] if line["holds"] is None]
    if unchecked:
        texts = _requirements(unchecked, say)
        count = len(unchecked)
        return say("report.verdict.unchecked", count=count, where=place, requirements=texts, cost=_sentence(cost))
    requirements = [line["requirement"] for line in summary["audit"] if "=" in line["requirement"]]
    sensitive = [text for text in requirements if not text.startswith("k-anonymity")]
    if policy.k > 1 and sensitive:
        held = say("report.verdict.k_and_sensitive", k=policy.k, count=len(sensitive))
    elif policy.k > 1:
        held = say("report.verdict.k", k=policy.k)
    else:
        held = say("report.verdict.sensitive", count=len(sensitive), requirements=_requirements(sensitive, say))
    checked = "report.verdict.counted" if persons else "report.verdict.checked"
    linked = [say("report.verdict.linked")] if "remarks" in summary else []
    return _sentence([say(checked, held=held, where=place), *linked, *cost])


def beside_the_least(gcp: float, bound: float) -> str:
    """An upper limit on the ratio of a loss to the least possible loss, rounded up. ``bound`` is above 0."""
    ratio = max(math.ceil(gcp / bound * 10 - 1e-9) / 10, 1.0)
    return f"at most {ratio:g} times the least possible"


def _requirements(texts: Sequence[str], say: Texts) -> str:
    return "; ".join(audit_text(text, say) for text in texts)


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return f"{text if text.startswith('k = ') else text[:1].upper() + text[1:]}."


def left_out(suppressed: int, records: int, say: Texts) -> str:
    """How many records were left out, in everyday words."""
    if not suppressed:
        return say("report.verdict.none_left_out")
    share = suppressed / records
    if share >= 0.02:
        return say("report.verdict.share_left_out", share=say.percent(share))
    base = 1000
    while round(share * base) < 1:
        base *= 10
    count = round(share * base)
    while count % 10 == 0:
        count, base = count // 10, base // 10
    return say("report.verdict.few_left_out", count=count, base=base)


def degree(blur: float, say: Texts) -> str:
    """A blur from 0 to 1 in a few words."""
    return say(next(word for most, word in DEGREES if blur <= most))


def exact_share(values: ReleasedValuesOfColumn, policy: Policy, taxonomy: Taxonomy | None) -> float:
    """The share of records that show a single value. ``taxonomy`` is that of the column if its leaves are known."""
    rule = policy.columns[values.name].taxonomy
    exact = values.plain & ~values.is_range
    if values.axis is None and taxonomy is not None:
        nodes, span = taxonomy.node_of_label(), taxonomy.span()
        leaves = [text is not None and text in nodes and span[nodes[text]] == 1 for text in values.texts]
        exact &= np.array(leaves, np.bool_)
    elif values.axis is None and isinstance(rule, Grouping) and rule.ready is not None:
        ready = ready_taxonomy(rule.ready)
        exact &= np.array([(ready.levels_of(text or "") or (1, 1))[0] == 0 for text in values.texts], np.bool_)
    elif values.axis is None and isinstance(rule, Grouping):
        exact &= np.array([not (text or "").endswith(ROOT) for text in values.texts], np.bool_)
    return values.among(exact) / max(values.total, 1)


def what_is_shown(values: ReleasedValuesOfColumn, policy: Policy, taxonomy: Taxonomy | None, say: Texts) -> str:
    """What the records show for a quasi-identifier, in words."""
    total = max(values.total, 1)
    whole, null = values.among(values.is_whole) / total, values.among(values.is_null) / total
    exact = exact_share(values, policy, taxonomy)
    parts = []
    if exact:
        parts.append(say("report.shown.single", share=say.percent(exact)))
    blurred = 1 - whole - null - exact
    if blurred > 1e-9:
        ranges, groups = "report.shown.range", "report.shown.group"
        if not parts:  # no single value is told before
            ranges, groups = "report.shown.range_alone", "report.shown.group_alone"
        text = say(groups if values.axis is None else ranges, share=say.percent(blurred))
        width = median_width(values)
        if width is not None and values.kind == "date" and width >= 2 * YEAR:
            text = say("report.shown.narrow_years", blurred=text, width=say.number(width / YEAR, ".3g"))
        elif width is not None:
            narrow = "report.shown.narrow_days" if values.kind == "date" else "report.shown.narrow"
            text = say(narrow, blurred=text, width=say.number(width, ",.4g"))
        parts.append(text)
    if whole:
        parts.append(say("report.shown.whole", share=say.percent(whole)))
    if null:
        parts.append(say("report.shown.missing", share=say.percent(null)))
    return "; ".join(parts) or say("report.shown.nothing")


def guessing(diversity: ValueDiversity, say: Texts, group: str, groups: str) -> Markup:
    """How sure somebody could be of a sensitive value, in words."""
    surest = float(diversity.share.max()) if diversity.share.size else 0.0
    sentences = [
        joined(
            say.parts(
                "report.diversity.guess",
                group=group,
                column=name(diversity.name),
                mean=say.percent(diversity.mean),
                surest=say.percent(surest),
                commonest=say.percent(diversity.commonest),
            )
        )
    ]
    if diversity.limit is not None:
        sentences.append(joined([say("report.diversity.limit", limit=say.percent(diversity.limit))]))
    if diversity.revealed:
        text = say("report.diversity.revealed", count=diversity.revealed, group=group, groups=groups)
        sentences.append(joined([text]))
    if diversity.missing:
        sentences.append(joined([say("report.diversity.missing", count=diversity.missing)]))
    return Markup(" ".join(sentences))
