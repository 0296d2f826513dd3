"""Before and after: the counts of the original beside those of the release. Not to be shared.

What the release says is taken as a reader would take it: a range or group stands evenly for all that it leaves open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.memory.coded_table import encode, profile, scan
from sfumato.pictures.axes import DAY, Axis
from sfumato.pictures.bars import Bar, bars, histogram
from sfumato.pictures.heat_map import difference_map
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.report.figures import TITLE, figure
from sfumato.report.html import Markup, cut, element, folded, joined, name, named, table
from sfumato.report.page import page
from sfumato.report.release import check_report, write_page
from sfumato.report.release_facts import FIELDS, MOST_COLUMNS, MOST_CROSSED, MOST_PAIRS, Pair
from sfumato.report.style import RELEASE_STYLE
from sfumato.report.value_cells import NULL, ValueCells, crossed, edges_of
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.tables.coding.value_order import is_missing, text_of
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.taxonomy import Taxonomy

HEADING = "Before and after: do not share"
WARNING = (
    "Do not share this page. It holds counts of the original table that the release does not show; a rare value here "
    "may tell whose it is."
)
BINS, NAMES = 24, 12


@dataclass(frozen=True)
class Before:
    """A quasi-identifier of the original in cells, and how the released values fall into the same cells."""

    name: str
    cells: ValueCells = field(repr=False)
    place: NDArray[np.int64] = field(repr=False)
    """The cell of each code of the original."""
    kind: str

    def counts(self, codes: NDArray[np.integer]) -> NDArray[np.float64]:
        return np.bincount(self.place[codes], minlength=len(self.cells.names)).astype(np.float64)


@dataclass(frozen=True)
class Compared:
    """The records of every cell before and after."""

    name: str
    kind: str
    cells: ValueCells = field(repr=False)
    before: NDArray[np.float64] = field(repr=False)
    after: NDArray[np.float64] = field(repr=False)

    @property
    def moved(self) -> float:
        """The share of the records that would have to move to another cell to make both equal."""
        shares = [counts / max(float(counts.sum()), 1.0) for counts in (self.before, self.after)]
        return float(np.abs(shares[0] - shares[1]).sum()) / 2


class PrivateReport:
    """Before and after. ``write`` puts it into a file for its owner alone."""

    def __init__(
        self,
        columns: Sequence[Compared],
        pairs: Sequence[Pair],
        records: tuple[int, int],
        warnings: Sequence[str],
        further: Sequence[str],
    ) -> None:
        self._columns = tuple(columns)
        self._pairs = tuple(pairs)
        self._records = records
        self._warnings = tuple(warnings)
        self._further = tuple(further)

    def page(self) -> str:
        """One offline HTML page."""
        before, after = self._records
        said = f"{before:,} records in the original, {after:,} in the release."
        warnings = [element("p", f"{text[:1].upper()}{text[1:]}.", class_="warning") for text in self._warnings]
        rows = [(name(one.name), f"{100 * one.moved:.1f}%") for one in self._columns]
        moved = table("How far each distribution moved", ("column", "records in another cell than before"), rows)
        about = (
            "Blue is the original, orange what the release says. Ranges and groups are spread evenly over all that "
            "they leave open, which is what a reader of the release can do."
        )
        further = element("p", named(self._further, 100), " are not drawn.", class_="soft") if self._further else ""
        sections = [
            _section("summary", "In short", element("p", said), *warnings, moved),
            _section(
                "distributions",
                "Every column, before and after",
                element("p", about),
                element("div", *map(_distribution, self._columns), class_="cards"),
                further,
            ),
            _section(
                "differences",
                "Pairs of columns: where the release says more or less",
                element(
                    "p", "In percentage points of all records. Orange: the release says it more often; blue: less."
                ),
                element("div", *map(_difference, self._pairs), class_="cards"),
            ),
        ]
        head = element("header", element("p", WARNING, class_="secret"), element("h1", HEADING))
        return page(HEADING, joined([head, element("main", *sections)]), RELEASE_STYLE)

    def write(self, path: str | Path) -> Path:
        """Write the page, whole or not at all, so that only its owner can read it."""
        target = Path(path)
        check_report(target)
        write_page(self.page(), target, private=True)
        return target

    def __repr__(self) -> str:
        return f"<PrivateReport of {len(self._columns):,} columns>"


def private_report(
    original: Source,
    source: Source,
    policy: Policy,
    taxonomies: Mapping[str, Taxonomy],
    warnings: Sequence[str] = (),
) -> PrivateReport:
    """Compare a release with its original. Sensitive columns are released as they are and need no comparison."""
    quasi = list(policy.quasi_identifiers)[:MOST_COLUMNS]
    progress = Progress()
    scanned = scan(original, list(policy.quasi_identifiers), progress)
    encoded = encode(scanned, profile(scanned, policy, taxonomies, progress), progress)
    domains = {domain.name: (place, domain) for place, domain in enumerate(encoded.domains)}
    classes = find_classes(source, quasi)
    columns: list[Compared] = []
    coarse: dict[str, Before] = {}
    for column in quasi:
        place, domain = domains[column]
        values = classes.values[column]
        labels = [None if is_missing(value, policy.input.nulls) else text_of(value) for value in values]
        codes = encoded.codes[:, place]
        counts = np.bincount(codes, minlength=domain.size)
        coarse[column] = _before(domain, labels, counts, FIELDS)
        records = np.zeros(len(labels), np.int64)
        np.add.at(records, classes.shown[column], classes.sizes)
        found = _before(domain, labels, counts, BINS if isinstance(domain, NumericDomain) else NAMES)
        columns.append(Compared(column, found.kind, found.cells, found.counts(codes), found.cells.totals(records)))
    pairs = []
    for one, other in combinations(sorted(columns, key=lambda found: found.moved)[:MOST_CROSSED], 2):
        first, then = coarse[one.name], coarse[other.name]
        after = crossed(first.cells, classes.shown[one.name], then.cells, classes.shown[other.name], classes.sizes)
        wide = len(then.cells.names)
        both = (
            first.place[encoded.codes[:, domains[one.name][0]]] * wide
            + then.place[encoded.codes[:, domains[other.name][0]]]
        )
        before = np.bincount(both, minlength=after.size).reshape(after.shape)
        points = 100 * (after / max(after.sum(), 1) - before / max(before.sum(), 1))
        pairs.append(Pair(one.name, other.name, first.cells.names, then.cells.names, points))
    pairs.sort(key=lambda pair: -float(np.abs(pair.records).sum()))
    further = list(policy.quasi_identifiers)[MOST_COLUMNS:]
    return PrivateReport(columns, pairs[:MOST_PAIRS], (encoded.count, classes.records), warnings, further)


def _before(domain: Domain, labels: Sequence[str | None], counts: NDArray[np.int64], most: int) -> Before:
    """Cells over the codes of the original, and the share of each released label in every cell."""
    assert isinstance(domain, NumericDomain | CategoricalDomain)
    null = domain.size - 1 if domain.has_null else domain.size
    place = np.zeros(domain.size, np.int64)
    edges: NDArray[np.float64] | None = None
    if isinstance(domain, NumericDomain) and null:
        edges, names = _edges(domain, most)
        positions = _positions(domain)
        place[:null] = np.clip(np.searchsorted(edges, positions, side="right") - 1, 0, len(names) - 1)
    elif isinstance(domain, CategoricalDomain):
        order = np.argsort(-counts[:null], kind="stable")
        kept = order if null <= most else order[: most - 1]
        names = [domain.taxonomy.leaves[leaf] for leaf in kept.tolist()]
        place[:null] = len(names)
        place[kept] = np.arange(len(names))
        if len(kept) < null:
            names.append(f"{null - len(kept):,} others")
    else:
        names = []
    asides = 0
    if domain.has_null:
        place[null] = len(names)
        names.append(NULL)
        asides = 1
    spread = _spread(domain, labels, place, len(names), edges)
    every = np.arange(len(labels))
    cells = ValueCells(names, asides, np.full(len(labels), -1), every, spread, edges)
    return Before(domain.name, cells, place, domain.kind)


def _spread(
    domain: NumericDomain | CategoricalDomain,
    labels: Sequence[str | None],
    place: NDArray[np.int64],
    count: int,
    edges: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Each label evenly over the values that it leaves open: of categories those of the taxonomy, else by width."""
    weight = np.ones(domain.size)
    if isinstance(domain, NumericDomain) and edges is not None:
        null = domain.size - 1 if domain.has_null else domain.size
        positions = _positions(domain)
        # A value stands for the room up to halfway to its neighbours.
        middles = (positions[1:] + positions[:-1]) / 2
        ends = np.concatenate([positions[:1], middles, positions[-1:]])
        weight[:null] = np.diff(ends) if null > 1 else 1.0
        weight[null:] = 0.0  # nobody who sees * would guess null
    running = np.zeros((domain.size + 1, count))
    for cell in range(count):
        running[1:, cell] = np.cumsum(np.where(place == cell, weight, 0.0))
    spans = domain.spans(labels)
    found = running[spans[:, 1]] - running[spans[:, 0]]
    alone = found.sum(1) <= 0  # null, or a single value
    found[alone, place[np.minimum(spans[alone, 0], domain.size - 1)]] = 1.0
    return np.asarray(found / found.sum(1, keepdims=True))


