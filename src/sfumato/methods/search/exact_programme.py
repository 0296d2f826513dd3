"""The programme of a neighbourhood: which boxes and classes hold every record once, at the least cost.

A *box* may be opened, and then holds at least k of the records in it, whichever; each costs as much as the box. A
*class* is taken as it is or not at all. Records with equal codes and equal sensitive values are one *type*, counted.
For each box b there are a variable z_b, whether it is open, and for each type i in it a variable x_ib, how many of its
records are there:

    minimize    the sum of cost_b * x_ib, and of the cost of every class that is taken
    such that   for each type, all its records are in boxes or in classes that are taken
                x_ib <= (records of type i) * z_b,    the sum of x_ib over i >= k * z_b
                l * (records of one value in b) <= records of b, for frequency l-diversity

No box is opened twice: two classes with one box are one. With z between 0 and 1 this is the relaxation of choosing
among all classes in the boxes, for k alone, and its dual values are the prices of ``bounds.dual_prices``.

HiGHS solves it with one thread and a limit of nodes, not of time, so that the same programme has the same solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UsageError

GAP = 1e-6  # the relative distance to the optimum at which a solution counts as optimal


@dataclass(frozen=True)
class FrequencyLimit:
    """No value has more than one in ``l`` of the records of a class. value: int64[t], by type; -1 where it is null."""

    value: NDArray[np.int64]
    l: int


@dataclass(frozen=True)
class PartitionProgramme:
    """The types of a neighbourhood, and the boxes and classes that its records can be put into.

    weights: int64[t]; least: the least size of a class. inside: bool[b, t]; cost: float64[b], of one record in a box.
    taken: int64[c, t], how many records of each type a class has; taken_cost: float64[c], of all of them.
    """

    weights: NDArray[np.int64]
    least: int
    inside: NDArray[np.bool_]
    cost: NDArray[np.float64]
    taken: NDArray[np.int64]
    taken_cost: NDArray[np.float64]
    frequencies: tuple[FrequencyLimit, ...] = ()

    def prices(self) -> NDArray[np.float64]:
        """Return the price of each type in the relaxation: float64[t], at least 0."""
        solver = self._solver(relaxed=True)
        solver.run()
        values = np.array(solver.getSolution().row_dual[: len(self.weights)])
        # A programme that was not solved has no prices.
        return np.maximum(values, 0.0) if len(values) == len(self.weights) else np.zeros(len(self.weights))

    def solve(
        self, start: tuple[NDArray[np.int64], NDArray[np.int64]], nodes: int, seconds: float | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the best solution found: how many records of each type a box holds, and which classes are taken.

        start: a solution, int64[b, t] and int64[c]. nodes: the nodes of the search. seconds: a limit of time, if any.
        """
        highspy = _solver_package()
        solver, (box, kind) = self._solver(relaxed=False), np.nonzero(self.inside)
        counts, classes = start
        values = np.concatenate([counts[box, kind], counts.any(axis=1), classes]).astype(np.float64)
        known = highspy.HighsSolution()
        known.col_value = values.tolist()
        solver.setSolution(known)
        solver.setOptionValue("mip_max_nodes", nodes)
        solver.setOptionValue("mip_rel_gap", GAP)
        if seconds is not None:
            solver.setOptionValue("time_limit", seconds)
        solver.run()
        found = np.array(solver.getSolution().col_value)
        if len(found) != len(values):
            return start
        whole, last = np.rint(found).astype(np.int64), len(box) + len(self.inside)
        counts = np.zeros_like(counts)
        counts[box, kind] = whole[: len(box)]
        return counts, whole[last:]

    def _solver(self, *, relaxed: bool) -> Any:
        highspy = _solver_package()
        box, kind = np.nonzero(self.inside)
        x, z, taken = len(box), len(self.inside), len(self.taken)
        count, entries = len(self.weights), np.arange(x)
        class_of, type_of = np.nonzero(self.taken)
        rows = [kind, type_of, count + entries, count + entries, count + x + box, count + x + np.arange(z)]
        columns = [entries, x + z + class_of, entries, x + box, entries, x + np.arange(z)]
        values = [
            np.ones(x), self.taken[class_of, type_of], np.ones(x), -self.weights[kind], np.ones(x),
            np.full(z, -self.least),
        ]  # fmt: skip
        first = count + x + z
        for limit in self.frequencies:
            known = limit.value[kind] >= 0
            width = int(limit.value.max(initial=-1)) + 1
            pairs, row = np.unique((box * width + limit.value[kind])[known], return_inverse=True)
            # Every record of the box counts for each of its values, and l times against its own.
            one, other = np.nonzero((pairs // max(width, 1))[:, None] == box[known][None])
            rows += [first + one, first + row]
            columns += [entries[known][other], entries[known]]
            values += [np.ones(len(one)), np.full(len(row), -limit.l)]
            first += len(pairs)
        free = np.full(first - count - x, np.inf)
        solver, model = highspy.Highs(), highspy.HighsLp()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("parallel", "off")
        model.num_col_, model.num_row_ = x + z + taken, first
        model.col_cost_ = np.concatenate([self.cost[box], np.zeros(z), self.taken_cost])
        model.col_lower_ = np.zeros(x + z + taken)
        model.col_upper_ = np.concatenate(
            [self.weights[kind], np.full(z, np.inf if relaxed else 1.0), np.full(taken, np.inf)]
        ).astype(np.float64)
        model.row_lower_ = np.concatenate([self.weights, np.full(x, -np.inf), np.zeros(len(free))])
        model.row_upper_ = np.concatenate([self.weights, np.zeros(x), free])
        matrix = _by_column(np.concatenate(rows), np.concatenate(columns), np.concatenate(values), x + z + taken)
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = matrix
        if not relaxed:
            whole, any_number = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
            # Once it is known which boxes are open, an optimum for k alone is whole by itself.
            model.integrality_ = [whole if self.frequencies else any_number] * x + [whole] * (z + taken)
        solver.passModel(model)
        return solver


def _by_column(
    rows: NDArray[np.int64], columns: NDArray[np.int64], values: NDArray[np.float64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return a matrix in the form that HiGHS takes. Entries of one place are added."""
    height = int(rows.max()) + 1
    places, where = np.unique(columns * height + rows, return_inverse=True)
    starts = np.searchsorted(places, np.arange(count + 1) * height).astype(np.int64)
    sums = np.zeros(len(places))
    np.add.at(sums, where, values)
    return starts, places % height, sums


def _solver_package() -> Any:
    """Load the package of the solver, which is an extra and has half of its types."""
    return import_module("highspy")


def check_solver() -> None:
    """Refuse effort ``exact`` where the solver is not installed."""
    try:
        _solver_package()
    except ImportError:
        raise UsageError(
            "effort exact needs a package that is missing. Install it with: pip install 'sfumato[exact]', or choose "
            "--effort best."
        ) from None
