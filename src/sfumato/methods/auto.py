"""The default method: form classes in several ways, keep those with the least loss, and improve them by search.

Which way is best depends on the table and on k: a line along a curve where attributes are numbers; a snake, a gain tree
or the cells of taxonomy levels where they are categories. ``fast`` cuts the three lines; with more effort cell peeling
is tried as well, and a search (``improvement``) starts from the best, for as long as the effort allows. ``best`` also
anneals the classes (``annealed_improvement``), and ``exact`` goes on from there with exact solutions of neighbourhoods
(``exact_improvement``).

With more than a million records ``normal`` does not search, but forms the dearest classes anew (``dear_classes``).

With more than ``WHOLE`` records all ways are tried on a sample, and only the best on all records.

Up to ``EXACT`` records the loss is never above that of ``hilbert``: the best way of the sample is compared with it on
all records, which ends as soon as ``hilbert`` cannot cost less. Beyond that, this holds on the sample only. Where
requirements are met by merging classes afterwards (values of persons, joint, kinds of other packages), it holds before
merging. ``fast`` merges for k persons too; with more effort these are values that every class has k of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.kernels.threads import in_threads
from sfumato.losses.exact_costs import total_cost
from sfumato.methods.class_counting import Counting
from sfumato.methods.line.diverse_cut import strictest_frequency
from sfumato.methods.line.optimal_cut import OptimalOneDimensional
from sfumato.methods.method import FAST, ClassBatch, Effort, Method, Records
from sfumato.methods.persons_as_values import persons_as_values
from sfumato.methods.trees.gain_tree import GainTree
from sfumato.orderings import Hilbert, Snake
from sfumato.policy.run_settings import USUAL_EFFORT
from sfumato.progress import Progress
from sfumato.requirements import Requirements

if TYPE_CHECKING:
    from sfumato.methods.search.improvement import Improvement, SearchLimits

WHOLE, SAMPLE = 1 << 17, 1 << 16  # tables of more than WHOLE records are tried on SAMPLE of them
EXACT = 1 << 20  # up to this many records the result is compared with that of ``hilbert``
ROUNDS = {"normal": 6, "balanced": 6}
ROUNDS_UNDER_DIVERSITY = {"normal": 3, "balanced": 8}  # with requirements on sensitive values
CHAIN_PASSES_OF_NORMAL = 3  # more short rounds gain more than fewer long ones
WORK, WORK_UNDER_DIVERSITY = 50, 80  # rounds times the least size of a class: a round takes longer with large classes
TIMES_OF_NORMAL = 2  # a small table takes at most so many times as many rounds
USUAL_COLUMNS = 8  # quasi-identifiers, beyond which ``normal`` makes fewer rounds
MOST_ROUNDS = 1 << 20

HILBERT = OptimalOneDimensional(ordering=Hilbert(), cost="box")
CURVES = (HILBERT, OptimalOneDimensional(ordering=Snake(curve=Hilbert()), cost="box"))


class Auto:
    """Choose the method with the least loss, and improve its classes by search."""

    name = "auto"
    paper = "Sfumato's own, on the cut of Ghinita et al., VLDB 2007"
    summary = "the best of several methods, then local search and rebuilding of classes, for as long as effort allows"
    use = "the default, for any requirement: little loss quickly, the least loss with more effort"
    separates = False

    def check(self, requirements: Requirements) -> None:
        """Accept any requirement: lines are cut for it, or classes are merged."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.decided_by_kernel

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        if not records.effort.is_quick:
            records, requirements = persons_as_values(records, requirements)
        batch, facts = _least(records, requirements, progress)
        if requirements.decided_by_kernel and not records.effort.is_quick:
            limits = limits_of(records.effort, requirements, records.count, len(records.domains))
            if _is_repaired(records, requirements):
                batch = _or_repaired(batch, facts, records, requirements, progress)
            improvement = improvement_of(batch, records, requirements)
            with progress.phase("improve", None if limits.rounds == MOST_ROUNDS else limits.rounds * records.count):
                facts["ended"] = improvement.improve(limits, progress)
            batch = improvement.batch
        if records.effort.peels_dear:
            batch, facts["formed_anew"] = _dear_formed_anew(batch, records, requirements, progress)
        effort = USUAL_EFFORT if records.effort.peels_dear else str(records.effort)
        progress.decisions["choice"] = {**facts, "effort": effort}
        yield batch

    def foresee(self, records: Records, many_k: Sequence[int], progress: Progress) -> None:
        """Compute the cuts along the curves for several k at once; the tree differs for every k."""
        for method in CURVES:
            method.foresee(records, many_k, progress)


