"""A hospital's table of stays: who was in hospital, when, where they live, why they came, and whether they came back.

The columns that name a patient are identifiers; sex, age, postal code, country of birth and the day of admission are
quasi-identifiers; the diagnosis is sensitive; the length of the stay and whether the patient was readmitted within 30
days are passthrough columns, for models to learn. Taxonomies: that of countries is the census generator's, that of
diagnoses serves requirements that compare sensitive values.

Each attribute depends on some of the earlier ones:

    age ─▶ sex        age ─▶ country    age, sex ─▶ diagnosis        age, diagnosis, days ─▶ readmitted
    sex ─▶ name       age ─▶ zip        age, diagnosis ─▶ days       days, readmitted ─▶ next admission

Patients and their numbers are invented, so the table describes nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.synthetic import census_population, hospital_population
from sfumato.synthetic.census import COUNTRY_ROWS, country_shares
from sfumato.synthetic.generator import (
    BATCH_RECORDS,
    GeneratedColumn,
    RandomStream,
    check_whole,
    draw_batches,
    policy_of,
    random_numbers,
    taxonomies_of,
)
from sfumato.synthetic.shares import (
    CHANCES,
    Chances,
    Codes,
    bands,
    between,
    by_chance,
    categories,
    draw_chances,
    grouped,
    leaves,
)

AGES = np.arange(hospital_population.YOUNGEST, hospital_population.OLDEST + 1)
STAY_LENGTHS = np.arange(1, hospital_population.LONGEST_STAY + 1)
FIRST_DAY = date(hospital_population.YEAR, 1, 1)
DAYS_OF_YEAR = (date(hospital_population.YEAR + 1, 1, 1) - FIRST_DAY).days

SMALLEST_NUMBER, NUMBERS = 100_000_000, 900_000_000
"""Patients have numbers of nine digits."""

_DIAGNOSES = [diagnosis for group in hospital_population.DIAGNOSIS_GROUPS.values() for diagnosis in group]
_DIAGNOSIS_ROWS = grouped(
    {name: [diagnosis.name for diagnosis in group] for name, group in hospital_population.DIAGNOSIS_GROUPS.items()}
)
_ZIPS = [
    f"{district.prefix}{number:02}"
    for district in hospital_population.DISTRICTS
    for number in range(1, district.codes + 1)
]
_NAMES = [
    f"{first} {last}"
    for sex in hospital_population.SEXES
    for first in hospital_population.FIRST_NAMES[sex]
    for last in hospital_population.LAST_NAMES
]

_CALENDAR = {"calendar": ["month", "quarter"]}
_COLUMNS = (
    GeneratedColumn(name="patient_id", role="identifier", type="numeric"),
    GeneratedColumn(name="name", role="identifier", type="categorical"),
    GeneratedColumn(name="sex", role="quasi-identifier", type="categorical"),
    GeneratedColumn(name="age", role="quasi-identifier", type="numeric"),
    GeneratedColumn(name="zip", role="quasi-identifier", type="categorical", grouping={"prefix": [2, 3]}),
    GeneratedColumn(name="country", role="quasi-identifier", type="categorical", taxonomy=COUNTRY_ROWS),
    GeneratedColumn(name="admission", role="quasi-identifier", type="date", grouping=_CALENDAR),
    GeneratedColumn(name="diagnosis", role="sensitive", type="categorical", taxonomy=_DIAGNOSIS_ROWS),
    GeneratedColumn(name="days", role="other", type="numeric"),
    GeneratedColumn(name="readmitted", role="other", type="categorical"),
)


@dataclass(frozen=True, kw_only=True)
class Hospital:
    """The hospital's table, with at most ``stays`` records of a patient. The stays of a patient follow each other.

    If patients may have several, the policy names ``patient_id`` as the person of a record.
    """

    name: ClassVar[str] = "hospital"
    version: ClassVar[str] = "1"

    stays: int = 1

    def __post_init__(self) -> None:
        check_whole("stays", self.stays, 1)

    def batches(self, records: int, seed: int) -> Iterator[pa.RecordBatch]:
        """Yield the records; at most 900 million patients have different numbers."""
        batches = draw_batches(records, seed, self._draw)
        # 900 million has no prime factors but 2, 3 and 5, so steps of this form lead to every number once.
        constants = random_numbers(seed, RandomStream.CONSTANTS)
        start, step = constants.integers(0, NUMBERS), 30 * constants.integers(NUMBERS // 60, NUMBERS // 30) + 7

        def numbered(batch_number: int, batch: pa.RecordBatch) -> pa.RecordBatch:
            patients = batch_number * BATCH_RECORDS + batch["patient_id"].to_numpy()
            column = pa.array(SMALLEST_NUMBER + (start + step * patients) % NUMBERS)
            return batch.set_column(0, "patient_id", column)

        return (numbered(number, batch) for number, batch in enumerate(batches))

    def taxonomies(self) -> dict[str, list[tuple[str, ...]]]:
        return taxonomies_of(_COLUMNS)

    def policy(self) -> dict[str, Any]:
        policy = policy_of(_COLUMNS)
        if self.stays > 1:
            policy["privacy"]["person"] = "patient_id"
        return policy

    def _draw(self, numbers: np.random.Generator) -> pa.RecordBatch:
        """Draw a batch; its column patient_id counts from 0."""
        tables = _tables()

        def chance() -> Chances:
            return draw_chances(numbers, BATCH_RECORDS)

        # As many patients as records, of whom the first are used. They do not depend on the number of stays.
        age = tables.age[chance()]
        band = tables.band[age]
        sex = tables.sex[band, chance()]
        country = tables.country[tables.country_band[age], chance()]
        zip_code = tables.zip_code[band, chance()]
        first = tables.first_name[chance()].astype(np.int32)
        last = tables.last_name[chance()]
        name = (sex * len(hospital_population.FIRST_NAMES["female"]) + first) * len(
            hospital_population.LAST_NAMES
        ) + last
        first_day = numbers.integers(0, DAYS_OF_YEAR, BATCH_RECORDS, dtype=np.int32)

        further = numbers.geometric(1 - hospital_population.FURTHER_STAY, BATCH_RECORDS)
        patient = np.repeat(np.arange(BATCH_RECORDS), np.minimum(further, self.stays))[:BATCH_RECORDS]
        diagnosis = tables.diagnosis[sex[patient], band[patient], chance()]
        days = STAY_LENGTHS[tables.days[tables.usual_days[diagnosis], band[patient], chance()]]
        long = (days >= hospital_population.LONG_STAY).astype(np.uint8)
        readmitted = chance() < tables.readmission[diagnosis, band[patient], long]
        pause = np.where(
            readmitted,
            numbers.integers(0, hospital_population.READMISSION_DAYS, BATCH_RECORDS) + 1,
            numbers.integers(
                hospital_population.READMISSION_DAYS + 1,
                hospital_population.LONGEST_PAUSE,
                BATCH_RECORDS,
                endpoint=True,
            ),
        )
        since_new_year = first_day[patient] + _days_since_first_stay(patient, days + pause)
        admission = since_new_year + (FIRST_DAY - date(1970, 1, 1)).days
        return pa.record_batch(
            {
                "patient_id": pa.array(patient),
                "name": categories(name[patient], _NAMES),
                "sex": categories(sex[patient], hospital_population.SEXES),
                "age": pa.array(AGES[age[patient]]),
                "zip": categories(zip_code[patient], _ZIPS),
                "country": categories(country[patient], leaves(COUNTRY_ROWS)),
                "admission": pa.array(admission.astype(np.int32)).cast(pa.date32()),
                "diagnosis": categories(diagnosis, leaves(_DIAGNOSIS_ROWS)),
                "days": pa.array(days),
                "readmitted": categories(readmitted.astype(np.uint8), ("no", "yes")),
            }
        )


def _days_since_first_stay(patient: NDArray[np.int64], steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add up, for each stay, the days that the earlier stays of the patient and the pauses after them took."""
    before = np.cumsum(steps) - steps
    first_stay = np.searchsorted(patient, patient)
    return before - before[first_stay]


