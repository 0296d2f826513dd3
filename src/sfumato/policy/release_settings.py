"""The section ``[release]``: how the release is written."""

from __future__ import annotations

import numbers
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, StrictBool

from sfumato.parameters import whole_number
from sfumato.policy.column_forms import ColumnForm
from sfumato.policy.error_text import wrong
from sfumato.policy.section import PolicySection

BoxKind = Literal["smallest", "regions"]
FormulaHandling = Literal["keep", "disarm"]

LARGEST_SEED = 2**63 - 1  # the largest integer that every reader of TOML accepts


def _fraction(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= value < 1:  # type: ignore[operator]
        raise wrong("must be a number of at least 0 and below 1")
    return float(value)


def _cost(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= value <= 1:  # type: ignore[operator]
        raise wrong("must be a number from 0, which costs nothing, to 1, which is all information of the record")
    return float(value)


class ReleaseSettings(PolicySection):
    """How the release is written."""

    seed: Annotated[int, BeforeValidator(whole_number(0, LARGEST_SEED))] | None = None
    keep_order: StrictBool = False
    max_suppressed_fraction: Annotated[float, BeforeValidator(_fraction)] = 0.0
    """The share of the records that may be left out."""
    suppression_cost: Annotated[float, BeforeValidator(_cost)] = 1.0
    """What a record that is left out costs: a share of all its information."""
    form: ColumnForm = "labels"
    """The form of every number and date whose column does not name its own."""
    boxes: BoxKind = "smallest"
    """Whether a class shows the smallest box around its records, or its region, which applies to new records too."""

    formulas: FormulaHandling = "keep"
    """Whether cells of CSV that a spreadsheet takes for formulas stay as they are, or begin with an apostrophe."""
