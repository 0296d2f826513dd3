"""The private report: the counts of the original beside those of the release. It must not be shared.

The release is read as any reader would: a range or group stands evenly for all values that it leaves open.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.memory.coded_table import encode, profile, scan
from sfumato.pictures.axes import DAY, Axis
from sfumato.pictures.bars import Bar, bars, histogram
from sfumato.pictures.heat_map import difference_map
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.report.figures import TITLE, cross_table, figure
from sfumato.report.html import (
    Markup,
    element,
    folded,
    joined,
    name,
    name_list,
    preformatted,
    section,
    shortened,
    table,
)
from sfumato.report.page import page
from sfumato.report.release import check_report
from sfumato.report.release_facts import FIELDS, MOST_COLUMNS, MOST_CROSSED, MOST_PAIRS, Pair
from sfumato.report.result_files import write_text
from sfumato.report.sentences import percent
from sfumato.report.style import RELEASE_STYLE
from sfumato.report.value_cells import NULL, ValueCells, cross_tabulate, edges_of
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.tables.coding.value_order import is_missing, text_of
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.taxonomy import Taxonomy

HEADING = "Before and after: do not share"
WARNING = (
    "Do not share this page. It holds counts of the original table that the release does not show, and a rare value "
    "may reveal whose it is."
)
BINS, NAMES = 24, 12


@dataclass(frozen=True)
class OriginalCells:
    """The cells of a quasi-identifier of the original, and the share of each released value in these cells."""

    name: str
    cells: ValueCells = field(repr=False)
    cell_of_code: NDArray[np.int64] = field(repr=False)
    """The cell of each code of the original."""
    kind: str

    def counts(self, codes: NDArray[np.integer]) -> NDArray[np.float64]:
        """The number of records in each cell."""
        return np.bincount(self.cell_of_code[codes], minlength=len(self.cells.names)).astype(np.float64)


@dataclass(frozen=True)
class ColumnComparison:
    """The number of records in every cell of a column, in the original and in the release."""

    name: str
    kind: str
    cells: ValueCells = field(repr=False)
    before: NDArray[np.float64] = field(repr=False)
    after: NDArray[np.float64] = field(repr=False)

    @property
    def moved(self) -> float:
        """The share of records that would have to move to another cell to make both distributions equal."""
        shares = [counts / max(float(counts.sum()), 1.0) for counts in (self.before, self.after)]
        return float(np.abs(shares[0] - shares[1]).sum()) / 2


class PrivateReport:
    """The original beside the release. ``write`` saves it as a file that only its owner can read."""

    def __init__(
        self,
        columns: Sequence[ColumnComparison],
        pairs: Sequence[Pair],
        records: tuple[int, int],
        figures: Mapping[str, Any],
        warnings: Sequence[str],
        further: Sequence[str],
        *,
        trial: bool = False,
    ) -> None:
        self._columns = tuple(columns)
        self._pairs = tuple(pairs)
        self._records = records
        self._figures = figures
        self._warnings = tuple(warnings)
        self._further = tuple(further)
        self._trial = trial

    def page(self) -> str:
        """The report as one offline HTML page."""
        before, after = self._records
        what = "trial, which is not to be published, has" if self._trial else "release"
        counts = f"The original has {before:,} records, the {what} {after:,}."
        warnings = [element("p", f"{text[:1].upper()}{text[1:]}.", class_="warning") for text in self._warnings]
        rows = [(name(column.name), f"{100 * column.moved:.1f}%") for column in self._columns]
        moved = table("How far each distribution moved", ("column", "records in another cell than before"), rows)
        about = (
            "Blue is the original, orange the release. Ranges and groups are spread evenly over all values that they "
            "leave open, as a reader of the release would do."
        )
        further = element("p", name_list(self._further, 100), " are not drawn.", class_="soft") if self._further else ""
        sections = [
            section("summary", "In short", element("p", counts), *warnings, moved),
            section("losses", "What was lost, measured against the original", *self._losses()),
            section(
                "distributions",
                "Every column, before and after",
                element("p", about),
                element("div", *map(_distribution, self._columns), class_="cards"),
                further,
            ),
            section(
                "differences",
                "Pairs of columns: where the release has more or fewer records",
                element("p", "In percentage points of all records. Orange: more records in the release; blue: fewer."),
                element("div", *map(_difference, self._pairs), class_="cards"),
            ),
        ]
        head = element("header", element("p", WARNING, class_="secret"), element("h1", HEADING))
        return page(HEADING, joined([head, element("main", *sections)]), RELEASE_STYLE)

    def _losses(self) -> list[Markup]:
        """What the certificate and the shareable report do not have, because it takes the original to know it."""
        lost = {"all columns (GCP)": self._figures["gcp"], **self._figures["columns"]}
        heads = ("column", "share of its original range or taxonomy that a value leaves open")
        rows = [(name(column), percent(loss)) for column, loss in lost.items()]
        content = json.dumps(self._figures, indent=2, ensure_ascii=False)
        about = "The certificate and the report that may be shared have none of these figures. Keep them private."
        return [
            element("p", about),
            table("Information lost", heads, rows),
            folded("All private figures", preformatted(content, "All private figures")),
        ]

    def write(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the page, whole or not at all, so that only its owner can read it.

        With ``force`` it replaces any file.
        """
        target = Path(path)
        check_report(target, force=force)
        write_text(self.page(), target, private=True)
        return target

    def __repr__(self) -> str:
        return f"<PrivateReport of {len(self._columns):,} columns>"


