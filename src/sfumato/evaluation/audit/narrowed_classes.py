"""What is required of sensitive columns, tested on the parts of classes that a join with other releases leaves.

A class may have enough different diagnoses, and the records that can still be a person's, after other releases were
compared, may not. Each such part is counted as if it were a class. Parts of different persons may overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.evaluation.audit.audit import class_counts
from sfumato.evaluation.audit.personal_release import PersonalRelease
from sfumato.evaluation.audit.shared_columns import SharedColumns, narrowed_parts
from sfumato.policy import InputOptions
from sfumato.requirements import ClassCounts, Verdict
from sfumato.tables.coding.arrow_arrays import from_numpy
from sfumato.tables.released_classes import ColumnTotals, ReleasedClasses, find_classes
from sfumato.tables.sources.source import open_source

ROWS_AT_ONCE = 1 << 20
MOST_ROWS = 1 << 25  # of all parts together; a part may be nearly as large as its class, for every person in it
UNTESTED = (
    "the parts of classes that other releases leave have too many records together to test them all. Drop the shared "
    "columns in all tables but one"
)


def sensitive_verdicts(
    release: PersonalRelease, cells: NDArray[np.int64], others: Sequence[SharedColumns] = ()
) -> list[Verdict]:
    """Test every requirement on a sensitive column on parts of a release, and on what other releases leave of them.

    cells: the part of each row.
    """
    parts = [part for part in release.requirements.parts if part.attribute is not None]
    if not parts:
        return []
    counting = _PartCounts(release)
    rows = np.arange(len(cells))
    verdicts = [part.verdict(counting.of(rows, cells)) for part in parts]
    tested = 0
    for some_rows, owner in _batched(narrowed_parts(release.persons, cells, others)):
        tested += len(some_rows)
        if tested > MOST_ROWS:
            return [Verdict(verdict.requirement, None, 0, reason=UNTESTED) for verdict in verdicts]
        counts = counting.of(some_rows, owner)
        verdicts = [part.worse(verdict, part.verdict(counts)) for part, verdict in zip(parts, verdicts, strict=True)]
    return verdicts


class _PartCounts:
    """Counts sensitive values in any sets of rows of a release, and compares them with the whole release."""

    def __init__(self, release: PersonalRelease) -> None:
        requirements, policy = release.requirements, release.policy
        self._release = release
        self._table = pa.Table.from_batches(release.source.batches(list(requirements.columns)))
        self._persons = None if requirements.person is None else release.persons.astype(np.uint32)
        tokens, keep_null = policy.input.nulls, policy.privacy.null_sensitive == "value"
        self._totals = {}
        for name in requirements.attributes:
            found = find_classes(release.source, [name], by_row=self._persons is not None)
            counts = found.sizes if self._persons is None else found.members(self._persons)
            shown = (found.values[name][index] for index in found.shown[name].tolist())
            written = dict(zip(shown, counts.tolist(), strict=True))
            self._totals[name] = ColumnTotals.of(written, tokens, keep_null=keep_null)

    def of(self, rows: NDArray[np.int64], owner: NDArray[np.int64]) -> ClassCounts:
        """Count sets of rows, in which a row may occur several times. owner: the set of each row, from 0."""
        release = self._release
        source = open_source(self._table.take(from_numpy(rows)), InputOptions())
        parts = ReleasedClasses(np.bincount(owner), {}, {}, owner)
        persons = None if self._persons is None else self._persons[rows]
        return class_counts(
            source, parts, release.policy, release.requirements, release.taxonomies, persons, self._totals
        )


def _batched(parts: Iterator[list[int]]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the rows of several parts at once, and the number of the part of each row."""
    rows: list[int] = []
    sizes: list[int] = []
    for part in parts:
        rows += part
        sizes.append(len(part))
        if len(rows) >= ROWS_AT_ONCE:
            yield np.array(rows, np.int64), np.repeat(np.arange(len(sizes)), sizes)
            rows, sizes = [], []
    if rows:
        yield np.array(rows, np.int64), np.repeat(np.arange(len(sizes)), sizes)
