"""Query accuracy: how well counts over the original are answered from a release alone (Ghinita 2007, section 6.3).

The datacube at level i has a group-by for every choice of i quasi-identifiers. A group-by counts the records of each
cell and sensitive value: exactly in the original (P), and in the release (Q) as a reader would estimate it, each record
spread evenly over the codes that its released values leave open. P and Q are distributions, and the error is their
Kullback-Leibler divergence, the sum of P ln(P / Q) where P > 0; the total is the mean over group-bys. Random
range-count queries (Xiao and Tao 2006) are answered in the same way, and their relative error is measured.

A released value is a run of codes, so a released record is a box. Boxes are all that is known of a release here: each
has a sensitive value and a weight in records, which need not be whole. A box adds at its corners, and running sums
along every axis then give all cells at once. Where there are more cells than that is worth, each cell that occurs looks
at each box.

Differs from the papers:

- null is a cell of its own; ``*`` is spread over it as over any other code, so that Q > 0 wherever P > 0;
- suppressed records are spread over the whole domain and evenly over the sensitive values;
- cells may be bins of numbers that the user names: a bin counts as many codes as the original has values in it;
- range queries ask for runs of neighbouring codes on quasi-identifiers, where Xiao and Tao draw any values.
"""

from __future__ import annotations

import datetime
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError, UsageError
from sfumato.evaluation.measure import Losses
from sfumato.kernels import in_threads, kernel, thread_count
from sfumato.policy import Policy
from sfumato.tables.arrays import to_numpy
from sfumato.tables.domains import WHOLE, CategoricalDomain, Codes, Domain, NumericDomain
from sfumato.tables.grouping import ReleasedClasses
from sfumato.tables.sorting import Field, bits_for, sort_rows
from sfumato.tables.source import Source

MOST_VALUES = 1000
"""Numbers with more distinct values are continuous: their cells must be named."""
FLOOR = 0.001
"""Relative errors are taken against at least this share of the records, so that rare answers do not rule the mean."""
LARGEST_CUBE = 1 << 27  # cells of one sensitive value that are held at once, over all threads: 1 GiB
PIECES = 3
HEADROOM = 60  # bits for the largest estimate of a cell, in units
EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)
DAY = 86_400_000_000  # microseconds

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The queries to ask. ``bins`` are edges by column: a cell reaches from one edge to just below the next."""

    level: int | None = None
    ranges: int | None = None
    selectivity: float = 0.05
    range_attributes: int | None = None
    seed: int = 0
    bins: Mapping[str, Sequence[object]] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        return self.level is None and self.ranges is None

    def check(self, quasi_identifiers: Sequence[str], sensitive: Sequence[str]) -> None:
        """Refuse what cannot be asked of these columns."""
        count = len(quasi_identifiers)
        if self.empty:
            if self.bins:
                raise UsageError("bins are for queries. Name a level of the datacube as well, or leave out the bins.")
            return
        if self.level is not None and not 1 <= self.level <= count:
            raise UsageError(
                f"there is no level {self.level} in the datacube of {count} quasi-identifiers. "
                f"Give a level from 1 to {count}: the number of quasi-identifiers in each group-by."
            )
        if self.ranges is not None and self.ranges < 1:
            raise UsageError(f"{self.ranges} range queries cannot be asked. Give a number of at least 1.")
        if not 0 < self.selectivity <= 1:
            raise UsageError(
                f"the selectivity {self.selectivity} is not a share of the records. "
                "Give a number above 0 and at most 1."
            )
        if self.range_attributes is not None and not 1 <= self.range_attributes <= count:
            raise UsageError(
                f"range queries cannot have {self.range_attributes} of {count} quasi-identifiers. "
                f"Give a number from 1 to {count}."
            )
        if self.seed < 0:
            raise UsageError(f"the seed {self.seed} is negative. Give a whole number of at least 0.")
        for name in self.bins:
            if name not in (*quasi_identifiers, *sensitive):
                raise UsageError(
                    f"bins are given for the column {name!r}, which the queries do not ask for. Give bins for "
                    "quasi-identifiers or for the sensitive column alone."
                )


@dataclass(frozen=True)
class GroupBy:
    """One group-by of the datacube and its divergence; infinite where the release rules out what the original has."""

    columns: tuple[str, ...]
    kl: float


@dataclass(frozen=True)
class RangeAccuracy:
    """The relative error of random range-count queries.

    Errors are relative to the answer, or to ``floor`` records where the answer is less. ``reached`` is the mean share
    of the records in the answers: dependencies between columns move it away from the ``selectivity`` asked for.
    """

    count: int
    selectivity: float
    attributes: int
    seed: int
    floor: float
    reached: float
    mean: float
    median: float


@dataclass(frozen=True)
class QueryAccuracy:
    """How well queries with one sensitive column are answered."""

    sensitive: str
    level: int | None
    group_bys: tuple[GroupBy, ...]
    ranges: RangeAccuracy | None

    @property
    def kl(self) -> float | None:
        """The mean divergence over the group-bys."""
        return math.fsum(one.kl for one in self.group_bys) / len(self.group_bys) if self.group_bys else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON, which has no infinity: it is null there."""
        found: dict[str, Any] = {"sensitive": self.sensitive}
        if self.level is not None:
            found["level"] = self.level
            found["kl"] = _finite(self.kl)
            found["group_bys"] = [{"columns": list(one.columns), "kl": _finite(one.kl)} for one in self.group_bys]
        if self.ranges is not None:
            found["ranges"] = dict(vars(self.ranges))
        return found


