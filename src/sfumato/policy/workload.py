"""The section ``[workload]``: columns to predict, and groups of records to select (LeFevre 2008, section 3).

A selection is written as ``age > 40 and sex = 'Male'``. It consists of comparisons of quasi-identifiers with values,
joined by ``and``, so it selects a box. Names with characters other than letters, digits and underscores stand in double
quotes.
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
    """One condition of a selection. The value is the text that the policy holds."""

    column: str
    operator: Operator
    value: str


def comparisons_of(where: str) -> tuple[SelectionCondition, ...]:
    """Return the conditions of a predicate. The text of a ValueError continues a sentence that begins with its name."""
    conditions: list[SelectionCondition] = []
    position = 0
    while True:
        match = _COMPARISON.match(where, position)
        if match is None:
            break
        column = _plain(match["column"], '"')
        if match["operator"] is None:
            conditions += [
                SelectionCondition(column, ">=", _plain(match["low"], "'")),
                SelectionCondition(column, "<=", _plain(match["high"], "'")),
            ]
        else:
            operator: Any = "=" if match["operator"] == "==" else match["operator"]
            conditions.append(SelectionCondition(column, operator, _plain(match["value"], "'")))
        if match.end() == len(where):
            return tuple(conditions)
        joined = _AND.match(where, match.end())
        if joined is None:
            break
        position = joined.end()
    raise ValueError(
        "must be comparisons joined by and, such as age > 40 and sex = 'Male'; instead of or, write two selections"
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
    """Records that will be selected from the release by their quasi-identifiers."""

    where: Annotated[str, BeforeValidator(_predicate)]
    weight: Annotated[float, BeforeValidator(positive_number)] = 1.0

    def comparisons(self) -> tuple[SelectionCondition, ...]:
        return comparisons_of(self.where)


Classification = Annotated[tuple[PredictionTarget, ...], BeforeValidator(table_list("workload.classification"))]
Regression = Annotated[tuple[PredictionTarget, ...], BeforeValidator(table_list("workload.regression"))]
Selections = Annotated[tuple[Selection, ...], BeforeValidator(table_list("workload.selection"))]
LeastGain = Annotated[float, BeforeValidator(_share)]


class WorkloadSettings(PolicySection):
    """The use of the release."""

    classification: Classification = ()
    """Categorical columns to predict."""
    regression: Regression = ()
    """Numeric columns to predict."""
    targets: Annotated[tuple[str, ...], BeforeValidator(text_list)] = ()
    """Columns to predict; the data decide whether each is categorical or numeric."""
    selection: Selections = ()
    features: Annotated[tuple[str, ...], BeforeValidator(text_list)] = ()
    """Columns other than quasi-identifiers that a learner will use too."""

    @property
    def predicted(self) -> tuple[str, ...]:
        """Every column to predict."""
        return (*(prediction.target for prediction in (*self.classification, *self.regression)), *self.targets)

    def __bool__(self) -> bool:
        return bool(self.predicted or self.selection)


def check_roles(workload: WorkloadSettings, roles: Mapping[str, str], origin: Origin, *, undeclared_kept: bool) -> None:
    """Raise PolicyError if the workload does not fit the roles of the columns.

    Targets and features are released unchanged, so their roles must allow that.
    """
    seen: set[str] = set()
    for column, path in _targets_and_features(workload):
        role = roles.get(column, "other" if undeclared_kept else "drop")
        if role not in ("sensitive", "other"):
            fate = "would be dropped" if role == "drop" else f"has the role {role!r}"
            raise PolicyError(
                origin.say(
                    f"the workload names the column {column!r}, which {fate}. A target or feature is released "
                    "unchanged, so it must be a sensitive or other column. Give it such a role, or name another "
                    "column.",
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
    for index, selection in enumerate(workload.selection):
        for comparison in selection.comparisons():
            if roles.get(comparison.column) != "quasi-identifier":
                raise PolicyError(
                    origin.say(
                        f"a selection compares the column {comparison.column!r}, which is not a quasi-identifier. "
                        "Other columns are released unchanged, so any selection by them stays exact. Leave it out.",
                        ("workload", "selection", index, "where"),
                    )
                )


def _targets_and_features(workload: WorkloadSettings) -> Iterator[tuple[str, KeyPath]]:
    """Yield each target and feature with the key that names it."""
    for kind, predictions in (("classification", workload.classification), ("regression", workload.regression)):
        for index, prediction in enumerate(predictions):
            yield prediction.target, ("workload", kind, index, "target")
    for kind, names in (("targets", workload.targets), ("features", workload.features)):
        for column in names:
            yield column, ("workload", kind)
