"""The pictures of the report, each with what it shows as a table for those who rather read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.pictures.axes import shown_nodes
from sfumato.pictures.bars import Along, Bar, MarkedLine, bars, histogram
from sfumato.pictures.heat_map import heat_map
from sfumato.pictures.picture import Picture
from sfumato.pictures.trees import Branch, tree
from sfumato.policy import Grouping, Policy
from sfumato.report.html import Markup, cut, element, folded, name, table
from sfumato.report.page import following
from sfumato.report.release_facts import Pair, ValueDiversity
from sfumato.report.sentences import percent
from sfumato.report.value_cells import ReleasedValuesOfColumn, cells_of, texts_shown
from sfumato.tables.coding.domains import WHOLE
from sfumato.taxonomies.taxonomy import Taxonomy

TITLE = 34  # characters of a name in a title
BINS, NAMES = 24, 10
FEW_SIZES = 40  # that have a bar each
GROWING = 14  # bars of more sizes
SHARES = 20
MOST_BRANCHES = 28


def figure(picture: Picture, caption: object = "", listing: object = "", *, wide: bool = False) -> Markup:
    """A picture with what is to be said of it."""
    drawn: Markup = following(picture)
    if wide:
        drawn = element("div", drawn, class_="wide", role="region", aria_label=picture.title, tabindex="0")
    said = element("figcaption", caption) if caption else ""
    return element("figure", drawn, said, listing)


def class_sizes(sizes: NDArray[np.int64], k: int, group: str) -> tuple[Markup, str]:
    """How many records are in classes of which size, with a line at k; and the same in a sentence."""
    edges, along = size_edges(sizes)
    records = np.histogram(sizes, edges, weights=sizes)[0]
    low = min(float(edges[0]), k - 0.5)
    reach = float(edges[-1]) - low
    domain = (max(low * 0.8, 0.5), float(edges[-1])) if along == "log" else (max(low - reach * 0.1, 0.0), edges[-1])
    smallest, largest = int(sizes.min()), int(sizes.max())
    middle = half_of(sizes)
    told = f"{_many(len(sizes), group)} of {_span(smallest, largest)} records"
    told += f"; half of the records are in {_plural(group)} of at most {middle:,}"
    picture = histogram(
        edges.tolist(),
        records.tolist(),
        title="Records by size",
        x_title=f"records in the {group}",
        description=f"{told}.",
        along=along,
        domain=(float(domain[0]), float(domain[1])),
        line=MarkedLine(k - 0.5, f"k = {k:,}") if k > 1 else None,
    )
    rows = [
        (_span(int(np.ceil(left)), int(np.ceil(right)) - 1), f"{round(many):,}")
        for left, right, many in zip(edges[:-1].tolist(), edges[1:].tolist(), records.tolist(), strict=True)
        if many
    ]
    return figure(picture, "", _listing("Records by size", (f"size of the {group}", "records"), rows)), f"{told}."


def size_edges(sizes: NDArray[np.int64]) -> tuple[NDArray[np.float64], Along]:
    """A bar for every size where they are few, else bars that grow with the size."""
    smallest, largest = int(sizes.min()), int(sizes.max())
    if largest - smallest < FEW_SIZES:
        return np.arange(smallest, largest + 2, dtype=np.float64) - 0.5, "numeric"
    return np.unique(np.rint(np.geomspace(smallest, largest + 1, GROWING + 1))) - 0.5, "log"


def half_of(sizes: NDArray[np.int64]) -> int:
    """The size that half of the records do not exceed."""
    order = np.sort(sizes)
    reached = np.cumsum(order)
    return int(order[np.searchsorted(reached, reached[-1] / 2)])


def column(values: ReleasedValuesOfColumn, caption: object) -> Markup:
    """What the release shows of a column."""
    title = cut(values.name, TITLE)
    cells = cells_of(values, BINS if values.axis is not None else NAMES)
    records = cells.totals(values.records)
    listing = _listing(
        "Records by value",
        ("value", "records"),
        [(name(text), f"{many:,}") for text, many in texts_shown(cells, records.tolist()) if many],
    )
    if cells.edges is None:
        plain = len(cells.names) - cells.asides
        rows = [
            Bar(cut(text, 60), float(many), aside=place >= plain, several=place == plain and cells.others)
            for place, (text, many) in enumerate(zip(cells.names, records.tolist(), strict=True))
        ]
        return figure(bars(rows, title=title), caption, listing)
    inside = len(cells.edges) - 1
    firm = cells.totals(np.where(values.is_range, 0, values.records))[:inside] if values.is_range.any() else None
    told = " ".join(f"{text}: {many:,}." for text, many in texts_shown(cells, records.tolist()) if many)
    subtitle = [] if firm is None else ["faint: ranges, spread evenly"]
    picture = histogram(
        cells.edges.tolist(),
        records[:inside].tolist(),
        title=title,
        x_title=title,
        subtitle=subtitle,
        description=f"Records by value. {told}",
        firm=None if firm is None else firm.tolist(),
        along="date" if values.kind == "date" else "numeric",
    )
    return figure(picture, caption, listing)


def taxonomy_cut(values: ReleasedValuesOfColumn, policy: Policy, taxonomy: Taxonomy | None) -> Markup | None:
    """The tree of a column, as far as the release shows it; none where there are no groups."""
    rule = policy.columns[values.name].taxonomy
    if taxonomy is not None and taxonomy.levels > 2:
        every = _of_taxonomy(values, taxonomy)
    elif taxonomy is None and isinstance(rule, Grouping) and rule.prefix is not None:
        every = _of_prefixes(values)
    else:
        return None
    released = sum(1 for row in every if row.records)
    rows = _largest(every)
    shown = sum(1 for row in rows if row.records)
    subtitle = [f"{released:,} groups and values are released"]
    if shown < released:
        subtitle = [f"the {shown:,} with the most records of {released:,} that are released"]
    listing = _listing(
        "Released groups and values",
        ("group or value", "records"),
        [(name(row.name), f"{row.records:,}") for row in rows if row.records],
    )
    return figure(tree(rows, title=cut(values.name, TITLE), subtitle=subtitle), "", listing)


def _of_taxonomy(values: ReleasedValuesOfColumn, taxonomy: Taxonomy) -> list[Branch]:
    """Released nodes and those above them. Leaves that are hidden in a group are not among them."""
    records = {text: int(many) for text, many in zip(values.texts, values.records, strict=True)}
    parents = taxonomy.parent.tolist()
    depth: dict[int, int] = {}
    rows = []
    for node in shown_nodes(taxonomy, values.texts):
        depth[node] = 0 if node == 0 else depth[parents[node]] + 1
        rows.append(Branch(taxonomy.labels[node], depth[node], records.get(taxonomy.labels[node], 0)))
    return rows


def _of_prefixes(values: ReleasedValuesOfColumn) -> list[Branch]:
    """Released codes under the released prefixes that they begin with."""
    released = {text: int(many) for text, many in zip(values.texts, values.records, strict=True) if text is not None}
    whole = released.pop(WHOLE, 0)
    rows, above = [Branch(WHOLE, 0, whole)], [""]
    for text in sorted(released, key=lambda one: (one.rstrip(WHOLE), -len(one))):
        stem = text.rstrip(WHOLE)
        while above[-1] and not stem.startswith(above[-1]):
            above.pop()
        rows.append(Branch(text, len(above), released[text]))
        if stem != text:
            above.append(stem)
    return rows


def _largest(rows: Sequence[Branch]) -> list[Branch]:
    """Those with the most records and the nodes above them."""
    order = sorted((row.records, -place) for place, row in enumerate(rows) if row.records)
    kept: set[int] = set()
    for _, place in reversed(order):
        path = [-place]
        while rows[path[-1]].depth:
            path.append(next(at for at in range(path[-1] - 1, -1, -1) if rows[at].depth < rows[path[-1]].depth))
        if len(kept.union(path)) > MOST_BRANCHES and kept:
            break
        kept.update(path)
    return [rows[place] for place in sorted(kept)] or list(rows[:1])


def pair(found: Pair) -> Markup:
    """Two columns against each other."""
    x_names, y_names = ([cut(text, 40) for text in names] for names in (found.x_names, found.y_names))
    picture = heat_map(cut(found.x, TITLE), x_names, cut(found.y, TITLE), y_names, found.records.T)
    heads = [name(found.y), *(name(text) for text in found.x_names)]
    rows = [
        [name(text), *(f"{round(many):,}" for many in line)]
        for text, line in zip(found.y_names, found.records.T.tolist(), strict=True)
    ]
    return figure(picture, "", folded("As a table", table("Records, those of ranges spread evenly", heads, rows)))


def diversity(found: ValueDiversity, caption: object, group: str) -> Markup:
    """How frequent the most frequent value of a class is, by records."""
    limit = found.limit
    # The line of what is allowed stands between two bars, and a share that is just allowed on its allowed side.
    bins = SHARES if limit is None else round(max(round(SHARES * limit), 1) / limit)
    edges = np.linspace(0, 1, bins + 1)
    place = np.clip(np.ceil(found.share * bins - 1e-9).astype(np.int64) - 1, 0, bins - 1)
    records = np.bincount(place, weights=found.sizes, minlength=bins)
    told = "; ".join(
        f"{left:.0%} to {right:.0%}: {round(many):,}"
        for left, right, many in zip(edges[:-1], edges[1:], records.tolist(), strict=True)
        if many
    )
    picture = histogram(
        edges.tolist(),
        records.tolist(),
        title=cut(found.name, TITLE),
        x_title=f"share of the most frequent value in the {group}",
        description=f"Records by the share that the most frequent value of their {group} has. {told}.",
        x_format=".0%",
        line=None if limit is None else MarkedLine(limit, f"allowed: {percent(limit)}"),
    )
    values, many = np.unique(found.distinct, return_inverse=True)
    counts = np.bincount(many, weights=found.sizes, minlength=len(values))
    rows = [(f"{value:,}", f"{round(one):,}") for value, one in zip(values.tolist(), counts.tolist(), strict=True)]
    heads = (f"different values in the {group}", "records")
    return figure(picture, caption, _listing("Records by different values", heads, rows))


def _listing(caption: str, heads: Sequence[object], rows: Sequence[Sequence[object]], most: int = 60) -> Markup:
    """The figures of a picture as a table that is opened on demand."""
    more = element("p", f"and {len(rows) - most:,} more") if len(rows) > most else ""
    return folded("As a table", table(caption, heads, rows[:most]), more)


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low >= high else f"{low:,} to {high:,}"


def _many(count: int, group: str) -> str:
    return f"{count:,} {group if count == 1 else _plural(group)}"


def _plural(group: str) -> str:
    return f"{group}es" if group == "class" else f"{group}s"
