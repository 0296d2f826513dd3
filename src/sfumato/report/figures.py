"""The pictures of the report, each with its figures as a table for readers who prefer text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.pictures.axes import shown_nodes
from sfumato.pictures.bars import Along, Bar, MarkedLine, bars, histogram
from sfumato.pictures.heat_map import heat_map
from sfumato.pictures.picture import Picture
from sfumato.pictures.trees import Branch, tree
from sfumato.policy import Grouping, Policy
from sfumato.report.html import Markup, element, folded, name, shortened, table
from sfumato.report.page import in_page_colours
from sfumato.report.release_facts import Pair, ValueDiversity
from sfumato.report.value_cells import ReleasedValuesOfColumn, cells_of, texts_shown
from sfumato.tables.coding.released_labels import WHOLE
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.texts import Texts

TITLE = 34  # characters of a name in a title
BINS, NAMES = 24, 10
FEW_SIZES = 40  # up to this range of sizes, each size has a bar
GROWING = 14  # bars, growing with the size, for a wider range
SHARES = 20
MOST_BRANCHES = 28


def figure(picture: Picture, caption: object = "", listing: object = "", *, wide: bool = False) -> Markup:
    """A picture with its caption and the table of its figures."""
    drawn: Markup = in_page_colours(picture)
    if wide:
        drawn = element("div", drawn, class_="wide", role="group", aria_label=picture.title, tabindex="0")
    return element("figure", drawn, element("figcaption", caption) if caption else "", listing)


@dataclass(frozen=True)
class GroupWords:
    """What the page calls a class: in a release of two tables it is a group."""

    singular: str
    plural: str
    counted: str
    """The key of a number of them."""


def group_words(say: Texts, *, separated: bool) -> GroupWords:
    """The words for the classes of a release, or for its groups."""
    if separated:
        return GroupWords(say("report.group.singular"), say("report.group.plural"), "report.group.counted")
    return GroupWords(say("report.class.singular"), say("report.class.plural"), "report.class.counted")


def class_sizes(sizes: NDArray[np.int64], k: int, words: GroupWords, say: Texts) -> tuple[Markup, str]:
    """A histogram of records by the size of their class, with a line at k; and a sentence that says the same."""
    edges, along = size_edges(sizes)
    records = np.histogram(sizes, edges, weights=sizes)[0]
    low = min(float(edges[0]), k - 0.5)
    reach = float(edges[-1]) - low
    domain = (max(low * 0.8, 0.5), float(edges[-1])) if along == "log" else (max(low - reach * 0.1, 0.0), edges[-1])
    sentence = say(
        "report.sizes.sentence",
        classes=say(words.counted, count=len(sizes)),
        span=_span(int(sizes.min()), int(sizes.max()), say),
        groups=words.plural,
        median=median_size(sizes),
    )
    title, records_title = say("report.sizes.title"), say("report.sizes.records")
    picture = histogram(
        edges.tolist(),
        records.tolist(),
        title=title,
        x_title=say("report.sizes.axis", group=words.singular),
        y_title=records_title,
        description=sentence,
        along=along,
        domain=(float(domain[0]), float(domain[1])),
        line=MarkedLine(k - 0.5, f"k = {say.number(k)}") if k > 1 else None,
        say=say,
    )
    rows = [
        (_span(int(np.ceil(left)), int(np.ceil(right)) - 1, say), say.number(round(count)))
        for left, right, count in zip(edges[:-1].tolist(), edges[1:].tolist(), records.tolist(), strict=True)
        if count
    ]
    heads = (say("report.sizes.heads", group=words.singular), records_title)
    return figure(picture, "", _listing(title, heads, rows, say)), sentence


def size_edges(sizes: NDArray[np.int64]) -> tuple[NDArray[np.float64], Along]:
    """The edges of bars: a bar for every size if there are few, else bars that grow with the size."""
    smallest, largest = int(sizes.min()), int(sizes.max())
    if largest - smallest < FEW_SIZES:
        return np.arange(smallest, largest + 2, dtype=np.float64) - 0.5, "numeric"
    return np.unique(np.rint(np.geomspace(smallest, largest + 1, GROWING + 1))) - 0.5, "log"


def median_size(sizes: NDArray[np.int64]) -> int:
    """The smallest size such that half of the records are in classes of at most this size."""
    ascending = np.sort(sizes)
    records = np.cumsum(ascending)
    return int(ascending[np.searchsorted(records, records[-1] / 2)])


def column(values: ReleasedValuesOfColumn, caption: object, say: Texts) -> Markup:
    """The released values of a column as bars or as a histogram."""
    title = shortened(values.name, TITLE)
    cells = cells_of(values, BINS if values.axis is not None else NAMES)
    names, records = cells.names_in(say), cells.totals(values.records)
    counts = [(text, count) for text, count in texts_shown(names, records.tolist()) if count]
    by_value, records_title = say("report.columns.caption"), say("report.columns.records")
    rows_of_table = [(name(text), say.number(count)) for text, count in counts]
    listing = _listing(by_value, (say("report.columns.value"), records_title), rows_of_table, say)
    if cells.edges is None:
        plain = len(names) - cells.special
        rows = [
            Bar(shortened(text, 60), float(count), special=cell >= plain, several=cell == plain and cells.others)
            for cell, (text, count) in enumerate(zip(names, records.tolist(), strict=True))
        ]
        return figure(bars(rows, title=title, say=say), caption, listing)
    inside = len(cells.edges) - 1
    firm = cells.totals(np.where(values.is_range, 0, values.records))[:inside] if values.is_range.any() else None
    description = " ".join(f"{text}: {say.number(count)}." for text, count in counts)
    picture = histogram(
        cells.edges.tolist(),
        records[:inside].tolist(),
        title=title,
        x_title=title,
        y_title=records_title,
        subtitle=[] if firm is None else [say("report.columns.faint")],
        description=f"{by_value}. {description}",
        firm=None if firm is None else firm.tolist(),
        along="date" if values.kind == "date" else "numeric",
        say=say,
    )
    return figure(picture, caption, listing)


def taxonomy_cut(
    values: ReleasedValuesOfColumn, policy: Policy, taxonomy: Taxonomy | None, say: Texts
) -> Markup | None:
    """The part of a column's tree that the release shows, or None if the column has no groups."""
    rule = policy.columns[values.name].taxonomy
    if taxonomy is not None and taxonomy.levels > 2:
        branches = _of_taxonomy(values, taxonomy)
    elif taxonomy is None and isinstance(rule, Grouping) and rule.prefix is not None:
        branches = _of_prefixes(values)
    else:
        return None
    released = sum(1 for branch in branches if branch.records)
    rows = _largest(branches)
    shown = sum(1 for row in rows if row.records)
    subtitle = say("report.taxonomies.all", count=released)
    if shown < released:
        subtitle = say("report.taxonomies.most", shown=shown, count=released)
    listing = _listing(
        say("report.taxonomies.caption"),
        (say("report.taxonomies.heads"), say("report.taxonomies.records")),
        [(name(row.name), say.number(row.records)) for row in rows if row.records],
        say,
    )
    return figure(tree(rows, title=shortened(values.name, TITLE), subtitle=[subtitle], say=say), "", listing)


