"""Slow and obvious versions of what Sfumato computes fast, for tiny tables. Imports nothing of Sfumato.

Rows are dictionaries of plain Python values. Null is None, and so is NaN.
"""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise
from typing import Any

Row = Mapping[str, Any]
WHOLE = "*"


# ---- optima ----


def runs(count: int, least: int) -> Iterator[list[int]]:
    """Every way to cut a line of ``count`` records into runs of at least ``least``, as the places of the cuts."""
    for pieces in range(1, count // least + 1):
        for inner in combinations(range(1, count), pieces - 1):
            cuts = [0, *inner, count]
            if all(end - start >= least for start, end in pairwise(cuts)):
                yield cuts


def total_cost(cuts: Sequence[int], cost: Callable[[int, int], int]) -> int:
    """Every record pays the cost of its run; ``cost(start, end)`` is that of the places start to end - 1."""
    return sum((end - start) * cost(start, end) for start, end in pairwise(cuts))


def best_total(count: int, least: int, cost: Callable[[int, int], int]) -> int:
    """The least total cost over all partitions into runs."""
    return min(total_cost(cuts, cost) for cuts in runs(count, least))


def best_cuts(count: int, least: int, cost: Callable[[int, int], int]) -> list[int]:
    """The best partition into runs of any length; of equally good ones that with the shortest last run, and so on."""

    @cache
    def best(end: int) -> tuple[int, int] | None:
        if end == 0:
            return 0, 0
        found = None
        for length in range(least, end + 1):
            before = best(end - length)
            if before is not None:
                value = before[0] + length * cost(end - length, end)
                if found is None or value < found[0]:
                    found = value, length
        return found

    cuts, end = [count], count
    while end > 0:
        step = best(end)
        assert step is not None
        end -= step[1]
        cuts.append(end)
    return cuts[::-1]


def set_partitions(items: Sequence[int], least: int) -> Iterator[list[list[int]]]:
    """Every partition of a set into blocks of at least ``least``, consecutive or not."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for others in range(least - 1, len(rest) + 1):
        for chosen in combinations(rest, others):
            left = [item for item in rest if item not in chosen]
            for blocks in set_partitions(left, least):
                yield [[first, *chosen], *blocks]


# ---- the Hilbert curve ----


def hilbert_position(cell: Sequence[int], bits: int) -> int:
    """The place of a cell on the curve as one Python integer of any size, after Skilling (2004)."""
    x = list(cell)
    for level in range(bits - 1, 0, -1):
        below = 2**level - 1
        for q in range(len(x)):
            if x[q] >> level & 1:
                x[0] ^= below
            else:
                difference = (x[0] ^ x[q]) & below
                x[0], x[q] = x[0] ^ difference, x[q] ^ difference
    for q in range(1, len(x)):
        x[q] ^= x[q - 1]
    parity = 0
    for level in range(bits - 1, 0, -1):
        if x[-1] >> level & 1:
            parity ^= 2**level - 1
    digits = [(value ^ parity) >> level & 1 for level in range(bits - 1, -1, -1) for value in x]
    return int("".join(map(str, digits)), 2)


# ---- what columns and labels mean ----


def plain(value: Any) -> Any:
    """None for NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _number(value: Any) -> Fraction:
    """A number, date or moment on one scale, from a value or from the text of a label."""
    if isinstance(value, str):
        if re.fullmatch(r"\d{4}-\d\d-\d\d", value):
            value = datetime.date.fromisoformat(value)
        elif re.match(r"\d{4}-\d\d-\d\dT", value):
            value = datetime.datetime.fromisoformat(value)
        else:
            return Fraction(value)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        passed = value - datetime.datetime(1970, 1, 1)
        return Fraction(passed // datetime.timedelta(microseconds=1), 86_400_000_000)
    if isinstance(value, datetime.date):
        return Fraction((value - datetime.date(1970, 1, 1)).days)
    # A double stands for the shortest decimal that reads back as the same double, which is also what labels show.
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


@cache
def named_days(label: str) -> list[datetime.date]:
    """The days of a month, quarter, year or decade, found by looking at ten years of days; none for another label."""
    if not re.fullmatch(r"\d{4}(-(\d\d|Q\d))?s?", label):
        return []
    days = [datetime.date(int(label[:4]), 1, 1) + datetime.timedelta(days=day) for day in range(3660)]
    return [day for day in days if label in names_of(day)]


def names_of(day: datetime.date) -> set[str]:
    """The names of the periods that hold a day."""
    quarter = "111222333444"[day.month - 1]
    return {f"{day:%Y}", f"{day:%Y-%m}", f"{day:%Y}-Q{quarter}", f"{day:%Y}"[:3] + "0s"}


def bounds(label: str, *, dates: bool = False) -> tuple[Fraction, Fraction]:
    """The ends of a released range, of a single value, or of a named period where labels are about dates."""
    if dates and (days := named_days(label)):
        return _number(days[0]), _number(days[-1])
    found = re.fullmatch(r"\[(.+)\.\.(.+)\]", label)
    low, high = found.groups() if found else (label, label)
    return _number(low), _number(high)


@dataclass(frozen=True)
class NumberColumn:
    """Numbers or dates: ``values`` are those of the original."""

    values: Sequence[Any]

    @property
    def _known(self) -> list[Fraction]:
        return [_number(value) for value in self.values if plain(value) is not None]

    def _bounds(self, label: str) -> tuple[Fraction, Fraction]:
        return bounds(label, dates=any(isinstance(value, datetime.date) for value in self.values))

    def covers(self, label: str | None, value: Any) -> bool:
        value = plain(value)
        if label is None or value is None:
            return (label is None and value is None) or label == WHOLE
        if label == WHOLE:
            return True
        low, high = self._bounds(label)
        return low <= _number(value) <= high

    def penalty(self, label: str | None) -> Fraction:
        if label is None:
            return Fraction(0)
        if label == WHOLE:
            return Fraction(1)
        low, high = self._bounds(label)
        if low == high:
            return Fraction(0)
        extent = max(self._known) - min(self._known)
        return min((high - low) / extent, Fraction(1)) if extent else Fraction(1)

    def is_tight(self, label: str | None, values: Sequence[Any]) -> bool:
        """Whether the label is the smallest that covers the values, where nothing widens it on purpose."""
        known = [_number(value) for value in values if plain(value) is not None]
        if not known:
            return label is None
        if len(known) < len(values):
            return label == WHOLE
        everything = self._known
        if label == WHOLE:
            return min(known) == min(everything) < max(everything) == max(known)
        assert label is not None
        return self._bounds(label) == (min(known), max(known))


@dataclass(frozen=True)
class CategoryColumn:
    """Categories under a taxonomy: one row for each leaf, the leaf first, ever more general, without the root."""

    rows: Sequence[Sequence[str]]
    _leaves: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_leaves", frozenset(row[0] for row in self.rows))

    def under(self, label: str) -> frozenset[str]:
        """The leaves that a label stands for."""
        if label == WHOLE:
            return self._leaves
        if label in self._leaves:
            return frozenset([label])
        name = label.removesuffix(" (group)")
        name = name if name in self._leaves else label
        return frozenset(row[0] for row in self.rows if name in row[1:])

    def covers(self, label: str | None, value: Any) -> bool:
        if label is None or value is None:
            return (label is None and value is None) or label == WHOLE
        return value in self.under(label)

    def penalty(self, label: str | None) -> Fraction:
        if label is None:
            return Fraction(0)
        if label == WHOLE:
            return Fraction(1)
        leaves = len(self.under(label))
        return Fraction(0) if leaves == 1 else Fraction(leaves, len(self._leaves))

    def is_tight(self, label: str | None, values: Sequence[Any]) -> bool:
        """Whether no smaller group, found by comparing paths from the root, holds all values."""
        wanted = {value for value in values if value is not None}
        if not wanted:
            return label is None
        if None in values:
            return label == WHOLE
        if len(wanted) == 1:
            return label in wanted
        sets = {frozenset(row[0] for row in self.rows if name in row[1:]) for one in self.rows for name in one[1:]}
        smallest = min((leaves for leaves in [*sets, self._leaves] if wanted <= leaves), key=len)
        if smallest == self._leaves:
            return label == WHOLE
        assert label is not None
        return self.under(label) == smallest


Column = NumberColumn | CategoryColumn


def tight_penalty(column: Column, values: Sequence[Any]) -> Fraction:
    """The penalty of the smallest label that covers some values of a column."""
    known = [value for value in map(plain, values) if value is not None]
    if not known or len(known) < len(values):
        return Fraction(int(bool(known)))
    if isinstance(column, NumberColumn):
        numbers, everything = [_number(value) for value in known], column._known
        extent = max(everything) - min(everything)
        return (max(numbers) - min(numbers)) / extent if extent else Fraction(0)
    if len(set(known)) == 1:
        return Fraction(0)
    paths = [row for row in column.rows if row[0] in known]
    shared = [name for name in paths[0][1:] if all(name in row[1:] for row in paths)]
    sizes = [sum(name in row[1:] for row in column.rows) for name in shared]
    return Fraction(min([*sizes, len(column.rows)]), len(column.rows))


def flat_rows(values: Sequence[str | None]) -> list[list[str]]:
    return [[value] for value in sorted({value for value in values if value is not None})]


def prefix_rows(values: Sequence[str | None], lengths: Sequence[int]) -> list[list[str]]:
    known = sorted({value for value in values if value is not None})
    longest = max(map(len, known), default=0)
    return [[value, *(value[:n] + WHOLE * (longest - n) for n in reversed(lengths))] for value in known]


# ---- privacy and losses ----


def classes(rows: Sequence[Row], key: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows with equal values in all columns of the key."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(plain(row[name]) for name in key), []).append(row)
    return found


def smallest_class(rows: Sequence[Row], key: Sequence[str]) -> int:
    return min(len(members) for members in classes(rows, key).values())


def has_value(row: Row, sensitive: str, nulls: Sequence[str] = ("",)) -> bool:
    """Null and text that stands for it are no values."""
    value = plain(row[sensitive])
    return value is not None and value not in nulls


def reached_frequency(
    rows: Sequence[Row], key: Sequence[str], sensitive: str, nulls: Sequence[str] = ("",)
) -> Fraction | None:
    """The largest l for which no value has more than 1/l of the values of a class; None where there are no values."""
    found = []
    for members in classes(rows, key).values():
        counts = Counter(row[sensitive] for row in members if has_value(row, sensitive, nulls))
        if counts:
            found.append(Fraction(sum(counts.values()), max(counts.values())))
    return min(found, default=None)


def fewest_values(rows: Sequence[Row], key: Sequence[str], sensitive: str, nulls: Sequence[str] = ("",)) -> int:
    """The smallest number of different values in a class."""
    return min(
        len({row[sensitive] for row in members if has_value(row, sensitive, nulls)})
        for members in classes(rows, key).values()
    )


# ---- what sensitive values must meet ----


def height_below(rows: Sequence[Sequence[str]], node: tuple[str, ...]) -> int:
    """The longest way down from a node to a leaf. A node is its names from the root on; rows end in the root."""
    paths = [tuple(reversed(row)) for row in rows]
    return max(len(path) - len(node) for path in paths if path[: len(node)] == node)


def hierarchical_distance(
    shares: Mapping[Any, Fraction], others: Mapping[Any, Fraction], rows: Sequence[Sequence[str]]
) -> Fraction:
    """The earth mover's distance over a taxonomy (Li et al. 2007, section 5.2); null is a leaf beside all others.

    What is too much under one child of a node goes to the children that have too little, at the height of the node.
    """
    paths = [tuple(reversed(row)) for row in rows]
    root = paths[0][:1]
    tallest = max(height_below(rows, root), 1)

    def excess(node: tuple[str, ...]) -> Fraction:
        leaves = [path[-1] for path in paths if path[: len(node)] == node]
        return sum((shares.get(leaf, Fraction(0)) - others.get(leaf, Fraction(0)) for leaf in leaves), Fraction(0))

    total = Fraction(0)
    for node in {path[:depth] for path in paths for depth in range(1, len(path))}:
        children = {path[: len(node) + 1] for path in paths if path[: len(node)] == node}
        extra = [excess(child) for child in children]
        if node == root:
            extra.append(shares.get(None, Fraction(0)) - others.get(None, Fraction(0)))
        more, less = sum(one for one in extra if one > 0), -sum(one for one in extra if one < 0)
        total += Fraction(height_below(rows, node), tallest) * min(more, less)
    return total


@dataclass(frozen=True)
class Counts:
    """The sensitive values of some records: how many have each, and how many have any."""

    of: dict[Any, int]
    known: int

    @property
    def largest(self) -> int:
        return max(self.of.values(), default=0)

    @property
    def shares(self) -> dict[Any, Fraction]:
        total = sum(self.of.values())
        return {value: Fraction(count, total) for value, count in self.of.items()}


@dataclass(frozen=True)
class Counting:
    """How sensitive values are counted: records or persons, in classes or jointly, null as a value or as none."""

    person: str | None = None
    joint: Sequence[str] = ()
    null_is_value: bool = False
    nulls: Sequence[str] = ("",)

    def value(self, row: Row, column: str) -> Any:
        value = plain(row[column])
        return None if value is not None and str(value) in self.nulls else value

    def members(self, rows: Sequence[Row]) -> int:
        return len(rows) if self.person is None else len({row[self.person] for row in rows})

    def counts(self, rows: Sequence[Row], column: str) -> Counts:
        having: dict[Any, list[Row]] = {}
        for row in rows:
            value = self.value(row, column)
            if value is not None or self.null_is_value:
                having.setdefault(value, []).append(row)
        everybody = [row for some in having.values() for row in some]
        return Counts({value: self.members(some) for value, some in having.items()}, self.members(everybody))

    def parts(self, rows: Sequence[Row], key: Sequence[str], column: str) -> list[list[Row]]:
        """What a requirement on a column must hold in: the classes, or their parts that are equal in the others."""
        others = [name for name in self.joint if name != column]
        found: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            shown = tuple(plain(row[name]) for name in key)
            found.setdefault((*shown, *(self.value(row, name) for name in others)), []).append(row)
        return list(found.values())


@dataclass(frozen=True)
class Asked:
    """A requirement on a sensitive column, as a policy says it but with exact numbers; rows are those of a taxonomy."""

    kind: str
    attribute: str
    parameters: Mapping[str, Any]
    rows: Sequence[Sequence[str]] = ()

    def holds(self, some: Counts, everything: Counts) -> bool:
        """Whether one class, or part of one, meets it; ``everything`` is the whole release."""
        test = getattr(self, "_" + self.kind.replace("-", "_"))
        return bool(test(some, everything, **self.parameters))

    def _frequency(self, some: Counts, _: Counts, l: int) -> bool:
        return some.largest * l <= some.known

    def _distinct(self, some: Counts, _: Counts, l: int) -> bool:
        return len(some.of) >= l

    def _entropy(self, some: Counts, _: Counts, l: int | Fraction) -> bool:
        """-sum p ln p >= ln l, with both sides raised: fractions throughout."""
        total = sum(some.of.values())
        return (
            bool(total**total >= l**total * math.prod(count**count for count in some.of.values())) if total else l == 1
        )

    def _recursive(self, some: Counts, _: Counts, c: Fraction, l: int) -> bool:
        descending = sorted(some.of.values(), reverse=True)
        return l == 1 or some.largest < c * sum(descending[l - 1 :])

    def _variance(self, some: Counts, _: Counts, v: Fraction) -> bool:
        return self.variance(some) >= v

    @staticmethod
    def variance(some: Counts) -> Fraction:
        mean = sum((share * _number(value) for value, share in some.shares.items()), Fraction(0))
        return sum((share * (_number(value) - mean) ** 2 for value, share in some.shares.items()), Fraction(0))

    def _t_closeness(self, some: Counts, everything: Counts, t: Fraction, distance: str = "equal") -> bool:
        return self.distance(some, everything, distance) <= t

    def distance(self, some: Counts, everything: Counts, distance: str) -> Fraction:
        if not some.of:
            return Fraction(0)
        if distance == "hierarchical":
            here, there = (
                {None if v is None else str(v): p for v, p in one.shares.items()} for one in (some, everything)
            )
            return hierarchical_distance(here, there, self.rows)
        values = sorted(everything.of, key=_NullLast)
        more = [some.shares.get(value, Fraction(0)) - everything.shares[value] for value in values]
        if distance == "equal":
            return sum(map(abs, more), Fraction(0)) / 2
        moved = [abs(sum(more[: place + 1], Fraction(0))) for place in range(len(more))]
        return sum(moved, Fraction(0)) / max(len(more) - 1, 1)

    def _alpha_k(self, some: Counts, _: Counts, alpha: Fraction) -> bool:
        return some.largest <= alpha * some.known

    def _beta_likeness(self, some: Counts, everything: Counts, beta: Fraction, enhanced: bool = False) -> bool:
        for value, p in some.shares.items():
            q = everything.shares[value]
            if p > q and (p - q) / q > (min(beta, Fraction(-math.log(q))) if enhanced else beta):
                return False
        return True

    def _delta_disclosure(self, some: Counts, everything: Counts, delta: Fraction) -> bool:
        if set(some.of) != set(everything.of):
            return False
        return all(abs(math.log(p / everything.shares[value])) < delta for value, p in some.shares.items())


def smallest_membership(rows: Sequence[Row], key: Sequence[str], counting: Counting) -> int:
    """The records, or persons, of the smallest class."""
    return min(counting.members(members) for members in classes(rows, key).values())


def is_met(asked: Asked, rows: Sequence[Row], key: Sequence[str], counting: Counting) -> bool:
    """Whether every class of a release meets a requirement; without a key the whole table is one class."""
    everything = counting.counts(rows, asked.attribute)
    parts = counting.parts(rows, key, asked.attribute)
    return all(asked.holds(counting.counts(part, asked.attribute), everything) for part in parts)


def losses(
    records: int,
    released: Sequence[Row],
    columns: Mapping[str, Column],
    k: int,
    weights: Mapping[str, float] | None = None,
    target: str | None = None,
    suppression_cost: float = 1.0,
) -> dict[str, Fraction]:
    """Every loss by its definition. ``records`` is the size of the original; columns are the quasi-identifiers."""
    weight = {name: Fraction((weights or {}).get(name, 1.0)) for name in columns}
    suppressed = records - len(released)
    penalty = Fraction(0)
    for row in released:
        penalty += sum(weight[name] * column.penalty(row[name]) for name, column in columns.items())
    groups = classes(released, list(columns))
    sizes = [len(members) for members in groups.values()]
    result = {
        "gcp": (penalty / sum(weight.values()) + suppressed) / records,
        "gcp_released": penalty / sum(weight.values()) / len(released),
        "cost": (penalty / sum(weight.values()) + Fraction(suppression_cost) * suppressed) / records,
        "c_dm": Fraction(sum(size * size for size in sizes) + records * suppressed),
        "c_avg": Fraction(len(released), len(sizes) * k),
        "c_mdm": Fraction(sum((size - k) ** 2 for size in sizes)),
        "max_size": max(
            2 * sum((columns[name].penalty(label) for name, label in zip(columns, key, strict=True)), Fraction(0))
            for key in groups
        ),
    }
    if target is not None:
        majority = sum(max(Counter(plain(row[target]) for row in rows).values()) for rows in groups.values())
        result["cm"] = Fraction(records - majority, records)
    return result


def canonical_order(rows: Sequence[Row], quasi_identifiers: Sequence[str], others: Sequence[str]) -> list[Row]:
    """By the released quasi-identifiers as text, then by the other columns. Null is last, and so are rows of stars."""
    names = [*quasi_identifiers, *others]

    def place(row: Row) -> tuple[Any, ...]:
        nothing = all(row[name] == "*" for name in quasi_identifiers)
        return nothing, *(_NullLast(plain(row[name])) for name in names)

    return sorted(rows, key=place)


@dataclass(frozen=True)
class _NullLast:
    value: Any

    def __lt__(self, other: _NullLast) -> bool:
        if self.value is None or other.value is None:
            return self.value is not None and other.value is None
        return bool(self.value < other.value)


def domain_of(column: Column, values: Sequence[Any]) -> list[Any]:
    """The cells of one quasi-identifier: leaves, or the original's numbers; and null where it occurs."""
    cells = [plain(value) for value in values]
    if not any(value is not None for value in cells):
        return [None]  # nothing says what a column of nulls could hold
    if isinstance(column, CategoryColumn):
        known: list[Any] = [row[0] for row in column.rows]
    else:
        known = sorted({value for value in cells if value is not None})
    return [*known, None] if None in cells else known


def standardised(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """The columns with mean 0 and deviation 1, without those that have one value."""
    columns = []
    for values in zip(*rows, strict=True):
        mean = sum(values) / len(values)
        deviation = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
        if len(set(values)) > 1:
            columns.append([(value - mean) / deviation for value in values])
    return [list(point) for point in zip(*columns, strict=True)]


def squared_error(points: Sequence[Sequence[float]]) -> float:
    """The sum of the squared distances of some points from their mean."""
    mean = [sum(values) / len(points) for values in zip(*points, strict=True)]
    return sum((x - m) ** 2 for point in points for x, m in zip(point, mean, strict=True))


def information_loss(rows: Sequence[Sequence[float]], groups: Sequence[Sequence[int]]) -> float:
    """100 SSE / SST of classes of rows, on standardised columns."""
    points = standardised(rows)
    return 100 * sum(squared_error([points[i] for i in group]) for group in groups) / squared_error(points)


def least_information_loss(rows: Sequence[Sequence[float]], k: int) -> float:
    """The least over all partitions into classes of at least k."""
    return min(information_loss(rows, groups) for groups in set_partitions(range(len(rows)), k))


def mdav(points: Sequence[Sequence[float]], k: int) -> list[list[int]]:
    """MDAV-generic as it is published, one step at a time; ties go to the lower point."""
    left, groups = list(range(len(points))), []

    def distance(one: Sequence[float], other: Sequence[float]) -> float:
        return sum((x - y) ** 2 for x, y in zip(one, other, strict=True))

    def farthest(place: Sequence[float]) -> int:
        return max(left, key=lambda i: (distance(points[i], place), -i))

    def take(centre: int) -> None:
        group = sorted(left, key=lambda i: (i != centre, distance(points[i], points[centre]), i))[:k]
        groups.append(group)
        left[:] = [i for i in left if i not in group]

    def middle() -> list[float]:
        return [sum(values) / len(left) for values in zip(*(points[i] for i in left), strict=True)]

    while len(left) >= 3 * k:
        first = farthest(middle())
        second = farthest(points[first])
        take(first)
        take(second if second in left else left[0])
    if len(left) >= 2 * k:
        take(farthest(middle()))
    if left:
        groups.append(list(left))
    return groups
