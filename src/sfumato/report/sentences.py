"""The sentences of the report: the verdict, the losses in words, and how sure a guess could be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.policy import Grouping, Policy
from sfumato.report.html import Markup, joined, name
from sfumato.report.release_facts import ValueDiversity
from sfumato.report.value_cells import ReleasedValuesOfColumn, median_width
from sfumato.taxonomies.ready import ready_taxonomy
from sfumato.taxonomies.taxonomy import ROOT, Taxonomy

# The largest blur, from 0 to 1, that a word describes.
DEGREES = (
    (0.0005, "single values"),
    (0.05, "hardly blurred"),
    (0.2, "somewhat blurred"),
    (0.5, "blurred"),
    (0.8, "strongly blurred"),
    (1.01, "hardly anything left"),
)


def verdict(
    summary: Mapping[str, Any], policy: Policy, where: str, *, separated: bool = False, persons: bool = False
) -> str:
    """The verdict of the report in a sentence or two.

    ``separated``: sensitive values are in a second table. ``persons``: the audit knew the person of each record.
    """
    if not summary["released"]:
        return "The release has no records, so it says nothing about anybody."
    failed = [line["requirement"] for line in summary["audit"] if line["holds"] is False]
    if failed:
        return (
            f"The release does not meet its policy. Requirements that fail, checked from the {where}: "
            f"{'; '.join(failed)}. Do not share it."
        )
    cost = [left_out(summary["suppressed"], summary["records"])]
    if separated:
        cost.append("quasi-identifiers released unchanged")
    elif "blur" in summary:
        cost.append(f"{percent(summary['blur'])} of a column left open on average")
    unchecked = [line["requirement"] for line in summary["audit"] if line["holds"] is None]
    if unchecked:
        which = f"a requirement that cannot be checked from the {where} may fail"
        if len(unchecked) > 1:
            which = f"{len(unchecked):,} requirements that cannot be checked from the {where} may fail"
        return f"Nothing fails, but {which}: {'; '.join(unchecked)}. {_sentence(cost)}"
    k = f"k = {policy.k:,}" if policy.k > 1 else ""
    requirements = [line["requirement"] for line in summary["audit"] if "=" in line["requirement"]]
    sensitive = [text for text in requirements if not text.startswith("k-anonymity")]
    if k and sensitive:
        which = "the requirement" if len(sensitive) == 1 else f"all {len(sensitive):,} requirements"
        held = f"{k} and {which} on sensitive columns hold"
    elif k:
        held = f"{k} holds"
    else:
        held = "; ".join(sensitive) + (" holds" if len(sensitive) == 1 else " hold")
    checked = "counted in persons when the release was made" if persons else f"checked again from the {where}"
    linked = (
        ["pseudonyms join the records of a person across classes, so k is not held per person"]
        if "remarks" in summary
        else []
    )
    return _sentence([f"{held}, {checked}", *linked, *cost])


def beside_the_least(gcp: float, bound: float) -> str:
    """An upper limit on the ratio of a loss to the least possible loss, rounded up. ``bound`` is above 0."""
    ratio = max(math.ceil(gcp / bound * 10 - 1e-9) / 10, 1.0)
    return f"at most {ratio:g} times the least possible"


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return f"{text if text.startswith('k = ') else text[:1].upper() + text[1:]}."


def left_out(suppressed: int, records: int) -> str:
    """How many records were left out, in everyday words."""
    if not suppressed:
        return "no record left out"
    share = suppressed / records
    if share >= 0.02:
        return f"{percent(share)} of the records left out"
    base = 1000
    while round(share * base) < 1:
        base *= 10
    count = round(share * base)
    while count % 10 == 0:
        count, base = count // 10, base // 10
    return f"{count:,} in {base:,} records left out"


def percent(share: float) -> str:
    """A share as a percentage with one decimal, which never rounds to nothing or to all."""
    if 0 < share < 0.0005:
        return "less than 0.1%"
    if 0.9995 < share < 1:
        return "more than 99.9%"
    return f"{share:.1%}".replace(".0%", "%")


def degree(blur: float) -> str:
    """A blur from 0 to 1 in a few words."""
    return next(word for most, word in DEGREES if blur <= most)


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


def what_is_shown(values: ReleasedValuesOfColumn, policy: Policy, taxonomy: Taxonomy | None) -> str:
    """What the records show for a quasi-identifier, in words."""
    total = max(values.total, 1)
    whole, null = values.among(values.is_whole) / total, values.among(values.is_null) / total
    exact = exact_share(values, policy, taxonomy)
    parts = []
    if exact:
        parts.append(f"{percent(exact)} of the records show a single value")
    blurred = 1 - whole - null - exact
    if blurred > 1e-9:
        width = median_width(values)
        unit = " days" if values.kind == "date" else ""
        wide = "" if width is None else f", half of them no wider than {width:,.4g}{unit}"
        parts.append(f"{percent(blurred)} {'a range' if values.axis is not None else 'a group'}{wide}")
    if whole:
        parts.append(f"{percent(whole)} show nothing (*)")
    if null:
        parts.append(f"{percent(null)} have no value in the original either")
    return "; ".join(parts) or "nothing"


def guessing(diversity: ValueDiversity, group: str) -> Markup:
    """How sure somebody could be of a sensitive value, in words."""
    surest = float(diversity.share.max()) if diversity.share.size else 0.0
    parts: list[object] = [
        f"Somebody who knows a person's {group} and guesses its most frequent ",
        name(diversity.name),
        f" is right {percent(diversity.mean)} of the time on average, and {percent(surest)} in the worst {group}.",
        f" Without the {group}, the best guess is right {percent(diversity.commonest)} of the time.",
    ]
    if diversity.limit is not None:
        parts.append(f" The policy allows {percent(diversity.limit)}.")
    if diversity.revealed:
        plural = f"{group}es" if group == "class" else f"{group}s"
        parts.append(f" {diversity.revealed:,} records are in {plural} with a single value, which is thereby revealed.")
    if diversity.missing:
        parts.append(f" {diversity.missing:,} records have no value; they protect nobody.")
    return joined(parts)
