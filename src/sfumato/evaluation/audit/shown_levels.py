"""Does a release show nothing finer than the finest level of a column, and nothing coarser than the coarsest?

The labels are read here by rules of their own: the arithmetic that widened the released ranges is not used.
"""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from sfumato.policy import ColumnSettings, Grouping, Policy
from sfumato.requirements import Verdict, all_hold
from sfumato.tables.coding.released_labels import label_of, without_signs
from sfumato.tables.released_classes import ReleasedClasses
from sfumato.taxonomies.periods import period_days
from sfumato.taxonomies.ready import ready_taxonomy
from sfumato.taxonomies.taxonomy import ROOT, Taxonomy

KEYS = {"finest": "finer", "coarsest": "coarser"}
# An interval of whole numbers ends one before the next begins; one of other numbers ends where the next begins.
GAPS = (1, 0)
MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}


def level_verdicts(classes: ReleasedClasses, policy: Policy, taxonomies: Mapping[str, Taxonomy]) -> tuple[Verdict, ...]:
    """Return a verdict for every finest and coarsest level of the policy. Its value counts the records that break it.

    Without the file of a taxonomy, its column is not checked.
    """
    verdicts = []
    for name in policy.quasi_identifiers:
        column = policy.columns[name]
        if column.finest is None and column.coarsest is None:
            continue
        if column.taxonomy_file is not None and name not in taxonomies:
            words = [_words(name, column, key) for key in KEYS if getattr(column, key) is not None]
            verdicts += [Verdict(requirement, None, 0, reason=_no_taxonomy(name)) for requirement in words]
            continue
        labels = [label_of(value) for value in classes.values[name]]
        breaches = dict(zip(KEYS, _breaches(labels, column, taxonomies.get(name)), strict=True))
        records = [0] * len(labels)
        for number, size in zip(classes.shown[name].tolist(), classes.sizes.tolist(), strict=True):
            records[number] += size
        for key, breaks in breaches.items():
            if getattr(column, key) is not None:
                broken = sum(count for count, breach in zip(records, breaks, strict=True) if breach)
                verdicts.append(Verdict(_words(name, column, key), broken == 0, broken))
    return tuple(verdicts)


def _words(name: str, column: ColumnSettings, key: str) -> str:
    return f"{name!r} shows nothing {KEYS[key]} than {column.level_words(getattr(column, key))}"


def _no_taxonomy(name: str) -> str:
    return (
        f"the taxonomy of {name!r} is not beside the release; copy the file there, or give it with --taxonomy "
        f"{name}=FILE or with --policy"
    )


