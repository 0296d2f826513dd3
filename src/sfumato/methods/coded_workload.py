"""What a release will be used for, in codes: what is to be predicted, from what, and which records to select."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.policy.workload import WorkloadSettings
from sfumato.tables.coding.selections import SelectionBoxes

FEW_VALUES = 20  # a column of more different numbers is predicted as a number, else as a class
PARTS_OF_A_FEATURE = 4  # a feature of more different numbers than that is told by its quarter

Kind = Literal["classification", "regression"]
# A rule that is asked for by name says how a target is predicted whose kind is left open.
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
    """What of all records decides how finely targets are counted, and what they weigh.

    count: the records. cells: how many combinations of features there are. ranges: float64[t, 2], half the smallest and
    half the largest number of each target, 0 for classes. impurity: float64[t], what there is to tell of a record.
    """

    count: int
    cells: int
    ranges: NDArray[np.float64]
    impurity: NDArray[np.float64]


@dataclass(frozen=True)
class CodedWorkload:
    """All by row, also of rows that are not among the records.

    cells: uint32[n], the combination of features other than quasi-identifiers that each row has. selections: boxes of
    codes. least_gain: where a split gains less, regions are divided at the median. scales: those of the whole table,
    where the records are a part of it.
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
    """Which kinds of tasks there are, or may be."""

    classification: bool = False
    regression: bool = False
    selection: bool = False

    @classmethod
    def of(cls, asked: WorkloadSettings) -> Kinds:
        """Before the data are seen: a target whose kind they will tell may be of either."""
        return cls(
            bool(asked.classification or asked.targets), bool(asked.regression or asked.targets), bool(asked.selection)
        )


@runtime_checkable
class ForWorkload(Protocol):
    """A method that may need to know what the release is for."""

    def check_workload(self, kinds: Kinds) -> None:
        """Raise UsageError, before any work is done, without the tasks that this method needs."""
        ...


def kind_of(distinct: int, numbers: NDArray[np.float64]) -> Kind:
    """Whether a column is predicted as classes or as numbers. numbers: float64[distinct], NaN for what is none."""
    return "regression" if distinct > FEW_VALUES and bool(np.isfinite(numbers).all()) else "classification"


def cells_of(features: Sequence[tuple[NDArray[np.uint32], NDArray[np.float64]]]) -> NDArray[np.uint32] | None:
    """The combination of features of each row, numbered in their order; none without features.

    A feature is a code for every row, the last being null, and each value as a number. The feature space is divided by
    values, and by quarters of the records where a feature has many different numbers.
    """
    found: NDArray[np.int64] | None = None
    for codes, numbers in features:
        here = parts_of_feature(numbers, np.bincount(codes, minlength=len(numbers) + 1))[codes]
        found = here if found is None else found * (int(here.max(initial=0)) + 1) + here
        found = np.unique(found, return_inverse=True)[1]
    return None if found is None else found.astype(np.uint32)


def parts_of_feature(numbers: NDArray[np.float64], counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Which part of a feature each of its values is in. counts: int[values + 1], how often each occurs, null last."""
    if len(numbers) <= PARTS_OF_A_FEATURE or kind_of(len(numbers), numbers) != "regression":
        return np.arange(len(counts))
    line = np.argsort(numbers, kind="stable")
    upto = np.cumsum(counts[:-1][line])
    first = [upto[-1] * part // PARTS_OF_A_FEATURE for part in range(1, PARTS_OF_A_FEATURE)]
    bounds = numbers[line][np.searchsorted(upto, first, side="right")]
    return np.append(np.searchsorted(bounds, numbers, side="right"), PARTS_OF_A_FEATURE)


def not_numbers(name: str) -> UsageError:
    return UsageError(
        f"the column {name!r} is to be predicted as numbers, but has values that are no finite numbers. Predict it as "
        "classes ([[workload.classification]]), or choose another column."
    )
