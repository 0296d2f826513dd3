"""The private report: the counts of the original beside those of the release. It must not be shared.

The release is read as any reader would: a range or group stands evenly for all values that it leaves open. ``*``, which
says nothing, has a cell of its own, in which the original has no record.
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
    capitalised,
    element,
    folded,
    joined,
    name,
    name_list,
    preformatted,
    shortened,
    table,
)
from sfumato.report.page import page, with_contents
from sfumato.report.release import check_report
from sfumato.report.release_facts import FIELDS, MOST_COLUMNS, MOST_CROSSED, MOST_PAIRS, Pair
from sfumato.report.result_files import write_text
from sfumato.report.value_cells import (
    NamesOfCells,
    ValueCells,
    cross_tabulate,
    edges_of,
    in_their_order,
    named_cells,
    null_name,
    whole_name,
)
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.tables.coding.released_labels import WHOLE
from sfumato.tables.coding.value_order import is_missing, text_of
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.texts import ENGLISH, Texts, texts_in

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
        return np.bincount(self.cell_of_code[codes], minlength=self.cells.spread.shape[1]).astype(np.float64)


@dataclass(frozen=True)
class ColumnComparison:
    """The number of records in every cell of a column, in the original and in the release."""

    name: str
    kind: str
    cells: ValueCells = field(repr=False)
    before: NDArray[np.float64] = field(repr=False)
    after: NDArray[np.float64] = field(repr=False)
    shows_whole: bool

    @property
    def moved(self) -> float:
        """The share of records that would have to move to another cell to make both distributions equal.

        Every record that shows ``*`` has to: its cell is empty in the original.
        """
        shares = [counts / max(float(counts.sum()), 1.0) for counts in (self.before, self.after)]
        return float(np.abs(shares[0] - shares[1]).sum()) / 2

    @property
    def whole(self) -> float:
        """The share of the released records that show ``*``."""
        records = float(self.after[len(self.after) - self.cells.special]) if self.shows_whole else 0.0
        return records / max(float(self.after.sum()), 1.0)


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
        say: Texts,
        *,
        trial: bool = False,
    ) -> None:
        self._columns = tuple(columns)
        self._pairs = tuple(pairs)
        self._records = records
        self._figures = figures
        self._warnings = tuple(warnings)
        self._further = tuple(further)
        self._say = say
        self._trial = trial

    def page(self) -> str:
        """The report as one offline HTML page."""
        say = self._say
        before, after = self._records
        counts = say("private.counts_of_trial" if self._trial else "private.counts", before=before, after=after)
        foreign = None if say.language.code == ENGLISH.language.code else ENGLISH.language.code
        warnings = [element("p", f"{capitalised(text)}.", class_="warning", lang=foreign) for text in self._warnings]
        further = ""
        if self._further:
            columns = name_list(self._further, say, 100)
            further = element("p", *say.parts("private.not_drawn", columns=columns), class_="soft")
        distributions = joined(
            [
                element("p", say("private.distributions.about")),
                element("div", *(_distribution(column, say) for column in self._columns), class_="cards"),
                further,
            ]
        )
        differences = joined(
            [
                element("p", say("private.differences.about")),
                element("div", *(_difference(pair, say) for pair in self._pairs), class_="cards"),
            ]
        )
        sections = [
            ("summary", say("private.section.summary"), joined([element("p", counts), *warnings, self._moved()])),
            ("losses", say("private.section.losses"), self._losses()),
            ("distributions", say("private.section.distributions"), distributions),
            ("differences", say("private.section.differences"), differences),
        ]
        heading = say("private.heading")
        head = element("header", element("p", say("private.warning"), class_="secret"), element("h1", heading))
        return page(heading, joined([head, with_contents(sections, say)]), say)

    def _moved(self) -> Markup:
        """How far each distribution moved, and how much of that is ``*``."""
        say = self._say
        rows = [(name(column.name), say.percent(column.whole), say.percent(column.moved)) for column in self._columns]
        heads = (say("private.moved.column"), say("private.moved.whole"), say("private.moved.share"))
        about = element("p", say("private.moved.about"), class_="soft")
        return joined([table(say("private.moved.caption"), heads, rows), about])

    def _losses(self) -> Markup:
        """What the certificate and the shareable report do not have, because it takes the original to know it."""
        say = self._say
        lost = {say("private.losses.all"): self._figures["gcp"], **self._figures["columns"]}
        heads = (say("private.moved.column"), say("private.losses.share"))
        rows = [(name(column), say.percent(loss)) for column, loss in lost.items()]
        content, title = json.dumps(self._figures, indent=2, ensure_ascii=False), say("private.losses.figures")
        return joined(
            [
                element("p", say("private.losses.about")),
                table(say("private.losses.caption"), heads, rows),
                folded(title, preformatted(content, title)),
            ]
        )

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
        counted = fine.counts(codes), fine.cells.totals(records)
        columns.append(ColumnComparison(column, fine.kind, fine.cells, *counted, shows_whole=WHOLE in labels))
    pairs = []
    for x_column, y_column in combinations(sorted(columns, key=lambda column: column.moved)[:MOST_CROSSED], 2):
        x, y = coarse[x_column.name], coarse[y_column.name]
        after = cross_tabulate(x.cells, classes.shown[x.name], y.cells, classes.shown[y.name], classes.sizes)
        x_cell = x.cell_of_code[encoded.codes[:, attributes[x.name]]]
        y_cell = y.cell_of_code[encoded.codes[:, attributes[y.name]]]
        both = x_cell * after.shape[1] + y_cell
        before = np.bincount(both, minlength=after.size).reshape(after.shape)
        points = 100 * (after / max(after.sum(), 1) - before / max(before.sum(), 1))
        pairs.append(Pair(x.name, y.name, x.cells, y.cells, points))
    pairs.sort(key=lambda pair: -float(np.abs(pair.records).sum()))
    further = list(policy.quasi_identifiers)[MOST_COLUMNS:]
    counts_of_both = (encoded.count, classes.records)
    say = texts_in(policy.about.language)
    return PrivateReport(columns, pairs[:MOST_PAIRS], counts_of_both, figures, warnings, further, say, trial=trial)


def _original_cells(
    domain: Domain, labels: Sequence[str | None], counts: NDArray[np.int64], most: int
) -> OriginalCells:
    """Cells over the codes of the original, at most ``most``, and the share of each label in every cell.

    Beside them are a cell for ``*``, if the release shows it, and one for null, if the original has it.
    """
    assert isinstance(domain, NumericDomain | CategoricalDomain)
    null = domain.size - 1 if domain.has_null else domain.size
    cell_of_code = np.zeros(domain.size, np.int64)
    edges: NDArray[np.float64] | None = None
    names: NamesOfCells
    if isinstance(domain, NumericDomain) and null:
        edges, names = _edges(domain, most)
        count = len(edges) - 1
        positions = _positions(domain)
        cell_of_code[:null] = np.clip(np.searchsorted(edges, positions, side="right") - 1, 0, count - 1)
    elif isinstance(domain, CategoricalDomain):
        order = np.argsort(-counts[:null], kind="stable").tolist()
        leaves = domain.taxonomy.leaves
        kept = in_their_order(order if null <= most else order[: most - 1], leaves)
        names, count = named_cells([leaves[leaf] for leaf in kept], null - len(kept)), len(kept)
        cell_of_code[:null] = count
        cell_of_code[kept] = np.arange(count)
        count += len(kept) < null
    else:
        names, count = named_cells([], 0), 0
    whole = WHOLE in labels
    special = [*([whole_name] if whole else []), *([null_name] if domain.has_null else [])]
    if domain.has_null:
        cell_of_code[null] = count + whole
    spread = _spread(domain, labels, cell_of_code, count + len(special), edges)
    if whole:
        is_whole = np.array([label == WHOLE for label in labels], np.bool_)
        spread[is_whole] = 0.0
        spread[is_whole, count] = 1.0

    def all_names(say: Texts) -> list[str]:
        return [*names(say), *(name_of(say) for name_of in special)]

    every = np.arange(len(labels))
    cells = ValueCells(all_names, len(special), np.full(len(labels), -1), every, spread, edges)
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


def _edges(domain: NumericDomain, most: int) -> tuple[NDArray[np.float64], NamesOfCells]:
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


def _distribution(column: ColumnComparison, say: Texts) -> Markup:
    """One column, with both distributions on one axis."""
    title = shortened(column.name, TITLE)
    scaled = column.after * (column.before.sum() / max(float(column.after.sum()), 1.0))
    counts = list(zip(column.cells.names_in(say), column.before.tolist(), scaled.tolist(), strict=True))
    heads = ("private.distributions.value", "private.distributions.original", "private.distributions.release")
    listing = folded(
        say("report.as_table"),
        table(
            say("private.distributions.caption"),
            [say(head) for head in heads],
            [(name(text), say.number(round(before)), say.number(round(after))) for text, before, after in counts],
        ),
    )
    moved, whole = say.percent(column.moved), say.percent(column.whole)
    key = "private.moved.with_whole" if column.shows_whole else "private.moved.sentence"
    caption = say(key, share=moved, whole=whole)
    if column.cells.edges is None:
        plain = len(counts) - column.cells.special
        rows = [
            Bar(shortened(text, 60), after, before=before, special=cell >= plain)
            for cell, (text, before, after) in enumerate(counts)
        ]
        return figure(bars(rows, title=title, subtitle=[say("private.distributions.bars")], say=say), caption, listing)
    inside = len(column.cells.edges) - 1
    subtitle = "private.distributions.histogram_whole" if column.shows_whole else "private.distributions.histogram"
    picture = histogram(
        column.cells.edges.tolist(),
        scaled[:inside].tolist(),
        title=title,
        x_title=title,
        y_title=say("private.distributions.records"),
        subtitle=[say(subtitle)],
        description=say("private.distributions.description", caption=caption),
        before=column.before[:inside].tolist(),
        along="date" if column.kind in ("date", "moment") else "numeric",
        say=say,
    )
    return figure(picture, caption, listing)


def _difference(pair: Pair, say: Texts) -> Markup:
    x_names, y_names = ([shortened(text, 40) for text in cells.names_in(say)] for cells in (pair.x_cells, pair.y_cells))
    x, y = shortened(pair.x, TITLE), shortened(pair.y, TITLE)
    picture = difference_map(x, x_names, y, y_names, pair.records.T, say=say)
    caption = say("private.differences.caption")
    return figure(picture, "", cross_table(pair, caption, lambda points: say.number(points, "+.2f"), say))
