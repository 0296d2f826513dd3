"""The pictures of the report, each with its figures as a table for readers who prefer text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from sfumato.report.sentences import percent
from sfumato.report.value_cells import ReleasedValuesOfColumn, cells_of, texts_shown
from sfumato.tables.coding.released_labels import WHOLE
from sfumato.taxonomies.taxonomy import Taxonomy

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
        drawn = element("div", drawn, class_="wide", role="region", aria_label=picture.title, tabindex="0")
    return element("figure", drawn, element("figcaption", caption) if caption else "", listing)


def class_sizes(sizes: NDArray[np.int64], k: int, group: str) -> tuple[Markup, str]:
    """A histogram of records by the size of their class, with a line at k; and a sentence that says the same."""
    edges, along = size_edges(sizes)
    records = np.histogram(sizes, edges, weights=sizes)[0]
    low = min(float(edges[0]), k - 0.5)
    reach = float(edges[-1]) - low
    domain = (max(low * 0.8, 0.5), float(edges[-1])) if along == "log" else (max(low - reach * 0.1, 0.0), edges[-1])
    smallest, largest = int(sizes.min()), int(sizes.max())
    median = median_size(sizes)
    sentence = f"{_counted(len(sizes), group)} of {_span(smallest, largest)} records"
    sentence += f"; half of the records are in {_plural(group)} of at most {median:,}"
    picture = histogram(
        edges.tolist(),
        records.tolist(),
        title="Records by size",
        x_title=f"records in the {group}",
        description=f"{sentence}.",
        along=along,
        domain=(float(domain[0]), float(domain[1])),
        line=MarkedLine(k - 0.5, f"k = {k:,}") if k > 1 else None,
    )
    rows = [
        (_span(int(np.ceil(left)), int(np.ceil(right)) - 1), f"{round(count):,}")
        for left, right, count in zip(edges[:-1].tolist(), edges[1:].tolist(), records.tolist(), strict=True)
        if count
    ]
    return figure(picture, "", _listing("Records by size", (f"size of the {group}", "records"), rows)), f"{sentence}."


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


def column(values: ReleasedValuesOfColumn, caption: object) -> Markup:
    """The released values of a column as bars or as a histogram."""
    title = shortened(values.name, TITLE)
    cells = cells_of(values, BINS if values.axis is not None else NAMES)
    records = cells.totals(values.records)
    counts = [(text, count) for text, count in texts_shown(cells, records.tolist()) if count]
    listing = _listing("Records by value", ("value", "records"), [(name(text), f"{count:,}") for text, count in counts])
    if cells.edges is None:
        plain = len(cells.names) - cells.special
        rows = [
            Bar(shortened(text, 60), float(count), special=cell >= plain, several=cell == plain and cells.others)
            for cell, (text, count) in enumerate(zip(cells.names, records.tolist(), strict=True))
        ]
        return figure(bars(rows, title=title), caption, listing)
    inside = len(cells.edges) - 1
    firm = cells.totals(np.where(values.is_range, 0, values.records))[:inside] if values.is_range.any() else None
    description = " ".join(f"{text}: {count:,}." for text, count in counts)
    subtitle = [] if firm is None else ["faint: ranges, spread evenly"]
    picture = histogram(
        cells.edges.tolist(),
        records[:inside].tolist(),
        title=title,
        x_title=title,
        subtitle=subtitle,
        description=f"Records by value. {description}",
        firm=None if firm is None else firm.tolist(),
        along="date" if values.kind == "date" else "numeric",
    )
    return figure(picture, caption, listing)


def taxonomy_cut(values: ReleasedValuesOfColumn, policy: Policy, taxonomy: Taxonomy | None) -> Markup | None:
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
    subtitle = [f"{released:,} groups and values are released"]
    if shown < released:
        subtitle = [f"the {shown:,} of {released:,} released groups and values with the most records"]
    listing = _listing(
        "Released groups and values",
        ("group or value", "records"),
        [(name(row.name), f"{row.records:,}") for row in rows if row.records],
    )
    return figure(tree(rows, title=shortened(values.name, TITLE), subtitle=subtitle), "", listing)


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


def pair(columns: Pair) -> Markup:
    """Two columns of the release as a heat map."""
    x_names, y_names = ([shortened(text, 40) for text in names] for names in (columns.x_names, columns.y_names))
    picture = heat_map(shortened(columns.x, TITLE), x_names, shortened(columns.y, TITLE), y_names, columns.records.T)
    listing = cross_table(columns, "Records; those of ranges are spread evenly", lambda count: f"{round(count):,}")
    return figure(picture, "", listing)


def cross_table(columns: Pair, caption: str, text_of: Callable[[float], str]) -> Markup:
    """The figures of two columns as a table that opens on demand."""
    heads = [name(columns.y), *(name(text) for text in columns.x_names)]
    rows = [
        [name(text), *map(text_of, figures)]
        for text, figures in zip(columns.y_names, columns.records.T.tolist(), strict=True)
    ]
    return folded("As a table", table(caption, heads, rows))


def diversity(column: ValueDiversity, caption: object, group: str) -> Markup:
    """A histogram of records by the share of the most frequent value in their class."""
    limit = column.limit
    # The limit falls between two bars, and a share that is just allowed on its allowed side.
    bins = SHARES if limit is None else round(max(round(SHARES * limit), 1) / limit)
    edges = np.linspace(0, 1, bins + 1)
    bin_of_class = np.clip(np.ceil(column.share * bins - 1e-9).astype(np.int64) - 1, 0, bins - 1)
    records = np.bincount(bin_of_class, weights=column.sizes, minlength=bins)
    counts = "; ".join(
        f"{left:.0%} to {right:.0%}: {round(count):,}"
        for left, right, count in zip(edges[:-1], edges[1:], records.tolist(), strict=True)
        if count
    )
    picture = histogram(
        edges.tolist(),
        records.tolist(),
        title=shortened(column.name, TITLE),
        x_title=f"share of the most frequent value in the {group}",
        description=f"Records by the share of the most frequent value in their {group}. {counts}.",
        x_format=".0%",
        line=None if limit is None else MarkedLine(limit, f"allowed: {percent(limit)}"),
    )
    numbers, number_of_class = np.unique(column.distinct, return_inverse=True)
    totals = np.bincount(number_of_class, weights=column.sizes, minlength=len(numbers))
    rows = [
        (f"{number:,}", f"{round(total):,}") for number, total in zip(numbers.tolist(), totals.tolist(), strict=True)
    ]
    heads = (f"different values in the {group}", "records")
    return figure(picture, caption, _listing("Records by the number of different values", heads, rows))


def _listing(caption: str, heads: Sequence[object], rows: Sequence[Sequence[object]], most: int = 60) -> Markup:
    """The figures of a picture as a table that opens on demand."""
    more = element("p", f"and {len(rows) - most:,} more") if len(rows) > most else ""
    return folded("As a table", table(caption, heads, rows[:most]), more)


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low >= high else f"{low:,} to {high:,}"


def _counted(count: int, group: str) -> str:
    return f"{count:,} {group if count == 1 else _plural(group)}"


def _plural(group: str) -> str:
    return f"{group}es" if group == "class" else f"{group}s"
