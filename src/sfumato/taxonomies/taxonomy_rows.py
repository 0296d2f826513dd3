"""The rows of a taxonomy: each leaf with the groups that it is in, from fine to coarse, as a file has them."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from sfumato.errors import TaxonomyError
from sfumato.taxonomies.taxonomy import ROOT, Taxonomy, grow


@dataclass(frozen=True, repr=False)
class TaxonomyRows:
    """Leaves, and what each is called on every level above them, below ``*``. Levels are from fine to coarse."""

    leaves: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...] = ()

    def __repr__(self) -> str:
        # Leaves may be cells of the table, so only their number is shown.
        return f"TaxonomyRows({len(self.leaves)} leaves, {len(self.levels) + 2} levels)"

    @classmethod
    def of(cls, rows: Iterable[Sequence[str]]) -> TaxonomyRows:
        """Return the rows of leaves with their groups, each of the same length and without ``*``."""
        leaves, *levels = zip(*rows, strict=True)
        return cls(leaves, tuple(levels))

    def taxonomy(self, column: str) -> Taxonomy:
        """Build the tree, which is also what ``read_taxonomy`` builds from the text. Errors name the column."""
        place = {leaf: row for row, leaf in enumerate(self.leaves)}
        labels = [[_label(name, place, size) for name, size in _sized(level)] for level in reversed(self.levels)]
        taxonomy, repeated = grow(self.leaves, list(reversed(self.levels)), labels)
        # A group may have the name of a leaf in it, which then says that it is the group.
        foreign = {name for level in self.levels for name in level if name in place and level[place[name]] != name}
        if repeated or foreign:
            raise TaxonomyError(
                f"column {column!r}: {len({*repeated, *foreign}):,} names of the taxonomy would stand for two "
                "different sets of values, because the column has values that are called like a group. Choose other "
                "groups."
            )
        return taxonomy

    def with_leaves(self, values: Sequence[str]) -> TaxonomyRows:
        """Return the rows with further leaves, which are in no group."""
        return TaxonomyRows((*self.leaves, *values), tuple((*level, *values) for level in self.levels))

    def text(self) -> str:
        """Return the text of a taxonomy file."""
        return taxonomy_text(zip(self.leaves, *self.levels, [ROOT] * len(self.leaves), strict=True))


def taxonomy_text(rows: Iterable[Sequence[str]]) -> str:
    """Return the text of a taxonomy file with these rows."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def _sized(level: Sequence[str]) -> list[tuple[str, int]]:
    sizes = Counter(level)
    return [(name, sizes[name]) for name in level]


def _label(name: str, leaves: Container[str], size: int) -> str:
    """Return what a group is released as: one with the name of a leaf says that it is the group."""
    return f"{name} (group)" if name in leaves and size > 1 else name
