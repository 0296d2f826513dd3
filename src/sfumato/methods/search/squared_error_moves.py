"""Annealing of classes by sums of squares: rows change classes, exchange places, leave a class or found one.

Each try draws a row and one of the rows near to it, nearer ones more often, and changes the classes so that the two
come together: the row joins the class of the other, or takes the place of one of its rows. Now and then a class of k is
dissolved instead, each of its rows joining the best class near to it, or a row founds a class with near rows that
others can spare. A change that raises the cost is kept with a probability that falls with the temperature (Kirkpatrick,
Gelatt, Vecchi 1983).

Classes have k to 2k - 1 rows: a larger one divides into two that cost no more together. A class is known by its number
of rows, sum and sum of squares, so a change is judged without a look at the other rows. All of it is in whole numbers:
the logarithms of the random numbers are rounded in a table, and the result is the same everywhere."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.methods.clustering.mdav import squared_distance
from sfumato.methods.search.ruin_and_recreate import next_random

DRAWS = 1 << 12
UNIT = 1 << 10  # of a logarithm
LOGARITHMS = np.rint(-np.log((np.arange(DRAWS) + 0.5) / DRAWS) * UNIT).astype(np.int64)  # of a uniform draw, negated
RESHAPED = 64  # one of so many tries dissolves or founds a class
JOINS, LEAVES = np.int64(1), np.int64(-1)


class SummedClasses(NamedTuple):
    """Classes of points. owner, place: int64[n], the class of each row, and its place in ``members``.

    members: int64[c, 2k - 1]; size, square, norm, cost: int64[c], the number of rows, the sum of their squares, the
    square of their sum, and Q - S S / n; sums: int64[c, d]. There is room for as many classes as can be; an empty one
    has size 0. empty: int64[c], the empty classes come first; state: int64[1], their number.
    """

    owner: NDArray[np.int64]
    place: NDArray[np.int64]
    members: NDArray[np.int64]
    size: NDArray[np.int64]
    sums: NDArray[np.int64]
    square: NDArray[np.int64]
    norm: NDArray[np.int64]
    cost: NDArray[np.int64]
    empty: NDArray[np.int64]
    state: NDArray[np.int64]


def summed_classes(points: NDArray[np.int64], owner: NDArray[np.int64], k: int) -> SummedClasses:
    """Return classes of k to 2k - 1 points. owner: int64[n], the class of each point, no gaps."""
    n, d = points.shape
    most = n // k
    used = int(owner.max()) + 1
    sizes = np.bincount(owner, minlength=most)
    order = np.argsort(owner, kind="stable")
    place = np.empty(n, np.int64)
    place[order] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    members = np.full((most, 2 * k - 1), NONE, np.int64)
    members[owner, place] = np.arange(n)
    sums = np.zeros((most, d), np.int64)
    np.add.at(sums, owner, points)
    square = np.zeros(most, np.int64)
    np.add.at(square, owner, np.square(points).sum(axis=1))
    norm = np.square(sums).sum(axis=1)
    cost = square - norm // np.maximum(sizes, 1)
    empty = np.zeros(most, np.int64)
    empty[: most - used] = np.arange(used, most)
    return SummedClasses(
        owner, place, members, sizes, sums, square, norm, cost, empty, np.array([most - used], np.int64)
    )


@kernel
def nearest_rows(points, near):
    """Write the rows nearest to each row, the nearest first, ties in order. near: int64[n, g], g below n."""
    g = near.shape[1]
    distance = np.empty(g, np.int64)
    for row in range(len(points)):
        held = np.int64(0)
        for other in range(len(points)):
            if other == row:
                continue
            length = squared_distance(points[row], points[other])
            if held < g or length < distance[held - 1]:
                if held < g:
                    held += 1
                j = held - 1
                while j > 0 and distance[j - 1] > length:
                    near[row, j], distance[j] = near[row, j - 1], distance[j - 1]
                    j -= 1
                near[row, j], distance[j] = other, length


@kernel
def anneal(points, near, k, classes, temperature, logarithms, tries, state):
    """Make ``tries`` changes at a temperature, which is a cost; at 0 only changes that cost no more. Return the gain.

    points: int64[n, d]; near: int64[n, g]; logarithms: int64[DRAWS]; state: uint64[1], of the random numbers.
    """
    n, g = near.shape
    owner, size, members = classes.owner, classes.size, classes.members
    taken = np.empty(2 * k, np.int64)
    came_from = np.empty(2 * k, np.int64)
    gained = np.int64(0)
    for _ in range(tries):
        row = np.int64(next_random(state) % np.uint64(n))
        allowed = temperature * logarithms[np.int64(next_random(state) % np.uint64(len(logarithms)))] // UNIT
        home = owner[row]
        choice = np.int64(next_random(state) % np.uint64(RESHAPED))
        if choice == 0:
            if size[home] == k:
                gained += dissolve(points, near, k, classes, home, allowed, taken)
            else:
                gained += found(points, near, k, classes, row, allowed, taken, came_from)
            continue
        one, two = next_random(state) % np.uint64(g), next_random(state) % np.uint64(g)
        other = near[row, np.int64(min(one, two))]
        away = owner[other]
        if away == home:
            continue
        if size[home] > k and size[away] < 2 * k - 1:
            rise = removed(points, classes, home, row) + added(points, classes, away, row)
            if rise <= allowed:
                move(points, classes, row, away)
                gained -= rise
        else:
            i = np.int64(next_random(state) % np.uint64(size[away]))
            partner = members[away, i]
            if partner == other:
                continue
            rise = exchanged(points, classes, home, row, partner) + exchanged(points, classes, away, partner, row)
            if rise <= allowed:
                exchange(points, classes, row, partner)
                gained -= rise
    return gained


@inner_kernel
def added(points, classes, group, row):
    """Return what a class costs more with a row."""
    product, square = np.int64(0), np.int64(0)
    for q in range(points.shape[1]):
        x = points[row, q]
        product += classes.sums[group, q] * x
        square += x * x
    norm = classes.norm[group] + 2 * product + square
    return classes.square[group] + square - norm // (classes.size[group] + 1) - classes.cost[group]


@inner_kernel
def removed(points, classes, group, row):
    """Return what a class of two or more rows costs more, or less, without one of them."""
    product, square = np.int64(0), np.int64(0)
    for q in range(points.shape[1]):
        x = points[row, q]
        product += classes.sums[group, q] * x
        square += x * x
    norm = classes.norm[group] - 2 * product + square
    return classes.square[group] - square - norm // (classes.size[group] - 1) - classes.cost[group]


@inner_kernel
def exchanged(points, classes, group, leaving, joining):
    """Return what a class costs more when one row leaves and another joins."""
    product, square, change = np.int64(0), np.int64(0), np.int64(0)
    for q in range(points.shape[1]):
        x, y = points[leaving, q], points[joining, q]
        product += classes.sums[group, q] * (y - x)
        square += (y - x) * (y - x)
        change += y * y - x * x
    norm = classes.norm[group] + 2 * product + square
    return classes.square[group] + change - norm // classes.size[group] - classes.cost[group]


@inner_kernel
def count_row(points, classes, group, row, sign):
    """Add a row to the sums of a class, or subtract it, once its size is known. sign: JOINS or LEAVES."""
    norm = np.int64(0)
    for q in range(points.shape[1]):
        x = points[row, q]
        classes.sums[group, q] += sign * x
        classes.square[group] += sign * x * x
        norm += classes.sums[group, q] * classes.sums[group, q]
    classes.norm[group] = norm
    classes.cost[group] = classes.square[group] - norm // max(classes.size[group], 1)


@inner_kernel
def move(points, classes, row, group):
    """Move a row to another class."""
    home, place = classes.owner[row], classes.place[row]
    classes.size[home] -= 1
    last = classes.members[home, classes.size[home]]
    classes.members[home, place], classes.place[last] = last, place
    count_row(points, classes, home, row, LEAVES)
    classes.members[group, classes.size[group]] = row
    classes.place[row], classes.owner[row] = classes.size[group], group
    classes.size[group] += 1
    count_row(points, classes, group, row, JOINS)


@inlined_kernel
def exchange(points, classes, row, partner):
    """Let two rows change places."""
    home, away = classes.owner[row], classes.owner[partner]
    here, there = classes.place[row], classes.place[partner]
    classes.members[home, here], classes.members[away, there] = partner, row
    classes.owner[row], classes.owner[partner] = away, home
    classes.place[row], classes.place[partner] = there, here
    count_row(points, classes, home, row, LEAVES)
    count_row(points, classes, home, partner, JOINS)
    count_row(points, classes, away, partner, LEAVES)
    count_row(points, classes, away, row, JOINS)


@inlined_kernel
def dissolve(points, near, k, classes, group, allowed, taken):
    """Put each row of a class into the best class near to it, if that raises the cost at most so much; the gain."""
    rise, count = -classes.cost[group], classes.size[group]
    for i in range(count):
        taken[i] = classes.members[group, i]
    moved = np.int64(0)
    for i in range(count):
        row, best, least = taken[i], NONE, INFINITE
        for j in range(near.shape[1]):
            away = classes.owner[near[row, j]]
            if (away != group) & (away != best) and classes.size[away] < 2 * k - 1:
                cost = added(points, classes, away, row)
                if cost < least:
                    best, least = away, cost
        if best == NONE or rise + least > allowed:
            break
        move(points, classes, row, best)
        rise += least
        moved += 1
    if moved < count:
        for i in range(moved):
            move(points, classes, taken[i], group)
        return np.int64(0)
    classes.empty[classes.state[0]] = group
    classes.state[0] += 1
    return -rise


@inlined_kernel
def found(points, near, k, classes, row, allowed, taken, came_from):
    """Found a class of a row and of near rows that their classes can spare, if it raises the cost at most so much."""
    if classes.state[0] == 0:
        return np.int64(0)
    group = classes.empty[classes.state[0] - 1]
    taken[0], came_from[0] = row, classes.owner[row]
    rise = removed(points, classes, came_from[0], row)
    move(points, classes, row, group)
    count = np.int64(1)
    for j in range(near.shape[1]):
        other = near[row, j]
        home = classes.owner[other]
        if count < k and home != group and classes.size[home] > k:
            rise += removed(points, classes, home, other)
            taken[count], came_from[count] = other, home
            move(points, classes, other, group)
            count += 1
    rise += classes.cost[group]
    if count == k and rise <= allowed:
        classes.state[0] -= 1
        return -rise
    for i in range(count):
        move(points, classes, taken[i], came_from[i])
    return np.int64(0)
