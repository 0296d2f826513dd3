"""The disk engine: it keeps to a memory limit, and keeps what does not fit in a scratch directory."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.disk.audit import audit_on_disk
from sfumato.engines.disk.classes import ClassesOnDisk, form_classes, learn_recoding
from sfumato.engines.disk.coded_table import (
    BATCH,
    CodedTable,
    ProfiledInput,
    counted_columns,
    encode_input,
    profile_input,
    run_starts,
)
from sfumato.engines.disk.linkability import linkable_on_disk
from sfumato.engines.disk.released_rows import RowsOnDisk, rows_on_disk
from sfumato.engines.engine import Draft, Job
from sfumato.engines.memory.engine import as_input_kind
from sfumato.engines.target_output import TargetOutput, WritableTable, check_target_location, origin_of
from sfumato.errors import UsageError
from sfumato.evaluation.linkability.linkable_columns import unique_for_certain
from sfumato.evaluation.linkability.refusal import refuse_linkable
from sfumato.evaluation.public_figures import Examination
from sfumato.kernels.threads import in_threads_ahead
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.fingerprints import Fingerprints, fingerprints
from sfumato.releases.keyed_sample import KeyedSample, sampled
from sfumato.releases.ordered_fingerprints import ordered_fingerprints
from sfumato.releases.recoding import Recoding
from sfumato.releases.run_record import record_secret
from sfumato.tables.coding.domains import Codes, Domain, NumericDomain
from sfumato.tables.coding.keyed_hashes import RecordHashes
from sfumato.tables.coding.profile import CATEGORY_BYTES
from sfumato.tables.external.memory_budget import BASE, MemoryBudget
from sfumato.tables.external.memory_limit import MemoryLimit, in_words, more_than
from sfumato.tables.external.packed_records import Rows
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.sources.parquet_source import ParquetSource
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.file_writers import write_batches

VALUE_BYTES = 36  # a value of a domain, with its cost, its position on a curve and its count
TEXT_BYTES = 24  # beside a text: its slots in the index, and its hash
COUNTED_BYTES = 350  # a value that requirements or a workload count, while it is numbered as an object
VALUES_SHARE = 0.75  # of the memory that the libraries leave, at most, for distinct values
FEW_VALUES = 4 * 10**6  # bytes that the libraries' share has room for


class DiskEngine:
    """Tables larger than memory. Its scratch directory goes with it, or with the process."""

    name = "disk"

    def __init__(self, memory: int, progress: Progress, budget: MemoryBudget | None = None) -> None:
        self._memory, self._progress = memory, progress
        self._limit = MemoryLimit(memory)
        self._values = 0  # bytes that distinct values take
        self.budget = MemoryBudget.of(memory) if budget is None else budget
        scratch = Scratch()
        self._close = weakref.finalize(self, scratch.close)
        self.scratch = scratch.__enter__()

    def check_target(
        self, data: object, target: str | Path, *, tables: int, force: bool, trial: bool = False
    ) -> list[str]:
        return check_target_location(data, target, tables=tables, force=force, trial=trial)

    def read(self, job: Job) -> Job:
        """Nothing is read yet: profiling and encoding each read the input once."""
        return job

    def profile(self, job: Job) -> ProfiledInput:
        return profile_input(job, self._limit)

    def encode(self, job: Job, profile: ProfiledInput) -> CodedTable:
        self._set_values_apart(job, profile)
        self._make_room_for("packing the records")
        return encode_input(job, profile, self.budget, self.scratch)

    def check(self, table: CodedTable) -> None:
        self._make_room_for("the check of linkable columns")
        policy = table.policy
        with table.job.progress.phase("check"):
            accepted = {*policy.accept_linkable, *policy.sensitive}
            refuse_linkable(linkable_on_disk(table, accepted, self.budget, self.scratch))
            table.job.requirements.check_feasible(table.whole.as_one_class(table))

    def fingerprints(self, table: CodedTable) -> Fingerprints:
        def sample(hashes: RecordHashes) -> KeyedSample:
            return sampled(hashes, in_threads_ahead(partial(_counted_records, table), self._packed(table)))

        return fingerprints(record_secret(), table.domains, table.used, sample)

    def ordered_fingerprints(self, table: CodedTable) -> dict[str, str]:
        return ordered_fingerprints(record_secret(), table.codes_of_input(), table.used, table.domains)

    def form_classes(self, table: CodedTable) -> ClassesOnDisk:
        self._make_room_for("forming the classes")
        return form_classes(table, self.budget, self.scratch)

    def learn(self, table: CodedTable) -> Recoding:
        self._make_room_for("learning the regions")
        return learn_recoding(table, self.budget, self.scratch)

    def recode(self, table: CodedTable, classes: ClassesOnDisk) -> RowsOnDisk:
        self._make_room_for("recoding")
        return rows_on_disk(table, classes, self.budget, self.scratch, self._limit)

    def keep(self, rows: RowsOnDisk) -> tuple[Source, None]:
        return self.sources(rows)

    def output(self, draft: Draft, target: str | Path) -> TargetOutput:
        self._make_room_for("writing")
        rows: RowsOnDisk = draft.rows
        table = WritableTable(rows.file.schema, lambda: self._batches(rows), rows.file.count)
        return TargetOutput(draft, target, [table])

    def audit(self, draft: Draft, written: tuple[Source, None]) -> Examination:
        self._make_room_for("the audit")
        return audit_on_disk(draft, written[0], self._memory - self._values, self.scratch)

    def sources(self, rows: RowsOnDisk) -> tuple[Source, None]:
        """Return the rows in a file of the scratch directory, written once. A release that is kept is audited there."""
        path = self.scratch.directory / "released.parquet"
        if not path.exists():
            with self._progress.phase("write", rows.file.count):
                write_batches(rows.file.schema, lambda: self._batches(rows), path)
        return ParquetSource(path), None

    def frame(self, draft: Draft) -> Any:
        source, _ = self.sources(draft.rows)
        return as_input_kind(draft.job, pa.Table.from_batches(source.batches(source.names)))

    def sensitive_frame(self, draft: Draft) -> None:
        """Sensitive values stay with their records."""

    def facts(self) -> Mapping[str, Any]:
        """Return the memory limit that was kept to, and what was read and written on the way."""
        divided = self._progress.decisions.get("divided")
        return {
            **({} if divided is None else {"divided": divided}),
            "memory": self._memory,
            "scratch": {"bytes_read": self.scratch.tally.read, "bytes_written": self.scratch.tally.written},
        }

    def origin(self, job: Job) -> str:
        return origin_of(job)

    def close(self) -> None:
        self._close()

    def _packed(self, table: CodedTable) -> Iterator[Rows]:
        return table.file.batches(min(self.budget.rows(table.file.kind.itemsize), BATCH))

    def _batches(self, rows: RowsOnDisk) -> Iterator[pa.RecordBatch]:
        for table in rows.file.batches(self.budget, self.scratch):
            yield from table.to_batches()
            self._progress.advance(table.num_rows)

    def _make_room_for(self, step: str) -> None:
        """Give back memory that an earlier step freed, and refuse a step for which too little is left."""
        self._limit.claim_for(step, self.budget.work // 2)

    def _set_values_apart(self, job: Job, profile: ProfiledInput) -> None:
        """Leave the records what the distinct values do not take: those stay in memory. Refuse them if they take most.

        The estimate depends on the table alone, so the same limit gives the same release.
        """
        counts = {encoder.domain.name: encoder.domain.size for encoder in profile.encoders}
        sizes = {
            encoder.domain.name: encoder.domain.size * _bytes_of_a_value(encoder.domain) + encoder.nbytes
            for encoder in profile.encoders
        }
        for column in profile.carried:
            if column.dictionary is not None:
                counts[column.name] = len(column.dictionary)
                sizes[column.name] = column.dictionary.nbytes + counts[column.name] * TEXT_BYTES
            if column.name in counted_columns(job):
                counts[column.name] = len(column.values)
                sizes[column.name] = sizes.get(column.name, 0) + counts[column.name] * COUNTED_BYTES
        largest = max(sizes, key=lambda name: sizes[name])
        taken, room = sum(sizes.values()), max(int(self.budget.work * VALUES_SHARE), FEW_VALUES)
        if taken > room:
            refuse_linkable(_linkable_for_certain(profile, job.policy))
            enough = more_than(int(taken / VALUES_SHARE) + BASE)
            raise UsageError(
                f"column {largest!r} has {counts[largest]:,} different values, and those of all columns take about "
                f"{in_words(taken)} of memory; a limit of {in_words(self._memory)} leaves {in_words(room)} for "
                f"them. Allow {in_words(enough)} with --memory, or round, group or drop such columns."
            )
        if taken > FEW_VALUES:
            self.budget, self._values = self.budget.beside(taken), taken


def _counted_records(table: CodedTable, rows: Rows) -> tuple[Codes, NDArray[np.int64]]:
    """Return the codes of records, equal neighbours once, and how often each occurs."""
    codes = table.codes_of(rows)
    starts = run_starts(codes)
    return np.take(codes, starts[:-1], axis=0), np.diff(starts)


def _bytes_of_a_value(domain: Domain) -> int:
    return VALUE_BYTES if isinstance(domain, NumericDomain) else VALUE_BYTES + CATEGORY_BYTES


def _linkable_for_certain(profile: ProfiledInput, policy: Policy) -> dict[str, str]:
    """Return the kept texts that would be refused later, each with the reason in words."""
    accepted = {*policy.accept_linkable, *policy.sensitive}
    reasons = {
        column.name: unique_for_certain(len(column.dictionary), column.records)
        for column in profile.carried
        if column.dictionary is not None and column.name not in accepted
    }
    return {name: reason for name, reason in reasons.items() if reason is not None}
