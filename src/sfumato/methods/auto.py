"""The default: classes are formed in several ways, the least loss is kept, and then made less by search.

Which way is best depends on the table and on k: a line along a curve where attributes are numbers, a snake, a gain tree
or the cells of taxonomy levels where they are categories. ``fast`` cuts the three lines; with more effort cells are
peeled as well, and ``improving`` goes on from the best, as far as the effort allows.

With more than ``WHOLE`` records all are tried on a part of them, and the best on all.

Never more loss than ``hilbert``, up to ``EXACT`` records: what was best on a part is compared with it on all, which
ends as soon as it cannot cost less. Beyond, that is so on the part that was tried. Where requirements are met by
joining classes afterwards (persons, joint, kinds of other packages), it is so before the joining.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.losses.exact_costs import total_cost
from sfumato.methods.class_counting import Counting
from sfumato.methods.lattice.cell_peeling import CellPeeling
from sfumato.methods.line.diverse_cut import strictest_frequency
from sfumato.methods.line.optimal_cut import OptimalOneDimensional
from sfumato.methods.method import ClassBatch, Effort, Method, Records
from sfumato.methods.search.improvement import Improvement, SearchLimits, times_more
from sfumato.methods.trees.eligible_tree import EligibleTree
from sfumato.methods.trees.gain_tree import GainTree
from sfumato.orderings import Hilbert, Snake
from sfumato.progress import Progress
from sfumato.requirements import Requirements

WHOLE, SAMPLE = 1 << 17, 1 << 16  # up to so many records all are tried on, beyond that so many of them
EXACT = 1 << 20  # up to so many records the result is compared with that of ``hilbert``
ROUNDS_OF_BALANCED = 6
WORK_OF_BALANCED = 50  # rounds times the least size of a class: a round takes longer with large classes
ROUNDS_UNDER_DIVERSITY, WORK_UNDER_DIVERSITY = 8, 80  # the same with requirements on sensitive values
MOST_ROUNDS = 1 << 20

HILBERT = OptimalOneDimensional(ordering=Hilbert(), cost="box")
CURVES = (HILBERT, OptimalOneDimensional(ordering=Snake(curve=Hilbert()), cost="box"))


class Auto:
    """The least loss of several methods, made less by search."""

    name = "auto"
    paper = "Sfumato's own, on the cut of Ghinita et al., VLDB 2007"
    summary = "the best of several methods, then local search and rebuilding of neighbouring classes, as effort allows"
    use = "the default, for any requirement: little loss at once, the least with more effort"
    separates = False

    def check(self, requirements: Requirements) -> None:
        """Any requirement can be met: lines are cut for it, or classes are joined."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.tested

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        starts, told = _least(records, requirements, progress)
        batch = starts[0]
        if requirements.tested and records.effort != Effort("fast"):
            limits = limits_of(records.effort, requirements, records.count)
            if _is_repaired(records, requirements):
                starts = _with_repaired(starts, told, records, requirements, progress)
            found = []
            with progress.phase("improve", None if limits.rounds == MOST_ROUNDS else limits.rounds * records.count):
                for start in starts:
                    improvement = Improvement(start, records, requirements)
                    ended = improvement.improve(limits, progress)
                    found.append((improvement.cost, ended, improvement.batch))
            _, told["ended"], batch = min(found, key=lambda one: one[0])
        progress.told["choice"] = told
        yield batch

    def foresee(self, records: Records, many_k: Sequence[int], progress: Progress) -> None:
        """Find the cuts of the curves for several k in one go; the tree is another for every k."""
        for method in CURVES:
            method.foresee(records, many_k, progress)


def _is_repaired(records: Records, requirements: Requirements) -> bool:
    """Does k ask for more than l? Then classes that are good for k alone mostly hold."""
    frequency = strictest_frequency(records, requirements)
    return records.effort.seconds is None and frequency is not None and requirements.least_class > frequency.l


def _with_repaired(
    starts: list[ClassBatch], told: dict[str, Any], records: Records, requirements: Requirements, progress: Progress
) -> list[ClassBatch]:
    """As many classes to start from, of these and those for k alone that were repaired, the least loss first."""
    alone = Requirements(tuple(part for part in requirements.parts if part.attribute is None))
    with progress.phase("repair", None):
        improvement = Improvement(_least(records, alone, progress)[0][0], records, alone)
        improvement.improve(limits_of(Effort("balanced"), alone, records.count), progress)
        repaired = Improvement(improvement.batch, records, requirements)
        repaired.repair(progress)
    costs = [Improvement(start, records, requirements).cost for start in starts]
    told["tried"]["k alone, repaired"] = round(repaired.cost / (records.costs.full * records.count), 6)
    told["repaired"] = repaired.cost < min(costs)
    every = sorted(zip([*costs, repaired.cost], [*starts, repaired.batch], strict=True), key=lambda one: one[0])
    return [batch for _, batch in every[: len(starts)]]


