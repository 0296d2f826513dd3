"""The most frequent values apart, and all others in one group."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.errors import UsageError

OTHERS = "other"


def frequent_levels(
    values: Sequence[str], records: Sequence[int], counts: Sequence[int], others: str, column: str
) -> list[list[str]]:
    """Return what each value is called on every level.

    counts: how many of the most frequent values stay apart on each level, from fine to coarse, so descending. Of values
    with equally many records, the first is taken for the more frequent one.
    """
    if counts[0] >= len(values):
        raise UsageError(
            f"column {column!r} has {len(values):,} different values, so {counts[0]:,} cannot stand apart from the "
            "others. Give a smaller number."
        )
    order = sorted(range(len(values)), key=lambda position: (-records[position], position))
    rank = {position: number for number, position in enumerate(order)}
    known = set(values)
    levels = []
    for count in counts:
        name = others if len(counts) == 1 else f"{others} (all but the {count:,} most frequent)"
        if name in known or name == "*":
            raise UsageError(
                f"the name of the others is a value of the column {column!r}, or '*'. Choose another name with others."
            )
        levels.append([value if rank[position] < count else name for position, value in enumerate(values)])
    return levels
