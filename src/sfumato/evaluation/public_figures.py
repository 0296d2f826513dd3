"""The figures of a release that may be published: anybody who has the release and its policy can compute them.

Nothing in this module takes the original, its domains or its counts. The one number that a reader could not find out is
how many records were left out. A loss that is divided by the range of the original would give a record away that was
left out: whoever sees the released ranges, and what share of that range they are, can solve for it.

The *blur* of a column is therefore measured within the release: the share of what the column shows that a record leaves
open, on average. A range of numbers or dates counts by its width, over the distance from the smallest to the largest
released bound; a group of a taxonomy by its leaves, over all leaves of the file. A single value counts 0, ``*`` counts
1, and so does a record that was left out; in ``blur_cost`` it counts the ``suppression_cost`` of the policy. A column
with ``prefix`` or the ready-made taxonomy of ICD-10 has no blur, because its leaves come from the original; other
ready-made taxonomies have the same leaves for every table.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.evaluation.audit.audit import AuditReport, pseudonym_remark
from sfumato.evaluation.release_losses import Losses, TaskLoss
from sfumato.losses.discernibility import AverageClassSize, Discernibility, ModifiedDiscernibility
from sfumato.losses.loss import ClassTable, Extent, Loss
from sfumato.policy import ColumnSettings, Grouping, Policy
from sfumato.tables.coding.domains import CategoricalDomain
from sfumato.tables.coding.released_labels import DAY, WHOLE, label_of, read_number, released_ends, without_signs
from sfumato.tables.released_classes import ReleasedClasses
from sfumato.taxonomies.ready import has_fixed_leaves, taxonomy_of_release
from sfumato.taxonomies.taxonomy import Taxonomy

SIZE_LOSSES: tuple[Loss, ...] = (Discernibility(), AverageClassSize(), ModifiedDiscernibility())
UNITS = ("numeric", "moment")  # what a column of unknown type is read as, in this order; dates are moments too
TEXT = "text"

Number = int | float | Fraction


@dataclass(frozen=True)
class ColumnBlur:
    """What some records of a release leave open in one column.

    hidden: how many show ``*``. width: the sum of the widths of the others, or of their shares of a taxonomy. low and
    high: the smallest and the largest bound. unit: what bounds were read as; None if there were none to read.
    """

    hidden: int
    width: Fraction = Fraction(0)
    low: Number = 0
    high: Number = 0
    unit: str | None = None

    def join(self, other: ColumnBlur) -> ColumnBlur:
        """Add further records of the same release."""
        hidden, width = self.hidden + other.hidden, self.width + other.width
        if self.unit is None or other.unit is None:
            known = self if other.unit is None else other
            return ColumnBlur(hidden, width, known.low, known.high, known.unit)
        if self.unit != other.unit:  # text, some of which reads as numbers
            return ColumnBlur(hidden, unit=TEXT)
        return ColumnBlur(hidden, width, min(self.low, other.low), max(self.high, other.high), self.unit)

    def mean(self, released: int, left_out: int) -> float:
        """The share that a record leaves open, on average. released: how many records these are."""
        extent = Fraction(self.high) - Fraction(self.low) if self.unit in UNITS else Fraction(1)
        shown = self.width / extent if extent else self.width
        return float((shown + self.hidden + left_out) / max(released + left_out, 1))


@dataclass(frozen=True)
class PublicTotals:
    """Totals over all classes of a release, or over a part of them. Parts of a release can be joined.

    columns: the blur of every column that has one. sizes: the totals of the losses that count class sizes alone. tasks:
    how well the release serves the predictions of its policy; only for a whole release.
    """

    columns: dict[str, ColumnBlur]
    sizes: dict[str, Any]
    tasks: tuple[TaskLoss, ...] = ()

    @classmethod
    def of(
        cls,
        classes: ReleasedClasses,
        policy: Policy,
        taxonomies: Mapping[str, Taxonomy],
        *,
        groups: NDArray[np.int64] | None = None,
        tasks: tuple[TaskLoss, ...] = (),
    ) -> PublicTotals:
        """Sum up some classes. groups: the sizes of the groups, if sensitive values are in a second table."""
        columns = {}
        for name in policy.quasi_identifiers:
            settings = policy.columns[name]
            if _leaves_of_original(settings):
                continue
            values = classes.values[name]
            counts = np.bincount(classes.shown[name], weights=classes.sizes, minlength=len(values)).astype(np.int64)
            shown: Counter[str | None] = Counter()
            for value, count in zip(values, counts.tolist(), strict=True):
                shown[label_of(value)] += count
            columns[name] = _blur(name, +shown, settings, taxonomies)  # a part may list values that it does not show
        nothing = np.empty((len(classes.sizes), 0)), np.empty(0)  # losses of class sizes need no penalties
        table = ClassTable(classes.sizes, *nothing, classes.records, policy.k, groups=groups)
        return cls(columns, {loss.name: loss.total(table) for loss in SIZE_LOSSES}, tasks)

    def join(self, other: PublicTotals) -> PublicTotals:
        """Add further classes of the same release."""
        columns = {name: blur.join(other.columns[name]) for name, blur in self.columns.items()}
        sizes = {loss.name: loss.join(self.sizes[loss.name], other.sizes[loss.name]) for loss in SIZE_LOSSES}
        return PublicTotals(columns, sizes)


class Examination(NamedTuple):
    """What was found in a finished release.

    audit: what holds. losses: measured against the original, so private. totals: what may be published.
    """

    audit: AuditReport
    losses: Losses
    totals: PublicTotals


def public_figures(
    totals: PublicTotals,
    audit: AuditReport,
    policy: Policy,
    *,
    left_out: int,
    in_persons: bool = False,
    grids: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Every figure that certificate and report have in common, as JSON values.

    in_persons: the audit counted persons, whom a release does not show; then its verdicts are published without the
    values. grids: what means were rounded to, which follows from policy and released bounds.
    """
    released = audit.records
    blur = {name: column.mean(released, left_out) for name, column in totals.columns.items()}
    weights = {name: policy.columns[name].weight for name in policy.quasi_identifiers}
    cost = policy.release.suppression_cost
    means = {}
    if len(blur) == len(weights):  # a total over some of the columns would be another figure
        means["blur"] = sum(weights[name] * each for name, each in blur.items()) / sum(weights.values())
        if left_out:
            means["blur_cost"] = means["blur"] - (1 - cost) * left_out / (released + left_out)
    extent = Extent(released + left_out, released, np.empty(0), policy.k)
    sizes = {loss.name: loss.value(totals.sizes[loss.name], extent) for loss in SIZE_LOSSES}
    hidden = {"value"} if in_persons else set()
    return {
        "records": released + left_out,
        "released": released,
        "classes": audit.classes,
        "smallest_class": audit.smallest_class,
        "suppressed": left_out,
        "suppression_cost": cost,
        **means,
        "blur_by_column": blur,
        **{name: value for name, value in sizes.items() if value is not None},
        **({"statistics": dict(grids)} if grids else {}),
        **({"workload": [task.as_dict() for task in totals.tasks]} if totals.tasks else {}),
        **({"remarks": [pseudonym_remark(audit.pseudonyms)]} if audit.pseudonyms else {}),
        "audit": [{key: value for key, value in line.items() if key not in hidden} for line in audit.as_dict()],
    }