def limits_of(effort: Effort, requirements: Requirements, records: int) -> SearchLimits:
    """When the search ends."""
    if effort.seconds is not None:
        return SearchLimits(MOST_ROUNDS, effort.seconds)
    if effort.level == "best":
        return SearchLimits(MOST_ROUNDS)
    rounds, work = ROUNDS_OF_BALANCED, WORK_OF_BALANCED
    if requirements.attributes:
        rounds, work = ROUNDS_UNDER_DIVERSITY, WORK_UNDER_DIVERSITY
    return SearchLimits(max(min(rounds, work // requirements.least_class), 1) * times_more(records))


def _least(records: Records, requirements: Requirements, progress: Progress) -> tuple[list[ClassBatch], dict[str, Any]]:
    """Classes to start from, the least loss first, and what to tell.

    That is the method, the loss of each, on how many records, and whether it is not above ``hilbert`` on all of them.

    Search does not always come lowest from the lowest start, so ``best`` starts from two.
    """
    tried = records if records.count <= WHOLE else _sampled(records)
    if not requirements.holds(Counting(tried, requirements).whole).all():
        tried = records  # a part need not meet what all meet, and would say nothing of them
    found = []
    frequency = strictest_frequency(tried, requirements)
    ways: tuple[Method, ...] = (*CURVES, GainTree())
    if frequency is not None:
        ways = (*ways, EligibleTree())
    if records.effort != Effort() and (frequency is None or requirements.least_class > frequency.l):
        ways = (*ways, CellPeeling())  # where l asks for more than k, cells take long and lose more than the tree
    for method in ways:
        batch = ClassBatch.joined(list(method.classes(tried, requirements, progress)))
        found.append((_cost(batch, records), method, batch))
    worth = records.costs.full * tried.count
    losses = {method.name: round(cost / worth, 6) for cost, method, _ in found}
    found = sorted(found, key=lambda one: one[0])[: 2 if records.effort == Effort("best") else 1]
    exact = tried is records or found[0][1] is HILBERT or records.count <= EXACT
    told = {"start": found[0][1].name, "tried": losses, "tried_on": tried.count, "exact": exact}
    if tried is records:
        return [batch for _, _, batch in found], told
    on_all = [ClassBatch.joined(list(method.classes(records, requirements, progress))) for _, method, _ in found]
    if exact and found[0][1] is not HILBERT:
        lower = HILBERT.below(_cost(on_all[0], records), records, requirements, progress)
        if lower is not None:
            told["start"], on_all = HILBERT.name, [lower, *on_all][: len(on_all)]
    return on_all, told


def best_curve(
    records: Records, requirements: Requirements, progress: Progress
) -> tuple[OptimalOneDimensional, dict[str, Any]]:
    """Which of the curves loses least on some records of a larger table, and what to tell of it."""
    found = []
    if requirements.holds(Counting(records, requirements).whole).all():
        for method in CURVES:
            batch = ClassBatch.joined(list(method.classes(records, requirements, progress)))
            found.append((_cost(batch, records), method))
    worth = records.costs.full * records.count
    losses = {method.name: round(cost / worth, 6) for cost, method in found}
    # A part need not meet what all meet, and then says nothing of them.
    chosen = min(found, key=lambda one: one[0])[1] if found else CURVES[-1]
    return chosen, {"start": chosen.name, "tried": losses, "tried_on": records.count if found else 0, "exact": False}


def _cost(batch: ClassBatch, records: Records) -> int:
    return total_cost(batch.starts, batch.low, batch.high, records.costs.layout, records.costs.units)


def _sampled(records: Records) -> Records:
    """As many records as are tried, every so manieth in the order of their codes: the input's order leaves no trace."""
    places = np.arange(0, records.count, -(-records.count // SAMPLE))
    which, weights = np.unique(np.searchsorted(records.starts, places, side="right") - 1, return_counts=True)
    return replace(
        records,
        codes=np.take(records.codes, which, axis=0),
        starts=np.append(0, np.cumsum(weights)),
        rows=records.rows[places],
        lines=None,
    )
