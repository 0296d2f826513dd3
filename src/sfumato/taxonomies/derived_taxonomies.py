"""Taxonomies made from the values of the column itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sfumato.errors import PolicyError, TaxonomyError
from sfumato.taxonomies.taxonomy import ROOT, Taxonomy, grow


def flat(values: Sequence[str], column: str) -> Taxonomy:
    """The sorted values right under the root. Repeated values count once."""
    taxonomy, _ = grow(_leaves(values, column), [], [])
    return taxonomy


def prefix(values: Sequence[str], lengths: Sequence[int], column: str) -> Taxonomy:
    """Values that share their first n characters form a group, for every n of ``lengths``; sorted, repeats count once.

    A group is released as the shared characters and a ``*`` for every further character of the column's longest value:
    ``101**``. A value with fewer than n characters is a group of its own.
    """
    _check_lengths(lengths, column)
    leaves = _leaves(values, column)
    longest = max(map(len, leaves), default=0)
    # A value with fewer characters shares its "prefix", itself, with no other value.
    groups = [[leaf[:length] for leaf in leaves] for length in lengths]
    labels = [
        [characters + ROOT * (longest - length) for characters in group]
        for length, group in zip(lengths, groups, strict=True)
    ]
    taxonomy, repeated = grow(leaves, groups, labels)
    if repeated:
        raise TaxonomyError(
            f"column {column!r}: some of its values hold a '*', so that {len(repeated)} names of the prefix taxonomy "
            "would stand for two different sets of values. Use a taxonomy file or 'flat' for this column."
        )
    return taxonomy


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
