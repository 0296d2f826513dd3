"""l-diversity of ordered records (Ghinita 2007, section 4).

The requirement chooses the way. Frequency l-diversity: the frontier heuristic (``frontier``, Fig. 8 and 9) makes
classes whose values all differ; records of a class need not stand side by side on the line. They are then joined to the
best runs (``blocks``) until k and any distinct l hold: unions of l-diverse classes stay l-diverse. Distinct l-diversity
alone: the best runs of single records, which is the exact optimum over consecutive partitions of the line. As soon as a
requirement on a distribution is among them, all together: the best consecutive partition of ``windows``.

Differs from the paper: k and l together, by joining; records without a sensitive value go to a class beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.methods.blocks import best_runs
from sfumato.methods.frontier import frontier_classes
from sfumato.methods.method import Records, SensitiveValues
from sfumato.methods.windows import Tests, best_windows
from sfumato.requirements import DistinctDiversity, FrequencyDiversity, MeasuredRequirement, Requirements
from sfumato.requirements.frequency import LARGEST_SIZE


def diverse_cuts(
    records: Records,
    requirements: Requirements,
    position: NDArray[np.int64],
    rows: NDArray[np.uint32],
    at: NDArray[np.uint32],
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]:
    """Where the line is cut, and the line itself as it was rearranged: its rows and the record at each place."""
    if _distributions(requirements):
        return _window_cuts(records, requirements, rows, at), rows, at
    frequency = max(_frequencies(requirements), key=lambda part: part.l, default=None)
    starts = np.arange(len(at) + 1)
    values = records.sensitive[frequency.attribute] if frequency is not None else None
    if frequency is not None and values is not None and np.any(values.codes < values.distinct):
        class_of_place, classes, _ = frontier_classes(position, values.codes[rows], values.distinct, frequency.l)
        # Classes in the order of their first places, the places of each together.
        first = np.full(classes, len(at))
        np.minimum.at(first, class_of_place, np.arange(len(at)))
        line = np.lexsort([np.arange(len(at)), first[class_of_place]])
        rows, at = rows[line], at[line]
        sizes = np.bincount(class_of_place, minlength=classes)[np.argsort(first)]
        starts = np.append(0, np.cumsum(sizes))
    distinct = [part for part in requirements.parts if isinstance(part, DistinctDiversity)]
    counted = [records.sensitive[part.attribute] for part in distinct]
    cuts = best_runs(
        records.codes,
        at,
        starts.astype(np.int64),
        _by_place(counted, rows),
        np.array([one.distinct for one in counted], np.int64),
        requirements.least_class,
        np.array([part.l for part in distinct], np.int64),
        records.costs,
    )
    return cuts, rows, at


def _window_cuts(
    records: Records, requirements: Requirements, rows: NDArray[np.uint32], at: NDArray[np.uint32]
) -> NDArray[np.int64]:
    counted = [records.sensitive[name] for name in requirements.attributes]
    most = max(one.distinct for one in counted)
    reference, numbers = np.zeros((len(counted), most)), np.zeros((len(counted), most))
    for place, one in enumerate(counted):
        reference[place, : one.distinct] = one.reference()
        numbers[place, : one.distinct] = one.numbers
    whole, measured, bounds = [], [], []
    for part in requirements.parts:
        place = requirements.place(part.attribute)
        if isinstance(part, FrequencyDiversity):
            whole.append((place, min(part.l, LARGEST_SIZE), 0))
        elif isinstance(part, DistinctDiversity):
            whole.append((place, 0, part.l))
        elif isinstance(part, MeasuredRequirement):
            test = part.test()
            measured.append((place, test.kind, test.rank))
            bounds.append(test.bound)
    tests = Tests(
        distinct=np.array([one.distinct for one in counted], np.int64),
        reference=reference,
        numbers=numbers,
        whole=np.array(whole, np.int64).reshape(-1, 3),
        measured=np.array(measured, np.int64).reshape(-1, 3),
        bounds=np.array(bounds),
        least_size=requirements.least_class,
    )
    return best_windows(records.codes, at, _by_place(counted, rows), tests, records.costs)


def _by_place(counted: Sequence[SensitiveValues], rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return np.array([one.codes[rows] for one in counted], np.uint32).reshape(len(counted), len(rows))


def check_diversity(requirements: Requirements) -> None:
    """Refuse what none of the three ways can reach: the frontier serves one attribute."""
    if not all(part.closed_under_union for part in requirements.parts):
        names = ", ".join(part.kind for part in requirements.parts if not part.closed_under_union)
        raise UsageError(f"this method joins classes, which {names} does not allow.")
    if not _distributions(requirements) and len({part.attribute for part in _frequencies(requirements)}) > 1:
        raise UsageError(
            "frequency l-diversity of several sensitive columns at once cannot be reached by this method. Ask for it "
            "in one column and for distinct l-diversity in the others."
        )


def _distributions(requirements: Requirements) -> bool:
    return any(isinstance(part, MeasuredRequirement) for part in requirements.parts)


def _frequencies(requirements: Requirements) -> list[FrequencyDiversity]:
    return [part for part in requirements.parts if isinstance(part, FrequencyDiversity)]
