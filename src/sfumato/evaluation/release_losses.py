"""Measure the losses of a release against its original, from the released values alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.kernels.threads import slices
from sfumato.losses.all_losses import Measurement
from sfumato.losses.loss import ClassTable
from sfumato.tables.coding.domains import Domain
from sfumato.tables.coding.released_labels import label_of
from sfumato.tables.released_classes import CHUNK, ReleasedClasses


@dataclass(frozen=True)
class TaskLoss:
    """The losses of a release for one task. ``about`` is the target column, or the condition of a selection."""

    task: str
    about: str
    values: dict[str, float | int]
    inferred: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The task as JSON values."""
        subject = "where" if self.task == "selection" else "target"
        inferred = {"inferred": True} if self.inferred else {}
        return {"task": self.task, subject: self.about, **inferred, **self.values}


@dataclass(frozen=True)
class Losses:
    """Every loss by name, the mean penalty of a record by column, and the number of suppressed records.

    ``tasks``: how well the release serves the workload that the policy names. ``suppression_cost``: what a suppressed
    record counts in the loss ``cost``.
    """

    values: dict[str, float | int]
    columns: dict[str, float]
    suppressed: int = 0
    tasks: tuple[TaskLoss, ...] = ()
    suppression_cost: float = 1.0

    def __repr__(self) -> str:
        return f"<Losses: {self._figures()}>"

    def _figures(self) -> str:
        losses = "".join(f"{name} {value:.4g}, " for name, value in self.values.items())
        return f"{losses}{self.suppressed:,} records suppressed"

    def __getattr__(self, name: str) -> float | int:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(
                f"no loss named {name!r} was measured. Choose one of {', '.join(self.values)}."
            ) from None


def measure_release(
    classes: ReleasedClasses,
    domains: Sequence[Domain],
    weights: Sequence[float],
    *,
    records: int,
    k: int,
    majority: NDArray[np.int64] | None = None,
    groups: NDArray[np.int64] | None = None,
    suppression_cost: float = 1.0,
    errors: NDArray[np.float64] | None = None,
) -> Losses:
    """Measure every loss of a release.

    ``records`` is the size of the original; records beyond those of the release were suppressed. ``groups`` are the
    sizes of the groups of a release that has its sensitive values in a second table. ``suppression_cost`` is what a
    suppressed record counts in the loss ``cost``. ``errors``: see ``ClassTable``.
    """
    measured = measure_classes(
        classes,
        domains,
        weights,
        records=records,
        k=k,
        majority=majority,
        groups=groups,
        suppression_cost=suppression_cost,
        errors=errors,
    )
    return losses_of(measured, domains)


def measure_classes(
    classes: ReleasedClasses,
    domains: Sequence[Domain],
    weights: Sequence[float],
    *,
    records: int,
    k: int,
    majority: NDArray[np.int64] | None = None,
    groups: NDArray[np.int64] | None = None,
    suppression_cost: float = 1.0,
    errors: NDArray[np.float64] | None = None,
) -> Measurement:
    """Measure the classes of a release, or a part of them. The arguments are those of ``measure_release``."""
    penalty_of_label = []
    for domain in domains:
        labels = [label_of(value) for value in classes.values[domain.name]]
        penalty = domain.penalties(labels)
        occurs = np.zeros(len(labels), np.bool_)
        occurs[classes.shown[domain.name]] = True
        unknown = int(np.count_nonzero(np.isnan(penalty) & occurs))
        if unknown:
            raise InputError(
                f"column {domain.name!r} of the release shows {unknown:,} values that are no value, range or group of "
                "the original. Check that both files and the policy belong together."
            )
        penalty_of_label.append(penalty)
    penalties = np.empty((len(classes.sizes), len(domains)))
    for begin, end in slices(len(penalties), CHUNK):
        for q, domain in enumerate(domains):
            penalties[begin:end, q] = penalty_of_label[q][classes.shown[domain.name][begin:end]]
    shares = np.asarray(weights, np.float64) / float(np.sum(weights))
    return Measurement.of(
        ClassTable(classes.sizes, penalties, shares, records, k, majority, groups, suppression_cost, errors)
    )


def losses_of(measurement: Measurement, domains: Sequence[Domain]) -> Losses:
    """The losses of a release from the measurement of all its classes."""
    if measurement.extent.suppressed < 0:
        raise InputError("the release has more records than the original. Check that both files belong together.")
    names = [domain.name for domain in domains]
    columns = dict(zip(names, measurement.by_column().tolist(), strict=True))
    extent = measurement.extent
    return Losses(measurement.values(), columns, extent.suppressed, suppression_cost=extent.suppression_cost)
