"""The search for classes with the least sum of squares: MDAV, then annealing, as long as effort allows.

The records are divided by random directions into parts of near records. MDAV forms the first classes of each part. Then
every class is open to change at a high temperature, which falls slowly (``squared_error_moves``). After each fall the
classes are divided anew, so that records meet others than those of their part. Parts share no class, so threads work
on them side by side, and the result does not depend on which finishes first. A table of few records is one part.

``fast`` anneals quickly and from a low temperature, ``balanced`` slowly and from a high one, ``best`` ever more slowly
until that gains little. The classes with the least cost count, among them those of MDAV. Classes have at least k
records at any time, so the search can end at any moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.threads import in_threads
from sfumato.losses.squared_errors import check_numeric, standard_points
from sfumato.methods.clustering.mdav import batch_of, mdav_classes
from sfumato.methods.method import ClassBatch, Effort, Records
from sfumato.methods.search.squared_error_moves import LOGARITHMS, anneal, nearest_rows, summed_classes
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Domain

PART, CLASSES = 1250, 30  # records of a part, and the classes that it has at least
NEAR = 96  # rows that a row looks for company among
ROUNDS, FALLS = 12, 5  # divisions into parts, and temperatures between two of them
COLDEST = 0.01  # times the mean cost of a record
DESCENT = 500  # tries at temperature 0 for each record
GROWTH = 4  # each annealing of an open-ended search tries so many times as much as the one before
SETTLED = 1000  # such a search ends when an annealing gains less than one part in so many
QUICKEST = 500  # tries that a record of a large table has at least


@dataclass(frozen=True)
class Annealing:
    """How classes are annealed.

    tries: for each record of a small table. hottest: times the mean cost of a record. starts: annealings that begin
    anew, as where the outermost records go is decided early.
    """

    tries: int
    hottest: float
    starts: int = 1


ANNEALINGS = {
    "fast": Annealing(1000, 0.3),
    "normal": Annealing(5000, 3.0),
    "balanced": Annealing(18_000, 100.0, starts=2),
}


class SquaredErrorSearch:
    """Anneal the classes of MDAV."""

    name = "sse-search"
    paper = "Sfumato's own, on Kirkpatrick, Gelatt, Vecchi: Optimization by simulated annealing, Science 1983"
    summary = "annealing of the classes of mdav for the least sum of squares; numeric columns alone"
    use = "what auto is with loss = sse: classes of numbers whose means are to be released"
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
        search = _AnnealedClasses(points, k, np.random.PCG64(records.seed or 0), progress)
        first = search.least
        with progress.phase("improve", None):
            ended = search.improve(records.effort)
        costs = {"mdav": first, self.name: search.least}
        tried = {name: round(standard.information_loss(cost), 6) for name, cost in costs.items()}
        choice = {"tried": tried, "tried_on": records.count, "ended": ended, "effort": str(records.effort)}
        progress.decisions["choice"] = choice
        yield batch_of(records, points, search.owner)


class _AnnealedClasses:
    """Classes with the least cost so far. owner: int64[n], the class of each point; least: what they cost."""

    def __init__(self, points: NDArray[np.int64], k: int, random: np.random.PCG64, progress: Progress) -> None:
        self._points, self._k, self._random, self._progress = points, k, random, progress
        self._size = max(PART, CLASSES * k)
        self._near: NDArray[np.int64] | None = None  # of a table that is one part
        self.owner = np.zeros(len(points), np.int64)
        count = 0
        for rows in self._parts(points, np.ones(len(points), np.int64)):
            found = mdav_classes(points[rows], k, progress.advance)
            self.owner[rows] = found + count
            count += int(found.max()) + 1
        self.least = self._cost(self.owner)

    def improve(self, effort: Effort) -> str:
        """Anneal the classes; return why the search ended."""
        deadline = None if effort.seconds is None else time.monotonic() + effort.seconds
        if self.least == 0 or len(self._points) < 2 * self._k:
            return "nothing to gain"
        lasting = effort.level in ("best", "exact")  # no part of this search is solved exactly
        annealing = ANNEALINGS["fast" if deadline is not None else "balanced" if lasting else effort.level]
        tries, hottest, number = annealing.tries, annealing.hottest, 1
        while True:
            before, begun = self.least, time.monotonic()
            self._anneal(tries, hottest, lambda: deadline is not None and time.monotonic() > deadline)
            if self._progress.stopped:
                return f"interrupted in annealing {number:,}"
            if deadline is not None:
                left, taken = deadline - time.monotonic(), time.monotonic() - begun
                if left <= 0:
                    return f"the time was over in annealing {number:,}"
                tries = int(tries * min(GROWTH, max(left / taken, 1 / GROWTH)))
                hottest = ANNEALINGS["balanced"].hottest
            elif number >= annealing.starts:
                if not lasting or (before - self.least) * SETTLED < before:
                    return f"{number:,} annealings" if number > 1 else "1 annealing"
                tries *= GROWTH
            number += 1

    def _anneal(self, tries: int, hottest: float, out_of_time: Callable[[], bool]) -> None:
        """Anneal all classes once, and keep the result if it costs less than the best so far."""
        count = len(self._points)
        each = max(tries * PART // max(count, PART), min(tries, QUICKEST)) // (ROUNDS * FALLS) + 1
        mean = self._cost(self.owner) / count
        fall = (COLDEST / hottest) ** (1 / (ROUNDS * FALLS - 1))
        owner = self.owner.copy()
        for number in range(ROUNDS + 1):
            last = number == ROUNDS or self._progress.stopped or out_of_time()
            temperatures = [int(mean * hottest * fall ** (number * FALLS + i)) for i in range(FALLS)]
            owner = self._round(owner, [0] if last else temperatures, DESCENT if last else each)
            if last:
                break
        cost = self._cost(owner)
        if cost < self.least:
            self.owner, self.least = owner, cost

    def _round(self, owner: NDArray[np.int64], temperatures: list[int], tries: int) -> NDArray[np.int64]:
        """Anneal the classes in parts of near ones; return the new classes."""
        sizes = np.bincount(owner)
        sums = np.zeros((len(sizes), self._points.shape[1]), np.int64)
        np.add.at(sums, owner, self._points)
        order = np.argsort(owner, kind="stable")
        starts = np.append(0, np.cumsum(sizes))
        parts = [
            np.sort(np.concatenate([order[starts[group] : starts[group + 1]] for group in groups]))
            for groups in self._parts(sums // sizes[:, None], sizes)
        ]
        states = self._random.random_raw(len(parts)) | np.uint64(1)

        def work(number: int) -> NDArray[np.int64]:
            rows = parts[number]
            points = self._points[rows]
            classes = summed_classes(points, np.unique(owner[rows], return_inverse=True)[1], self._k)
            near, state = self._nearest(points), states[number : number + 1].copy()
            for temperature in temperatures:
                anneal(points, near, self._k, classes, temperature, LOGARITHMS, tries * len(rows), state)
            return np.unique(classes.owner, return_inverse=True)[1]

        changed, count = np.empty_like(owner), 0
        for rows, found in zip(parts, in_threads(work, range(len(parts))), strict=True):
            changed[rows] = found + count
            count += int(found.max()) + 1
        return changed

    def _nearest(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        whole = len(points) == len(self._points)
        if whole and self._near is not None:
            return self._near
        near = np.empty((len(points), min(NEAR, len(points) - 1)), np.int64)
        nearest_rows(points, near)
        if whole:
            self._near = near
        return near

    def _parts(self, places: NDArray[np.int64], sizes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Divide places with so many records each into parts of near ones: halves along random directions."""
        parts, waiting = [], [np.arange(len(places))]
        while waiting:
            chosen = waiting.pop()
            if int(sizes[chosen].sum()) <= 2 * self._size:
                parts.append(chosen)
                continue
            direction = (self._random.random_raw(places.shape[1]) % np.uint64(201)).astype(np.int64) - 100
            along = chosen[np.argsort(places[chosen] // 256 @ direction, kind="stable")]
            half = int(np.searchsorted(np.cumsum(sizes[along]), sizes[along].sum() // 2)) + 1
            waiting += [np.sort(along[half:]), np.sort(along[:half])]
        return parts

    def _cost(self, owner: NDArray[np.int64]) -> int:
        return int(summed_classes(self._points, owner, self._k).cost.sum())
