"""Linkable columns: kept unchanged, they would reveal the person behind a record or its original values.

A kept column is linkable if it is nearly unique, nearly determines a quasi-identifier, or is an identifier by its name
or form. Nearly unique: most records that have a value are alone with it, so whoever knows the value knows the record.
Nearly determines: guessing the quasi-identifier from the column makes at most a tenth of the errors that guessing
without it makes (Goodman and Kruskal's lambda of 0.9), so the generalized value can be read off again. ``identifiers``
has the rules for names and forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from sfumato.evaluation.linkability.column_facts import MOST_IN_SAMPLE, ValueTotals
from sfumato.evaluation.linkability.identifiers import IdentifierRules
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.passthrough import PassthroughColumn

UNIQUE_SHARE = 0.5
DETERMINED = 0.9
DENSE = 1 << 24


def linkable_columns(
    columns: Sequence[PassthroughColumn], codes: Codes, domains: Sequence[Domain], rules: IdentifierRules
) -> dict[str, str]:
    """Find the linkable columns. Returns the reason for each in words."""
    reasons = {}
    for column in columns:
        values, size = column.distinct
        known = np.bincount(values, minlength=size)[:-1]  # null is the last and identifies nobody
        alone = int(np.count_nonzero(known == 1))
        if nearly_unique(alone, int(known.sum())):
            reasons[column.name] = f"{alone / known.sum():.0%} of the records that have a value are alone with it"
            continue
        determined = in_threads(
            partial(determines, values, size), [(codes[:, q], domain.size) for q, domain in enumerate(domains)]
        )
        if any(determined):
            name = domains[determined.index(True)].name
            reasons[column.name] = f"it nearly determines the quasi-identifier {name!r}"
            continue
        totals = ValueTotals(len(values), int(known.sum()), alone, int(np.count_nonzero(known)))
        identifier = rules.reason(column.name, column.some_values(MOST_IN_SAMPLE), totals)
        if identifier is not None:
            reasons[column.name] = identifier
    return reasons


def determines(values: Codes, size: int, attribute: tuple[Codes, int]) -> bool:
    """Whether knowing ``values`` removes nearly all errors in guessing ``attribute``: its codes and domain size."""
    codes, domain_size = attribute
    if size * domain_size <= DENSE:
        counts = np.zeros((size, domain_size), np.int64)
        count_pairs(values, codes, counts)
        without, right = int(counts.sum(axis=0).max()), int(counts.max(axis=1).sum())
    else:
        without = int(np.bincount(codes).max())
        pairs = np.sort(values.astype(np.int64) * domain_size + codes)
        begins = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1]))
        lengths = np.diff(np.append(begins, len(pairs)))
        owner = pairs[begins] // domain_size
        right = int(np.maximum.reduceat(lengths, np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))).sum())
    return nearly_determined(right, without, len(codes))


def nearly_unique(alone: int, known: int) -> bool:
    """Whether too many of the records that have a value are alone with it."""
    return alone > 0 and alone >= UNIQUE_SHARE * known


def unique_for_certain(values: int, records: int) -> str | None:
    """Return in words why a column with so many different values is nearly unique; None if that cannot be said yet.

    A value that is not alone takes two records. With d values in n records, at least 2 d - n records are alone.
    """
    alone = 2 * values - records
    if not nearly_unique(alone, records):
        return None
    return f"at least {alone / records:.0%} of the records that have a value are alone with it"


def nearly_determined(right: int, without: int, records: int) -> bool:
    """Whether a column removes nearly all guessing errors: ``right`` guesses with it against ``without`` it."""
    return without < records and (right - without) / (records - without) >= DETERMINED


@kernel
def count_pairs(values, codes, counts):
    """Add how often each pair occurs to ``counts``: int64[size, domain_size]. values, codes: uint[n], not modified."""
    for row in range(len(values)):
        counts[values[row], codes[row]] += 1