@dataclass(frozen=True)
class Measured(Losses):
    """The losses, and how well queries are answered: one entry for every sensitive column that was asked for."""

    queries: tuple[QueryAccuracy, ...] = ()


@dataclass(frozen=True)
class Boxes:
    """Released records. Box b leaves open the codes spans[q][shown[b, q]] of quasi-identifier q, the end excluded."""

    shown: Integers
    spans: Sequence[Integers]
    sensitive: Integers
    weight: Floats


@dataclass(frozen=True)
class Originals:
    """The original in codes, its sensitive values numbered from 0 to ``values`` - 1."""

    codes: Codes
    sensitive: Integers
    values: int


def queried_columns(policy: Policy, target: str | None, original: Source, release: Source) -> tuple[str, ...]:
    """The columns whose values queries count: the target where there is one, else every sensitive column."""
    names = policy.sensitive if target is None else (target,)
    if not names:
        raise UsageError(
            "queries count the values of a sensitive column, and there is none. Give a column the role sensitive in "
            "the policy, or name one as the target."
        )
    for name in names:
        if name in policy.quasi_identifiers:
            raise UsageError(
                f"queries cannot count {name!r}: it is a quasi-identifier. Name another column as the target."
            )
        for source in (original, release):
            if name not in source.names:
                raise UsageError.unknown_column(name, "the target" if target else "the policy", source.names)
    return names


def measure_queries(
    workload: Workload,
    codes: Codes,
    domains: Sequence[Domain],
    sensitive: Mapping[str, pa.ChunkedArray],
    release: Source,
    classes: ReleasedClasses,
    *,
    decimal: str = ".",
) -> tuple[QueryAccuracy, ...]:
    """Ask the workload of a generalized release, once for each of the original's columns ``sensitive``.

    ``classes`` are those of the release and know the class of every row.
    """
    bounds = []
    if workload.level is not None:
        bounds = [_cell_bounds(domain, workload.bins.get(domain.name)) for domain in domains]
    spans, shown = _class_spans(domains, classes)
    found = []
    for name, column in sensitive.items():
        number, values = _sensitive_numbers(name, column, workload, decimal)
        original = Originals(codes, _numbers(column.chunks, number), values)
        released = _numbers((batch.column(0) for batch in release.batches([name])), number)
        strange = int(np.count_nonzero(released < 0))
        if strange:
            raise InputError(
                f"column {name!r} of the release has {strange:,} records with a value that the original does not have. "
                "Check that both files belong together."
            )
        boxes = _generalized(classes, spans, shown, released, values)
        boxes = _with_suppressed(boxes, domains, original, len(codes) - classes.records)
        found.append(
            QueryAccuracy(
                name,
                workload.level,
                tuple(datacube(original, boxes, domains, bounds, workload.level)) if workload.level else (),
                range_accuracy(original, boxes, domains, workload) if workload.ranges else None,
            )
        )
    return tuple(found)


