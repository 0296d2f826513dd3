"""The rows of a taxonomy: each leaf with the groups that it is in, from fine to coarse. A taxonomy file is written so."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
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
        leaves = set(self.leaves)
        labels = [[_label(name, leaves, size) for name, size in _sized(level)] for level in reversed(self.levels)]
        taxonomy, repeated = grow(self.leaves, list(reversed(self.levels)), labels)
        if repeated:
            raise TaxonomyError(
                f"column {column!r}: {len(repeated):,} names of the taxonomy would stand for two different sets of "
                "values, because the column has values that are called like a group. Choose other groups."
            )
        return taxonomy

    def text(self) -> str:
        """Return the text of a taxonomy file."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows(zip(self.leaves, *self.levels, [ROOT] * len(self.leaves), strict=True))
        return stream.getvalue()


def _sized(level: Sequence[str]) -> list[tuple[str, int]]:
    sizes = Counter(level)
    return [(name, sizes[name]) for name in level]


def _label(name: str, leaves: set[str], size: int) -> str:
    """Return what a group is released as: one with the name of a leaf says that it is the group."""
    return f"{name} (group)" if name in leaves and size > 1 else name
