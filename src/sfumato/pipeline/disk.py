"""From a table and a policy to a draft of a release, for tables larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sfumato.engines.disk.coded_table import CodedTable, code_table
from sfumato.engines.disk.engine import DiskEngine, check_on_disk
from sfumato.engines.disk.linkability import linkable_on_disk
from sfumato.errors import InputError, UsageError
from sfumato.kernels.decorator import on_compilation
from sfumato.methods import AUTO, Effort, Kinds, Method, check_method, chosen_name, method_named
from sfumato.methods.auto import Auto, best_curve
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.methods.trees.region_tree import Tiling
from sfumato.pipeline.prepare import (
    Opened,
    fingerprints_of,
    learning_policy,
    open_table,
    policy_warnings,
    refuse_linkable,
)
from sfumato.pipeline.release import Draft
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.learn_recoding import regional, sound_recoding
from sfumato.releases.recoding import Recoding
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Codes

VALUE = 48  # bytes that a value of a domain takes, with its cost, its place on a curve and its count
VALUES_SHARE = 0.4  # of the memory that different values may take


def draft_on_disk(data: object, policy: Policy, memory: int, progress: Progress) -> Draft:
    """The released rows and all that is known of them, not yet audited, made within so many bytes of memory."""
    refuse_off_disk(policy)
    engine = DiskEngine(memory, progress)
    try:
        with on_compilation(progress.compiling):
            return _draft(data, policy, engine, progress)
    except BaseException:
        engine.close()  # an error that is kept would keep the files too
        raise


def fit_on_disk(data: object, policy: Policy, memory: int, progress: Progress) -> Recoding:
    """The recoding that a table teaches, the same as in memory, learnt within so many bytes of it."""
    refuse_to_fit_on_disk(policy)
    policy = learning_policy(policy)
    engine = DiskEngine(memory, progress)
    try:
        with on_compilation(progress.compiling):
            opened = open_table(data, policy)
            return _recoding(opened, _coded(opened, policy, engine, progress), engine, progress)
    finally:
        engine.close()


def _recoding(opened: Opened, table: CodedTable, engine: DiskEngine, progress: Progress) -> Recoding:
    policy, requirements = table.policy, opened.requirements
    method = regional(method_named(chosen_name(policy.method.name, table.workload(table.sample[:1]))))
    assert isinstance(method, MondrianMethod)

    def recoding_by(tree: Tiling) -> Recoding:
        return Recoding.of(
            tree, table.domains, policy=policy, method=method.name, taxonomies=opened.taxonomies, names=opened.kept
        )

    with progress.phase("partition", table.count):
        tree = engine.regions(table, method, requirements)
        return sound_recoding(tree, recoding_by, partial(engine.failing, table, requirements))


def _draft(data: object, policy: Policy, engine: DiskEngine, progress: Progress) -> Draft:
    opened = open_table(data, policy)
    warnings = policy_warnings(policy)
    if policy.release.max_suppressed_fraction:
        warnings.append("on disk no record is left out: records that cost more than they tell are looked for in memory")
    requirements, table = opened.requirements, _coded(opened, policy, engine, progress)
    prints = fingerprints_of(_codes(table, engine), table.used, table.domains, policy, warnings, progress)
    asked = method_named(chosen_name(policy.method.name, table.workload(table.sample)))
    classed = engine.assign(table, _method(asked, table, requirements, progress), requirements)
    if isinstance(asked, Auto) and requirements.tested and table.effort != Effort():
        classed = engine.search(table, classed, requirements)
    return Draft(
        released=engine.release(table, classed, opened.kept),
        engine=engine,
        policy=policy,
        requirements=requirements,
        domains=table.domains,
        taxonomies=opened.taxonomies,
        records=table.count,
        chosen=asked.name,
        source=opened.source,
        data=data,
        options=opened.options,
        fingerprints=prints,
        warnings=warnings,
        progress=progress,
    )


def _coded(opened: Opened, policy: Policy, engine: DiskEngine, progress: Progress) -> CodedTable:
    """The table in codes, once it is seen that it can be released and that what is asked for can be met."""
    requirements = opened.requirements
    table = code_table(
        opened.source,
        opened.kept,
        policy,
        requirements,
        opened.options,
        opened.taxonomies,
        engine.scratch,
        progress,
    )
    _refuse_many_values(table, engine.limit[0])
    with progress.phase("check"):
        accepted = {*policy.accept_linkable, *policy.sensitive}
        refuse_linkable(linkable_on_disk(table, accepted, engine.budget, engine.scratch))
        requirements.check_feasible(table.whole.as_one_class(table))
    return table


def refuse_off_disk(policy: Policy) -> None:
    """Refuse what the disk engine has no way to do, before any work is done."""
    requirements = policy.requirements()
    method = method_named(chosen_name(policy.method.name, None))
    check_method(method, requirements, Kinds.of(policy.workload))
    check_on_disk(method)
    _refuse(
        (requirements.person is not None, "persons are counted"),
        (bool(requirements.joint), "requirements hold jointly"),
        (not requirements.closed_under_union, "requirements that a union of classes may break are met"),
        (policy.release.form == "statistics", "means are released"),
        (policy.release.boxes == "regions", "regions are released"),
    )


def refuse_to_fit_on_disk(policy: Policy) -> None:
    """The same for learning a recoding."""
    requirements = policy.requirements()
    method = regional(method_named(policy.method.name))
    check_method(method, requirements, Kinds.of(policy.workload))
    if policy.engine.sampled:
        raise UsageError("rules are learnt from counts of the whole table, never on samples. Remove --sampled.")
    by_selection = policy.method.name == AUTO and bool(policy.workload.selection)
    _refuse(
        (not isinstance(method, MondrianMethod), f"{method.name} learns regions"),
        (
            by_selection or (isinstance(method, MondrianMethod) and method.rule == "selection"),
            "selections divide regions",
        ),
        (requirements.person is not None, "persons are counted"),
        (bool(requirements.joint), "requirements hold jointly"),
        (not requirements.tested, "requirements of other packages are tested"),
    )


def _refuse(*reasons: tuple[bool, str]) -> None:
    for asked, what in reasons:
        if asked:
            raise UsageError(f"{what} in memory alone. Choose --engine memory, or ask for something else.")


def _method(asked: Method, table: CodedTable, requirements: Requirements, progress: Progress) -> Method:
    """The method that the classes are formed by: for ``auto`` the curve that loses least on a sample."""
    if not isinstance(asked, Auto):
        return asked
    with progress.phase("partition"):
        chosen, told = best_curve(table.records(table.sample), requirements, progress)
    progress.told["choice"] = told | {"exact": told["tried_on"] == table.count}
    return chosen


def _codes(table: CodedTable, engine: DiskEngine) -> Iterator[Codes]:
    for rows in table.file.batches(engine.budget.rows(table.file.kind.itemsize)):
        yield table.codes_of(rows)


def _refuse_many_values(table: CodedTable, memory: int) -> None:
    """Refuse columns whose different values alone would break the promise: they are in memory whatever the engine."""
    sizes = {domain.name: domain.size * VALUE for domain in table.domains}
    sizes |= {column.name: 2 * column.dictionary.nbytes for column in table.carried if column.dictionary is not None}
    largest = max(sizes, key=lambda name: sizes[name])
    taken, room = sum(sizes.values()), memory * VALUES_SHARE
    if taken > room:
        raise InputError(
            f"the different values of the columns take about {taken / 1e6:,.0f} MB, most of them those of {largest!r}, "
            f"and the memory limit leaves {room / 1e6:,.0f} MB for them. Give more memory, or round, group or drop "
            "such columns before."
        )