def _dear_formed_anew(
    batch: ClassBatch, records: Records, requirements: Requirements, progress: Progress
) -> tuple[ClassBatch, int]:
    """Return the classes, the dearest formed anew where that pays, and how many records are in new classes."""
    from sfumato.methods.lattice.dear_classes import are_peeled, peeled_anew

    if not (requirements.decided_by_kernel and are_peeled(records, requirements)):
        return batch, 0
    with progress.phase("improve", None):
        return peeled_anew(batch, records, requirements, progress)


def _is_repaired(records: Records, requirements: Requirements) -> bool:
    """Return whether to try repaired classes: where k demands more than l, good classes for k alone mostly hold."""
    frequency = strictest_frequency(records, requirements)
    return records.effort.seconds is None and frequency is not None and requirements.least_class > frequency.l


def _or_repaired(
    batch: ClassBatch, facts: dict[str, Any], records: Records, requirements: Requirements, progress: Progress
) -> ClassBatch:
    """Return the classes with less loss: these, or repaired classes for k alone."""
    from sfumato.methods.search.improvement import Improvement

    alone = Requirements(tuple(part for part in requirements.parts if part.attribute is None))
    with progress.phase("repair", None):
        improvement = Improvement(_least(records, alone, progress)[0], records, alone)
        effort = Effort("balanced") if records.effort.is_thorough else records.effort
        improvement.improve(limits_of(effort, alone, records.count, len(records.domains)), progress)
        repaired = Improvement(improvement.batch, records, requirements)
        repaired.repair(progress)
    facts["tried"]["k alone, repaired"] = round(repaired.cost / (records.costs.full * records.count), 6)
    facts["repaired"] = repaired.cost < _cost(batch, records)
    return repaired.batch if facts["repaired"] else batch


def improvement_of(batch: ClassBatch, records: Records, requirements: Requirements) -> Improvement:
    """Return what improves the classes with the effort of the records: search, with annealing, with exact solutions."""
    if records.effort.is_exact:
        from sfumato.methods.search.exact_improvement import ExactImprovement

        return ExactImprovement(batch, records, requirements)
    if records.effort.is_annealed:
        from sfumato.methods.search.annealed_improvement import AnnealedImprovement

        return AnnealedImprovement(batch, records, requirements)
    from sfumato.methods.search.improvement import Improvement

    return Improvement(batch, records, requirements)