def _positions(domain: NumericDomain) -> NDArray[np.float64]:
    """Where the values stand on an axis; dates in milliseconds."""
    scale = {"date": DAY, "moment": 0.001}.get(domain.kind, 1.0)
    return domain.values.astype(np.float64) * scale


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


def _distribution(found: Compared) -> Markup:
    """One column, both counts on one axis."""
    title = cut(found.name, TITLE)
    after = found.after * (found.before.sum() / max(float(found.after.sum()), 1.0))
    listing = folded(
        "As a table",
        table(
            "Records of the original, and what the release says of as many",
            ("value", "original", "release"),
            [
                (name(text), f"{round(one):,}", f"{round(other):,}")
                for text, one, other in zip(found.cells.names, found.before.tolist(), after.tolist(), strict=True)
            ],
        ),
    )
    caption = f"{100 * found.moved:.1f}% of the records would have to move to make both equal."
    if found.cells.edges is None:
        rows = [
            Bar(cut(text, 60), other, before=one)
            for text, one, other in zip(found.cells.names, found.before.tolist(), after.tolist(), strict=True)
        ]
        return figure(bars(rows, title=title, subtitle=["orange: release; blue: original"]), caption, listing)
    inside = len(found.cells.edges) - 1
    picture = histogram(
        found.cells.edges.tolist(),
        after[:inside].tolist(),
        title=title,
        x_title=title,
        subtitle=["bars: release; blue line: original"],
        description=f"Records by value before and after. {caption}",
        before=found.before[:inside].tolist(),
        along="date" if found.kind in ("date", "moment") else "numeric",
    )
    return figure(picture, caption, listing)


def _difference(pair: Pair) -> Markup:
    x_names, y_names = ([cut(text, 40) for text in names] for names in (pair.x_names, pair.y_names))
    picture = difference_map(cut(pair.x, TITLE), x_names, cut(pair.y, TITLE), y_names, pair.records.T)
    heads = [name(pair.y), *(name(text) for text in pair.x_names)]
    rows = [
        [name(text), *(f"{point:+.2f}" for point in line)]
        for text, line in zip(pair.y_names, pair.records.T.tolist(), strict=True)
    ]
    return figure(picture, "", folded("As a table", table("Percentage points, release less original", heads, rows)))


def _section(anchor: str, title: str, *content: object) -> Markup:
    heading = element("h2", title, id=f"{anchor}-title")
    return element("section", heading, *content, id=anchor, aria_labelledby=f"{anchor}-title")
