"""The audit of two tables: quasi-identifiers with a group in one, the sensitive values of each group in the other.

It reads both as anybody would: each group must have as many records in the first table as the second counts for it, and
meet the requirements by these counts. Shares no code with what makes such a release.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, UsageError
from sfumato.evaluation.audit.audit import AuditReport, class_key
from sfumato.policy import Policy
from sfumato.requirements import ClassCounts, Histogram, Requirements, Verdict
from sfumato.tables.coding.domains import Codes, Domain, label_of
from sfumato.tables.coding.value_order import ascending, is_missing, texts_of
from sfumato.tables.released_classes import ReleasedClasses, find_classes
from sfumato.tables.sources.source import Source

GROUP, COUNT = "group", "count"
MOST_DIGITS = 18  # of a count, and of their sum: less than 64 bits hold
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


def audit_groups(first: Source, second: Source, policy: Policy, requirements: Requirements) -> AuditReport:
    """Compare what the two tables show with what their policy asks for."""
    name = _checkable(policy, requirements)
    key = class_key(policy, first.names)
    groups = _sizes(first)
    records, histogram = _counts(second, name, policy, groups)
    missing = sum(1 for group in groups if group not in records) + sum(1 for group in records if group not in groups)
    differing = missing + sum(1 for group, size in groups.items() if records.get(group, size) != size)
    sizes = np.array(list(groups.values()), np.int64)
    counts = ClassCounts(sizes, {name: histogram})
    verdicts = [part.verdict(counts) for part in requirements.parts if part.attribute is not None]
    if requirements.least_class > 1:  # no group hides who somebody is: only equal quasi-identifiers would
        alike = ClassCounts(find_classes(first, key).sizes)
        verdicts += [part.verdict(alike) for part in requirements.parts if part.attribute is None]
    verdicts.append(Verdict("the two tables have the same groups of the same sizes", differing == 0, differing))
    more = [one for one in first.names if one != GROUP and one not in policy.quasi_identifiers]
    verdicts.append(Verdict("the first table holds quasi-identifiers and the group alone", not more, len(more)))
    more = [one for one in second.names if one not in (GROUP, name, COUNT)]
    verdicts.append(Verdict("the second table holds groups, sensitive values and counts alone", not more, len(more)))
    verdicts += [
        Verdict(f"the identifier {one!r} is not released", False, 1)
        for one in policy.identifiers
        if one in first.names or one in second.names
    ]
    smallest = int(sizes.min()) if sizes.size else 0
    remarks = [NOT_HIDDEN]
    if policy.release.seed is not None:
        remarks.append(SEEDED)
    if policy.privacy.null_sensitive == "value":
        remarks.append(NULL_IS_VALUE)
    return AuditReport(tuple(verdicts), int(sizes.sum()), len(sizes), smallest, tuple(remarks))


def _checkable(policy: Policy, requirements: Requirements) -> str:
    """The sensitive column, if two tables tell all that the requirements ask for."""
    method = policy.method.name
    if policy.privacy.person is not None:
        raise UsageError(f"a release by {method} does not say whose its records are. Remove the person key.")
    if len(requirements.attributes) != 1 or requirements.joint:
        raise UsageError(
            f"a release by {method} has one sensitive column, and the policy asks for something of "
            f"{len(requirements.columns) or 'none'}. Name requirements of that one column."
        )
    trees = [part.kind for part in requirements.parts if "hierarchy" in part.counters]
    if trees:
        raise UsageError(
            f"{trees[0]} over a taxonomy cannot be checked in a release by {method}. Choose another distance."
        )
    return requirements.attributes[0]


def group_counts(first: Source, second: Source, name: str, policy: Policy) -> ClassCounts:
    """The groups as requirements see them: their sizes, and how often each value of ``name`` is in each."""
    groups = _sizes(first)
    return ClassCounts(np.array(list(groups.values()), np.int64), {name: _counts(second, name, policy, groups)[1]})


def value_counts(second: Source, name: str) -> tuple[list[object], NDArray[np.int64]]:
    """The different sensitive values of the second table, and the records of each."""
    found = find_classes(second, [name, COUNT])
    counts = np.array([_count(value) for value in found.values[COUNT]], np.int64)[found.shown[COUNT]]
    records = np.zeros(len(found.values[name]), np.int64)
    np.add.at(records, found.shown[name], counts * found.sizes)
    return found.values[name], records


def group_sizes(first: Source) -> NDArray[np.int64]:
    """How many records each group has."""
    return np.array(list(_sizes(first).values()), np.int64)


def quasi_identifiers_of_original(first: Source, codes: Codes, domains: Sequence[Domain], left_out: int) -> Verdict:
    """Does the first table show every record of the original, in ``codes``, each as often, but for ``left_out``?

    A value is what its label stands for, so that 25 and 25.0 are the same; one that is rounded shows a range.
    """
    names = [domain.name for domain in domains]
    found = find_classes(first, names)
    columns = []
    for q, domain in enumerate(domains):
        every = np.arange(domain.size).astype(codes.dtype)
        shown = domain.release(every, every)
        one = domain.spans(shown.labels.to_pylist())[shown.index][codes[:, q]]
        other = domain.spans([label_of(value) for value in found.values[domain.name]])[found.shown[domain.name]]
        columns += [np.append(one[:, end], other[:, end]) for end in (0, 1)]
    record = np.zeros(len(codes) + len(found.sizes), np.int64)
    for column in columns:
        _, record = np.unique(record * (int(column.max(initial=0)) + 1) + column, return_inverse=True)
    original, released = np.split(record, [len(codes)])
    rest = np.bincount(original, minlength=int(record.max(initial=-1)) + 1)
    np.subtract.at(rest, released, found.sizes)
    surplus, missing = int(-rest[rest < 0].sum()), int(rest[rest > 0].sum())
    differing = surplus + (missing if missing > left_out else 0)
    return Verdict("the first table has the quasi-identifiers of the original", differing == 0, differing)


def values_of_original(second: Source, original: Source, requirements: Requirements) -> Verdict:
    """Does the second table count no sensitive value more often than the original has it?"""
    (name,) = requirements.attributes
    if name not in original.names:
        return Verdict(f"the column {name!r} is in the original", False, 0)
    left: dict[str | None, int] = {}
    found = find_classes(original, [name])
    for text, size in zip(texts_of(found.values[name]), _sizes_by_value(found, name), strict=True):
        left[text] = left.get(text, 0) + size
    for batch in second.batches([name, COUNT]):
        for value, count in zip(texts_of(batch.column(0).to_pylist()), batch.column(1).to_pylist(), strict=True):
            left[value] = left.get(value, 0) - int(count)
    surplus = sum(-count for count in left.values() if count < 0)
    return Verdict(f"the sensitive column {name!r} holds values of the original", surplus == 0, surplus)


def _sizes_by_value(found: ReleasedClasses, name: str) -> list[int]:
    sizes = [0] * len(found.values[name])
    for place, size in zip(found.shown[name].tolist(), found.sizes.tolist(), strict=True):
        sizes[place] += size
    return sizes


def _sizes(first: Source) -> dict[Group, int]:
    """The records of every group."""
    if GROUP not in first.names:
        raise InputError(
            f"the release has no column {GROUP!r}, which the first of two tables has. Check the file and the method."
        )
    found = find_classes(first, [GROUP])
    shown = [_group(found.values[GROUP][place]) for place in found.shown[GROUP].tolist()]
    return dict(zip(shown, found.sizes.tolist(), strict=True))


def _counts(second: Source, name: str, policy: Policy, groups: dict[Group, int]) -> tuple[dict[Group, int], Histogram]:
    """What the second table counts: records by group, and how often each value is in each group of the first."""
    for column in (GROUP, name, COUNT):
        if column not in second.names:
            raise InputError(f"the table of sensitive values has no column {column!r}. Check the file and the policy.")
    found = find_classes(
        second, [GROUP, name, COUNT]
    )  # what is written is looked at once, however often it stands there
    written = [_group(value) for value in found.values[GROUP]]
    number = {group: at for at, group in enumerate(dict.fromkeys(written))}
    group = np.array([number[one] for one in written], np.int64)[found.shown[GROUP]]
    count = np.array([_count(value) for value in found.values[COUNT]], np.int64)[found.shown[COUNT]]
    if float(count.astype(np.float64) @ found.sizes) >= 10.0**MOST_DIGITS:
        raise InputError(
            f"the column {COUNT!r} of the table of sensitive values adds up to more records than a table can have. "
            "Restore the file."
        )
    count = count * found.sizes
    records = np.zeros(len(number), np.int64)
    np.add.at(records, group, count)
    place = {one: at for at, one in enumerate(groups)}
    owner = np.array([place.get(one, -1) for one in number], np.int64)[group]
    values, rank, numbers = _in_order(found.values[name], policy)
    value = rank[found.shown[name]]
    here = (owner >= 0) & (value < values)
    pairs, pair = np.unique(owner[here] * max(values, 1) + value[here], return_inverse=True)
    total = np.zeros(len(pairs), np.int64)
    np.add.at(total, pair, count[here])
    owner, value = np.divmod(pairs, max(values, 1))
    share = np.bincount(value, weights=total, minlength=values) / max(int(total.sum()), 1)
    return dict(zip(number, records.tolist(), strict=True)), Histogram(owner, total, value, share, numbers)


def _in_order(written: list[object], policy: Policy) -> tuple[int, NDArray[np.int64], NDArray[np.float64]]:
    """How many values there are, the place of what is written among them in ascending order, and each as a number.

    Null is past the last, unless the policy makes it a value: then it is the last.
    """
    known = [at for at, value in enumerate(written) if not is_missing(value, policy.input.nulls)]
    places, numbers = ascending([written[at] for at in known])
    rank = np.full(len(written), len(known), np.int64)
    rank[np.array(known, np.int64)[places]] = np.arange(len(known))
    numbers = numbers[places]
    if policy.privacy.null_sensitive == "value" and len(known) < len(written):
        return len(known) + 1, rank, np.append(numbers, np.nan)
    return len(known), rank, numbers


def _group(written: object) -> Group:
    """A group by the text that a CSV file has for it: the two tables may be of different kinds."""
    if isinstance(written, float) and written.is_integer():
        return str(int(written))
    return None if written is None else str(written)


def _count(written: object) -> int:
    """How many records a row of the second table stands for; Excel has no whole numbers."""
    text = str(int(written)) if isinstance(written, float) and written.is_integer() else str(written)
    if not text.isdecimal() or len(text) > MOST_DIGITS or int(text) == 0:
        raise InputError(
            f"the column {COUNT!r} of the table of sensitive values holds what is no count. Restore the file."
        )
    return int(text)