def private_report(
    original: Source,
    source: Source,
    policy: Policy,
    taxonomies: Mapping[str, Taxonomy],
    figures: Mapping[str, Any],
    warnings: Sequence[str] = (),
    *,
    trial: bool = False,
) -> PrivateReport:
    """Compare a release with its original. Sensitive columns are released unchanged and need no comparison.

    ``figures`` are those of its summary that may not be published. ``trial``: whether the release is a trial.
    """
    quasi = list(policy.quasi_identifiers)[:MOST_COLUMNS]
    progress = Progress()
    scanned = scan(original, list(policy.quasi_identifiers), progress)
    encoded = encode(scanned, profile(scanned, policy, taxonomies, progress), progress)
    attributes = {domain.name: q for q, domain in enumerate(encoded.domains)}
    classes = find_classes(source, quasi)
    columns: list[ColumnComparison] = []
    coarse: dict[str, OriginalCells] = {}
    for column in quasi:
        domain = encoded.domains[attributes[column]]
        codes = encoded.codes[:, attributes[column]]
        values = classes.values[column]
        labels = [None if is_missing(value, policy.input.nulls) else text_of(value) for value in values]
        counts = np.bincount(codes, minlength=domain.size)
        coarse[column] = _original_cells(domain, labels, counts, FIELDS)
        records = np.zeros(len(labels), np.int64)
        np.add.at(records, classes.shown[column], classes.sizes)
        fine = _original_cells(domain, labels, counts, BINS if isinstance(domain, NumericDomain) else NAMES)
        columns.append(ColumnComparison(column, fine.kind, fine.cells, fine.counts(codes), fine.cells.totals(records)))
    pairs = []
    for x_column, y_column in combinations(sorted(columns, key=lambda column: column.moved)[:MOST_CROSSED], 2):
        x, y = coarse[x_column.name], coarse[y_column.name]
        after = cross_tabulate(x.cells, classes.shown[x.name], y.cells, classes.shown[y.name], classes.sizes)
        x_cell = x.cell_of_code[encoded.codes[:, attributes[x.name]]]
        y_cell = y.cell_of_code[encoded.codes[:, attributes[y.name]]]
        both = x_cell * len(y.cells.names) + y_cell
        before = np.bincount(both, minlength=after.size).reshape(after.shape)
        points = 100 * (after / max(after.sum(), 1) - before / max(before.sum(), 1))
        pairs.append(Pair(x.name, y.name, x.cells.names, y.cells.names, points))
    pairs.sort(key=lambda pair: -float(np.abs(pair.records).sum()))
    further = list(policy.quasi_identifiers)[MOST_COLUMNS:]
    counts_of_both = (encoded.count, classes.records)
    return PrivateReport(columns, pairs[:MOST_PAIRS], counts_of_both, figures, warnings, further, trial=trial)


def _original_cells(
    domain: Domain, labels: Sequence[str | None], counts: NDArray[np.int64], most: int
) -> OriginalCells:
    """Cells over the codes of the original, at most ``most`` beside null, and the share of each label in every cell."""
    assert isinstance(domain, NumericDomain | CategoricalDomain)
    null = domain.size - 1 if domain.has_null else domain.size
    cell_of_code = np.zeros(domain.size, np.int64)
    edges: NDArray[np.float64] | None = None
    if isinstance(domain, NumericDomain) and null:
        edges, names = _edges(domain, most)
        positions = _positions(domain)
        cell_of_code[:null] = np.clip(np.searchsorted(edges, positions, side="right") - 1, 0, len(names) - 1)
    elif isinstance(domain, CategoricalDomain):
        order = np.argsort(-counts[:null], kind="stable")
        kept = order if null <= most else order[: most - 1]
        names = [domain.taxonomy.leaves[leaf] for leaf in kept.tolist()]
        cell_of_code[:null] = len(names)
        cell_of_code[kept] = np.arange(len(names))
        if len(kept) < null:
            names.append(f"{null - len(kept):,} others")
    else:
        names = []
    special = 0
    if domain.has_null:
        cell_of_code[null] = len(names)
        names.append(NULL)
        special = 1
    spread = _spread(domain, labels, cell_of_code, len(names), edges)
    every = np.arange(len(labels))
    cells = ValueCells(names, special, np.full(len(labels), -1), every, spread, edges)
    return OriginalCells(domain.name, cells, cell_of_code, domain.kind)


