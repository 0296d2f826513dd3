"""The classes of a table in memory: formed by a method, tested, and searched for records to leave out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.methods import ForNumbers, Kinds, Method, check_loss, check_method, chosen_name, method_named
from sfumato.methods.class_counting import Counting
from sfumato.methods.lattice.lattice_method import LatticeMethod, LevelRecoding, chosen_in_memory
from sfumato.methods.lattice.node_results import SuppressionLimits
from sfumato.methods.level_parts import divided
from sfumato.methods.merge_failing import join_failing
from sfumato.methods.method import ClassBatch, Records
from sfumato.methods.suppression import surplus_rows
from sfumato.progress import Progress
from sfumato.releases.local_recoding import shown_classes
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Codes, Domain

if TYPE_CHECKING:
    from sfumato.releases.recoding import Recoding


@dataclass(frozen=True)
class FormedClasses:
    """The classes as they are formed; they show boxes of ``domains``. Rows in none of them are left out."""

    method: Method
    batches: Iterator[ClassBatch]
    domains: list[Domain]


def method_for(table: TableInMemory) -> Method:
    """Return the method that forms the classes: one with regions if the policy releases regions."""
    policy = table.job.policy
    method = method_named(chosen_name(policy.method.name, table.records.workload, policy.method.loss))
    if policy.release.boxes != "regions" or isinstance(method, LatticeMethod):
        return method
    from sfumato.releases.learn_recoding import regional

    return regional(method)


def check_policy(table: TableInMemory) -> None:
    """Refuse a method that the table cannot be given to, and requirements that no release can meet."""
    workload, method = table.records.workload, method_for(table)
    check_loss(method, table.job.policy.method.loss)
    check_method(method, table.job.requirements, Kinds() if workload is None else workload.kinds)
    if isinstance(method, ForNumbers):
        method.check_domains(table.records.domains)
    surplus_rows(table.records, table.job.requirements, most_left_out(table))
    table.job.warnings.extend(_empty_selections(table))


def most_left_out(table: TableInMemory) -> int:
    """Return how many records may be left out so that the requirements can be met."""
    policy = table.job.policy
    # Regions tile the domain whether or not there are outliers, so no record is left out for their sake.
    regions = policy.release.boxes == "regions" and not isinstance(method_for(table), LatticeMethod)
    return 0 if regions else policy.most_suppressed(table.count)


def _empty_selections(table: TableInMemory) -> list[str]:
    """Warn about selections without a record, which are more often a slip than intended."""
    workload = table.records.workload
    boxes = None if workload is None else workload.selections
    if boxes is None:
        return []
    empty = [
        repr(selection.where)
        for box, selection in enumerate(table.job.policy.workload.selection)
        if not boxes.holds(box, table.records.codes).any()
    ]
    return [f"no record of this table is selected by {where}" for where in empty]


def learn_recoding(table: TableInMemory) -> Recoding:
    """Learn the recoding whose regions meet the policy on the records of the table."""
    from sfumato.releases.learn_recoding import grown_recoding, regional
    from sfumato.releases.recoding import Recoding

    job, method = table.job, method_for(table)
    if isinstance(method, LatticeMethod):
        levels = _chosen_levels(table, method)[0].numbers
        return Recoding.of_levels(
            levels,
            table.domains,
            policy=job.policy,
            method=method.name,
            taxonomies=job.taxonomies,
            names=job.kept,
        )
    method = regional(method)
    with job.progress.phase("partition", table.records.count):
        return grown_recoding(
            method, table.records, job.requirements, job.policy, job.taxonomies, job.kept, job.progress
        )


def form_classes(table: TableInMemory) -> FormedClasses:
    """Form the classes that the policy asks for."""
    job, method = table.job, method_for(table)
    if isinstance(method, LatticeMethod):
        level_recoding, released = _chosen_levels(table, method)
        return FormedClasses(method, iter([level_recoding.classes(released)]), level_recoding.domains)
    if job.policy.release.boxes == "regions":
        recoding = learn_recoding(table)
        regions = recoding.regions.regions_of(table.encoded.codes, table.encoded.domains)
        return FormedClasses(method, iter([recoding.regions.classes(regions)]), list(recoding.domains))
    batches = assign(
        table.records,
        method,
        job.requirements,
        job.progress,
        numbered=() if method.separates else job.policy.numbered,
        most_suppressed=job.policy.most_suppressed(table.count),
        suppression_cost=job.policy.release.suppression_cost,
    )
    return FormedClasses(method, batches, table.encoded.domains)


def _chosen_levels(table: TableInMemory, method: LatticeMethod) -> tuple[LevelRecoding, Records]:
    """Choose a level for every column. Return also the records without those that the table has too many of."""
    job, records = table.job, table.records
    most = job.policy.most_suppressed(table.count)
    with job.progress.phase("partition", table.count):
        surplus = surplus_rows(records, job.requirements, most)
        rest = records.without(surplus)
        limits = SuppressionLimits.of(job.policy, most - len(surplus), records.costs)
        return chosen_in_memory(method, rest, job.requirements, limits, job.progress), rest


def assign(
    records: Records,
    method: Method,
    requirements: Requirements,
    progress: Progress,
    *,
    numbered: Collection[str],
    most_suppressed: int = 0,
    suppression_cost: float = 1.0,
) -> Iterator[ClassBatch]:
    """Yield the classes, each tested against the requirements as it comes."""
    with progress.phase("partition", records.count):
        left_out = surplus_rows(records, requirements, most_suppressed)
        records, most = records.without(left_out), most_suppressed - len(left_out)
        if requirements.closed_under_union and method.meets(requirements) and (most == 0 or method.separates):
            for part, batches in _classes_by_part(records, method, requirements, progress):
                counting = Counting(part, requirements)
                for batch in batches:
                    if not requirements.holds(counting.runs(batch.rows, batch.starts)).all():
                        raise AssertionError(f"{method.name} made a class that does not meet the requirements")
                    yield batch
            return

        def shown(low: Codes, high: Codes) -> NDArray[np.integer]:
            return shown_classes(records.domains, low, high, numbered=numbered)

        def classes_of(remaining: Records) -> ClassBatch:
            by_part = _classes_by_part(remaining, method, requirements, progress)
            return ClassBatch.joined(
                [join_failing(ClassBatch.joined(list(batches)), part, requirements, shown) for part, batches in by_part]
            )

        if most == 0:
            yield classes_of(records)
            return
        from sfumato.methods.outlier_search import OutlierSearch, estimates

        price = round(suppression_cost * records.costs.full)
        best, trials = OutlierSearch(records, requirements, most, price, classes_of, progress).best()
        progress.decisions.update(best.decisions)
        progress.decisions["other_costs"] = estimates(trials, records, suppression_cost, already=len(left_out))
        yield best.classes


def _classes_by_part(
    records: Records, method: Method, requirements: Requirements, progress: Progress
) -> Iterator[tuple[Records, Iterator[ClassBatch]]]:
    """Yield the parts that no class may reach beyond, each with its classes. The largest says what ``auto`` chose."""
    parts = divided(records, requirements)
    largest, choice = max(parts, key=lambda part: part.count), None
    for part in parts:
        yield part, method.classes(part, requirements, progress)
        choice = progress.decisions.get("choice") if part is largest else choice
    if choice is not None and len(parts) > 1:
        progress.decisions["choice"] = choice | {"parts": len(parts)}