# ---- what the tables say ----


def _cell_bounds(domain: Domain, edges: Sequence[object] | None) -> Integers:
    """Where the cells of a quasi-identifier begin and end: cell c has the codes bounds[c] to bounds[c + 1] - 1."""
    if edges is None:
        if isinstance(domain, NumericDomain) and len(domain.values) > MOST_VALUES:
            raise _too_many_values(domain.name, len(domain.values))
        return np.arange(domain.size + 1)
    if not isinstance(domain, NumericDomain):
        raise UsageError(
            f"bins are given for the column {domain.name!r}, which holds categories. Leave out its bins: the leaves of "
            "its taxonomy are the cells."
        )
    values = domain.values.tolist()
    starts = [bisect_left(values, edge) for edge in _ascending(domain.name, edges, domain.kind)]
    return np.array(sorted({0, *starts, len(values), domain.size}), np.int64)


def _ascending(name: str, edges: Sequence[object], kind: str) -> list[float | Fraction]:
    found = [_number(str(edge), kind) for edge in edges]
    what = "number" if kind == "numeric" else "date of the form year-month-day"
    numbers = [edge for edge in found if edge is not None]
    if not found or len(numbers) < len(found):
        raise UsageError(f"the bins of the column {name!r} are not understood. Give each edge as a {what}.")
    if any(low >= high for low, high in pairwise(numbers)):
        raise UsageError(f"the bins of the column {name!r} do not ascend. Give each edge once, the smallest first.")
    return numbers


def _too_many_values(name: str, count: int) -> UsageError:
    return UsageError(
        f"the column {name!r} has {count:,} distinct numbers, more than the {MOST_VALUES:,} that can be cells of the "
        f"datacube. Name the edges of its bins: bins={{{name!r}: [10, 20, 30]}} in Python, --bins {name}=10,20,30 on "
        "the command line."
    )


