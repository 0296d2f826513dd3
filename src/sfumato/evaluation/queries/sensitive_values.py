"""Number the values of a sensitive column, alike in the original and in a release of another kind of file."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError, UsageError
from sfumato.evaluation.queries.answers import Integers
from sfumato.evaluation.queries.bins import MOST_VALUES, ascending_edges, too_many_values
from sfumato.evaluation.queries.query_workload import QueryWorkload
from sfumato.tables.coding.arrow_arrays import to_numpy
from sfumato.tables.coding.number_text import PLAIN, NumberForm
from sfumato.tables.coding.released_labels import read_number


@dataclass(frozen=True)
class SensitiveNumbers:
    """The number of each value by its text, None for null. Values of a bin share a number; there are ``count``."""

    name: str
    by_text: Mapping[str | None, int]
    count: int
    nulls: Collection[str]

    def of(self, chunks: Iterable[pa.Array]) -> Integers:
        """The number of each record's value, or -1 for an unknown value."""
        parts = [np.empty(0, np.int64)]
        for chunk in chunks:
            texts, indices = encoded(chunk, self.nulls)
            table = np.array([self.by_text.get(text, -1) for text in (*texts, None)], np.int64)
            parts.append(table[indices])
        return np.concatenate(parts)

    def of_release(self, chunks: Iterable[pa.Array]) -> Integers:
        """The number of each record's value. Refuses values that the original does not have."""
        numbers = self.of(chunks)
        unknown = int(np.count_nonzero(numbers < 0))
        if unknown:
            raise InputError(
                f"column {self.name!r} of the release has {unknown:,} records with a value that the original does not "
                "have. Check that both files belong together."
            )
        return numbers


def number_values(
    name: str, column: pa.ChunkedArray, workload: QueryWorkload, form: NumberForm, nulls: Collection[str]
) -> SensitiveNumbers:
    """Number the values of the original's column.

    ``nulls`` are texts that mean null, and ``form`` is that of numbers in text.
    """
    texts: set[str | None] = set()
    for chunk in column.chunks:
        texts.update(encoded(chunk, nulls)[0])
        if chunk.null_count:
            texts.add(None)
    has_null = None in texts
    known = sorted(text for text in texts if text is not None)
    edges = workload.bins.get(name)
    # Cells of other types have the form that Arrow gives them.
    form = form if pa.types.is_dictionary(column.type) or pa.types.is_string(column.type) else PLAIN
    numbers = [read_number(form.plain(text)) for text in known]
    numeric = all(map(math.isfinite, numbers))
    if edges is None:
        if workload.level is not None and numeric and len(known) > MOST_VALUES:
            raise too_many_values(name, len(known))
        ordered: list[str | None] = [*known, None] if has_null else [*known]
        return SensitiveNumbers(name, {text: number for number, text in enumerate(ordered)}, len(ordered), nulls)
    if not numeric:
        raise UsageError(
            f"bins are given for the column {name!r}, which does not hold numbers alone. Leave out its bins."
        )
    limits = ascending_edges(name, edges, read_number)
    bins = [bisect_right(limits, number) for number in numbers]
    number_of_bin = {each: number for number, each in enumerate(sorted(set(bins)))}
    by_text: dict[str | None, int] = {text: number_of_bin[each] for text, each in zip(known, bins, strict=True)}
    if has_null:
        by_text[None] = len(number_of_bin)
    return SensitiveNumbers(name, by_text, len(number_of_bin) + has_null, nulls)


def encoded(chunk: pa.Array, nulls: Collection[str] = ()) -> tuple[list[str | None], NDArray[Any]]:
    """The distinct values as a CSV file writes them, and the index of each record's value; null is past the last."""
    codes = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
    values = codes.dictionary
    try:
        texts = values.cast(pa.string()).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        texts = [None if value is None else str(value) for value in values.to_pylist()]
    if pa.types.is_floating(values.type):
        texts = [None if text == "nan" else text for text in texts]
    return [None if text in nulls else text for text in texts], to_numpy(codes.indices, null=len(texts))