def _leaves_of_original(settings: ColumnSettings) -> bool:
    """Whether it takes the original to know how many values a released group stands for."""
    if settings.ready_name is not None:
        return not has_fixed_leaves(settings.ready_name)
    return isinstance(settings.taxonomy, Grouping) and settings.taxonomy.prefix is not None


def _blur(
    name: str, shown: Mapping[str | None, int], settings: ColumnSettings, taxonomies: Mapping[str, Taxonomy]
) -> ColumnBlur:
    """The blur of a column. shown: the number of records with each label."""
    hidden = shown.get(WHOLE, 0)
    plain = {label: count for label, count in shown.items() if label is not None and label != WHOLE}
    ready = taxonomy_of_release(settings.ready_name, plain, name)
    taxonomy = taxonomies[name] if settings.taxonomy_file is not None else ready
    if taxonomy is not None:
        domain = CategoricalDomain(name, taxonomy, has_null=False)
        shares = domain.penalties(list(plain)).tolist()
        if any(map(math.isnan, shares)):
            raise _unknown_values(name, sum(map(math.isnan, shares)))
        total = sum((count * Fraction(share) for count, share in zip(plain.values(), shares, strict=True)), Fraction(0))
        return ColumnBlur(hidden, total)
    kind = settings.implied_type
    if kind == "categorical" or not plain:
        return ColumnBlur(hidden)  # without groups, a record shows its value or ``*``
    if settings.bottom is not None or settings.top is not None:
        plain = {without_signs(label): count for label, count in plain.items()}
    units = {"numeric": UNITS[:1], "date": UNITS[1:]}.get(kind or "", UNITS)
    for unit in units:
        read, day = cache(partial(read_number, kind=unit)), 0 if unit == "numeric" else DAY
        ends = [each for label in plain if (each := released_ends(label, read, day=day)) is not None and _finite(each)]
        if len(ends) == len(plain):
            return _blur_of_ranges(hidden, ends, list(plain.values()), unit)
    if kind is not None:
        raise _unknown_values(name, len(plain) - len(ends))
    return ColumnBlur(hidden, unit=TEXT)


def _finite(ends: tuple[Number, Number]) -> bool:
    return all(isinstance(end, int) or math.isfinite(end) for end in ends)


def _blur_of_ranges(hidden: int, ends: Sequence[tuple[Number, Number]], counts: Sequence[int], unit: str) -> ColumnBlur:
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    if all(isinstance(end, int) for pair in ends for end in pair):
        width = Fraction(sum(map(mul, (top - bottom for bottom, top in ends), counts)))
    else:
        # Scaled, so that no sum overflows. The sum is rounded once, so the order of labels does not matter.
        scale = max(abs(float(low)), abs(float(high))) or 1.0
        widths = (float(top) / scale - float(bottom) / scale for bottom, top in ends)
        width = Fraction(math.fsum(map(mul, widths, counts))) * Fraction(scale)
    return ColumnBlur(hidden, width, low, high, unit)


def _unknown_values(name: str, count: int) -> InputError:
    return InputError(
        f"column {name!r} of the release shows {count:,} values that are no value, range or group under its policy. "
        "Check that release and policy belong together."
    )
