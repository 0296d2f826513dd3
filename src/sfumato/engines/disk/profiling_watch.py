"""Watches the columns while they are profiled: their different values stay in memory, so there may be too many.

A table that does not fit is refused before it takes the memory. The error names the column with the most values; if
that is a kept text which is linkable for certain, it says so, since that is what has to be decided.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from sfumato.engines.disk.passthrough_columns import PassthroughProfiler
from sfumato.engines.engine import Job
from sfumato.errors import UsageError
from sfumato.evaluation.linkability.linkable_columns import unique_for_certain
from sfumato.evaluation.linkability.refusal import refuse_linkable
from sfumato.tables.coding.profile import Collector
from sfumato.tables.external.memory_limit import LEAST, MemoryLimit, in_words, more_than

BATCH_COPIES = 6  # of a batch that are made while it is read and its values are collected
FEW_BYTES = 10**5  # a column that takes less has nothing to do with it
MOSTLY = 0.75  # a column with so many different values in its records so far will hardly repeat them


class ProfilingWatch:
    """Refuses columns with too many values. others: the collectors of kept columns, by name."""

    def __init__(
        self,
        job: Job,
        limit: MemoryLimit | None,
        collectors: Mapping[str, Collector],
        others: Mapping[str, PassthroughProfiler],
    ) -> None:
        self._job, self._limit, self._collectors = job, limit, collectors
        accepted = {*job.policy.accept_linkable, *job.policy.sensitive}
        self._linkable = {name: profiler for name, profiler in others.items() if name not in accepted}
        self._records = 0

    def after(self, batch: pa.RecordBatch) -> None:
        """Refuse a table whose next batch cannot be taken beside what the columns hold and their end will take."""
        self._records += batch.num_rows
        self._claim(BATCH_COPIES * batch.get_total_buffer_size())

    def at_the_end(self) -> None:
        """Refuse what cannot be finished."""
        self._claim(0)

    def _refuse_linkable(self) -> None:
        """Refuse columns in which most of all records will be alone with their value, whatever comes."""
        rows = self._job.source.rows
        if rows is not None:
            exact = {name: profiler for name, profiler in self._linkable.items() if profiler.is_exact}
            reasons = {name: unique_for_certain(profiler.count, rows) for name, profiler in exact.items()}
            refuse_linkable({name: reason for name, reason in reasons.items() if reason is not None})

    def _claim(self, for_batch: int) -> None:
        if self._limit is not None:
            needed = sum(collector.bytes_to_finish for collector in self._collectors.values())
            self._limit.claim(needed + for_batch, self._refusal)

    def _refusal(self, lacking: int) -> UsageError:
        assert self._limit is not None
        self._refuse_linkable()
        sizes = {name: collector.bytes_to_finish for name, collector in self._collectors.items()}
        name = max(sizes, key=lambda name: sizes[name])
        values, memory = self._collectors[name].count, self._limit.memory
        if sizes[name] < FEW_BYTES:
            return UsageError(
                f"the columns have few different values, but batches of these records cannot be read within the "
                f"{in_words(memory)} that are allowed. Allow {in_words(more_than(memory + lacking))} with --memory, or "
                "release fewer columns."
            )
        where = f"in its first {self._records:,} records" if self._records else "in its first records"
        expected = self._expected(memory + lacking)
        advice = f"Drop the column (role drop), or allow {in_words(expected)} with --memory."
        if name not in self._linkable:
            advice = f"Drop the column, round or group it, or allow {in_words(expected)} with --memory."
        elif values > MOSTLY * self._records:
            advice += " If it goes on like this, it is refused as linkable in any case: nearly every value is unique."
        if self._job.source.text and name in self._job.policy.quasi_identifiers:
            advice += " Numbers take a fraction of the memory in a Parquet file, which stores them as numbers."
        return UsageError(
            f"column {name!r} has about {values:,} different values {where}. They must be in memory, and the run would "
            f"take more than the {in_words(memory)} that are allowed. {advice}"
        )

    def _expected(self, memory: int) -> int:
        """Return a limit that should do for all records, if the columns go on like this."""
        rows = self._job.source.rows
        if rows is None or not self._records:
            return 2 * more_than(memory)
        return more_than(LEAST + (memory - LEAST) * max(rows, self._records) // self._records)
