"""Taxonomies derived from the values of the column itself: flat, and by common prefix."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sfumato.errors import PolicyError, TaxonomyError
from sfumato.taxonomies.taxonomy import ROOT, Taxonomy, grow


def flat(values: Sequence[str], column: str) -> Taxonomy:
    """Build a taxonomy with the sorted, distinct values directly under the root."""
    taxonomy, _ = grow(_leaves(values, column), [], [])
    return taxonomy


def prefix(values: Sequence[str], lengths: Sequence[int], column: str) -> Taxonomy:
    """Build a taxonomy of the sorted, distinct values in which values with the same first n characters form a group.

    There is a level for every n of ``lengths``. A group is released as the shared characters and a ``*`` for every
    further character of the column's longest value: ``101**``. A value with fewer than n characters is its own group.
    """
    _check_lengths(lengths, column)
    leaves = _leaves(values, column)
    # The prefix of a value with fewer characters is the value itself, which no other value shares.
    groups = [[leaf[:length] for leaf in leaves] for length in lengths]
    labels = [prefix_labels(leaves, length) for length in lengths]
    taxonomy, repeated = grow(leaves, groups, labels)
    if repeated:
        raise TaxonomyError(
            f"column {column!r}: some of its values hold a '*', so {len(repeated)} names of the prefix taxonomy would "
            "stand for two different sets of values. Use a taxonomy file or 'flat' for this column."
        )
    return taxonomy


def prefix_labels(values: Sequence[str], length: int) -> list[str]:
    """Return what the group of each value is called. A value with fewer characters is its own group."""
    longest = max(map(len, values), default=0)
    return [value[:length] + ROOT * (longest - length if len(value) >= length else 0) for value in values]


def _leaves(values: Sequence[str], column: str) -> list[str]:
    leaves = sorted(set(values))
    if ROOT in leaves:
        raise TaxonomyError(
            f"column {column!r} holds the value '*', which stands for the whole domain in a release. "
            "Replace it in the input, or declare it as a null token."
        )
    return leaves


def _check_lengths(lengths: Sequence[int], column: str) -> None:
    whole = all(isinstance(length, int) and not isinstance(length, bool) and length >= 1 for length in lengths)
    if not lengths or not whole or any(shorter >= longer for shorter, longer in pairwise(lengths)):
        raise PolicyError(
            f"column {column!r}: the prefix lengths must be whole numbers of at least 1, ascending, "
            "such as prefix = [2, 3]."
        )
