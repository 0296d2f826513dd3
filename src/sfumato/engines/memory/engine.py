"""The memory engine: the whole table in memory."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sfumato.engines.engine import Draft, Job
from sfumato.engines.memory.audit import audit_in_memory
from sfumato.engines.memory.classes import FormedClasses, check_policy, form_classes, learn_recoding
from sfumato.engines.memory.coded_table import (
    ScannedInput,
    TableInMemory,
    person_column,
    profile,
    scan,
    table_in_memory,
)
from sfumato.engines.memory.linkability import linkable_in_memory
from sfumato.engines.memory.record_sample import sample_in_memory
from sfumato.engines.memory.released_rows import RowsInMemory, rows_in_memory
from sfumato.engines.target_output import TargetOutput, WritableTable, check_target_location, origin_of
from sfumato.evaluation.linkability.refusal import refuse_linkable
from sfumato.evaluation.public_figures import Examination
from sfumato.policy import InputOptions
from sfumato.releases.fingerprints import Fingerprints, fingerprints
from sfumato.releases.ordered_fingerprints import ordered_fingerprints
from sfumato.releases.run_record import record_secret
from sfumato.tables.coding.profile import Encoder
from sfumato.tables.sources.frames import to_frame
from sfumato.tables.sources.source import Source, open_source

if TYPE_CHECKING:
    from sfumato.releases.recoding import Recoding


class MemoryEngine:
    """Everything in memory. It has no state."""

    name = "memory"

    def check_target(
        self, data: object, target: str | Path, *, tables: int, force: bool, trial: bool = False
    ) -> list[str]:
        return check_target_location(data, target, tables=tables, force=force, trial=trial)

    def read(self, job: Job) -> ScannedInput:
        person = job.requirements.person
        # The pseudonyms of persons are released, so they are among the kept columns.
        names = job.kept if person is None or person in job.kept else [*job.kept, person]
        scanned = scan(job.source, names, job.progress, job.policy.quasi_identifiers)
        return ScannedInput(job, scanned.only(job.kept), person_column(scanned, job.policy))

    def profile(self, scanned: ScannedInput) -> list[Encoder]:
        job = scanned.job
        return profile(scanned.columns, job.policy, job.taxonomies, job.progress)

    def encode(self, scanned: ScannedInput, encoders: list[Encoder]) -> TableInMemory:
        return table_in_memory(scanned, encoders)

    def check(self, table: TableInMemory) -> None:
        with table.job.progress.phase("check"):
            refuse_linkable(linkable_in_memory(table))
        check_policy(table)

    def fingerprints(self, table: TableInMemory) -> Fingerprints:
        return fingerprints(record_secret(), table.domains, table.used(), partial(sample_in_memory, table.records))

    def ordered_fingerprints(self, table: TableInMemory) -> dict[str, str]:
        encoded = table.encoded
        assert encoded.input_rows is not None
        in_input_order = np.empty_like(encoded.codes)
        in_input_order[encoded.input_rows] = encoded.codes
        return ordered_fingerprints(record_secret(), [in_input_order], table.used(), encoded.domains)

    def form_classes(self, table: TableInMemory) -> FormedClasses:
        return form_classes(table)

    def learn(self, table: TableInMemory) -> Recoding:
        return learn_recoding(table)

    def recode(self, table: TableInMemory, classes: FormedClasses) -> RowsInMemory:
        return rows_in_memory(table, classes)

    def keep(self, rows: RowsInMemory) -> tuple[Source, Source | None]:
        return self.sources(rows)

    def output(self, draft: Draft, target: str | Path) -> TargetOutput:
        rows: RowsInMemory = draft.rows
        tables = [table for table in (rows.table, rows.sensitive) if table is not None]
        writable = [WritableTable(table.schema, table.to_batches, table.num_rows) for table in tables]
        return TargetOutput(draft, target, writable)

    def audit(self, draft: Draft, written: tuple[Source, Source | None]) -> Examination:
        return audit_in_memory(draft, *written)

    def sources(self, rows: RowsInMemory) -> tuple[Source, Source | None]:
        second = None if rows.sensitive is None else open_source(rows.sensitive, InputOptions())
        return open_source(rows.table, InputOptions()), second

    def frame(self, draft: Draft) -> Any:
        return as_input_kind(draft.job, draft.rows.table)

    def sensitive_frame(self, draft: Draft) -> Any:
        second = draft.rows.sensitive
        return None if second is None else as_input_kind(draft.job, second)

    def facts(self) -> Mapping[str, Any]:
        return {}

    def origin(self, job: Job) -> str:
        return origin_of(job)

    def close(self) -> None:
        """Nothing is kept outside memory."""


def as_input_kind(job: Job, table: pa.Table) -> Any:
    """Return a released table as the kind of frame that came in. Kept columns have the types that they had."""
    made = {*job.policy.quasi_identifiers, *job.policy.derive, *job.policy.pseudonyms}
    kept = (set(job.source.names) - made) & set(table.column_names)
    return to_frame(table, job.source.kind, job.data, kept)
