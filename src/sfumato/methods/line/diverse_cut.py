"""l-diversity of ordered records (Ghinita 2007, section 4).

The requirements choose the algorithm. Frequency l-diversity: the frontier heuristic (``frontier``, Fig. 8 and 9) forms
classes whose values all differ; the records of a class need not be adjacent on the line. These classes are then joined
into the best runs (``block_cut``) until k and any distinct l hold: unions of l-diverse classes stay l-diverse. Distinct
l-diversity and counts of persons alone: the best runs of single records, the exact optimum over partitions of the line
into runs. With any requirement on a distribution: the best partition into runs that ``distribution_cut`` finds.

Two cases are left to merging (``merge_failing``), which starts from these classes: frequency l-diversity of a second
attribute, and lines for which ``distribution_cut`` finds no partition.

Differs from the paper: k and l can be combined, by joining; records without a sensitive value go to a class beside
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.class_counting import Counting
from sfumato.methods.line.block_cut import best_runs
from sfumato.methods.line.distribution_cut import best_windows
from sfumato.methods.line.frontier import frontier_classes
from sfumato.methods.method import Records
from sfumato.requirements import FrequencyDiversity, Joint, Requirement, Requirements
from sfumato.requirements.conjunction import DISTINCT, SIZE


def diverse_cuts(
    records: Records,
    requirements: Requirements,
    position: NDArray[np.int64],
    rows: NDArray[np.uint32],
    at: NDArray[np.uint32],
    parts: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]:
    """Return where the line is cut, and the rearranged line: its rows and the record at each place.

    parts: where parts of the line begin, and its end; each part is eligible by itself and has its own frontier. None
    for a line of one part.
    """
    if _needs_windows(requirements):
        counting = Counting(records, requirements)
        columns = [records.sensitive[name].codes for name in requirements.attributes]
        cuts = best_windows(
            records.codes,
            at,
            _by_place(columns, rows),
            counting.conjunction(),
            requirements.least_class,
            records.costs,
        )
        if cuts is not None:
            return cuts, rows, at
    frequency = strictest_frequency(records, requirements)
    starts = np.arange(len(at) + 1)
    if frequency is not None:
        values = records.sensitive[frequency.attribute]
        edges = [0, len(at)] if parts is None else parts.tolist()
        class_of_place, classes = np.empty(len(at), np.int64), 0
        for part in (slice(*edge) for edge in pairwise(edges)):
            class_in_part, count, _ = frontier_classes(
                position[part], values.codes[rows[part]], values.distinct, frequency.l
            )
            class_of_place[part] = class_in_part + classes
            classes += count
        # Put the places of each class together, and the classes in the order of their first places.
        first = np.full(classes, len(at))
        np.minimum.at(first, class_of_place, np.arange(len(at)))
        line = np.lexsort([np.arange(len(at)), first[class_of_place]])
        rows, at = rows[line], at[line]
        sizes = np.bincount(class_of_place, minlength=classes)[np.argsort(first)]
        starts = np.append(0, np.cumsum(sizes))
    counted = [(records.sensitive[name], least) for name, least in _distinct_values(requirements)]
    columns = [values.codes for values, _ in counted]
    distinct, least = [values.distinct for values, _ in counted], [needed for _, needed in counted]
    if records.persons is not None:
        columns.append(records.persons)
        distinct.append(int(records.persons.max(initial=0)) + 1)
        least.append(requirements.least_class)
    cuts = best_runs(
        records.codes,
        at,
        starts.astype(np.int64),
        _by_place(columns, rows),
        np.array(distinct, np.int64),
        requirements.least_class,
        np.array(least, np.int64),
        records.costs,
    )
    return cuts, rows, at


def strictest_frequency(records: Records, requirements: Requirements) -> FrequencyDiversity | None:
    """Return the requirement for the frontier: the strictest one on frequencies that all records together meet."""
    frequency = max(_frequencies(requirements), key=lambda part: part.l, default=None)
    return frequency if frequency is not None and _eligible(records, frequency) else None


def needs_joining(requirements: Requirements) -> bool:
    """Return whether some of these classes may fail requirements that the kernel knows."""
    frequencies = {part.attribute for part in _frequencies(requirements)}
    return len(frequencies) > 1 or _needs_windows(requirements)


def _needs_windows(requirements: Requirements) -> bool:
    """Return whether the kernel knows a requirement that neither the frontier nor the best runs can serve."""
    return any(
        part.condition() is not None and not isinstance(part, FrequencyDiversity) and not _suits_runs(part)
        for part in _single(requirements)
    )


def _suits_runs(part: Requirement) -> bool:
    """Return whether the best runs can serve it: they count, and take for granted that a longer run holds too."""
    condition = part.condition()
    return part.closed_under_addition and condition is not None and condition.kind in (SIZE, DISTINCT)


def _distinct_values(requirements: Requirements) -> list[tuple[str, int]]:
    """Return how many distinct values the best runs must have, by sensitive attribute."""
    suited = [(part.attribute, part.condition()) for part in _single(requirements) if _suits_runs(part)]
    return [(name, one.whole) for name, one in suited if name is not None and one is not None and one.kind == DISTINCT]


def _frequencies(requirements: Requirements) -> list[FrequencyDiversity]:
    return [part for part in _single(requirements) if isinstance(part, FrequencyDiversity)]


def _single(requirements: Requirements) -> list[Requirement]:
    """Return the requirements one by one. A joint requirement implies the plain one."""
    return [part.part if isinstance(part, Joint) else part for part in requirements.parts]


def _eligible(records: Records, frequency: FrequencyDiversity) -> bool:
    """Return whether the table is eligible by records, as the frontier counts, even if the policy counts persons."""
    values = records.sensitive[frequency.attribute]
    counts = np.bincount(values.codes[records.rows], minlength=values.distinct + 1)[: values.distinct]
    return 0 < int(counts.max(initial=0)) * frequency.l <= int(counts.sum())


def _by_place(columns: Sequence[NDArray[np.uint32]], rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return np.array([codes[rows] for codes in columns], np.uint32).reshape(len(columns), len(rows))
