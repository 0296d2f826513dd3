"""The dearest classes of a very large table, formed anew by cell peeling.

A line is cut quickly, but where records are rare its classes lose many times as much as the others: a few of the
records have a large part of the loss. Cells are much better there, and so few records take little time. How many they
are is counted from the records and columns, so that the same table has the same classes everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.exact_costs import attribute_costs, total_cost
from sfumato.methods.lattice.cell_peeling import CellPeeling
from sfumato.methods.method import ClassBatch, Records
from sfumato.progress import Progress
from sfumato.requirements import Requirements

SHARE = 64  # one record in so many is in a dear class
USUAL_COLUMNS = 8  # beyond so many, fewer records: trying a cell takes longer


def are_peeled(records: Records, requirements: Requirements) -> bool:
    """Return whether cells pay: most columns are categories, and no sensitive values have to be counted in cells."""
    categorical = sum(domain.tree is not None for domain in records.domains)
    return not requirements.attributes and 2 * categorical >= len(records.domains)


def peeled_anew(
    batch: ClassBatch, records: Records, requirements: Requirements, progress: Progress
) -> tuple[ClassBatch, int]:
    """Return the classes with those that lose most formed anew, if that loses less; and how many records these have."""
    dear = _dear(batch, records)
    sizes = np.diff(batch.starts)
    in_dear = np.repeat(dear, sizes)
    rest = ClassBatch(batch.rows[~in_dear], np.append(0, np.cumsum(sizes[~dear])), batch.low[~dear], batch.high[~dear])
    few = records.without(rest.rows)
    peeled = ClassBatch.joined(list(CellPeeling().classes(few, requirements, progress)))
    if _cost(peeled, records) >= _cost(batch, records) - _cost(rest, records):
        return batch, 0
    return ClassBatch.joined([rest, peeled]), few.count


def _dear(batch: ClassBatch, records: Records) -> NDArray[np.bool_]:
    """Return which classes cost most for each record, the first ones if several cost the same."""
    costs = np.zeros(len(batch.low), np.int64)
    for q in range(len(records.domains)):
        low, high = (np.ascontiguousarray(ends[:, q]).astype(np.int64) for ends in (batch.low, batch.high))
        costs += attribute_costs(records.costs.layout, records.costs.units, q, low, high)
    order = np.argsort(-costs, kind="stable")
    most = records.count * USUAL_COLUMNS // (SHARE * max(len(records.domains), USUAL_COLUMNS))
    dear = np.zeros(len(costs), np.bool_)
    dear[order[np.cumsum(np.diff(batch.starts)[order]) <= most]] = True
    return dear & (costs > 0)


def _cost(batch: ClassBatch, records: Records) -> int:
    return total_cost(batch.starts, batch.low, batch.high, records.costs.layout, records.costs.units)
