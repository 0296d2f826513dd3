"""The privacy models of an ARX project, which are sentences there, as requirements of a policy.

Where ARX and Sfumato measure a model differently, the requirement is the stricter one, and a remark says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato.proposal.toml_document import plain_name

_NUMBER = r"\d+(?:\.\d+)?(?:E-?\d+)?"
_ATTRIBUTE = r" for attribute '(?P<attribute>.*)'"
_K = re.compile(r"(?P<k>\d+)-anonymity")
LONGEST = 120  # characters of a model that a message quotes


@dataclass
class ArxCriteria:
    """What the models of a project ask for. unsupported: those that no requirement stands for, in the words of ARX."""

    k: int | None = None
    requirements: list[dict[str, Any]] = field(default_factory=list)
    unsupported: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def _add(self, requirement: dict[str, Any], remark: str | None) -> None:
        self.requirements.append(requirement)
        if remark is not None:
            self.remarks.append(f"{requirement['kind']} of {requirement['attribute']!r}: {remark}")


def read_criteria(texts: Iterable[str]) -> ArxCriteria:
    """Read the models of a project."""
    criteria = ArxCriteria()
    for text in texts:
        if match := _K.fullmatch(text):
            criteria.k = max(criteria.k or 1, int(match["k"]))
            continue
        for pattern, requirement in _MODELS.items():
            if match := pattern.fullmatch(text):
                criteria._add(*requirement(match))
                break
        else:
            shown = plain_name(text)
            criteria.unsupported.append(shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}...")
    return criteria


_Requirement = tuple[dict[str, Any], str | None]


def _requirement(match: re.Match[str], kind: str, **parameters: Any) -> dict[str, Any]:
    return {"attribute": match["attribute"], "kind": kind, **parameters}


def _distinct(match: re.Match[str]) -> _Requirement:
    return _requirement(match, "distinct", l=int(match["l"])), None


def _entropy(match: re.Match[str]) -> _Requirement:
    wanted = float(match["l"])
    remarks = []
    if wanted != math.ceil(wanted):
        remarks.append(f"l is a whole number here, so {wanted:g} became {math.ceil(wanted)}")
    if match["estimator"] == "grassberger-":
        remarks.append("the entropy is that of the counts here, not an estimate by Grassberger")
    return _requirement(match, "entropy", l=max(1, math.ceil(wanted))), "; ".join(remarks) or None


def _recursive(match: re.Match[str]) -> _Requirement:
    return _requirement(match, "recursive", c=float(match["c"]), l=int(match["l"])), None


def _closeness(match: re.Match[str]) -> _Requirement:
    return _requirement(match, "t-closeness", t=float(match["t"]), distance=match["distance"]), None


def _likeness(match: re.Match[str]) -> _Requirement:
    enhanced = {"enhanced": True} if match["enhanced"] else {}
    return _requirement(match, "beta-likeness", beta=float(match["beta"]), **enhanced), None


def _disclosure(match: re.Match[str]) -> _Requirement:
    delta = float(match["delta"])
    remark = (
        f"ARX takes the logarithm to base 2 and Sfumato the natural one, so {delta:g} was multiplied by ln 2; a class "
        "that lacks a value of the release does not hold here"
    )
    return _requirement(match, "delta-disclosure", delta=delta * math.log(2)), remark


_MODELS: Mapping[re.Pattern[str], Callable[[re.Match[str]], _Requirement]] = {
    re.compile(rf"distinct-(?P<l>\d+)-diversity{_ATTRIBUTE}", re.DOTALL): _distinct,
    re.compile(
        rf"(?P<estimator>(?:shannon-|grassberger-)?)entropy-(?P<l>{_NUMBER})-diversity{_ATTRIBUTE}", re.DOTALL
    ): _entropy,
    re.compile(rf"recursive-\((?P<c>{_NUMBER}),(?P<l>\d+)\)-diversity{_ATTRIBUTE}", re.DOTALL): _recursive,
    re.compile(
        rf"(?P<t>{_NUMBER})-closeness with (?P<distance>equal|ordered|hierarchical) distance{_ATTRIBUTE}", re.DOTALL
    ): _closeness,
    re.compile(
        rf"(?P<enhanced>enhanced-)?(?:basic-)?(?P<beta>{_NUMBER})-(?:basic )?likeness{_ATTRIBUTE}", re.DOTALL
    ): _likeness,
    re.compile(rf"(?P<delta>{_NUMBER})-disclosure privacy{_ATTRIBUTE}", re.DOTALL): _disclosure,
}