def _of_taxonomy(values: ReleasedValuesOfColumn, taxonomy: Taxonomy) -> list[Branch]:
    """Released nodes and those above them, without the leaves that are hidden in a group."""
    records = {text: int(count) for text, count in zip(values.texts, values.records, strict=True)}
    parents = taxonomy.parent.tolist()
    depth: dict[int, int] = {}
    rows = []
    for node in shown_nodes(taxonomy, values.texts):
        depth[node] = 0 if node == 0 else depth[parents[node]] + 1
        rows.append(Branch(taxonomy.labels[node], depth[node], records.get(taxonomy.labels[node], 0)))
    return rows


def _of_prefixes(values: ReleasedValuesOfColumn) -> list[Branch]:
    """Released values under the released prefixes with which they begin."""
    released = {text: int(count) for text, count in zip(values.texts, values.records, strict=True) if text is not None}
    whole = released.pop(WHOLE, 0)
    rows, above = [Branch(WHOLE, 0, whole)], [""]
    for text in sorted(released, key=lambda label: (label.rstrip(WHOLE), -len(label))):
        stem = text.rstrip(WHOLE)
        while above[-1] and not stem.startswith(above[-1]):
            above.pop()
        rows.append(Branch(text, len(above), released[text]))
        if stem != text:
            above.append(stem)
    return rows