def limits_of(effort: Effort, requirements: Requirements, records: int, columns: int) -> SearchLimits:
    """Return when the search ends."""
    from sfumato.methods.search.improvement import CHAIN_PASSES, SearchLimits, times_more

    if effort.seconds is not None:
        return SearchLimits(MOST_ROUNDS, effort.seconds)
    if effort.is_unlimited:
        return SearchLimits(MOST_ROUNDS)
    rounds, work = ROUNDS[effort.level], WORK
    if requirements.attributes:
        rounds, work = ROUNDS_UNDER_DIVERSITY[effort.level], WORK_UNDER_DIVERSITY
    times, passes = times_more(records), CHAIN_PASSES
    if not effort.is_thorough:  # every step takes longer with more columns
        rounds, times = rounds * USUAL_COLUMNS // max(columns, USUAL_COLUMNS), min(times, TIMES_OF_NORMAL)
        passes = CHAIN_PASSES_OF_NORMAL
    return SearchLimits(max(min(rounds, work // requirements.least_class), 1) * times, chain_passes=passes)


def _least(records: Records, requirements: Requirements, progress: Progress) -> tuple[ClassBatch, dict[str, Any]]:
    """Return the classes with the least loss, and the facts to report.

    The facts are the method, the loss of each way, the number of records tried, and whether the loss is at most that of
    ``hilbert`` on all of them.
    """
    tried = records if records.count <= WHOLE else _sampled(records)
    if not requirements.holds(Counting(tried, requirements).whole).all():
        tried = records  # a sample may fail requirements that all records meet, and then predicts nothing
    frequency = strictest_frequency(tried, requirements)
    ways: tuple[Method, ...] = (*CURVES, GainTree())
    if frequency is not None:
        from sfumato.methods.trees.eligible_tree import EligibleTree

        ways = (*ways, EligibleTree())
    if not records.effort.is_quick and (frequency is None or requirements.least_class > frequency.l):
        from sfumato.methods.lattice.cell_peeling import CellPeeling

        ways = (*ways, CellPeeling())  # where l demands more than k, cells take long and lose more than the tree
    progress.expect(len(ways) * tried.count + (0 if tried is records else records.count))

    def formed(method: Method) -> ClassBatch:
        return ClassBatch.joined(list(method.classes(tried, requirements, progress)))

    # Side by side, unless the records are so many that the memory of several methods counts.
    batches = in_threads(formed, ways) if tried.count <= WHOLE else list(map(formed, ways))
    costs = [_cost(batch, records) for batch in batches]
    worth = records.costs.full * tried.count
    losses = {method.name: round(cost / worth, 6) for cost, method in zip(costs, ways, strict=True)}
    least = costs.index(min(costs))
    method, batch = ways[least], batches[least]
    exact = tried is records or method is HILBERT or records.count <= EXACT
    facts = {"start": method.name, "tried": losses, "tried_on": tried.count, "exact": exact}
    if tried is records:
        return batch, facts
    batch = ClassBatch.joined(list(method.classes(records, requirements, progress)))
    if exact and method is not HILBERT:
        hilbert_batch = HILBERT.below(_cost(batch, records), records, requirements, progress)
        if hilbert_batch is not None:
            facts["start"], batch = HILBERT.name, hilbert_batch
    return batch, facts


def best_curve(
    records: Records, requirements: Requirements, progress: Progress
) -> tuple[OptimalOneDimensional, dict[str, Any]]:
    """Return the curve with the least loss on a sample of a larger table, and the facts to report."""
    candidates = []
    if requirements.holds(Counting(records, requirements).whole).all():
        for method in CURVES:
            batch = ClassBatch.joined(list(method.classes(records, requirements, progress)))
            candidates.append((_cost(batch, records), method))
    worth = records.costs.full * records.count
    losses = {method.name: round(cost / worth, 6) for cost, method in candidates}
    # A sample may fail requirements that all records meet, and then predicts nothing.
    chosen = min(candidates, key=lambda candidate: candidate[0])[1] if candidates else CURVES[-1]
    return chosen, {
        "start": chosen.name,
        "tried": losses,
        "tried_on": records.count if candidates else 0,
        "exact": False,
        "effort": str(records.effort if records.effort.is_thorough else FAST),
    }


def _cost(batch: ClassBatch, records: Records) -> int:
    return total_cost(batch.starts, batch.low, batch.high, records.costs.layout, records.costs.units)


def _sampled(records: Records) -> Records:
    """Return an evenly spaced sample in the order of the codes, so that the order of the input leaves no trace."""
    positions = np.arange(0, records.count, -(-records.count // SAMPLE))
    which, weights = np.unique(np.searchsorted(records.starts, positions, side="right") - 1, return_counts=True)
    return replace(
        records,
        codes=np.take(records.codes, which, axis=0),
        starts=np.append(0, np.cumsum(weights)),
        rows=records.rows[positions],
        lines=None,
    )
