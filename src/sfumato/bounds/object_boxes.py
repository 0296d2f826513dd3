"""The bound of Du 2007 object by object: the smallest box of k records around each record, and the largest of these.

Du, Xia, Tao, Zhang and Zhu 2007 compare MAXSIZE with "the minimum rectangle that contains at least k objects". Over the
whole table that is 0 or nearly so. Read for each object, it is a bound worth comparing with: every record is in a class
of k, whose box holds the record, so MAXSIZE is at least the largest of these smallest boxes. It is at least the bound
by the reach of neighbours too.

Only records that could decide are searched: those whose nearest neighbours have a larger box than the largest smallest
box found so far, those with the largest first. The largest box is mostly found among the first few dozens of them, so
the search ends after some (``SEARCHED``): what is found by then is a bound too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.bounds.cheapest_boxes import nearest_boxes
from sfumato.bounds.problem import BoundProblem
from sfumato.losses.exact_costs import exact_costs
from sfumato.methods.method import Records
from sfumato.requirements import KAnonymity, Requirements

MAX_PARTS = 1 << 12  # of the search for one record; beyond that its bound is lower than it could be
TOGETHER = 16  # records that are searched before the largest box is looked at again
SEARCHED = 800  # records that are searched, times k: a search takes longer with a larger k


def object_box_bound(records: Records, k: int) -> float:
    """Return a lower bound on MAXSIZE for any partition into classes of k, with equal weights of the attributes."""
    if not 1 <= k <= records.count:
        raise ValueError("k must be between 1 and the number of records")
    d = records.codes.shape[1]
    costs = exact_costs(records.domains, [1.0] * d, records.count)
    problem = BoundProblem.of(replace(records, costs=costs, persons=None), Requirements((KAnonymity(k),)))
    known = nearest_boxes(problem, lambda _: None)
    nothing, largest = np.zeros(problem.count, np.int64), int(known.least.max())
    waiting = np.argsort(-known.cost, kind="stable")
    for first in range(0, min(len(waiting), max(SEARCHED // k, TOGETHER)), TOGETHER):
        targets = waiting[first : first + TOGETHER]
        targets = targets[known.cost[targets] > largest]
        if not len(targets):
            break
        found = problem.least_slacks(targets, nothing, nothing, problem.k * known.cost[targets], MAX_PARTS)
        largest = max(largest, int(found.slack.max()) // problem.k)
    # Costs are rounded by at most one unit per attribute; a bound must hold for the exact ones.
    return float(2 * max(largest - d, 0) / int(costs.layout[0, 3]))
