"""The classes of a table on disk: along a line, or by the regions of Mondrian."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.disk.class_file import ClassFile
from sfumato.engines.disk.coarsest_parts import classes_of_parts
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.diverse_cut_by_range import cut_line_by_range
from sfumato.engines.disk.level_search import choose_levels
from sfumato.engines.disk.region_checks import failing_leaves
from sfumato.engines.disk.rothko_io_cost import IoCounters
from sfumato.engines.disk.rothko_regions import regions_by_counts
from sfumato.engines.disk.rothko_s import rothko_s
from sfumato.engines.disk.rothko_t import rothko_t
from sfumato.engines.disk.search_by_range import search_ranges
from sfumato.engines.disk.streaming_cut import cut_line
from sfumato.methods import Method, chosen_name, method_named
from sfumato.methods.auto import Auto, best_curve
from sfumato.methods.lattice.lattice_method import LatticeMethod, LevelRecoding
from sfumato.methods.level_parts import limited_columns
from sfumato.methods.line.optimal_cut import OptimalOneDimensional
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.methods.trees.region_tree import Tiling
from sfumato.methods.trees.sampled_tests import ALPHA_LEVEL
from sfumato.releases.learn_recoding import regional, sound_recoding
from sfumato.releases.recoding import Recoding
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.scratch import Scratch


@dataclass(frozen=True)
class ClassesOnDisk:
    """The classes in a file, or the levels that say what each record shows; and the name of the policy's method."""

    method: str
    classes: ClassFile | LevelRecoding


def form_classes(table: CodedTable, budget: MemoryBudget, scratch: Scratch) -> ClassesOnDisk:
    """Form the classes that the policy asks for, and search for less loss as its effort allows."""
    job, progress = table.job, table.job.progress
    method = method_named(chosen_name(table.policy.method.name, table.workload(table.sample)))
    if isinstance(method, LatticeMethod):
        return ClassesOnDisk(method.name, choose_levels(table, method, budget))

    def formed(part: CodedTable) -> ClassFile:
        class_file = _assigned(part, _method_on_disk(method, part), budget, scratch)
        if isinstance(method, Auto) and job.requirements.decided_by_kernel and part.effort.is_thorough:
            class_file = search_ranges(part, class_file, job.requirements, budget, scratch, progress)
        return class_file

    if limited_columns(table.domains):
        return ClassesOnDisk(method.name, classes_of_parts(table, method, formed, budget, scratch))
    return ClassesOnDisk(method.name, formed(table))


def learn_recoding(table: CodedTable, budget: MemoryBudget, scratch: Scratch) -> Recoding:
    """Learn the recoding that memory would learn: levels, or Mondrian's regions, from counts of the whole table."""
    job, asked = table.job, method_named(table.policy.method.name)
    if isinstance(asked, LatticeMethod):
        levels = choose_levels(table, asked, budget).numbers
        return Recoding.of_levels(
            levels, table.domains, policy=job.policy, method=asked.name, taxonomies=job.taxonomies, names=job.kept
        )
    method = regional(method_named(chosen_name(table.policy.method.name, table.workload(table.sample[:1]))))
    assert isinstance(method, MondrianMethod)

    def recoding_by(tree: Tiling) -> Recoding:
        return Recoding.of(
            tree, table.domains, policy=job.policy, method=method.name, taxonomies=job.taxonomies, names=job.kept
        )

    def failing(recoding: Recoding, tree: Tiling) -> NDArray[np.int64]:
        return failing_leaves(table, job.requirements, recoding, tree, budget)

    counters = IoCounters()
    with job.progress.phase("partition", table.count):
        cache = table.policy.engine.frequency_groups
        tree = regions_by_counts(
            table, method, job.requirements, budget, scratch, job.progress, cache=cache, counters=counters
        )
        job.progress.decisions["divided"] = {"by": "counts", **asdict(counters)}
        return sound_recoding(tree, recoding_by, failing)


def _method_on_disk(method: Method, table: CodedTable) -> Method:
    """Return the method that forms the classes: for ``auto`` the curve that loses least on a sample."""
    if not isinstance(method, Auto):
        return method
    job = table.job
    with job.progress.phase("partition"):
        curve, choice = best_curve(table.records(table.sample), job.requirements, job.progress)
    job.progress.decisions["choice"] = choice | {"exact": choice["tried_on"] == table.count}
    return curve


def _assigned(table: CodedTable, method: Method, budget: MemoryBudget, scratch: Scratch) -> ClassFile:
    requirements, progress = table.job.requirements, table.job.progress
    if isinstance(method, MondrianMethod):
        return _divided(table, method, budget, scratch)
    assert isinstance(method, OptimalOneDimensional)
    if requirements.attributes:
        return cut_line_by_range(table, method, requirements, budget, scratch, progress)
    return cut_line(table, method, requirements.least_class, budget, scratch, progress)


def _divided(table: CodedTable, method: MondrianMethod, budget: MemoryBudget, scratch: Scratch) -> ClassFile:
    """Divide by counts, with the classes of memory; on samples if the policy says so or counts do not decide."""
    requirements, progress, engine = table.job.requirements, table.job.progress, table.policy.engine
    by_counts = method.rule != "selection" and requirements.decided_by_kernel and not engine.sampled
    counters = IoCounters()
    shared = (table, method, requirements, budget, scratch, progress)
    with progress.phase("partition", table.count):
        if by_counts:
            class_file = rothko_t(*shared, cache=engine.frequency_groups, counters=counters)
        else:
            class_file = rothko_s(
                *shared,
                sample=engine.sample_size,
                alpha=engine.sample_alpha or ALPHA_LEVEL,
                tests=engine.sample_tests,
                cache=engine.frequency_groups,
                counters=counters,
            )
    progress.decisions["divided"] = {"by": "counts" if by_counts else "samples", **asdict(counters)}
    return class_file