def _spread(
    domain: NumericDomain | CategoricalDomain,
    labels: Sequence[str | None],
    cell_of_code: NDArray[np.int64],
    count: int,
    edges: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """The share of each label in every cell: float64[labels, count].

    A label is spread evenly over the values that it leaves open: categories of the taxonomy, or numbers by width.
    """
    weight = np.ones(domain.size)
    if isinstance(domain, NumericDomain) and edges is not None:
        null = domain.size - 1 if domain.has_null else domain.size
        positions = _positions(domain)
        # A value stands for the range up to halfway to its neighbours.
        middles = (positions[1:] + positions[:-1]) / 2
        ends = np.concatenate([positions[:1], middles, positions[-1:]])
        weight[:null] = np.diff(ends) if null > 1 else 1.0
        weight[null:] = 0.0  # a reader who sees * would not guess null
    cumulative = np.zeros((domain.size + 1, count))
    for cell in range(count):
        cumulative[1:, cell] = np.cumsum(np.where(cell_of_code == cell, weight, 0.0))
    spans = domain.spans(labels)
    shares = cumulative[spans[:, 1]] - cumulative[spans[:, 0]]
    single = shares.sum(1) <= 0  # null, or a single value
    shares[single, cell_of_code[np.minimum(spans[single, 0], domain.size - 1)]] = 1.0
    return np.asarray(shares / shares.sum(1, keepdims=True))


def _positions(domain: NumericDomain) -> NDArray[np.float64]:
    """The positions of the values on an axis; dates in milliseconds."""
    scale = {"date": DAY, "moment": 0.001}.get(domain.kind, 1.0)
    return domain.numbers() * scale


def _edges(domain: NumericDomain, most: int) -> tuple[NDArray[np.float64], list[str]]:
    positions = _positions(domain)
    dates = domain.kind in ("date", "moment")
    whole = not dates and bool((positions % 1 == 0).all())
    half = 0.5 if whole else 0.0
    low, high = float(positions[0]) - half, float(positions[-1]) + half
    if dates:
        high += DAY if domain.kind == "date" else 1.0
    elif low == high:
        low, high = low - max(abs(low), 1.0) / 2, high + max(abs(high), 1.0) / 2
    nothing = np.empty((0, 2))
    axis = Axis(
        name="", kind="date" if dates else "numeric", length=1, low=low, high=high, end=high, spans=nothing, whole=whole
    )
    return edges_of(axis, most)


def _distribution(column: ColumnComparison) -> Markup:
    """One column, with both distributions on one axis."""
    title = shortened(column.name, TITLE)
    scaled = column.after * (column.before.sum() / max(float(column.after.sum()), 1.0))
    counts = list(zip(column.cells.names, column.before.tolist(), scaled.tolist(), strict=True))
    listing = folded(
        "As a table",
        table(
            "Records of the original, and of the release scaled to as many",
            ("value", "original", "release"),
            [(name(text), f"{round(before):,}", f"{round(after):,}") for text, before, after in counts],
        ),
    )
    caption = f"{100 * column.moved:.1f}% of the records would have to move to make both equal."
    if column.cells.edges is None:
        rows = [Bar(shortened(text, 60), after, before=before) for text, before, after in counts]
        return figure(bars(rows, title=title, subtitle=["orange: release; blue: original"]), caption, listing)
    inside = len(column.cells.edges) - 1
    picture = histogram(
        column.cells.edges.tolist(),
        scaled[:inside].tolist(),
        title=title,
        x_title=title,
        subtitle=["bars: release; blue line: original"],
        description=f"Records by value before and after. {caption}",
        before=column.before[:inside].tolist(),
        along="date" if column.kind in ("date", "moment") else "numeric",
    )
    return figure(picture, caption, listing)


def _difference(pair: Pair) -> Markup:
    x_names, y_names = ([shortened(text, 40) for text in names] for names in (pair.x_names, pair.y_names))
    picture = difference_map(shortened(pair.x, TITLE), x_names, shortened(pair.y, TITLE), y_names, pair.records.T)
    return figure(picture, "", cross_table(pair, "Percentage points, release minus original", "{:+.2f}".format))
