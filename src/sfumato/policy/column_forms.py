"""The forms of a column: which numbers a release shows beside the labels of a quasi-identifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

ColumnForm = Literal["labels", "bounds", "mean", "median", "statistics"]
Added = Literal["min", "max", "mean", "median"]

# What each form adds: the released column NAME_min, and so on.
ADDED: Final[Mapping[ColumnForm, tuple[Added, ...]]] = {
    "labels": (),
    "bounds": ("min", "max"),
    "mean": ("mean",),
    "median": ("median",),
    "statistics": ("min", "max", "mean"),
}
SUMMARIES: Final[tuple[Added, ...]] = ("mean", "median")  # what describes the records of a class, not its box
SUMMARY_FORMS: Final = tuple(form for form, added in ADDED.items() if any(each in SUMMARIES for each in added))
