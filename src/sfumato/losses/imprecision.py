"""The imprecision of a selection (LeFevre 2008, section 3.2): the records that it returns and should not.

A selection from a release must take every class whose box meets it. A suppressed record counts as one whose box is the
whole domain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def returned_records(
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    sizes: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
) -> int:
    """Return how many records of a release a selection returns.

    first, last: int64[c, d], the codes that each class shows, both included; sizes: int64[c]; low, high: int64[d], the
    codes selected, both included.
    """
    if (low > high).any():
        return 0
    met = ((first <= high) & (last >= low)).all(axis=1)
    return int(sizes[met].sum())
