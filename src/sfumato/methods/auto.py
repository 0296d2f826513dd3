"""The default: several lines are cut in the best way, the least loss is kept, and then made less by search.

Which line is best depends on the table and on k: a curve where attributes are numbers, a snake or a gain tree where
they are categories. Cutting all three takes little time, so all are tried; with more than ``SAMPLE`` records on a part
of them, and the best on all, the tree only with more effort than ``fast``. Then, as far as the effort allows,
``improving`` goes on from there.

Never more loss than ``hilbert``, up to ``SAMPLE`` records; beyond, on the part that was tried. Where requirements are
met by joining classes afterwards (persons, joint, kinds of other packages), that is so before the joining.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from sfumato.losses.costs import total_cost
from sfumato.methods.gain_tree import GainTree
from sfumato.methods.improving import Improvement, Limits
from sfumato.methods.method import ClassBatch, Effort, Method, Records
from sfumato.methods.optimal_1d import OptimalOneDimensional
from sfumato.orderings import Hilbert, Snake
from sfumato.progress import Progress
from sfumato.requirements import Requirements

SAMPLE = 1 << 17  # records that every line is tried on
ROUNDS_OF_BALANCED = 10
WORK_OF_BALANCED = 400  # rounds times the least size of a class: a round takes longer with large classes
MOST_ROUNDS = 1 << 20

CURVES = tuple(OptimalOneDimensional(ordering=one, cost="box") for one in (Hilbert(), Snake(curve=Hilbert())))


class Auto:
    """The least loss of several lines, made less by search."""

    name = "auto"
    paper = "Sfumato's own, on the cut of Ghinita et al., VLDB 2007"
    summary = "the best of several lines, then local search and rebuilding of neighbouring classes, as effort allows"
    use = "the default: the least loss there is, with any requirement"
    separates = False

    def check(self, requirements: Requirements) -> None:
        """Any requirement can be met: lines are cut for it, or classes are joined."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.tested

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        method, batch, losses = _least(records, requirements, progress)
        told = {"start": method.name, "tried": losses}
        if requirements.tested and records.effort != Effort("fast"):
            improvement = Improvement(batch, records, requirements)
            limits = limits_of(records.effort, requirements.least_class)
            with progress.phase("improve", None if limits.rounds == MOST_ROUNDS else limits.rounds * records.count):
                told["ended"] = improvement.improve(limits, progress)
            batch = improvement.batch
        progress.told["choice"] = told
        yield batch

    def foresee(self, records: Records, many_k: Sequence[int], progress: Progress) -> None:
        """Find the cuts of the curves for several k in one go; the tree is another for every k."""
        for method in CURVES:
            method.foresee(records, many_k, progress)


def limits_of(effort: Effort, least: int) -> Limits:
    """When the search ends."""
    if effort.seconds is not None:
        return Limits(MOST_ROUNDS, effort.seconds)
    if effort.level == "best":
        return Limits(MOST_ROUNDS)
    return Limits(max(min(ROUNDS_OF_BALANCED, WORK_OF_BALANCED // least), 1))


def _least(
    records: Records, requirements: Requirements, progress: Progress
) -> tuple[Method, ClassBatch, dict[str, float]]:
    """The method with the least loss, its classes, and the loss of every one that was tried, 1 being all there is."""
    tried = records if records.count <= SAMPLE else _sampled(records)
    found = []
    # The tree takes longer than all the rest of a large table, so that it is not for who wants the release at once.
    quick = records.count > SAMPLE and records.effort == Effort()
    lines: tuple[Method, ...] = CURVES if quick else (*CURVES, GainTree())
    for method in lines:
        batch = ClassBatch.joined(list(method.classes(tried, requirements, progress)))
        layout, units = records.costs.layout, records.costs.units
        found.append((int(total_cost(batch.starts, batch.low, batch.high, layout, units)), method, batch))
    worth = records.costs.full * tried.count
    losses = {method.name: round(cost / worth, 6) for cost, method, _ in found}
    _, method, batch = min(found, key=lambda one: one[0])
    if tried is not records:
        batch = ClassBatch.joined(list(method.classes(records, requirements, progress)))
    return method, batch, losses


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
