"""Assign records to the folds of a cross-validation, by a seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UsageError

FEWEST, USUAL = 2, 10


def check_folds(folds: int) -> None:
    """Refuse an impossible number of folds before a table is read."""
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < FEWEST:
        raise UsageError(
            f"the number of folds must be a whole number of at least {FEWEST}, not {folds!r}. The usual number is "
            f"{USUAL}."
        )


def folds_of(
    records: int,
    folds: int,
    seed: int,
    *,
    classes: NDArray[np.integer] | None = None,
    persons: NDArray[np.integer] | None = None,
) -> NDArray[np.int64]:
    """Draw the fold of each record: int64[records].

    With ``classes``, every fold has each class about equally often. With ``persons``, all records of a person are in
    one fold: a model must not be tested on a person it has seen.
    """
    units = records if persons is None else int(persons.max(initial=0)) + 1
    if units < folds:
        unit = "records" if persons is None else "persons"
        raise UsageError(f"{folds:,} folds need as many {unit}, and the table has {units:,}. Ask for fewer folds.")
    order = np.random.default_rng(seed).permutation(units)
    if persons is None and classes is not None:
        order = order[np.argsort(classes[order], kind="stable")]
    fold = np.empty(units, np.int64)
    fold[order] = np.arange(units) % folds
    return fold if persons is None else np.take(fold, persons)
