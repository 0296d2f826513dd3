"""Groups of about equally many records, in the order of the values; coarser groups consist of whole finer ones."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, groupby, pairwise

# The name of the group from one part to another, both included, by their positions.
NameOf = Callable[[int, int], str]


def order_levels(weights: Sequence[int], counts: Sequence[int], name_of: NameOf) -> list[list[str]]:
    """Return the name of the group of each part on each level, from fine to coarse.

    weights: the records of the parts, in order. counts: how many groups each level has, from fine to coarse. A level
    has fewer groups if there are fewer parts.
    """
    members = list(range(len(weights)))  # the group of each part on the level below
    levels = []
    for count in counts:
        sums = [0] * (max(members, default=-1) + 1)
        for group, weight in zip(members, weights, strict=True):
            sums[group] += weight
        coarser = equal_groups(sums, count)
        members = [coarser[group] for group in members]
        runs = [[part for part, _ in run] for _, run in groupby(enumerate(members), key=lambda pair: pair[1])]
        names = [name_of(run[0], run[-1]) for run in runs]
        levels.append([names[group] for group in members])
    return levels


def equal_groups(weights: Sequence[int], count: int) -> list[int]:
    """Return the number of the group of each part. Each cut is where the weight before it is nearest to its share."""
    parts, total = len(weights), sum(weights)
    count = min(count, parts)
    before = [0, *accumulate(weights)]
    cuts = [0]
    for number in range(1, count):
        share = total * number / count
        cut = bisect_left(before, share)
        if cut > 0 and share - before[cut - 1] <= before[min(cut, parts)] - share:
            cut -= 1
        # Every group has a part, those that follow too.
        cuts.append(min(max(cut, cuts[-1] + 1), parts - (count - number)))
    return [group for group, (start, end) in enumerate(pairwise([*cuts, parts])) for _ in range(start, end)]


def names_of_texts(texts: Sequence[str]) -> NameOf:
    """Return how groups of sorted texts are named: by the first letters of both ends, as many as it takes.

    What a name shows of an end is no beginning of the value that lies just outside, so no two groups share a name.
    """

    def name(first: int, last: int) -> str:
        if first == last:
            return texts[first]
        begin = _needed(texts[first], texts[first - 1] if first else "")
        end = _needed(texts[last], texts[last + 1] if last + 1 < len(texts) else "")
        while texts[first][:begin] == texts[last][:end]:
            begin, end = begin + 1, end + 1
        return f"{texts[first][:begin]}..{texts[last][:end]}"

    return name


def names_of_labels(labels: Sequence[str]) -> NameOf:
    """Return how groups of named parts are named: by the first and the last of them."""
    return lambda first, last: labels[first] if first == last else f"{labels[first]}..{labels[last]}"


def names_of_values(texts: Sequence[str], *, dates: bool) -> NameOf:
    """Return how groups of numbers or dates in order are named: ``[20..29]``, and open at the ends of the column.

    The smallest and the largest value of a table often belong to a single record, so no name shows them.
    """
    below, above = ("until {}", "from {}") if dates else ("{}-", "{}+")

    def name(first: int, last: int) -> str:
        if first == last:
            return texts[first]
        if first == 0:
            return below.format(texts[last])
        return above.format(texts[first]) if last == len(texts) - 1 else f"[{texts[first]}..{texts[last]}]"

    return name


def names_of_ranges(lows: Sequence[str], highs: Sequence[str]) -> NameOf:
    """Return how groups of ranges are named, each from a low to a high end."""

    def name(first: int, last: int) -> str:
        low, high = lows[first], highs[last]
        return low if low == high else f"[{low}..{high}]"

    return name


def _needed(text: str, outside: str) -> int:
    """Return how many letters it takes that another text does not begin with them."""
    same = 0
    while same < len(text) and text[: same + 1] == outside[: same + 1]:
        same += 1
    return same + 1
