"""MDAV, Maximum Distance to Average Vector (Domingo-Ferrer and Mateo-Sanz 2002; MDAV-generic, Domingo-Ferrer and Torra
2005, section 3): classes of k around the records that are farthest out.

While at least 3k records are left, we find the record farthest from their mean, and the record farthest from that one.
Each becomes a class with the k - 1 records nearest to it. When fewer are left, one more such class is formed if 2k are,
and the rest is the last class.

The distance is Euclidean, on columns standardised to mean 0 and deviation 1. Time is O(n n / k).

Differs from the paper: distances are squares of whole numbers (``losses.squared_errors``), and the mean is rounded to
them. Ties go to the lower record. Columns are numbers or dates alone; the paper also has operators for categories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import inner_kernel, kernel
from sfumato.losses.squared_errors import check_numeric, standard_points
from sfumato.methods.line.optimal_cut import boxes_of
from sfumato.methods.method import ClassBatch, Records
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Domain

STEP_RECORDS = 1 << 10  # records that are put into classes before progress is reported
LEFT, CLASSES = range(2)  # of the state


class Mdav:
    """Form classes of k around the records that are farthest from the mean."""

    name = "mdav"
    paper = "Domingo-Ferrer, Mateo-Sanz: Practical data-oriented microaggregation, TKDE 2002"
    summary = "microaggregation: classes of k around the records farthest from the mean; numeric columns alone"
    use = "to compare with published results on sums of squares; auto with loss = sse loses less"
    separates = False

    def check(self, requirements: Requirements) -> None:
        """Accept any requirement: classes of k are merged until it holds."""

    def check_domains(self, domains: Sequence[Domain]) -> None:
        check_numeric(domains)

    def meets(self, requirements: Requirements) -> bool:
        return requirements.decided_by_kernel and not requirements.attributes

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        k, copies = requirements.least_class, np.diff(records.starts)
        standard = standard_points(records.codes, copies, records.domains, records.costs.shares, 2 * k)
        points = np.repeat(standard.points, copies, axis=0)
        owner = mdav_classes(points, k, progress.advance)
        yield batch_of(records, points, owner)


def mdav_classes(points: NDArray[np.int64], k: int, advance: Callable[[int], None]) -> NDArray[np.int64]:
    """Return the class of each point: int64[n]. points: int64[n, d]; k: at most n."""
    owner = np.full(len(points), NONE, np.int64)
    left, state = np.arange(len(points)), np.array([len(points), 0], np.int64)
    near, distance = np.empty(k, np.int64), np.empty(k, np.int64)
    while state[LEFT]:
        before = int(state[LEFT])
        form_classes(points, k, STEP_RECORDS, left, state, near, distance, owner)
        advance(before - int(state[LEFT]))
    return owner


def batch_of(records: Records, points: NDArray[np.int64], owner: NDArray[np.int64]) -> ClassBatch:
    """Return classes of points as a batch, in the order of their projection onto a diagonal: near ones may be merged.

    points: int64[n, d], one for each row, in the order of the records. owner: int64[n], the class of each, no gaps.
    """
    sizes = np.bincount(owner)
    middle = np.bincount(owner, points.sum(axis=1)) / sizes
    rank = np.empty(len(sizes), np.int64)
    rank[np.argsort(middle, kind="stable")] = np.arange(len(sizes))
    order = np.argsort(rank[owner], kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(rank[owner])))
    record_of = np.repeat(np.arange(len(records.codes), dtype=np.uint32), np.diff(records.starts))[order]
    low, high = boxes_of(records.codes, record_of, starts)
    return ClassBatch(records.rows[order], starts, low, high)


@kernel
def form_classes(points, k, enough, left, state, near, distance, owner):
    """Form classes until ``enough`` more points are in one, or none is left.

    left: int64[n], the points in no class come first, ascending. state: int64[2], their number and that of the
    classes. near, distance: int64[k], working space.
    """
    done, d = np.int64(0), points.shape[1]
    middle = np.empty(d, np.int64)
    while state[LEFT] > 0 and done < enough:
        before = state[LEFT]
        if before < 2 * k:
            for i in range(before):
                owner[left[i]] = state[CLASSES]
            state[LEFT], state[CLASSES] = 0, state[CLASSES] + 1
        else:
            for q in range(d):
                total = np.int64(0)
                for i in range(before):
                    total += points[left[i], q]
                middle[q] = total // before
            outermost = farthest(points, left, before, middle)
            opposite = farthest(points, left, before, points[outermost])
            take_nearest(points, k, left, state, near, distance, owner, outermost)
            if before >= 3 * k:
                # Where all records are equal, the farthest is taken already.
                start = opposite if owner[opposite] == NONE else left[0]
                take_nearest(points, k, left, state, near, distance, owner, start)
        done += before - state[LEFT]


@inner_kernel
def farthest(points, left, count, place):
    """Return the point farthest from a place, the lowest of several. place: int64[d]."""
    best, most = NONE, np.int64(-1)
    for i in range(count):
        length = squared_distance(points[left[i]], place)
        if length > most:
            best, most = left[i], length
    return best


@inner_kernel
def squared_distance(one, other):
    """Return the squared distance of two points: int64[d]."""
    total = np.int64(0)
    for q in range(len(one)):
        total += (one[q] - other[q]) * (one[q] - other[q])
    return total


@inner_kernel
def take_nearest(points, k, left, state, near, distance, owner, centre):
    """Make a class of the k points nearest to ``centre``, which is one of them."""
    held = np.int64(0)
    for i in range(state[LEFT]):
        point = left[i]
        length = np.int64(-1) if point == centre else squared_distance(points[point], points[centre])
        if held < k or length < distance[held - 1]:
            if held < k:
                held += 1
            j = held - 1
            while j > 0 and distance[j - 1] > length:
                near[j], distance[j] = near[j - 1], distance[j - 1]
                j -= 1
            near[j], distance[j] = point, length
    for member in near:
        owner[member] = state[CLASSES]
    kept = np.int64(0)
    for i in range(state[LEFT]):
        if owner[left[i]] == NONE:
            left[kept] = left[i]
            kept += 1
    state[LEFT], state[CLASSES] = kept, state[CLASSES] + 1