@dataclass(frozen=True, kw_only=True)
class _HospitalTables:
    """The patients as arrays, all indexed by codes; ages count from 0. See ``shares``."""

    age: Codes
    sex: Codes  # band of age, as are the next two; country has bands of its own
    country: Codes
    zip_code: Codes
    first_name: Codes
    last_name: Codes
    diagnosis: Codes  # sex, band of age
    days: Codes  # usual days, band of age
    readmission: NDArray[np.uint32]  # diagnosis, band of age, whether the stay was long: chances out of CHANCES

    band: Codes  # of an age, as is the next
    country_band: Codes
    usual_days: Codes  # of a diagnosis


@cache
def _tables() -> _HospitalTables:
    districts = [district for district in hospital_population.DISTRICTS for _ in range(district.codes)]
    zip_shares = [[district.by_age[band] / district.codes for district in districts] for band in _band_numbers()]
    return _HospitalTables(
        age=by_chance(between(AGES, hospital_population.AGE_SHARES)),
        sex=by_chance(hospital_population.SEX_SHARES),
        country=by_chance(country_shares()),
        zip_code=by_chance(zip_shares),
        first_name=by_chance(np.ones(len(hospital_population.FIRST_NAMES["female"]))),
        last_name=by_chance(np.ones(len(hospital_population.LAST_NAMES))),
        diagnosis=by_chance(_diagnosis_shares()),
        days=by_chance(_days_shares()),
        readmission=_readmission_chances(),
        band=bands(AGES, hospital_population.AGE_BANDS),
        country_band=bands(AGES, census_population.COUNTRY_BANDS),
        usual_days=np.array(
            [hospital_population.USUAL_DAYS.index(diagnosis.days) for diagnosis in _DIAGNOSES], np.uint8
        ),
    )


def _band_numbers() -> range:
    return range(len(hospital_population.AGE_BANDS))


def _diagnosis_shares() -> NDArray[np.float64]:
    by_age = np.array([diagnosis.by_age for diagnosis in _DIAGNOSES]).T
    women = np.array([diagnosis.women for diagnosis in _DIAGNOSES])
    return np.asarray(np.stack([women, 1 - women])[:, np.newaxis, :] * by_age, np.float64)


def _days_shares() -> NDArray[np.float64]:
    usual = np.multiply.outer(hospital_population.USUAL_DAYS, hospital_population.DAYS_BY_AGE)
    deviation = np.log(STAY_LENGTHS) - np.log(usual)[:, :, np.newaxis]
    return np.asarray(np.exp(-0.5 * (deviation / hospital_population.DAYS_SPREAD) ** 2) / STAY_LENGTHS, np.float64)


def _readmission_chances() -> NDArray[np.uint32]:
    by_diagnosis = [diagnosis.readmission for diagnosis in _DIAGNOSES]
    by_stay = (1, hospital_population.READMISSION_AFTER_LONG_STAY)
    chances = np.multiply.outer(np.multiply.outer(by_diagnosis, hospital_population.READMISSION_BY_AGE), by_stay)
    return np.asarray(np.rint(np.minimum(chances, 0.9) * CHANCES), np.uint32)
