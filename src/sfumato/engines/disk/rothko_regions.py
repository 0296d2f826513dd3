"""The tree of regions that Rothko-T finds: parts larger than memory at the top, the tree of each finished part below.

The tree is that of the method on the whole table, region for region. A region that is divided by counts has the same
parts, including those without records, and a part that fits into memory is divided from its own region on, not from the
whole domain. Only the numbering of the nodes differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.rothko_io_cost import IoCounters
from sfumato.engines.disk.rothko_parts import OpenRegion, TableDivision, TablePart
from sfumato.engines.disk.rothko_t import divide_by_counts
from sfumato.kernels.constants import NONE
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.methods.trees.region_tree import Tiling
from sfumato.methods.trees.split_from_counts import Split
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.packed_records import Rows
from sfumato.tables.external.scratch import Scratch


def regions_by_counts(
    table: CodedTable,
    method: MondrianMethod,
    requirements: Requirements,
    budget: MemoryBudget,
    scratch: Scratch,
    progress: Progress,
    *,
    cache: int | None = None,
    counters: IoCounters | None = None,
) -> Tiling:
    """Return the tree of ``method``. cache, counters: see ``rothko_t``."""
    counted = IoCounters() if counters is None else counters
    division = DivisionIntoRegions(table, method, requirements, budget, scratch, progress, counted)
    divide_by_counts(division, replace(division.all(), region=division.regions.root), cache)
    return division.regions.tree()


@dataclass
class DivisionIntoRegions(TableDivision):
    """A division whose finished parts are subtrees of one tree."""

    regions: GrowingTree = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.regions = GrowingTree(self.start.sizes)

    def add(self, part: TablePart, rows: Rows) -> None:
        assert part.region is not None
        start = replace(self.method.start(self.scaled.records(rows), self.requirements), rule=part.rule)
        self.regions.graft(part.region, start.grown(Progress(), (part.region.low, part.region.high)))

    def keep(self, part: TablePart) -> None:
        """Leave the region of the part a leaf."""
        self.counters.whole += 1
        self.progress.advance(part.count)
        part.remove()

    def branch(self, region: OpenRegion | None, split: Split) -> Sequence[OpenRegion]:
        assert region is not None
        return self.regions.branch(region, split)


class GrowingTree:
    """A tree that grows at its leaves. Nodes are kept in pieces; the divisions of nodes are applied at the end."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._kind = np.min_scalar_type(max(sizes) - 1)
        self.root = OpenRegion(0, np.zeros(len(sizes), np.int64), np.array(sizes, np.int64) - 1)
        self._pieces: list[Tiling] = []
        self._divided: list[tuple[int, int, int]] = []  # a node, its attribute and its first child
        self._count = 0
        none = np.array([NONE])
        self._add(none, none, none, self.root.low[None], self.root.high[None])

    def branch(self, region: OpenRegion, split: Split) -> list[OpenRegion]:
        """Divide a leaf, and return the regions of its parts.

        What lies before, between and after the parts is a leaf without records, as in ``region_tree``.
        """
        q = split.attribute
        lowest, highest = int(region.low[q]), int(region.high[q])
        spans: list[tuple[int, int, bool]] = []  # the first and last code of each child, and whether it is a part
        next_code = lowest
        for first, last in zip(split.first.tolist(), split.last.tolist(), strict=True):
            if next_code < first:
                spans.append((next_code, first - 1, False))
            spans.append((max(first, lowest), min(last, highest), True))
            next_code = spans[-1][1] + 1
        if next_code <= highest:
            spans.append((next_code, highest, False))
        low, high = np.tile(region.low, (len(spans), 1)), np.tile(region.high, (len(spans), 1))
        low[:, q], high[:, q] = zip(*((first, last) for first, last, _ in spans), strict=True)
        first_child = self._count
        none = np.full(len(spans), NONE)
        self._add(np.full(len(spans), region.number), none, none, low, high)
        self._divided.append((region.number, q, first_child))
        return [
            OpenRegion(first_child + child, low[child], high[child])
            for child, (_, _, is_part) in enumerate(spans)
            if is_part
        ]

    def graft(self, region: OpenRegion, tree: Tiling) -> None:
        """Replace a leaf by a tree whose node 0 is the region of the leaf."""
        if tree.attribute[0] < 0:
            return
        self._divided.append((region.number, int(tree.attribute[0]), int(tree.first_child[0]) - 1 + self._count))
        parent, first_child = tree.parent[1:], tree.first_child[1:]
        self._add(
            np.where(parent > 0, parent - 1 + self._count, region.number),
            tree.attribute[1:].copy(),
            np.where(first_child > 0, first_child - 1 + self._count, NONE),
            tree.low[1:],
            tree.high[1:],
        )

    def tree(self) -> Tiling:
        """Return the whole tree."""
        whole = Tiling(
            parent=np.concatenate([piece.parent for piece in self._pieces]),
            attribute=np.concatenate([piece.attribute for piece in self._pieces]),
            first_child=np.concatenate([piece.first_child for piece in self._pieces]),
            low=np.concatenate([piece.low for piece in self._pieces]),
            high=np.concatenate([piece.high for piece in self._pieces]),
        )
        for node, attribute, first_child in self._divided:
            whole.attribute[node], whole.first_child[node] = attribute, first_child
        return whole

    def _add(
        self,
        parent: NDArray[np.int64],
        attribute: NDArray[np.int64],
        first_child: NDArray[np.int64],
        low: NDArray[np.integer],
        high: NDArray[np.integer],
    ) -> None:
        box = low.astype(self._kind), high.astype(self._kind)
        self._pieces.append(Tiling(parent, attribute, first_child, *box))
        self._count += len(parent)
