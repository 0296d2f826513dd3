"""The risk that a record is re-identified, before or after anonymization.

Prosecutor and journalist risk as in El Emam and Dankar (Protecting privacy using k-anonymity, JAMIA 2008), marketer
risk as in Dankar and El Emam (A method for evaluating marketer re-identification risk, 2010). Let f be the records of a
class in the table, and F those of the same class in the population from which the table was drawn. A guess within the
class is right with probability 1/f for a prosecutor, who knows that the person is in the table, and 1/F for a
journalist, who does not. A marketer guesses for every record; the risk is the expected share of right guesses.

Differs from the papers: without the population, F is f divided by the sampling fraction, the simplest estimate and the
first that the paper discusses; and f and F may count persons instead of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, UsageError
from sfumato.evaluation.linkability.column_facts import ColumnValues, TextSettings
from sfumato.evaluation.linkability.sentinels import reading_remarks
from sfumato.evaluation.risk.exposure import LARGEST_SET, Exposure, exposures
from sfumato.tables.coding.value_order import is_missing
from sfumato.tables.released_classes import (
    MergedClasses,
    ReleasedClasses,
    find_classes,
    merge_classes,
    sizes_in_other_table,
    unify_nulls,
)
from sfumato.tables.sources.source import Source


@dataclass(frozen=True)
class Attack:
    """The probability that a record is guessed right: for the record most at risk, and the mean over all records."""

    highest: float
    mean: float

    def as_dict(self) -> dict[str, float]:
        return {"highest": self.highest, "mean": self.mean}


@dataclass(frozen=True)
class Population:
    """The population from which the table was drawn: its size, the sampling fraction, or a table of it."""

    size: int | None = None
    fraction: float | None = None
    source: Source | None = None

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise UsageError(f"the size of the population must be at least 1, not {self.size}. Give the right size.")
        if self.fraction is not None and not 0 < self.fraction <= 1:
            raise UsageError(
                f"the sampling fraction must be above 0 and at most 1, not {self.fraction}. Write 0.1 for 10%."
            )

    def drawn(self, total: int) -> float | None:
        """Return the share of the population that is in a table of ``total``, or None without a size or a fraction."""
        if self.size is None:
            return self.fraction
        if self.size < total:
            raise UsageError(
                f"the population is {self.size:,}, but the table has {total:,}. A population contains the table: give "
                "the size of the whole population."
            )
        return total / self.size


@dataclass(frozen=True)
class Risk:
    """The risk that the records of a table are re-identified by their quasi-identifiers.

    ``whole`` is the exposure to somebody who knows all quasi-identifiers, ``sets`` to somebody who knows a few, the
    most dangerous sets first. ``journalist`` is None unless the population is known. ``counted`` is "records" or
    "persons". ``sampling_fraction`` is the share of every class of the population that was assumed to be in the table;
    None unless classes of the population were estimated so.
    """

    whole: Exposure
    smallest_class: int
    counted: str
    prosecutor: Attack
    journalist: Attack | None
    marketer: float
    sets: tuple[Exposure, ...]
    left_out: tuple[str, ...]
    remarks: tuple[str, ...]
    sampling_fraction: float | None = None

    @property
    def caveat(self) -> str | None:
        """What the estimated risk of journalist and marketer rests on, and what it does not say; None if exact."""
        if self.sampling_fraction is None or self.sampling_fraction == 1:
            return None
        behind = 1 / self.sampling_fraction
        return (
            "the figures of journalist and marketer are averages. They assume that the table is an even sample of the "
            f"population: on average {behind:,.{1 if behind < 10 else 0}f} persons of the population stand behind one "
            f"of the {self.counted} of the table. A record that is unique in the population has a risk of 100%, and "
            "how many such records there are is not estimated."
        )

    def __repr__(self) -> str:
        return (
            f"<Risk: {self.whole.records:,} records, {self.whole.unique:,} unique, smallest class "
            f"{self.smallest_class:,}, highest prosecutor risk {self.prosecutor.highest:.4g}>"
        )

    def as_dict(self) -> dict[str, object]:
        return {
            "records": self.whole.records,
            "classes": self.whole.classes,
            "smallest_class": self.smallest_class,
            "quasi_identifiers": list(self.whole.columns),
            "counted": self.counted,
            **self.whole.counts(),
            "prosecutor": self.prosecutor.as_dict(),
            "journalist": None if self.journalist is None else self.journalist.as_dict(),
            "marketer": self.marketer,
            "sampling_fraction": self.sampling_fraction,
            "caveat": self.caveat,
            "sets": [exposure.as_dict() for exposure in self.sets],
            "left_out": list(self.left_out),
            "remarks": list(self.remarks),
        }


def measure_risk(
    source: Source,
    key: Sequence[str],
    population: Population,
    *,
    columns: Sequence[str],
    tokens: Sequence[str] = (),
    person: str | None = None,
    largest_set: int = LARGEST_SET,
    settings: TextSettings | None = None,
) -> Risk:
    """Measure the risk of a table. The columns ``key``, those of the quasi-identifiers ``columns``, define its classes.

    ``tokens`` are texts that mean null. ``person`` is the column that identifies the person of a record; with it,
    persons are counted instead of records. ``settings`` say how the text of an original is read; with them, remarks
    name values that may mean "missing" and numbers that are text.
    """
    raw = find_classes(source, key if person is None else [*key, person])
    if person is not None:
        _check_persons(raw, person, tokens)
    classes = unify_nulls(raw, key, tokens)
    whole = merge_classes(classes, key, person)
    total = raw.records if person is None else len(raw.values[person])
    remarks = [] if settings is None else _reading_remarks(source, raw, columns, settings)
    journalist = None
    fraction = population.drawn(total)
    if fraction is not None:
        journalist = _attack(whole.records, whole.sizes / fraction)
    elif population.source is not None:
        sizes = _sizes_in_population(population.source, classes, whole, key, tokens, remarks)
        journalist = _attack(whole.records, sizes)
    prosecutor = _attack(whole.records, whole.sizes.astype(np.float64))
    exposed = exposures(classes, columns, largest=largest_set, person=person)
    return Risk(
        whole=Exposure.of(columns, whole),
        smallest_class=int(whole.sizes.min()),
        counted="records" if person is None else "persons",
        prosecutor=prosecutor,
        journalist=journalist,
        marketer=(journalist or prosecutor).mean,
        sets=exposed.sets,
        left_out=exposed.left_out,
        remarks=tuple(remarks),
        sampling_fraction=fraction,
    )


def _reading_remarks(source: Source, raw: ReleasedClasses, columns: Sequence[str], settings: TextSettings) -> list[str]:
    """Return what to check about the values of the quasi-identifiers."""
    remarks = []
    for name in (name for name in columns if name in raw.shown):
        counts = np.bincount(raw.shown[name], weights=raw.sizes, minlength=len(raw.values[name])).astype(np.int64)
        text = source.text or source.kind == "excel"
        column = ColumnValues(name, source.types[name], text, raw.values[name], counts, raw.records)
        remarks += reading_remarks(column, settings)
    return remarks


def _attack(records: NDArray[np.int64], sizes: NDArray[np.float64]) -> Attack:
    return Attack(float(1 / sizes.min()), float((records / sizes).sum() / records.sum()))


def _sizes_in_population(
    population: Source,
    classes: ReleasedClasses,
    whole: MergedClasses,
    key: Sequence[str],
    tokens: Sequence[str],
    remarks: list[str],
) -> NDArray[np.float64]:
    """Count the records of a table of the population in each class. Adds to ``remarks``."""
    for name in key:
        if name not in population.names:
            raise UsageError.unknown_column(name, "the population", population.names)
    elsewhere = sizes_in_other_table(classes, find_classes(population, key), key, tokens)[whole.one]
    if not elsewhere.any():
        raise UsageError(
            "no record of the population has the quasi-identifiers of any record of the table. Recode the population "
            "as the table was recoded, or give its size instead."
        )
    fewer = elsewhere < whole.sizes
    if fewer.any():
        remarks.append(
            f"{int(fewer.sum()):,} classes, {int(whole.records[fewer].sum()):,} records, are larger in the table than "
            "in the population: they count as large as in the table"
        )
    return np.maximum(elsewhere, whole.sizes).astype(np.float64)


def _check_persons(classes: ReleasedClasses, person: str, tokens: Sequence[str]) -> None:
    missing = [entry for entry, value in enumerate(classes.values[person]) if is_missing(value, tokens)]
    unknown = int(classes.sizes[np.isin(classes.shown[person], missing)].sum())
    if unknown:
        raise InputError(
            f"the person key {person!r} is empty in {unknown:,} records, so their persons are unknown. Fill it in, "
            "or leave these records out."
        )
