"""``sfumato.risk``: the risk that the records of a table, original or released, are re-identified."""

from __future__ import annotations

import os
from dataclasses import replace
from numbers import Integral
from typing import Any, Unpack

from sfumato.engines.spark.session import is_spark_frame
from sfumato.errors import UsageError
from sfumato.evaluation.audit.anatomy_audit import GROUP, NOT_HIDDEN
from sfumato.evaluation.audit.audit import class_key
from sfumato.evaluation.linkability.column_facts import TextSettings
from sfumato.evaluation.risk.exposure import LARGEST_SET
from sfumato.evaluation.risk.reidentification import Population, Risk, measure_risk
from sfumato.methods import method_named
from sfumato.pipeline.capabilities import DERIVE, SPARK
from sfumato.policy import Policy, PolicyFlags, PolicyLike, merge_flags
from sfumato.releases.certificate import read_certificate
from sfumato.releases.release_reading import release_options
from sfumato.tables.locations import location_of
from sfumato.tables.sources.input_table import open_studied
from sfumato.tables.sources.source import open_source


def risk(
    data: object,
    policy: PolicyLike | None = None,
    *,
    population: object | None = None,
    sampling_fraction: float | None = None,
    largest_set: int = LARGEST_SET,
    **flags: Unpack[PolicyFlags],
) -> Risk:
    """Measure the risk that records of a table are re-identified, before or after anonymization.

    ``data`` is a file or a frame. Without a policy the certificate beside a release says which columns are
    quasi-identifiers; flags such as ``quasi_identifiers`` override either. ``population`` is the number of persons that
    the records were drawn from, or a file or frame with their quasi-identifiers; ``sampling_fraction`` is the share of
    them that is in the table. Sets of up to ``largest_set`` quasi-identifiers are measured. If the policy names a
    person key that the table has, persons are counted.
    """
    if population is not None and sampling_fraction is not None:
        raise UsageError("the population is given twice. Give its size, its table or the sampling fraction.")
    size = int(population) if isinstance(population, Integral) else None
    drawn_from = Population(size=size, fraction=sampling_fraction)
    if not isinstance(largest_set, int) or largest_set < 1:
        raise UsageError(f"the largest set must have at least 1 column, not {largest_set!r}.")
    if is_spark_frame(data):
        return _spark_risk(data, merge_flags(policy, **flags), population, drawn_from, largest_set)
    certified = read_certificate(data) if isinstance(data, str | os.PathLike) else None
    if policy is None and certified is not None:
        policy = Policy.from_dict(certified["policy"], location_of(data).home)  # type: ignore[arg-type]
    merged = merge_flags(policy, **flags)
    if certified is None:
        source = open_studied(data, merged)
    else:
        location = location_of(data)  # type: ignore[arg-type]
        source = open_source(data, release_options(location, merged, certified, given=flags.get("input")))
    if not merged.quasi_identifiers:
        raise UsageError(
            "nothing says which columns are quasi-identifiers. Name them, or give a policy; 'sfumato policy' proposes "
            "one."
        )
    key = class_key(merged, source.names)
    if population is not None and size is None:
        drawn_from = Population(source=open_studied(population, merged))
    person = merged.privacy.person
    measured = measure_risk(
        source,
        key,
        drawn_from,
        columns=merged.quasi_identifiers,
        tokens=merged.input.nulls if source.text or source.kind == "excel" else (),
        person=person if person in source.names else None,
        largest_set=largest_set,
        settings=TextSettings.of(merged.input) if certified is None else None,
    )
    return _with_remarks(measured, merged, source.names)


def _spark_risk(
    frame: Any, policy: Policy, population: object | None, drawn_from: Population, largest_set: int
) -> Risk:
    """Measure the risk of a Spark table."""
    from sfumato.engines.spark.risk import risk_by_spark

    if policy.derive:
        DERIVE.refuse_on(SPARK)
    names = tuple(frame.columns)
    if not policy.quasi_identifiers:
        raise UsageError("nothing says which columns are quasi-identifiers. Name them, or give a policy.")
    if policy.privacy.person in names:
        raise UsageError("persons are not counted in a Spark table. Leave the person key out, or collect the table.")
    if population is not None and drawn_from.size is None:
        raise UsageError("a Spark table cannot be compared with a population table. Give the size of the population.")
    key = class_key(policy, names)
    measured = risk_by_spark(frame, key, drawn_from, columns=policy.quasi_identifiers, largest_set=largest_set)
    return _with_remarks(measured, policy, names)


def _with_remarks(measured: Risk, policy: Policy, names: tuple[str, ...]) -> Risk:
    """Add what a reader of the figures should know."""
    remarks = list(measured.remarks)
    undecided = [name for name, column in policy.columns.items() if column.role == "decide" and name in names]
    if undecided:
        remarks.append(
            f"{len(undecided):,} columns are still to decide in the policy and were not counted among the "
            "quasi-identifiers"
        )
    if policy.privacy.person is not None and policy.privacy.person not in names:
        remarks.append("the table does not say whose its records are: records were counted, not persons")
    if method_named(policy.method.name).separates and GROUP in names:
        remarks.append(NOT_HIDDEN)
    return replace(measured, remarks=tuple(remarks))