def _number(text: str, kind: str) -> float | Fraction | None:
    """A number, or a date or moment in the unit of its domain; none for text that is not one."""
    try:
        if kind == "numeric":
            return int(text)
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return _finite_number(text) if kind == "numeric" else None
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return Fraction((moment - EPOCH) // MICROSECOND, DAY if kind == "date" else 1)


def _finite_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _class_spans(domains: Sequence[Domain], classes: ReleasedClasses) -> tuple[list[Integers], Integers]:
    """The codes that each distinct value of the release leaves open, and which of them each class shows."""
    spans = []
    shown = np.empty((len(classes.sizes), len(domains)), np.int64)
    for q, domain in enumerate(domains):
        used, shown[:, q] = np.unique(classes.shown[domain.name], return_inverse=True)
        values = classes.values[domain.name]
        found = _spans(domain, [values[place] for place in used.tolist()])
        empty = int(np.count_nonzero(found[:, 0] >= found[:, 1]))
        if empty:
            raise InputError(
                f"column {domain.name!r} of the release shows {empty:,} values that hold no value of the original. "
                "Check that both files and the policy belong together."
            )
        spans.append(found)
    return spans, shown


def _spans(domain: Domain, released: Sequence[object]) -> Integers:
    """The codes under each released value, the end excluded; an empty run for a value that is not of this domain."""
    known = domain.size - domain.has_null
    spans = np.zeros((len(released), 2), np.int64)
    nodes = domain.taxonomy.node_of_label() if isinstance(domain, CategoricalDomain) else {}
    values = domain.values.tolist() if isinstance(domain, NumericDomain) else []
    for place, value in enumerate(released):
        if value is None:
            spans[place] = known, domain.size
            continue
        label = str(value).lower() if isinstance(value, bool) else str(value)
        if label == WHOLE:
            spans[place] = 0, domain.size
        elif isinstance(domain, CategoricalDomain) and label in nodes:
            spans[place] = domain.taxonomy.first[nodes[label]], domain.taxonomy.last[nodes[label]] + 1
        elif isinstance(domain, NumericDomain):
            is_range = label[:1] == "[" and label[-1:] == "]" and ".." in label
            ends = label[1:-1].split("..", 1) if is_range else [label, label]
            low, high = (_number(end, domain.kind) for end in ends)
            if low is not None and high is not None:
                spans[place] = bisect_left(values, low), bisect_right(values, high)
    return spans


def _sensitive_numbers(
    name: str, column: pa.ChunkedArray, workload: Workload, decimal: str
) -> tuple[dict[str | None, int], int]:
    """The number of every sensitive value by its text, and how many numbers there are; values of a bin share one."""
    texts: set[str | None] = set()
    for chunk in column.chunks:
        encoded, _ = _encoded(chunk)
        texts.update(encoded)
        if chunk.null_count:
            texts.add(None)
    has_null = None in texts
    given = sorted(text for text in texts if text is not None)
    edges = workload.bins.get(name)
    numbers = [_number(text if decimal == "." else text.replace(decimal, "."), "numeric") for text in given]
    known = [number for number in numbers if number is not None]
    if edges is None:
        if workload.level is not None and len(known) == len(given) > MOST_VALUES:
            raise _too_many_values(name, len(given))
        ordered: list[str | None] = [*given, None] if has_null else [*given]
        return {text: number for number, text in enumerate(ordered)}, len(ordered)
    if len(known) < len(given):
        raise UsageError(
            f"bins are given for the column {name!r}, which does not hold numbers alone. Leave out its bins."
        )
    limits = _ascending(name, edges, "numeric")
    bins = [bisect_right(limits, number) for number in known]
    used = {place: number for number, place in enumerate(sorted(set(bins)))}
    found: dict[str | None, int] = {text: used[place] for text, place in zip(given, bins, strict=True)}
    if has_null:
        found[None] = len(used)
    return found, len(used) + has_null


def _numbers(chunks: Iterable[pa.Array], number: Mapping[str | None, int]) -> Integers:
    """The number of each record's value, -1 for one that has none."""
    parts = [np.empty(0, np.int64)]
    for chunk in chunks:
        texts, indices = _encoded(chunk)
        table = np.array([number.get(text, -1) for text in (*texts, None)], np.int64)
        parts.append(table[indices])
    return np.concatenate(parts)


def _encoded(chunk: pa.Array) -> tuple[list[str | None], NDArray[Any]]:
    """The distinct values as a CSV file would have them, and each record's place among them; null is the one after."""
    encoded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
    values = encoded.dictionary
    try:
        texts = values.cast(pa.string()).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        texts = [None if value is None else str(value) for value in values.to_pylist()]
    if pa.types.is_floating(values.type):
        texts = [None if text == "nan" else text for text in texts]
    return texts, to_numpy(encoded.indices, null=len(texts))


def _generalized(
    classes: ReleasedClasses, spans: Sequence[Integers], shown: Integers, sensitive: Integers, values: int
) -> Boxes:
    """A box for every class and sensitive value in it."""
    assert classes.class_of_row is not None
    pairs, count = np.unique(classes.class_of_row * values + sensitive, return_counts=True)
    return Boxes(shown[pairs // values], spans, pairs % values, count.astype(np.float64))


def _with_suppressed(boxes: Boxes, domains: Sequence[Domain], original: Originals, suppressed: int) -> Boxes:
    """The boxes, and for records that were left out the whole domain with every sensitive value alike."""
    if not suppressed:
        return boxes
    spans = [np.vstack([span, [[0, domain.size]]]) for span, domain in zip(boxes.spans, domains, strict=True)]
    whole = np.array([[len(span) - 1 for span in spans]] * original.values, np.int64)
    return Boxes(
        np.vstack([boxes.shown, whole]),
        spans,
        np.append(boxes.sensitive, np.arange(original.values)),
        np.append(boxes.weight, np.full(original.values, suppressed / original.values)),
    )


# ---- the datacube ----


@dataclass(frozen=True)
class _Pieces:
    """Released values as runs of cells, all quasi-identifiers in one table: that of q starts at offsets[q].

    A run of codes fills the cells within it and parts of the cells at its ends, so it has up to three pieces of an even
    density, the share of a record on one code. ``low`` and ``end`` are where the first begins and the last ends.
    """

    offsets: list[int]
    first: Integers
    last: Integers
    density: Floats
    count: Integers
    low: Integers
    end: Integers


def datacube(
    original: Originals, boxes: Boxes, domains: Sequence[Domain], bounds: Sequence[Integers], level: int
) -> list[GroupBy]:
    """The divergence of every group-by of ``level`` quasi-identifiers. ``bounds`` are those of the cells."""
    cells = [
        np.repeat(np.arange(len(bound) - 1), np.diff(bound))[original.codes[:, q]] for q, bound in enumerate(bounds)
    ]
    pieces = _pieces(boxes.spans, bounds)

    def divergence(columns: tuple[int, ...]) -> float:
        return _divergence(original, boxes, cells, bounds, pieces, columns)

    chosen = list(combinations(range(len(domains)), level))
    wide = [columns for columns in chosen if _cell_count(bounds, columns) * thread_count() > LARGEST_CUBE]
    narrow = [columns for columns in chosen if _cell_count(bounds, columns) * thread_count() <= LARGEST_CUBE]
    found = dict(zip(narrow, in_threads(divergence, narrow), strict=True))
    found.update((columns, divergence(columns)) for columns in wide)
    return [GroupBy(tuple(domains[q].name for q in columns), found[columns]) for columns in chosen]


def _pieces(spans: Sequence[Integers], bounds: Sequence[Integers]) -> _Pieces:
    offsets = np.cumsum([0, *(len(span) for span in spans)]).tolist()
    total = offsets[-1]
    first, last = np.zeros((total, PIECES), np.int64), np.zeros((total, PIECES), np.int64)
    density, count = np.zeros((total, PIECES)), np.zeros(total, np.int64)
    low, end = np.empty(total, np.int64), np.empty(total, np.int64)
    for offset, span, bound in zip(offsets, spans, bounds, strict=False):
        for label, (start, stop) in enumerate(span.tolist(), offset):
            low[label] = np.searchsorted(bound, start, "right") - 1
            end[label] = np.searchsorted(bound, stop, "left")
            for cell, after, share in _runs(bound, start, stop, int(low[label]), int(end[label])):
                place = count[label]
                first[label, place], last[label, place] = cell, after
                density[label, place] = share / (stop - start)
                count[label] += 1
    return _Pieces(offsets, first, last, density, count, low, end)


def _runs(bound: Integers, start: int, stop: int, low: int, end: int) -> list[tuple[int, int, float]]:
    """The cells ``low`` to ``end`` - 1 as runs that the codes ``start`` to ``stop`` - 1 fill to the same share."""
    runs: list[tuple[int, int, float]] = []
    whole_from, whole_to = low + (bound[low] < start), end - (bound[end] > stop)
    if whole_from < whole_to:
        runs.append((whole_from, whole_to, 1.0))
    for cell in sorted({low, end - 1}):
        if not whole_from <= cell < whole_to:
            inside = min(stop, bound[cell + 1]) - max(start, bound[cell])
            runs.append((cell, cell + 1, float(inside / (bound[cell + 1] - bound[cell]))))
    return runs


def _cell_count(bounds: Sequence[Integers], columns: Sequence[int]) -> int:
    return math.prod(len(bounds[q]) - 1 for q in columns)


def _divergence(
    original: Originals,
    boxes: Boxes,
    cells: Sequence[Integers],
    bounds: Sequence[Integers],
    pieces: _Pieces,
    columns: tuple[int, ...],
) -> float:
    """The divergence of one group-by."""
    sizes = [len(bounds[q]) - 1 for q in columns]
    keys = [cells[q] for q in columns]
    point_starts, points, counts = _grouped(original.sensitive, original.values, keys, sizes, None)
    labels = [len(boxes.spans[q]) for q in columns]
    keys = [boxes.shown[:, q] for q in columns]
    box_starts, shown, weight = _grouped(boxes.sensitive, original.values, keys, labels, boxes.weight)
    shown += np.array([pieces.offsets[q] for q in columns])
    table = (pieces.first, pieces.last, pieces.density, pieces.count)
    if _sums_pay(sizes, np.diff(point_starts), np.diff(box_starts)):
        axis_sizes, axes = np.array(sizes, np.int64), _axes(sizes)
        estimates = estimates_by_sums(point_starts, points, box_starts, shown, weight, *table, axis_sizes, axes)
    else:
        estimates = estimates_by_look(point_starts, points, box_starts, shown, weight, *table, pieces.low, pieces.end)
    for axis, q in enumerate(columns):
        estimates *= np.diff(bounds[q])[points[:, axis]]
    if not np.all(estimates > 0):
        return math.inf
    # Estimates are rounded to units, which may leave a hair less than nothing.
    return max(float(np.sum(counts / len(original.codes) * np.log(counts / estimates))), 0.0)


def _sums_pay(sizes: Sequence[int], points: Integers, boxes: Integers) -> bool:
    """Whether sums over all cells are less work than a look at each box, given the numbers by sensitive value.

    It depends on the tables alone, not on the machine, so a measure is the same everywhere.
    """
    cells = math.prod(sizes)
    summing = int(np.count_nonzero(points)) * cells * len(sizes) + int(boxes.sum()) * 2 ** _axes(sizes)
    return cells <= LARGEST_CUBE and summing <= int(points @ boxes)


def _axes(sizes: Sequence[int]) -> int:
    return sum(size > 1 for size in sizes)


def _grouped(
    sensitive: Integers, values: int, keys: Sequence[Integers], sizes: Sequence[int], weight: Floats | None
) -> tuple[Integers, Integers, Floats]:
    """Equal rows made one, by sensitive value: where each value starts, the keys of the rows, and their weight."""
    fields = [Field(sensitive.view(np.uint64), bits_for(values))]
    fields += [Field(key.view(np.uint64), bits_for(size)) for key, size in zip(keys, sizes, strict=True)]
    line = sort_rows(fields, len(sensitive))
    rows, begins = line.rows[line.starts[:-1]], line.starts[:-1]
    total = np.diff(line.starts).astype(np.float64) if weight is None else np.add.reduceat(weight[line.rows], begins)
    starts = np.searchsorted(sensitive[rows], np.arange(values + 1))
    return starts, np.stack([key[rows] for key in keys], axis=1), total


@kernel
def estimates_by_sums(  # type: ignore[no-untyped-def]
    point_starts, points, box_starts, shown, weight, first, last, density, count, sizes, axes
):
    """The estimated records on each code of the cells ``points``: a box adds at its corners, sums do the rest.

    point_starts, box_starts: int64[m + 1], by sensitive value; points, shown: int64[n, d]; weight: float64[boxes];
    first, last, density, count: tables of pieces by label; axes: how many of sizes: int64[d] are above 1.
    Adds whole units, so that what a box adds at one corner and takes away at another is exactly the same.
    """
    dimensions = len(sizes)
    strides = np.ones(dimensions, np.int64)
    for axis in range(dimensions - 1, 0, -1):
        strides[axis - 1] = strides[axis] * sizes[axis]
    cube = np.empty(strides[0] * sizes[0], np.int64)
    places = np.empty(1 << axes, np.int64)
    units = np.empty(1 << axes, np.int64)
    picked = np.zeros(dimensions, np.int64)
    estimates = np.zeros(len(points))
    for value in range(len(point_starts) - 1):
        if point_starts[value] == point_starts[value + 1]:
            continue
        largest = 0.0  # no cell can have more than all boxes at their densest
        for box in range(box_starts[value], box_starts[value + 1]):
            highest = weight[box]
            for axis in range(dimensions):
                highest *= density[shown[box, axis]].max()
            largest += highest
        if largest == 0.0:
            continue
        scale = 2.0 ** (HEADROOM - math.ceil(math.log2(largest)))
        cube[:] = 0
        for box in range(box_starts[value], box_starts[value + 1]):
            picked[:] = 0
            axis = 0
            while axis < dimensions:
                amount = weight[box] * scale
                for axis in range(dimensions):
                    amount *= density[shown[box, axis], picked[axis]]
                corners = 1
                places[0] = 0
                units[0] = max(round(amount), 1)
                for axis in range(dimensions):
                    label, piece = shown[box, axis], picked[axis]
                    step = first[label, piece] * strides[axis]
                    if last[label, piece] < sizes[axis]:
                        for corner in range(corners):
                            places[corners + corner] = places[corner] + last[label, piece] * strides[axis]
                            units[corners + corner] = -units[corner]
                    for corner in range(corners):
                        places[corner] += step
                    if last[label, piece] < sizes[axis]:
                        corners *= 2
                for corner in range(corners):
                    cube[places[corner]] += units[corner]
                axis = 0  # the next choice of a piece on every axis
                while axis < dimensions:
                    picked[axis] += 1
                    if picked[axis] < count[shown[box, axis]]:
                        break
                    picked[axis] = 0
                    axis += 1
        for axis in range(dimensions):
            stride, block = strides[axis], strides[axis] * sizes[axis]
            for begin in range(0, len(cube), block):
                for cell in range(begin + stride, begin + block):
                    cube[cell] += cube[cell - stride]
        for point in range(point_starts[value], point_starts[value + 1]):
            cell = 0
            for axis in range(dimensions):
                cell += points[point, axis] * strides[axis]
            estimates[point] = cube[cell] / scale
    return estimates


@kernel
def estimates_by_look(  # type: ignore[no-untyped-def]
    point_starts, points, box_starts, shown, weight, first, last, density, count, low, end
):
    """The same estimates where each point looks at each box; low, end: int64[labels], the cells a label reaches."""
    dimensions = points.shape[1]
    estimates = np.zeros(len(points))
    for value in range(len(point_starts) - 1):
        start, stop = box_starts[value], box_starts[value + 1]
        lows, ends = np.empty((stop - start, dimensions), np.int64), np.empty((stop - start, dimensions), np.int64)
        for box in range(stop - start):
            for axis in range(dimensions):
                lows[box, axis] = low[shown[start + box, axis]]
                ends[box, axis] = end[shown[start + box, axis]]
        for point in range(point_starts[value], point_starts[value + 1]):
            for box in range(stop - start):
                inside = True
                for axis in range(dimensions):
                    if points[point, axis] < lows[box, axis] or points[point, axis] >= ends[box, axis]:
                        inside = False
                        break
                if inside:
                    amount = weight[start + box]
                    for axis in range(dimensions):
                        label, cell = shown[start + box, axis], points[point, axis]
                        for piece in range(count[label]):
                            if first[label, piece] <= cell < last[label, piece]:
                                amount *= density[label, piece]
                    estimates[point] += amount
    return estimates


# ---- range queries ----


def range_accuracy(original: Originals, boxes: Boxes, domains: Sequence[Domain], workload: Workload) -> RangeAccuracy:
    """Ask random range-count queries.

    A query has a run of codes on each of its quasi-identifiers and a set of sensitive values. Each takes the share
    selectivity ** (1 / (quasi-identifiers + 1)) of its domain, rounded up, so that a table without dependencies has
    about the share ``selectivity`` of its records in the answer. Null is in no run.
    """
    assert workload.ranges is not None
    attributes = workload.range_attributes or len(domains)
    share = workload.selectivity ** (1 / (attributes + 1))
    random = np.random.default_rng(workload.seed)
    columns = np.empty((workload.ranges, attributes), np.int64)
    low, high = np.empty_like(columns), np.empty_like(columns)
    wanted = np.zeros((workload.ranges, original.values), np.bool_)
    for query in range(workload.ranges):
        columns[query] = np.sort(random.permutation(len(domains))[:attributes])
        for place, q in enumerate(columns[query].tolist()):
            # A column of nulls alone has nothing to ask for: its run is all there is.
            known = (domains[q].size - domains[q].has_null) or domains[q].size
            length = math.ceil(known * share)
            low[query, place] = random.integers(known - length + 1)
            high[query, place] = low[query, place] + length
        wanted[query, random.permutation(original.values)[: math.ceil(original.values * share)]] = True
    exact = _as_boxes(original, domains)

    def answers(query: int) -> tuple[float, float]:
        asked = (columns[query], low[query], high[query], wanted[query])
        return range_count(exact, *asked), range_count(boxes, *asked)

    actual, estimate = np.array(in_threads(answers, range(workload.ranges))).T
    floor = max(1.0, FLOOR * len(original.codes))
    errors = np.abs(estimate - actual) / np.maximum(actual, floor)
    return RangeAccuracy(
        workload.ranges,
        workload.selectivity,
        attributes,
        workload.seed,
        floor,
        float(actual.mean()) / len(original.codes),
        float(errors.mean()),
        float(np.median(errors)),
    )


def _as_boxes(original: Originals, domains: Sequence[Domain]) -> Boxes:
    """The distinct records of the original, each a box of one code on every quasi-identifier."""
    sizes = [domain.size for domain in domains]
    keys = [original.codes[:, q].astype(np.int64) for q in range(len(domains))]
    starts, rows, count = _grouped(original.sensitive, original.values, keys, sizes, None)
    spans = [np.stack([np.arange(size), np.arange(size) + 1], axis=1) for size in sizes]
    return Boxes(rows, spans, np.repeat(np.arange(original.values), np.diff(starts)), count)


def range_count(boxes: Boxes, columns: Integers, low: Integers, high: Integers, wanted: NDArray[np.bool_]) -> float:
    """The records within a query, each box counted by the share of its codes that the query has."""
    shares, offsets = [], np.zeros(len(columns), np.int64)
    for place, q in enumerate(columns.tolist()):
        start, stop = boxes.spans[q].T
        shared = np.minimum(stop, high[place]) - np.maximum(start, low[place])
        shares.append(np.maximum(shared, 0) / (stop - start))
        offsets[place + 1 :] += len(shares[place])
    found: float = shared_weight(
        boxes.shown, boxes.sensitive, boxes.weight, columns, offsets, np.concatenate(shares), wanted
    )
    return found


@kernel
def shared_weight(shown, sensitive, weight, columns, offsets, shares, wanted):  # type: ignore[no-untyped-def]
    """The weight of all boxes times their shares, for the sensitive values that are wanted.

    shown: int64[n, d]; sensitive: int64[n]; weight: float64[n]; columns, offsets: int64[attributes], where the shares
    of what a column shows begin in shares: float64[labels]; wanted: bool[m].
    """
    total = 0.0
    for box in range(len(shown)):
        amount = weight[box] * wanted[sensitive[box]]
        for place in range(len(columns)):
            amount *= shares[offsets[place] + shown[box, columns[place]]]
        total += amount
    return total


def _finite(number: float | None) -> float | None:
    return None if number is None or math.isinf(number) else number
