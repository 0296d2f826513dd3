"""The workload of a release in codes: the targets to predict, the features to use, and the records to select."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.policy.workload import WorkloadSettings
from sfumato.tables.coding.selections import SelectionBoxes

FEW_VALUES = 20  # a column with more different numbers is predicted as a number, otherwise as a class
PARTS_OF_A_FEATURE = 4  # a feature with many different numbers is divided into quarters

Kind = Literal["classification", "regression"]
# If the user names a split rule, it decides how to predict a target whose kind is open.
TARGETS_OF_RULE: dict[str, Kind] = {
    "mondrian:information-gain": "classification",
    "mondrian:regression": "regression",
}


@dataclass(frozen=True)
class ClassTarget:
    """A column of classes to predict, row by row: uint32[n], in the order of the values, ``distinct`` for null."""

    name: str
    codes: NDArray[np.uint32]
    distinct: int
    weight: float = 1.0
    kind: Kind = "classification"


@dataclass(frozen=True)
class NumberTarget:
    """A column of numbers to predict, row by row: float64[n], finite, NaN for null."""

    name: str
    values: NDArray[np.float64]
    weight: float = 1.0
    kind: Kind = "regression"


@dataclass(frozen=True)
class Scales:
    """The properties of the whole table that decide the resolution and the weights of targets.

    count: the number of records. cells: the number of combinations of features. ranges: float64[t, 2], half the
    smallest and half the largest number of each target, 0 for classes. impurity: float64[t], the entropy or variance of
    each target, per record.
    """

    count: int
    cells: int
    ranges: NDArray[np.float64]
    impurity: NDArray[np.float64]


@dataclass(frozen=True)
class CodedWorkload:
    """The workload. Arrays are by row, including rows that are not among the records.

    cells: uint32[n], each row's combination of features other than quasi-identifiers. selections: boxes of codes.
    least_gain: where a split gains less, regions are divided at the median. scales: those of the whole table, where the
    records are a part of it.
    """

    classification: tuple[ClassTarget, ...] = ()
    regression: tuple[NumberTarget, ...] = ()
    cells: NDArray[np.uint32] | None = None
    selections: SelectionBoxes | None = None
    least_gain: float = 0.01
    scales: Scales | None = None

    @property
    def targets(self) -> tuple[ClassTarget | NumberTarget, ...]:
        return (*self.classification, *self.regression)

    @property
    def kinds(self) -> Kinds:
        return Kinds(bool(self.classification), bool(self.regression), self.selections is not None)


@dataclass(frozen=True)
class Kinds:
    """The kinds of tasks that a workload has, or may have."""

    classification: bool = False
    regression: bool = False
    selection: bool = False

    @classmethod
    def of(cls, settings: WorkloadSettings) -> Kinds:
        """Return the kinds before the data are known: a target whose kind depends on them counts as both."""
        return cls(
            bool(settings.classification or settings.targets),
            bool(settings.regression or settings.targets),
            bool(settings.selection),
        )


@runtime_checkable
class ForWorkload(Protocol):
    """A method that may need a workload."""

    def check_workload(self, kinds: Kinds) -> None:
        """Raise UsageError, before any work is done, if the workload lacks the tasks that this method needs."""
        ...


def kind_of(distinct: int, numbers: NDArray[np.float64]) -> Kind:
    """Return whether a column is predicted as classes or as numbers. numbers: float64[distinct], NaN for no number."""
    return "regression" if distinct > FEW_VALUES and bool(np.isfinite(numbers).all()) else "classification"


def cells_of(features: Sequence[tuple[NDArray[np.uint32], NDArray[np.float64]]]) -> NDArray[np.uint32] | None:
    """Return the combination of features of each row, numbered in order: uint32[n]; None without features.

    A feature is a code for every row, null being the last, and each value as a number. Features are divided by value,
    or into quarters of the records where they have many different numbers.
    """
    cells: NDArray[np.int64] | None = None
    for codes, numbers in features:
        parts = parts_of_feature(numbers, np.bincount(codes, minlength=len(numbers) + 1))[codes]
        cells = parts if cells is None else cells * (int(parts.max(initial=0)) + 1) + parts
        cells = np.unique(cells, return_inverse=True)[1]
    return None if cells is None else cells.astype(np.uint32)


def parts_of_feature(numbers: NDArray[np.float64], counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the part of a feature that each value is in. counts: int[values + 1], how often each occurs, null last."""
    if len(numbers) <= PARTS_OF_A_FEATURE or kind_of(len(numbers), numbers) != "regression":
        return np.arange(len(counts))
    order = np.argsort(numbers, kind="stable")
    cumulative = np.cumsum(counts[:-1][order])
    first = [cumulative[-1] * part // PARTS_OF_A_FEATURE for part in range(1, PARTS_OF_A_FEATURE)]
    bounds = numbers[order][np.searchsorted(cumulative, first, side="right")]
    return np.append(np.searchsorted(bounds, numbers, side="right"), PARTS_OF_A_FEATURE)


def not_numbers(name: str) -> UsageError:
    """Return the error for a numeric target with values that are not numbers."""
    return UsageError(
        f"the column {name!r} cannot be predicted as a number: some of its values are not finite numbers. Predict it "
        "as a class ([[workload.classification]]), or choose another column."
    )