def _largest(rows: Sequence[Branch]) -> list[Branch]:
    """The rows with the most records and the nodes above them."""
    ranked = sorted((row.records, -index) for index, row in enumerate(rows) if row.records)
    kept: set[int] = set()
    for _, negative in reversed(ranked):
        path = [-negative]
        while rows[path[-1]].depth:
            path.append(next(node for node in range(path[-1] - 1, -1, -1) if rows[node].depth < rows[path[-1]].depth))
        if len(kept.union(path)) > MOST_BRANCHES and kept:
            break
        kept.update(path)
    return [rows[index] for index in sorted(kept)] or list(rows[:1])


def pair(columns: Pair, say: Texts) -> Markup:
    """Two columns of the release as a heat map."""
    x_names, y_names = (
        [shortened(text, 40) for text in cells.names_in(say)] for cells in (columns.x_cells, columns.y_cells)
    )
    x, y = shortened(columns.x, TITLE), shortened(columns.y, TITLE)
    picture = heat_map(x, x_names, y, y_names, columns.records.T, say=say)
    return figure(
        picture, "", cross_table(columns, say("report.pairs.caption"), lambda count: say.number(round(count)), say)
    )


def cross_table(columns: Pair, caption: str, text_of: Callable[[float], str], say: Texts) -> Markup:
    """The figures of two columns as a table that opens on demand."""
    heads = [name(columns.y), *(name(text) for text in columns.x_cells.names_in(say))]
    rows = [
        [name(text), *map(text_of, figures)]
        for text, figures in zip(columns.y_cells.names_in(say), columns.records.T.tolist(), strict=True)
    ]
    return folded(say("report.as_table"), table(caption, heads, rows))


def diversity(column: ValueDiversity, caption: object, words: GroupWords, say: Texts) -> Markup:
    """A histogram of records by the share of the most frequent value in their class."""
    limit = column.limit
    # The limit falls between two bars, and a share that is just allowed on its allowed side.
    bins = SHARES if limit is None else round(max(round(SHARES * limit), 1) / limit)
    edges = np.linspace(0, 1, bins + 1)
    bin_of_class = np.clip(np.ceil(column.share * bins - 1e-9).astype(np.int64) - 1, 0, bins - 1)
    records = np.bincount(bin_of_class, weights=column.sizes, minlength=bins)
    counts = "; ".join(
        f"{say('report.span', low=say.number(left, '.0%'), high=say.number(right, '.0%'))}: {say.number(round(count))}"
        for left, right, count in zip(edges[:-1], edges[1:], records.tolist(), strict=True)
        if count
    )
    picture = histogram(
        edges.tolist(),
        records.tolist(),
        title=shortened(column.name, TITLE),
        x_title=say("report.diversity.axis", group=words.singular),
        y_title=say("report.diversity.records"),
        description=say("report.diversity.description", group=words.singular, counts=counts),
        x_format=".0%",
        line=None if limit is None else MarkedLine(limit, say("report.diversity.allowed", share=say.percent(limit))),
        say=say,
    )
    numbers, number_of_class = np.unique(column.distinct, return_inverse=True)
    totals = np.bincount(number_of_class, weights=column.sizes, minlength=len(numbers))
    rows = [
        (say.number(number), say.number(round(total)))
        for number, total in zip(numbers.tolist(), totals.tolist(), strict=True)
    ]
    heads = (say("report.diversity.heads", group=words.singular), say("report.diversity.records"))
    return figure(picture, caption, _listing(say("report.diversity.caption"), heads, rows, say))


def _listing(
    caption: str, heads: Sequence[object], rows: Sequence[Sequence[object]], say: Texts, most: int = 60
) -> Markup:
    """The figures of a picture as a table that opens on demand."""
    more = element("p", say("report.and_more", count=len(rows) - most)) if len(rows) > most else ""
    return folded(say("report.as_table"), table(caption, heads, rows[:most]), more)


def _span(low: int, high: int, say: Texts) -> str:
    return say.number(low) if low >= high else say("report.span", low=low, high=high)
