"""Measure the accuracy of a query workload on a release."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from sfumato.errors import InputError
from sfumato.evaluation.queries.accuracy import QueryAccuracy
from sfumato.evaluation.queries.anatomy_estimates import GroupedRecords, anatomized, grouped_records
from sfumato.evaluation.queries.answers import Original, ReleasedPart
from sfumato.evaluation.queries.bins import cell_bounds
from sfumato.evaluation.queries.box_estimates import generalized, shown_spans, suppressed
from sfumato.evaluation.queries.datacube import datacube
from sfumato.evaluation.queries.query_workload import QueryWorkload
from sfumato.evaluation.queries.range_queries import range_accuracy
from sfumato.evaluation.queries.sensitive_values import number_values
from sfumato.policy import InputOptions
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.number_text import PLAIN, NumberForm
from sfumato.tables.released_classes import ReleasedClasses
from sfumato.tables.sources.source import Source


def measure_queries(
    workload: QueryWorkload,
    codes: Codes,
    domains: Sequence[Domain],
    sensitive: Mapping[str, pa.ChunkedArray],
    release: Source,
    records: ReleasedClasses | GroupedRecords,
    *,
    form: NumberForm = PLAIN,
    nulls: Collection[str] = (),
) -> tuple[QueryAccuracy, ...]:
    """Answer the workload from a release, once for each of the original's columns ``sensitive``.

    ``release`` is the table with the sensitive values. ``records`` are the classes of a generalized release, which know
    the class of every row, or the grouped records of Anatomy's first table; then ``release`` is the second table.
    ``form`` is that of numbers in the text of the original, and ``nulls`` are texts of sensitive values that mean null.
    """
    classes = records.classes if isinstance(records, GroupedRecords) else records
    left_out = len(codes) - classes.records
    if left_out < 0:
        raise InputError("the release has more records than the original. Check that both files belong together.")
    bounds = []
    if workload.level is not None:
        bounds = [cell_bounds(domain, workload.bins.get(domain.name)) for domain in domains]
    spans, shown = shown_spans(domains, classes)
    accuracies = []
    for name, column in sensitive.items():
        numbers = number_values(name, column, workload, form, nulls)
        original = Original(codes, numbers.of(column.chunks), numbers.count)
        parts: list[ReleasedPart] = []
        if isinstance(records, GroupedRecords):
            parts.append(anatomized(records, spans, shown, release, numbers))
        else:
            released = numbers.of_release(batch.column(0) for batch in release.batches([name]))
            parts.append(generalized(classes, spans, shown, released, numbers.count))
        if left_out:
            parts.append(suppressed(domains, numbers.count, left_out))
        accuracies.append(
            QueryAccuracy(
                name,
                workload.level,
                tuple(datacube(original, parts, domains, bounds, workload.level)) if workload.level else (),
                range_accuracy(original, parts, domains, workload) if workload.ranges else None,
            )
        )
    return tuple(accuracies)


def ask_release(
    workload: QueryWorkload,
    codes: Codes,
    domains: Sequence[Domain],
    sensitive: Mapping[str, pa.ChunkedArray],
    first: Source,
    second: Source | None,
    classes: ReleasedClasses,
    options: InputOptions,
) -> tuple[QueryAccuracy, ...]:
    """Answer the workload from a release of one table or of two. ``options`` say how to read the original.

    ``classes`` are those of the first table; they know the class of every row if it is the only table.
    """
    form = NumberForm(options.decimal, options.thousands)
    if second is None:
        return measure_queries(workload, codes, domains, sensitive, first, classes, form=form)
    grouped = grouped_records(first, [domain.name for domain in domains])
    return measure_queries(workload, codes, domains, sensitive, second, grouped, form=form, nulls=options.nulls)
