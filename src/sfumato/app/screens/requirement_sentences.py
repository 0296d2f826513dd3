"""What a requirement asks for, as a sentence with its numbers, and what that means for this table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.app.column_hierarchy import ExaminedColumn
from sfumato.errors import SfumatoError
from sfumato.policy import ColumnSettings
from sfumato.report.html import Markup, element, joined, name
from sfumato.tables.coding.domains import NumericDomain
from sfumato.texts import Texts

TITLES = {
    "frequency": "page_requirements.titles.frequency",
    "distinct": "page_requirements.titles.distinct",
    "entropy": "page_requirements.titles.entropy",
    "recursive": "page_requirements.titles.recursive",
    "variance": "page_requirements.titles.variance",
    "t-closeness": "page_requirements.titles.closeness",
    "alpha-k": "page_requirements.titles.alpha",
    "beta-likeness": "page_requirements.titles.beta",
    "delta-disclosure": "page_requirements.titles.delta",
}
SHORT = {
    "frequency": "page_requirements.short.frequency",
    "distinct": "page_requirements.short.distinct",
    "entropy": "page_requirements.short.entropy",
    "recursive": "page_requirements.short.recursive",
    "variance": "page_requirements.short.variance",
    "t-closeness": "page_requirements.short.closeness",
    "alpha-k": "page_requirements.short.alpha",
    "beta-likeness": "page_requirements.short.beta",
    "delta-disclosure": "page_requirements.short.delta",
}
DISTANCES = {
    "equal": "page_requirements.distances.equal",
    "ordered": "page_requirements.distances.ordered",
    "hierarchical": "page_requirements.distances.hierarchical",
}
SENTENCES = {
    "frequency": "page_requirements.sentences.frequency",
    "distinct": "page_requirements.sentences.distinct",
    "entropy": "page_requirements.sentences.entropy",
    "recursive": "page_requirements.sentences.recursive",
    "variance": "page_requirements.sentences.variance",
    "t-closeness": "page_requirements.sentences.closeness",
    "alpha-k": "page_requirements.sentences.alpha",
    "beta-likeness": "page_requirements.sentences.beta",
    "delta-disclosure": "page_requirements.sentences.delta",
}


def title_of(say: Texts, kind: str) -> str:
    """The name of a kind; kinds of other packages have the name that they gave themselves."""
    return say(TITLES[kind]) if kind in TITLES else kind


def short_words(say: Texts, kind: str, given: Mapping[str, Any]) -> str:
    """A requirement in a few words: frequency, l = 3. given: its parameters."""
    word = say(SHORT[kind]) if kind in SHORT else kind
    return ", ".join([word, *parameter_words(say, given)])


def parameter_words(say: Texts, given: Mapping[str, Any]) -> list[str]:
    """Parameters as a policy names them, with numbers as the language writes them."""
    return [
        say(DISTANCES[value])
        if key == "distance"
        else say("page_requirements.enhanced_short")
        if key == "enhanced"
        else f"{key} = {shown_number(say, value)}"
        for key, value in given.items()
        if value is not False
    ]


def sentence(say: Texts, kind: str, column: str, given: Mapping[str, Any]) -> Markup:
    """What a requirement asks for. given: its parameters."""
    if kind not in SENTENCES:
        return joined([kind, ": ", name(column)])
    numbers = {key: shown_number(say, value) for key, value in given.items() if not isinstance(value, str | bool)}
    values: dict[str, Any] = {"column": name(column), **numbers}
    if kind == "frequency":
        values["part"] = say.percent(1 / given["l"])
    elif kind == "recursive":
        values["rest"] = shown_number(say, given["l"] - 1)
    elif kind == "alpha-k":
        values["part"] = say.percent(given["alpha"])
    elif kind == "t-closeness":
        values["part"] = say.percent(given["t"])
    elif kind == "beta-likeness":
        values["times"] = shown_number(say, 1 + given["beta"])
    elif kind == "delta-disclosure":
        values["times"] = shown_number(say, math.exp(given["delta"]))
    return joined(say.parts(SENTENCES[kind], **values))


def shown_number(say: Texts, value: float) -> str:
    """A number with at most three digits behind the point."""
    return say.number(value, ",") if float(value).is_integer() else say.number(float(f"{value:.3g}"), ",")


def example(say: Texts, kind: str, column: ExaminedColumn, given: Mapping[str, Any]) -> Markup:
    """What a requirement means for the values of this table."""
    counts = column.records[column.records > 0]
    if kind not in SENTENCES or not len(counts):
        return Markup("")
    shares = counts / counts.sum()
    first, share = name(column.values[0].as_py()), float(shares[0])
    match kind:
        case "frequency":
            parts = say.parts("page_requirements.examples.frequency", value=first, share=say.percent(share),
                              most=math.floor(1 / share + 1e-12))  # fmt: skip
        case "alpha-k":
            parts = say.parts("page_requirements.examples.alpha", value=first, share=say.percent(share))
        case "distinct":
            parts = say.parts("page_requirements.examples.distinct", count=len(counts))
        case "entropy":
            reached = math.exp(float(-(shares * np.log(shares)).sum()))
            parts = say.parts("page_requirements.examples.entropy", reached=shown_number(say, reached))
        case "recursive":
            rest = int(counts[int(given["l"]) - 1 :].sum())
            parts = say.parts("page_requirements.examples.recursive", value=first, count=int(counts[0]), rest=rest)
        case "variance":
            return _variance(say, column)
        case "t-closeness":
            low, high = max(0.0, share - given["t"]), min(1.0, share + given["t"])
            parts = say.parts("page_requirements.examples.closeness", value=first, share=say.percent(share),
                              low=say.percent(low), high=say.percent(high))  # fmt: skip
        case _:
            middle = len(counts) // 2
            share = float(shares[middle])
            gain = float(given.get("beta", 0))
            gain = min(gain, -math.log(share)) if given.get("enhanced") else gain
            factor = math.exp(given["delta"]) if kind == "delta-disclosure" else 1 + gain
            key = ("page_requirements.examples.delta" if kind == "delta-disclosure"
                   else "page_requirements.examples.beta")  # fmt: skip
            ends = {"high": say.percent(min(1.0, share * factor))}
            if kind == "delta-disclosure":
                ends["low"] = say.percent(share / factor)
            value = name(column.values[middle].as_py())
            parts = say.parts(key, value=value, share=say.percent(share), **ends)
    return element("p", *parts, class_="example-line")


def _variance(say: Texts, column: ExaminedColumn) -> Markup:
    try:
        counted = column.counted(ColumnSettings(role="quasi-identifier", type="numeric"))
    except SfumatoError:
        return element("p", say("page_requirements.examples.no_numbers"), class_="example-line")
    if not isinstance(counted.domain, NumericDomain):
        return element("p", say("page_requirements.examples.no_numbers"), class_="example-line")
    numbers = counted.domain.numbers()[np.minimum(counted.codes, len(counted.domain.values) - 1)]
    mean = np.average(numbers, weights=counted.records)
    reached = float(np.average((numbers - mean) ** 2, weights=counted.records))
    text = say("page_requirements.examples.variance", reached=shown_number(say, reached))
    return element("p", text, class_="example-line")
