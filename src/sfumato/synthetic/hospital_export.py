"""The hospital's table of stays as another system would export it, with the flaws that such exports have.

The stays are those of the hospital generator, in other words: German names of columns, dates of birth instead of ages,
codes of ICD-10 instead of diagnoses, and heights, weights, costs and notes beside them. Missing values have several
tokens: ``?``, ``NA`` and -999. There is no policy: an export has none.

A patient's name, date of birth, sex, postal code, insurance and height are the same in each of their stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.synthetic import hospital_export_population as population
from sfumato.synthetic import hospital_population
from sfumato.synthetic.generator import BATCH_RECORDS, RandomStream, random_numbers
from sfumato.synthetic.hospital import Hospital

FIRST_CASE = hospital_population.YEAR * 1_000_000
SHORTEST_YEAR = 365

Cells = NDArray[np.object_]
"""Text, whole numbers, numbers with decimals and dates."""
Dates = Any  # arrays of dates, whose arithmetic has no types
Value = TypeVar("Value", bound=np.generic)


@dataclass(frozen=True, kw_only=True)
class HospitalExport:
    """The export, with at most ``stays`` records of a patient. The stays of a patient follow each other."""

    name: ClassVar[str] = "hospital with flaws"
    version: ClassVar[str] = "1"
    columns: ClassVar[tuple[str, ...]] = (
        "Fall-Nr",
        "Patienten-Nr",
        "Name",
        "Geburtsdatum",
        "Geschlecht",
        "PLZ",
        "Versicherung",
        "Aufnahme",
        "Entlassung",
        "Hauptdiagnose",
        "Größe",
        "Gewicht",
        "Kosten",
        "Wiederaufnahme",
        "Bemerkung",
    )
    decimals: ClassVar[Mapping[str, int]] = {"Größe": 2, "Gewicht": 1, "Kosten": 2}
    """How many digits after the decimal mark the numbers of these columns have."""

    stays: int = 2

    def rows(self, records: int, seed: int) -> Iterator[tuple[Any, ...]]:
        """Yield the records in order; each has the cells of ``columns``."""
        batches = Hospital(stays=self.stays).batches(records, seed)
        return (row for number, batch in enumerate(batches) for row in _rows(number, batch, seed))


def _rows(batch_number: int, batch: pa.RecordBatch, seed: int) -> Iterator[tuple[Any, ...]]:
    draw = _Draw(random_numbers(seed, RandomStream.FLAWS, batch_number), batch)
    sex, admission, days = draw.texts("sex"), draw.numbers("admission"), draw.numbers("days")
    age = draw.numbers("age")
    height = draw.height(sex, age)
    weight = draw.weight(height)
    cost = (population.COST_OF_STAY + population.COST_OF_DAY * days) * np.exp(population.COST_SPREAD * draw.normal())
    columns: dict[str, Cells] = {
        "Fall-Nr": _cells(FIRST_CASE + batch_number * BATCH_RECORDS + 1 + np.arange(len(days))),
        "Patienten-Nr": _cells(draw.numbers("patient_id")),
        "Name": draw.name(sex),
        "Geburtsdatum": draw.birth(admission, age),
        "Geschlecht": draw.of_patient(
            draw.missing(_named(sex, population.SEXES), population.UNKNOWN_SEX, population.UNKNOWN)
        ),
        "PLZ": _named(draw.texts("zip"), _postal_codes(batch["zip"].dictionary.to_pylist())),
        "Versicherung": draw.of_patient(
            draw.missing(draw.shared(population.INSURANCES), population.UNKNOWN_INSURANCE, population.UNKNOWN)
        ),
        "Aufnahme": _dates(admission),
        "Entlassung": _dates(admission + days),
        "Hauptdiagnose": draw.missing(
            draw.code(draw.texts("diagnosis")), population.UNKNOWN_DIAGNOSIS, population.UNKNOWN
        ),
        "Größe": draw.of_patient(draw.missing(_cells(height / 100), population.NO_HEIGHT, population.NOT_GIVEN)),
        "Gewicht": draw.missing(_cells(weight), population.NO_WEIGHT, population.NO_NUMBER),
        "Kosten": _cells(np.rint(100 * cost) / 100),
        "Wiederaufnahme": _named(draw.texts("readmitted"), population.READMITTED),
        "Bemerkung": draw.note(),
    }
    return zip(*(columns[name].tolist() for name in HospitalExport.columns), strict=True)


class _Draw:
    """Draws what the stays of a batch do not say.

    Random numbers are drawn for a whole batch, however many records of it are wanted, so that the first records do not
    depend on their number.
    """

    def __init__(self, numbers: np.random.Generator, batch: pa.RecordBatch) -> None:
        self._numbers = numbers
        self._batch = batch
        patient = self.numbers("patient_id")
        begins = np.flatnonzero(np.append(True, patient[1:] != patient[:-1]))
        self._first_stay = np.repeat(begins, np.diff(np.append(begins, len(patient))))

    def texts(self, column: str) -> Cells:
        codes = self._batch[column]
        texts: Cells = _cells(codes.dictionary.to_pylist())[codes.indices.to_numpy()]
        return texts

    def numbers(self, column: str) -> NDArray[np.int64]:
        values = self._batch[column]
        if pa.types.is_date32(values.type):
            values = values.cast(pa.int32())
        return np.asarray(values.to_numpy(), np.int64)

    def of_patient(self, values: NDArray[Value]) -> NDArray[Value]:
        """Give every stay of a patient the value of the first."""
        return values[self._first_stay]

    def uniform(self) -> NDArray[np.float64]:
        return self._numbers.random(BATCH_RECORDS)[: self._batch.num_rows]

    def normal(self) -> NDArray[np.float64]:
        return self._numbers.standard_normal(BATCH_RECORDS)[: self._batch.num_rows]

    def one_of(self, values: Sequence[Any]) -> Cells:
        return _cells(values)[(self.uniform() * len(values)).astype(np.int64)]

    def shared(self, shares: Mapping[str, float]) -> Cells:
        """Draw values by their shares."""
        ends = np.array(list(accumulate(shares.values())))
        return _cells(list(shares))[np.searchsorted(ends / ends[-1], self.uniform(), side="right")]

    def missing(self, values: Cells, share: float, token: object) -> Cells:
        """Put the token in the place of some values."""
        return np.where(self.uniform() < share, _cells([token]), values)

    def name(self, sex: Cells) -> Cells:
        first = {sex: self.one_of(names) for sex, names in population.FIRST_NAMES.items()}
        last = self.one_of(population.LAST_NAMES)
        whole: Cells = last + ", " + np.where(sex == "female", first["female"], first["male"])
        return self.of_patient(whole)

    def birth(self, admission: NDArray[np.int64], age: NDArray[np.int64]) -> Cells:
        """Return a day on which the patient has the age at the first stay; a few patients have none."""
        birthday = (admission - (self.uniform() * SHORTEST_YEAR).astype(np.int64)).astype("datetime64[D]")
        month = birthday.astype("datetime64[M]")
        born_month: Dates = month - 12 * age
        days: Any = _first_day(born_month + 1) - _first_day(born_month)
        day = np.minimum(birthday - _first_day(month), days - 1)
        born = _cells(_first_day(born_month) + day)
        return self.of_patient(self.missing(born, population.UNKNOWN_BIRTH, population.UNKNOWN))

    def height(self, sex: Cells, age: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return whole centimetres."""
        mean = np.where(sex == "female", population.HEIGHTS["female"], population.HEIGHTS["male"])
        smaller = population.SHRINKING * np.maximum(age - population.SHRINKING_FROM, 0)
        height: NDArray[np.float64] = np.rint(mean - smaller + population.HEIGHT_SPREAD * self.normal())
        return self.of_patient(height)

    def weight(self, height: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return kilograms in steps of a half."""
        deviation = population.BODY_MASS_SPREAD * self.of_patient(self.normal())
        body_mass = population.BODY_MASS * np.exp(deviation + population.BODY_MASS_CHANGE * self.normal())
        weight = np.clip(body_mass * (height / 100) ** 2, population.LIGHTEST, population.HEAVIEST)
        return np.asarray(np.rint(2 * weight) / 2, np.float64)

    def code(self, diagnosis: Cells) -> Cells:
        chance = self.uniform()
        codes = {name: _cells(codes) for name, codes in population.CODES.items()}
        drawn = [codes[name][int(part * len(codes[name]))] for name, part in zip(diagnosis, chance, strict=True)]
        return _cells(drawn)

    def note(self) -> Cells:
        rooms = (self.uniform() * 900).astype(np.int64) + 100
        first = self.one_of([name for names in population.FIRST_NAMES.values() for name in names])
        last = self.one_of(population.LAST_NAMES)
        form = self.one_of(population.NOTES)
        parts = zip(form, rooms, first, last, strict=True)
        notes = [text.format(room=room, first=one, last=two) for text, room, one, two in parts]
        return self.missing(_cells(notes), population.NO_NOTE, "")


def _cells(values: Any) -> Cells:
    """Return an array of Python's own objects."""
    array = np.empty(len(values), dtype=object)
    array[:] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return array


def _named(values: Cells, names: Mapping[str, str]) -> Cells:
    return _cells([names[value] for value in values])


def _postal_codes(codes: Sequence[str]) -> dict[str, str]:
    return {code: population.DISTRICTS[code[:3]] + code[3:] for code in codes}


def _dates(days: NDArray[np.int64]) -> Cells:
    """days: since the beginning of 1970."""
    return _cells(days.astype("datetime64[D]"))


def _first_day(months: Dates) -> Dates:
    return months.astype("datetime64[D]")
