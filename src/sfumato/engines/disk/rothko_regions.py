"""The regions of Rothko-T: those that parts larger than memory were divided into, and under them those of every part.

The tree is that of the method on the whole table, region for region: a region that is divided by counts has the same
parts, also those without records, and a part that fits into memory is divided from its own region on, not from the
whole domain. Only the order in which the nodes were numbered is another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.rothko_io_cost import Traffic
from sfumato.engines.disk.rothko_parts import OpenRegion, Parting, TablePart
from sfumato.engines.disk.rothko_t import divide_by_counts
from sfumato.kernels.constants import NONE
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.methods.trees.region_tree import Tiling
from sfumato.methods.trees.split_from_counts import Split
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.external.memory_budget import Budget
from sfumato.tables.external.packed_records import Rows
from sfumato.tables.external.scratch import Scratch


def regions_by_counts(
    table: CodedTable,
    method: MondrianMethod,
    requirements: Requirements,
    budget: Budget,
    scratch: Scratch,
    progress: Progress,
    *,
    cache: int | None = None,
    traffic: Traffic | None = None,
) -> Tiling:
    """The tree of ``method``; cache, traffic: see ``rothko_t``."""
    counted = Traffic() if traffic is None else traffic
    parting = Grafting(table, method, requirements, budget, scratch, progress, counted)
    divide_by_counts(parting, replace(parting.all(), region=parting.regions.root), cache)
    return parting.regions.tree()


@dataclass
class Grafting(Parting):
    """What comes of the parts is one tree."""

    regions: RegionsInMaking = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.regions = RegionsInMaking(self.start.sizes)

    def add(self, part: TablePart, rows: Rows) -> None:
        assert part.region is not None
        start = replace(self.method.start(self.whole.records(rows), self.requirements), rule=part.rule)
        self.regions.graft(part.region, start.grown(Progress(), (part.region.low, part.region.high)))

    def keep(self, part: TablePart) -> None:
        """A region is a leaf until it is divided."""
        self.traffic.whole += 1
        self.progress.advance(part.count)
        part.remove()

    def branch(self, region: OpenRegion | None, split: Split) -> Sequence[OpenRegion]:
        assert region is not None
        return self.regions.branch(region, split)


class RegionsInMaking:
    """A tree that grows at its leaves. Nodes are kept in pieces, and what is found of a node later beside them."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._kind = np.min_scalar_type(max(sizes) - 1)
        self.root = OpenRegion(0, np.zeros(len(sizes), np.int64), np.array(sizes, np.int64) - 1)
        self._pieces: list[Tiling] = []
        self._divided: list[tuple[int, int, int]] = []  # a node, its attribute and its first child
        self._count = 0
        none = np.array([NONE])
        self._add(none, none, none, self.root.low[None], self.root.high[None])

    def branch(self, region: OpenRegion, split: Split) -> list[OpenRegion]:
        """Divide a leaf: the regions of the parts. What lies before, between and after them is a leaf without records.

        The same is done in ``tree.grow``.
        """
        q = split.attribute
        lowest, highest = int(region.low[q]), int(region.high[q])
        reaches: list[tuple[int, int, bool]] = []
        place = lowest
        for first, last in zip(split.first.tolist(), split.last.tolist(), strict=True):
            if place < first:
                reaches.append((place, first - 1, False))
            reaches.append((max(first, lowest), min(last, highest), True))
            place = reaches[-1][1] + 1
        if place <= highest:
            reaches.append((place, highest, False))
        low, high = np.tile(region.low, (len(reaches), 1)), np.tile(region.high, (len(reaches), 1))
        low[:, q], high[:, q] = zip(*((first, last) for first, last, _ in reaches), strict=True)
        first_child = self._count
        none = np.full(len(reaches), NONE)
        self._add(np.full(len(reaches), region.number), none, none, low, high)
        self._divided.append((region.number, q, first_child))
        return [
            OpenRegion(first_child + child, low[child], high[child])
            for child, (_, _, is_part) in enumerate(reaches)
            if is_part
        ]

    def graft(self, region: OpenRegion, tree: Tiling) -> None:
        """Put a tree in the place of a leaf; its node 0 is the region."""
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
        """All of it."""
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
