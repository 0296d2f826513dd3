"""Which record of the original is in which class of a release, where the two tables alone decide it.

A release shows ranges, and a record may lie in those of several classes. We conclude from the number of records that
each class has: a record that lies in one class alone is in it; a class that has as many records as lie in it has all of
them; and where ranges are as narrow as their records allow, a class has the only record that reaches an end of a range.
What is certain rules out other classes, and so on. If some record stays uncertain, nothing is returned.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.coding.domains import Codes, Domain, NumericDomain
from sfumato.tables.coding.released_labels import label_of
from sfumato.tables.released_classes import ReleasedClasses

MOST_PAIRS = 1 << 28  # of a record and a class that are compared; larger tables are left


def class_membership(codes: Codes, classes: ReleasedClasses, domains: Sequence[Domain]) -> NDArray[np.int64] | None:
    """Return the class of each record: int64[n]; None if the tables do not decide it. codes: uint[n, d]."""
    sizes = classes.sizes
    if int(sizes.sum()) != len(codes) or len(codes) * len(sizes) > MOST_PAIRS:
        return None
    inside = np.ones((len(codes), len(sizes)), np.bool_)
    reached: list[tuple[NDArray[np.int64], int]] = []
    for q, domain in enumerate(domains):
        labels = [label_of(value) for value in classes.values[domain.name]]
        spans = domain.spans(labels)[classes.shown[domain.name]]
        values = codes[:, q].astype(np.int64)
        inside &= (values[:, None] >= spans[:, 0]) & (values[:, None] < spans[:, 1])
        if isinstance(domain, NumericDomain) and domain.snap is None:
            reached += [(spans[:, 0], q), (spans[:, 1] - 1, q)]
    owner, left = np.full(len(codes), -1, np.int64), sizes.copy()

    def put(row: int, group: int) -> None:
        owner[row], left[group] = group, left[group] - 1
        inside[row] = False
        if left[group] == 0:
            inside[:, group] = False

    changed = True
    while changed and (owner < 0).any():
        before = int((owner < 0).sum())
        for row in np.flatnonzero(inside.sum(axis=1) == 1).tolist():
            if inside[row].sum() == 1:
                put(row, int(inside[row].argmax()))
        for group in np.flatnonzero((inside.sum(axis=0) == left) & (left > 0)).tolist():
            rows = np.flatnonzero(inside[:, group])
            if len(rows) == left[group]:
                for row in rows.tolist():
                    put(row, group)
        for group in np.flatnonzero(left > 0).tolist():
            for ends, q in reached:
                at_end = codes[:, q] == ends[group]
                rows = np.flatnonzero(inside[:, group] & at_end)
                if len(rows) == 1 and not (at_end & (owner == group)).any():
                    put(int(rows[0]), group)
        changed = int((owner < 0).sum()) < before
    return owner if (owner >= 0).all() and not left.any() else None