def joined_verdicts(verdicts: Sequence[Verdict], others: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Return the verdicts on two parts of a release together."""
    return tuple(
        replace(one, holds=all_hold([one.holds, other.holds]), value=one.value + other.value)
        for one, other in zip(verdicts, others, strict=True)
    )


def _breaches(
    labels: Sequence[str | None], column: ColumnSettings, taxonomy: Taxonomy | None
) -> tuple[list[bool], list[bool]]:
    """Return which labels are too fine, and which are too coarse. Null is a value of its own on every level."""
    rule = column.taxonomy
    if taxonomy is not None or not isinstance(rule, Grouping) or rule.intervals is None:
        levels = levels_of_labels(labels, column, taxonomy)
        assert levels is not None
        return _limits(levels, labels, column, star_level(column, taxonomy))
    readings = [
        _limits(_by_intervals(labels, column, rule.intervals, gap), labels, column, len(rule.intervals) + 1)
        for gap in GAPS
    ]
    return min(readings, key=lambda reading: sum(map(sum, reading)))


# For every label the least and the greatest level that show it; None if no level does.
Levels = list[tuple[int, int] | None]


def levels_of_labels(labels: Sequence[str | None], column: ColumnSettings, taxonomy: Taxonomy | None) -> Levels | None:
    """Return the levels that show each label of a column; None if the column has no levels that are known.

    taxonomy: that of the file, if there is one. Null is on no level here.
    """
    rule = column.taxonomy
    if taxonomy is not None:
        return _by_taxonomy(labels, taxonomy)
    if not isinstance(rule, Grouping):
        return None
    if rule.ready is not None:
        ready = ready_taxonomy(rule.ready)
        return [None if label is None else ready.levels_of(label) for label in labels]
    if rule.prefix is not None:
        return _by_prefix(labels, rule.prefix)
    if rule.calendar is not None:
        return _by_calendar(labels, rule.calendar)
    assert rule.intervals is not None
    readings = [_by_intervals(labels, column, rule.intervals, gap) for gap in GAPS]
    return min(readings, key=lambda reading: reading.count(None))


def star_level(column: ColumnSettings, taxonomy: Taxonomy | None) -> int:
    """Return the number of the level that is ``*``, for a column with levels."""
    rule = column.taxonomy
    if taxonomy is not None:
        return taxonomy.top_level
    assert isinstance(rule, Grouping)
    if rule.ready is not None:
        return len(column.level_names)
    return len(rule.prefix or rule.calendar or rule.intervals or ()) + 1


def _limits(
    levels: Levels, labels: Sequence[str | None], column: ColumnSettings, top_level: int
) -> tuple[list[bool], list[bool]]:
    finest, coarsest = column.levels("", top_level)
    of_labels = [
        (0, top_level) if label is None else (top_level, top_level) if label == ROOT else level
        for label, level in zip(labels, levels, strict=True)
    ]
    too_fine = [level is None or level[1] < finest for level in of_labels]
    return too_fine, [level is None or level[0] > coarsest for level in of_labels]


def _by_taxonomy(labels: Sequence[str | None], taxonomy: Taxonomy) -> Levels:
    spans: dict[tuple[int, int], list[int]] = {}
    for level in range(taxonomy.finest, taxonomy.top_level):
        groups = taxonomy.level_codes(level)
        firsts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1])[: len(groups)])
        for first, last in zip(firsts.tolist(), (np.append(firsts[1:], len(groups)) - 1).tolist(), strict=True):
            spans.setdefault((first, last), []).append(level)
    nodes = taxonomy.node_of_label()
    levels: Levels = []
    for label in labels:
        node = nodes.get(label or "")
        found = [] if node is None else spans.get((int(taxonomy.first[node]), int(taxonomy.last[node])), [])
        levels.append((min(found), max(found)) if found else None)
    return levels


def _by_prefix(labels: Sequence[str | None], lengths: Sequence[int]) -> Levels:
    """A value that is shorter than a prefix is shown whole on its level."""
    shown = list(reversed(lengths))
    levels: Levels = []
    for label in labels:
        characters = len((label or "").rstrip(ROOT))
        whole = len(label or "") == characters
        found = [0] if whole else []
        found += [
            level
            for level, length in enumerate(shown, start=1)
            if characters == length or (whole and characters < length)
        ]
        levels.append((min(found), max(found)) if found else None)
    return levels


def _by_intervals(labels: Sequence[str | None], column: ColumnSettings, widths: Sequence[float], gap: int) -> Levels:
    levels: Levels = []
    for label in labels:
        ends = _numbers(label, column)
        found = [0] if ends is not None and ends[0] == ends[1] else []
        for level, width in enumerate(widths, start=1):
            if ends is not None and ends == _interval(ends[0], Fraction(str(width)), gap, column):
                found.append(level)
        levels.append((min(found), max(found)) if found else None)
    return levels


def _interval(low: Fraction, width: Fraction, gap: int, column: ColumnSettings) -> tuple[Fraction, Fraction]:
    """The interval of a number as a release shows it: no further than bottom and top."""
    start = low // width * width
    end = start + width - gap
    bottom = start if column.bottom is None else max(start, Fraction(str(column.bottom)))
    return bottom, end if column.top is None else min(end, Fraction(str(column.top)))


def _numbers(label: str | None, column: ColumnSettings) -> tuple[Fraction, Fraction] | None:
    ends = _two_ends(label if column.bottom is None and column.top is None else without_signs(label or ""))
    try:
        low, high = map(Fraction, ends)
    except (ValueError, ZeroDivisionError):
        return None
    return low, high


def _two_ends(label: str | None) -> tuple[str, str]:
    text = label or ""
    low, bar, high = text[1:-1].partition("..") if text[:1] == "[" and text[-1:] == "]" else (text, "", text)
    return low, high if bar else low


def _by_calendar(labels: Sequence[str | None], units: Sequence[str]) -> Levels:
    levels: Levels = []
    for label in labels:
        days = _days(label)
        found = [0] if days is not None and days[0] == days[1] else []
        for level, unit in enumerate(units, start=1):
            if days is not None and _is_period(*days, unit):
                found.append(level)
        levels.append((min(found), max(found)) if found else None)
    return levels


def _days(label: str | None) -> tuple[datetime.date, datetime.date] | None:
    named = period_days(label or "")
    if named is not None:
        return named
    try:
        first, last = (datetime.date.fromisoformat(end) for end in _two_ends(label))
    except ValueError:
        return None
    return first, last


def _is_period(first: datetime.date, last: datetime.date, unit: str) -> bool:
    """Whether these are the first and the last day of one week, month, quarter, year or decade."""
    if unit == "week":
        return first.weekday() == 0 and (last - first).days == 6
    month, next_month = 12 * first.year + first.month - 1, 12 * last.year + last.month
    is_whole = first.day == 1 and _is_last_of_month(last)
    return is_whole and month % MONTHS[unit] == 0 and next_month - month == MONTHS[unit]


def _is_last_of_month(day: datetime.date) -> bool:
    return day.day == calendar.monthrange(day.year, day.month)[1]
