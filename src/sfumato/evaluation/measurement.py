"""Measuring a release against its original, from what is released alone."""

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
from sfumato.tables.coding.domains import Domain, label_of
from sfumato.tables.released_classes import CHUNK, ReleasedClasses


@dataclass(frozen=True)
class TaskLoss:
    """What a release makes of one task. ``about`` is the target, or what is selected."""

    task: str
    about: str
    values: dict[str, float | int]
    inferred: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As Python users and JSON have it."""
        named = "where" if self.task == "selection" else "target"
        told = {"inferred": True} if self.inferred else {}
        return {"task": self.task, named: self.about, **told, **self.values}


@dataclass(frozen=True)
class Losses:
    """Every loss by name, the mean penalty of a record by column, and how many records were left out.

    tasks: how well the release serves what the policy says it is for.
    """

    values: dict[str, float | int]
    columns: dict[str, float]
    suppressed: int = 0
    tasks: tuple[TaskLoss, ...] = ()

    def __getattr__(self, name: str) -> float | int:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(f"no loss named {name!r} was measured; there are {', '.join(self.values)}") from None


def measure_release(
    classes: ReleasedClasses,
    domains: Sequence[Domain],
    weights: Sequence[float],
    *,
    records: int,
    k: int,
    majority: NDArray[np.int64] | None = None,
    groups: NDArray[np.int64] | None = None,
) -> Losses:
    """Every loss of a release. ``records`` is the size of the original; what it has more was suppressed.

    ``groups`` are the sizes of the groups of a release that has sensitive values in a table of their own.
    """
    found = measure_classes(classes, domains, weights, records=records, k=k, majority=majority, groups=groups)
    return losses_of(found, domains)


def measure_classes(
    classes: ReleasedClasses,
    domains: Sequence[Domain],
    weights: Sequence[float],
    *,
    records: int,
    k: int,
    majority: NDArray[np.int64] | None = None,
    groups: NDArray[np.int64] | None = None,
) -> Measurement:
    """What the classes of a release, or a part of them, lose. Arguments are those of ``measure_release``."""
    found = []
    for domain in domains:
        labels = [label_of(value) for value in classes.values[domain.name]]
        penalty = domain.penalties(labels)
        occurs = np.zeros(len(labels), np.bool_)
        occurs[classes.shown[domain.name]] = True
        strange = int(np.count_nonzero(np.isnan(penalty) & occurs))
        if strange:
            raise InputError(
                f"column {domain.name!r} of the release shows {strange:,} values that are no value, range or group of "
                "the original. Check that both files and the policy belong together."
            )
        found.append(penalty)
    penalties = np.empty((len(classes.sizes), len(domains)))
    for begin, end in slices(len(penalties), CHUNK):
        for q, domain in enumerate(domains):
            penalties[begin:end, q] = found[q][classes.shown[domain.name][begin:end]]
    shares = np.asarray(weights, np.float64) / float(np.sum(weights))
    return Measurement.of(ClassTable(classes.sizes, penalties, shares, records, k, majority, groups))


def losses_of(found: Measurement, domains: Sequence[Domain]) -> Losses:
    """The losses of a release, all of whose classes were measured."""
    if found.extent.suppressed < 0:
        raise InputError("the release has more records than the original. Check that both files belong together.")
    names = [domain.name for domain in domains]
    columns = dict(zip(names, found.by_column().tolist(), strict=True))
    return Losses(found.values(), columns, found.extent.suppressed)
