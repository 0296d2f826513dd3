"""Passthrough columns that are counted, in codes: sensitive attributes, and the columns of the workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sfumato.methods.coded_workload import (
    TARGETS_OF_RULE,
    ClassTarget,
    CodedWorkload,
    NumberTarget,
    cells_of,
    kind_of,
    not_numbers,
)
from sfumato.methods.method import SensitiveValues
from sfumato.policy import Policy
from sfumato.tables.coding.domains import Domain
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.coding.selections import SelectionBoxes
from sfumato.tables.coding.value_order import ascending, is_missing, texts_of
from sfumato.taxonomies.sensitive_hierarchy import hierarchy_over
from sfumato.taxonomies.taxonomy import Taxonomy


def coded_workload(policy: Policy, domains: Sequence[Domain], coded: Callable[[str], SensitiveValues]) -> CodedWorkload:
    """Return the workload of the policy in codes. coded: returns the codes of a column that the workload names."""
    workload = policy.workload
    classes = [_class_target(task.target, coded(task.target), task.weight) for task in workload.classification]
    numbers = [_number_target(task.target, coded(task.target), task.weight) for task in workload.regression]
    kind_of_rule = TARGETS_OF_RULE.get(policy.method.name)
    for name in workload.targets:
        values = coded(name)
        if (kind_of_rule or kind_of(values.distinct, values.numbers)) == "regression":
            numbers.append(_number_target(name, values, 1.0))
        else:
            classes.append(_class_target(name, values, 1.0))
    features = [coded(name) for name in workload.features]
    return CodedWorkload(
        tuple(classes),
        tuple(numbers),
        cells_of([(feature.codes, feature.numbers) for feature in features]),
        SelectionBoxes.of(workload.selection, domains) if workload.selection else None,
        policy.method.least_gain,
    )


def coded_target(column: PassthroughColumn, policy: Policy) -> SensitiveValues:
    """Return a column of the workload in codes. Null is not one of its values."""
    return coded_values(column, policy.input.nulls, keep_null=False, taxonomy=None)


def _class_target(name: str, values: SensitiveValues, weight: float) -> ClassTarget:
    return ClassTarget(name, values.codes, values.distinct, weight)


def _number_target(name: str, values: SensitiveValues, weight: float) -> NumberTarget:
    if not np.isfinite(values.numbers).all():
        raise not_numbers(name)
    return NumberTarget(name, np.append(values.numbers, np.nan)[values.codes], weight)


def coded_values(
    column: PassthroughColumn, nulls: Sequence[str], *, keep_null: bool, taxonomy: Taxonomy | None
) -> SensitiveValues:
    """Return a passthrough column in codes that are in the order of its values. keep_null: null is a value too."""
    codes, values = column.numbered
    known = [code for code, value in enumerate(values) if not is_missing(value, nulls)]
    order, numbers = ascending([values[code] for code in known])
    in_order = np.array(known, np.int64)[order]
    table = np.full(len(values) + 1, len(known), np.uint32)
    table[in_order] = np.arange(len(known))
    shown: list[object] = [values[code] for code in in_order]
    distinct, numbers = len(known), numbers[order]
    if keep_null and bool(np.any(table[codes] == distinct)):
        distinct, numbers, shown = distinct + 1, np.append(numbers, np.nan), [*shown, None]
    tree = None if taxonomy is None else hierarchy_over(texts_of(shown), taxonomy, column.name)
    return SensitiveValues(table[codes], distinct, numbers, tree)
