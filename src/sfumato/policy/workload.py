"""What the release will be used for: columns to predict, and groups of records to select (LeFevre 2008, section 3).

A selection is written as people write it, ``age > 40 and sex = 'Male'``: comparisons of quasi-identifiers with values,
joined by ``and``, so that what it selects is a box. Names with other characters stand in double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from sfumato.errors import PolicyError
from sfumato.parameters import positive_number
from sfumato.policy.error_text import wrong
from sfumato.policy.section import PolicySection, given_name, table_list, text_list
from sfumato.policy.toml_lines import KeyPath, Origin

Operator = Literal["=", "<", "<=", ">", ">="]

_NAME = r'"(?:[^"]|"")+"|[^\W\d]\w*'
_VALUE = r"'(?:[^']|'')*'|[^\s'\"<>=()]+"
_COMPARISON = re.compile(
    rf"\s*(?P<column>{_NAME})\s*(?:(?P<operator><=|>=|==|=|<|>)\s*(?P<value>{_VALUE})"
    rf"|between\s+(?P<low>{_VALUE})\s+and\s+(?P<high>{_VALUE}))\s*",
    re.IGNORECASE,
)
_AND = re.compile(r"and\b", re.IGNORECASE)


@dataclass(frozen=True)
class SelectionCondition:
    """One condition of a selection. The value is text, as the policy has it."""

    column: str
    operator: Operator
    value: str


def comparisons_of(where: str) -> tuple[SelectionCondition, ...]:
    """The conditions of a predicate; a ValueError goes on from its name."""
    found: list[SelectionCondition] = []
    place = 0
    while True:
        match = _COMPARISON.match(where, place)
        if match is None:
            break
        column = _plain(match["column"], '"')
        if match["operator"] is None:
            found += [
                SelectionCondition(column, ">=", _plain(match["low"], "'")),
                SelectionCondition(column, "<=", _plain(match["high"], "'")),
            ]
        else:
            operator: Any = "=" if match["operator"] == "==" else match["operator"]
            found.append(SelectionCondition(column, operator, _plain(match["value"], "'")))
        if match.end() == len(where):
            return tuple(found)
        joined = _AND.match(where, match.end())
        if joined is None:
            break
        place = joined.end()
    raise ValueError(
        "must be comparisons joined by and, such as age > 40 and sex = 'Male'; what or would join is two selections"
    )


def _plain(text: str, quote: str) -> str:
    return text[1:-1].replace(2 * quote, quote) if text[0] == quote else text


def _predicate(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong("must be a text such as age > 40 and sex = 'Male'")
    comparisons_of(value)
    return value


def _share(value: Any) -> float:
    if isinstance(value, int) and not isinstance(value, bool) and value == 0:
        return 0.0
    return 0.0 if isinstance(value, float) and value == 0 else positive_number(value)


class PredictionTarget(PolicySection):
    """A column that will be predicted from the quasi-identifiers."""

    target: Annotated[str, BeforeValidator(given_name)]
    weight: Annotated[float, BeforeValidator(positive_number)] = 1.0


class Selection(PolicySection):
    """Records that will be selected by their quasi-identifiers."""

    where: Annotated[str, BeforeValidator(_predicate)]
    weight: Annotated[float, BeforeValidator(positive_number)] = 1.0

    def comparisons(self) -> tuple[SelectionCondition, ...]:
        return comparisons_of(self.where)


Classification = Annotated[tuple[PredictionTarget, ...], BeforeValidator(table_list("workload.classification"))]
Regression = Annotated[tuple[PredictionTarget, ...], BeforeValidator(table_list("workload.regression"))]
Selections = Annotated[tuple[Selection, ...], BeforeValidator(table_list("workload.selection"))]
LeastGain = Annotated[float, BeforeValidator(_share)]


class WorkloadSettings(PolicySection):
    """What the release will be used for."""

    classification: Classification = ()
    """Columns of classes to predict."""
    regression: Regression = ()
    """Columns of numbers to predict."""
    targets: Annotated[tuple[str, ...], BeforeValidator(text_list)] = ()
    """Columns to predict, of which the data say whether they are classes or numbers."""
    selection: Selections = ()
    features: Annotated[tuple[str, ...], BeforeValidator(text_list)] = ()
    """Columns other than quasi-identifiers that a learner will have too."""

    @property
    def predicted(self) -> tuple[str, ...]:
        """Every column to predict."""
        return (*(one.target for one in (*self.classification, *self.regression)), *self.targets)

    def __bool__(self) -> bool:
        return bool(self.predicted or self.selection)


def check_roles(workload: WorkloadSettings, roles: Mapping[str, str], origin: Origin, *, undeclared_kept: bool) -> None:
    """Refuse a workload that does not go with what the columns are.

    What is predicted, and what beside the quasi-identifiers it is predicted from, is released as it is.
    """
    seen: set[str] = set()
    for column, path in _carried(workload):
        role = roles.get(column, "other" if undeclared_kept else "dropped")
        if role not in ("sensitive", "other"):
            told = "would be dropped" if role == "dropped" else f"has the role {role!r}"
            raise PolicyError(
                origin.say(
                    f"the workload names the column {column!r}, which {told}. A target or feature is a sensitive "
                    "or other column: it is released as it is. Give it such a role, or name another column.",
                    path,
                )
            )
        if column in seen:
            raise PolicyError(
                origin.say(f"the workload names the column {column!r} twice. Leave one of the two out.", path)
            )
        seen.add(column)
    if workload.features and not workload.predicted:
        raise PolicyError(
            origin.say("the workload has features but nothing to predict. Name a target.", ("workload", "features"))
        )
    for place, selection in enumerate(workload.selection):
        for comparison in selection.comparisons():
            if roles.get(comparison.column) != "quasi-identifier":
                raise PolicyError(
                    origin.say(
                        f"a selection compares the column {comparison.column!r}, which is not a quasi-identifier. Only "
                        "they are recoded, so every other column can be selected from as it is. Leave it out.",
                        ("workload", "selection", place, "where"),
                    )
                )


def _carried(workload: WorkloadSettings) -> Iterator[tuple[str, KeyPath]]:
    """Targets and features, and where each is named."""
    for kind, targets in (("classification", workload.classification), ("regression", workload.regression)):
        for place, one in enumerate(targets):
            yield one.target, ("workload", kind, place, "target")
    for kind, names in (("targets", workload.targets), ("features", workload.features)):
        for column in names:
            yield column, ("workload", kind)
