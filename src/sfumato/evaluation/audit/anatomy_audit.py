"""Audit a release of two tables (Anatomy): quasi-identifiers and groups in the first, sensitive values in the second.

The audit reads both tables as anybody would. Each group must have as many records in the first table as the second
counts for it, and must meet the requirements by these counts. The audit shares no code with Anatomy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, UsageError
from sfumato.evaluation.audit.audit import AuditReport, class_key, withheld_verdicts
from sfumato.evaluation.audit.shown_levels import level_verdicts
from sfumato.policy import Policy
from sfumato.requirements import ClassCounts, Histogram, Requirements, Verdict
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.released_labels import label_of
from sfumato.tables.coding.value_order import ascending, is_missing, texts_of
from sfumato.tables.released_classes import ReleasedClasses, find_classes
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.taxonomy import Taxonomy

GROUP, COUNT = "group", "count"
MOST_DIGITS = 18  # of a count, and of the sum of all counts: both fit into 64 bits
NOT_HIDDEN = (
    "identity is not protected: the quasi-identifiers are released as they are, so whoever knows them sees who is in "
    "the table; what is hidden is which sensitive value of the group a person has"
)
SEEDED = (
    "the groups were drawn with a seed, which the certificate shows: whoever knows most of the sensitive values can "
    "try out the others. Give no seed for a release that is shared"
)
NULL_IS_VALUE = "null counts as a sensitive value like another, as the policy asks"

Group = str | None


def audit_groups(
    first: Source, second: Source, policy: Policy, requirements: Requirements, taxonomies: Mapping[str, Taxonomy]
) -> AuditReport:
    """Compare the two tables with their policy."""
    name = _checkable(policy, requirements)
    key = class_key(policy, first.names)
    groups = _sizes(first)
    records, histogram = _counts(second, name, policy, groups)
    missing = sum(1 for group in groups if group not in records) + sum(1 for group in records if group not in groups)
    differing = missing + sum(1 for group, size in groups.items() if records.get(group, size) != size)
    sizes = np.array(list(groups.values()), np.int64)
    counts = ClassCounts(sizes, {name: histogram})
    verdicts = [part.verdict(counts) for part in requirements.parts if part.attribute is not None]
    if requirements.least_class > 1:  # a group does not hide identity; only equal quasi-identifiers would
        equal_records = ClassCounts(find_classes(first, key).sizes)
        verdicts += [part.verdict(equal_records) for part in requirements.parts if part.attribute is None]
    verdicts.append(Verdict("the two tables have the same groups of the same sizes", differing == 0, differing))
    extra = [column for column in first.names if column != GROUP and column not in policy.quasi_identifiers]
    verdicts.append(Verdict("the first table holds quasi-identifiers and the group alone", not extra, len(extra)))
    extra = [column for column in second.names if column not in (GROUP, name, COUNT)]
    verdicts.append(Verdict("the second table holds groups, sensitive values and counts alone", not extra, len(extra)))
    verdicts += level_verdicts(find_classes(first, key), policy, taxonomies)
    verdicts += withheld_verdicts(policy, {*first.names, *second.names})
    smallest = int(sizes.min()) if sizes.size else 0
    remarks = [NOT_HIDDEN]
    if policy.release.seed is not None:
        remarks.append(SEEDED)
    if policy.privacy.null_sensitive == "value":
        remarks.append(NULL_IS_VALUE)
    return AuditReport(tuple(verdicts), int(sizes.sum()), len(sizes), smallest, tuple(remarks))


def _checkable(policy: Policy, requirements: Requirements) -> str:
    """The sensitive column, if the two tables suffice to check every requirement."""
    method = policy.method.name
    if requirements.person is not None:
        raise AssertionError("persons must be counted, but two tables do not say whose a record is")
    if len(requirements.attributes) != 1 or requirements.joint:
        raise UsageError(
            f"a release by {method} has exactly one sensitive column, but the policy has requirements on "
            f"{len(requirements.columns) or 'none'}. Name requirements on that one column only."
        )
    hierarchical = [part.kind for part in requirements.parts if "hierarchy" in part.counters]
    if hierarchical:
        raise UsageError(
            f"{hierarchical[0]} over a taxonomy cannot be checked in a release by {method}. Choose another distance."
        )
    return requirements.attributes[0]


def group_counts(first: Source, second: Source, name: str, policy: Policy) -> ClassCounts:
    """Count the groups in the form that requirements read: sizes, and how often each value of ``name`` is in each."""
    groups = _sizes(first)
    return ClassCounts(np.array(list(groups.values()), np.int64), {name: _counts(second, name, policy, groups)[1]})


def value_counts(second: Source, name: str) -> tuple[list[object], NDArray[np.int64]]:
    """The distinct sensitive values of the second table, and the number of records with each."""
    pairs = find_classes(second, [name, COUNT])
    counts = np.array([_count(value) for value in pairs.values[COUNT]], np.int64)[pairs.shown[COUNT]]
    records = np.zeros(len(pairs.values[name]), np.int64)
    np.add.at(records, pairs.shown[name], counts * pairs.sizes)
    return pairs.values[name], records


def group_sizes(first: Source) -> NDArray[np.int64]:
    """The number of records of each group."""
    return np.array(list(_sizes(first).values()), np.int64)


def quasi_identifiers_of_original(first: Source, codes: Codes, domains: Sequence[Domain], left_out: int) -> Verdict:
    """Check that the first table shows every record of the original (``codes``) as often, up to ``left_out`` records.

    Labels are compared by what they stand for, so 25 and 25.0 are equal; a rounded value shows a range.
    """
    names = [domain.name for domain in domains]
    distinct = find_classes(first, names)
    columns = []
    for q, domain in enumerate(domains):
        every = np.arange(domain.size).astype(codes.dtype)
        shown = domain.release(every, every)
        expected = domain.spans(shown.labels.to_pylist())[shown.index][codes[:, q]]
        actual = domain.spans([label_of(value) for value in distinct.values[domain.name]])[distinct.shown[domain.name]]
        columns += [np.append(expected[:, end], actual[:, end]) for end in (0, 1)]
    record = np.zeros(len(codes) + len(distinct.sizes), np.int64)
    for column in columns:
        _, record = np.unique(record * (int(column.max(initial=0)) + 1) + column, return_inverse=True)
    original, released = np.split(record, [len(codes)])
    rest = np.bincount(original, minlength=int(record.max(initial=-1)) + 1)
    np.subtract.at(rest, released, distinct.sizes)
    surplus, missing = int(-rest[rest < 0].sum()), int(rest[rest > 0].sum())
    differing = surplus + (missing if missing > left_out else 0)
    return Verdict("the first table has the quasi-identifiers of the original", differing == 0, differing)


def values_of_original(second: Source, original: Source, requirements: Requirements) -> Verdict:
    """Check that the second table counts no sensitive value more often than it occurs in the original."""
    (name,) = requirements.attributes
    if name not in original.names:
        return Verdict(f"the column {name!r} is in the original", False, 0)
    left: dict[str | None, int] = {}
    values = find_classes(original, [name])
    for text, size in zip(texts_of(values.values[name]), _sizes_by_value(values, name), strict=True):
        left[text] = left.get(text, 0) + size
    for batch in second.batches([name, COUNT]):
        for value, count in zip(texts_of(batch.column(0).to_pylist()), batch.column(1).to_pylist(), strict=True):
            left[value] = left.get(value, 0) - int(count)
    surplus = sum(-count for count in left.values() if count < 0)
    return Verdict(f"the sensitive column {name!r} holds values of the original", surplus == 0, surplus)


def _sizes_by_value(classes: ReleasedClasses, name: str) -> list[int]:
    sizes = [0] * len(classes.values[name])
    for value_id, size in zip(classes.shown[name].tolist(), classes.sizes.tolist(), strict=True):
        sizes[value_id] += size
    return sizes


def _sizes(first: Source) -> dict[Group, int]:
    """The number of records of every group."""
    if GROUP not in first.names:
        raise InputError(
            f"the release has no column {GROUP!r}, which the first of two tables needs. Check the file and the method."
        )
    classes = find_classes(first, [GROUP])
    groups = [_group(classes.values[GROUP][entry]) for entry in classes.shown[GROUP].tolist()]
    return dict(zip(groups, classes.sizes.tolist(), strict=True))


def _counts(second: Source, name: str, policy: Policy, groups: dict[Group, int]) -> tuple[dict[Group, int], Histogram]:
    """The counts of the second table: records by group, and how often each value is in each group of the first."""
    for column in (GROUP, name, COUNT):
        if column not in second.names:
            raise InputError(f"the table of sensitive values has no column {column!r}. Check the file and the policy.")
    rows = find_classes(second, [GROUP, name, COUNT])  # distinct rows, so that each is parsed once
    written = [_group(value) for value in rows.values[GROUP]]
    number = {group: index for index, group in enumerate(dict.fromkeys(written))}
    group = np.array([number[each] for each in written], np.int64)[rows.shown[GROUP]]
    count = np.array([_count(value) for value in rows.values[COUNT]], np.int64)[rows.shown[COUNT]]
    if float(count.astype(np.float64) @ rows.sizes) >= 10.0**MOST_DIGITS:
        raise InputError(
            f"the column {COUNT!r} of the table of sensitive values adds up to more records than a table can have. "
            "Restore the file."
        )
    count = count * rows.sizes
    records = np.zeros(len(number), np.int64)
    np.add.at(records, group, count)
    index_in_first = {each: index for index, each in enumerate(groups)}
    owner = np.array([index_in_first.get(each, -1) for each in number], np.int64)[group]
    values, rank, numbers = _ranks(rows.values[name], policy)
    value = rank[rows.shown[name]]
    valid = (owner >= 0) & (value < values)
    pairs, pair = np.unique(owner[valid] * max(values, 1) + value[valid], return_inverse=True)
    total = np.zeros(len(pairs), np.int64)
    np.add.at(total, pair, count[valid])
    owner, value = np.divmod(pairs, max(values, 1))
    share = np.bincount(value, weights=total, minlength=values) / max(int(total.sum()), 1)
    return dict(zip(number, records.tolist(), strict=True)), Histogram(owner, total, value, share, numbers)


def _ranks(written: list[object], policy: Policy) -> tuple[int, NDArray[np.int64], NDArray[np.float64]]:
    """The number of values, the rank of each written value in ascending order, and the values as numbers by rank.

    The rank of null is past the last value, unless the policy makes null a value: then it is the last value.
    """
    known = [index for index, value in enumerate(written) if not is_missing(value, policy.input.nulls)]
    order, numbers = ascending([written[index] for index in known])
    rank = np.full(len(written), len(known), np.int64)
    rank[np.array(known, np.int64)[order]] = np.arange(len(known))
    numbers = numbers[order]
    if policy.privacy.null_sensitive == "value" and len(known) < len(written):
        return len(known) + 1, rank, np.append(numbers, np.nan)
    return len(known), rank, numbers


def _group(written: object) -> Group:
    """The name of a group as a CSV file would write it: the two tables may be files of different kinds."""
    if isinstance(written, float) and written.is_integer():
        return str(int(written))
    return None if written is None else str(written)


def _count(written: object) -> int:
    """The number of records that a row of the second table stands for. Excel has no whole numbers."""
    text = str(int(written)) if isinstance(written, float) and written.is_integer() else str(written)
    if not text.isdecimal() or len(text) > MOST_DIGITS or int(text) == 0:
        raise InputError(
            f"the column {COUNT!r} of the table of sensitive values holds something that is no count. Restore the file."
        )
    return int(text)
