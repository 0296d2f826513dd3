"""A census-like table with the schema of Ghinita et al. 2007, Table 1.

Age (79 values), gender (2), education (17), marital status (6), race (9), work class (10) and country of birth (83) are
quasi-identifiers; occupation (50) is sensitive; salary class (50) is a passthrough column. The taxonomies have the
levels that the paper's table states, leaves and root included: gender 2, marital 3, race 2, work-class 4, country 3.
Occupation also has a taxonomy of 3 levels, which the policy does not name: it serves requirements that compare
sensitive values.

Each attribute depends on some of the earlier ones:

    age ─▶ gender             age, gender ─▶ marital              age, education ─▶ work-class
    age ─▶ country ─▶ race    age, country ─▶ education           education, gender, work-class ─▶ occupation
                              age, gender, education, work-class, occupation ─▶ salary-class

Differs from the paper: its table is a sample of a real census. This one is synthetic, so it has any number of records
and describes nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from sfumato.synthetic import census_population
from sfumato.synthetic.generator import BATCH_RECORDS, GeneratedColumn, draw_batches, policy_of, taxonomies_of
from sfumato.synthetic.shares import (
    CHANCES,
    Chances,
    Codes,
    TaxonomyRows,
    bands,
    between,
    by_chance,
    categories,
    draw_chances,
    grouped,
    leaves,
)

Thousandths = NDArray[np.int16]

AGES = np.arange(census_population.YOUNGEST, census_population.OLDEST + 1)
EDUCATIONS = np.arange(1, census_population.EDUCATION_LEVELS + 1)


@dataclass(frozen=True)
class Census:
    """The census-like table. It has no options."""

    name: ClassVar[str] = "census"
    version: ClassVar[str] = "1"

    def batches(self, records: int, seed: int) -> Iterator[pa.RecordBatch]:
        return draw_batches(records, seed, _draw)

    def taxonomies(self) -> dict[str, list[tuple[str, ...]]]:
        return taxonomies_of(_COLUMNS)

    def policy(self) -> dict[str, Any]:
        return policy_of(_COLUMNS)


def _flat(values: Sequence[str]) -> TaxonomyRows:
    return tuple((value, "*") for value in values)


_JOBS = [job for group in census_population.OCCUPATION_GROUPS.values() for job in group]
_SECTORS = [sector for sectors in census_population.WORK_CLASS_GROUPS.values() for sector in sectors]

_MARITAL_ROWS = grouped(census_population.MARITAL_GROUPS)
COUNTRY_ROWS = grouped({region.name: tuple(region.countries) for region in census_population.REGIONS})
_OCCUPATION_ROWS = grouped(
    {name: [job.name for job in jobs] for name, jobs in census_population.OCCUPATION_GROUPS.items()}
)
_WORK_CLASS_ROWS = tuple(
    (work_class, sector, kind, "*")
    for kind, sectors in census_population.WORK_CLASS_GROUPS.items()
    for sector, work_classes in sectors.items()
    for work_class in work_classes
)
_SALARY_BOUNDS = [census_population.SALARY_CLASS_WIDTH * number for number in range(census_population.SALARY_CLASSES)]
_SALARY_CLASSES = [
    *(f"{low}-{low + census_population.SALARY_CLASS_WIDTH - 1}" for low in _SALARY_BOUNDS[:-1]),
    f"{_SALARY_BOUNDS[-1]} or more",
]

_COLUMNS = (
    GeneratedColumn(name="age", role="quasi-identifier", type="numeric"),
    GeneratedColumn(
        name="gender", role="quasi-identifier", type="categorical", taxonomy=_flat(census_population.GENDERS)
    ),
    GeneratedColumn(name="education", role="quasi-identifier", type="numeric"),
    GeneratedColumn(name="marital", role="quasi-identifier", type="categorical", taxonomy=_MARITAL_ROWS),
    GeneratedColumn(name="race", role="quasi-identifier", type="categorical", taxonomy=_flat(census_population.RACES)),
    GeneratedColumn(name="work-class", role="quasi-identifier", type="categorical", taxonomy=_WORK_CLASS_ROWS),
    GeneratedColumn(name="country", role="quasi-identifier", type="categorical", taxonomy=COUNTRY_ROWS),
    GeneratedColumn(name="occupation", role="sensitive", type="categorical", taxonomy=_OCCUPATION_ROWS),
    GeneratedColumn(name="salary-class", role="other", type="categorical"),
)


@dataclass(frozen=True, kw_only=True)
class _Tables:
    """The population as arrays, all indexed by codes; ages and educations count from 0.

    The array of an attribute is uint8[..., CHANCES]: the value that each random number yields, given the values or
    bands of the other indices. Logarithms of pay are in thousandths; their sum is an index into ``salary_class``.
    """

    age: Codes
    gender: Codes  # band of age
    country: Codes  # band of age
    race: Codes  # country's profile
    education: Codes  # band of age, country's schooling
    marital: Codes  # gender, band of age
    work_class: Codes  # band of age, band of education
    occupation: Codes  # band of education, gender, sector

    gender_band: Codes  # of an age, as are the next four
    country_band: Codes
    education_band: Codes
    marital_band: Codes
    work_class_band: Codes
    work_class_schooling: Codes  # of an education, as is the next
    occupation_schooling: Codes
    races: Codes  # of a country, as is the next
    schooling: Codes
    sector: Codes  # of a work class

    pay_of_occupation: Thousandths
    pay_of_age: Thousandths
    pay_of_gender: Thousandths
    pay_of_education: Thousandths
    pay_of_work_class: Thousandths
    pay_by_chance: Thousandths
    salary_class: Codes


def _draw(numbers: np.random.Generator) -> pa.RecordBatch:
    tables = _tables()

    def chance() -> Chances:
        return draw_chances(numbers, BATCH_RECORDS)

    age = tables.age[chance()]
    gender = tables.gender[tables.gender_band[age], chance()]
    country = tables.country[tables.country_band[age], chance()]
    race = tables.race[tables.races[country], chance()]
    education = tables.education[tables.education_band[age], tables.schooling[country], chance()]
    marital = tables.marital[gender, tables.marital_band[age], chance()]
    work_class = tables.work_class[tables.work_class_band[age], tables.work_class_schooling[education], chance()]
    sector = tables.sector[work_class]
    occupation = tables.occupation[tables.occupation_schooling[education], gender, sector, chance()]
    pay = (
        tables.pay_of_occupation[occupation]
        + tables.pay_of_age[age]
        + tables.pay_of_gender[gender]
        + tables.pay_of_education[education]
        + tables.pay_of_work_class[work_class]
        + tables.pay_by_chance[chance()]
    )
    return pa.record_batch(
        {
            "age": pa.array(AGES[age]),
            "gender": categories(gender, census_population.GENDERS),
            "education": pa.array(EDUCATIONS[education]),
            "marital": categories(marital, leaves(_MARITAL_ROWS)),
            "race": categories(race, census_population.RACES),
            "work-class": categories(work_class, leaves(_WORK_CLASS_ROWS)),
            "country": categories(country, leaves(COUNTRY_ROWS)),
            "occupation": categories(occupation, leaves(_OCCUPATION_ROWS)),
            "salary-class": categories(tables.salary_class[pay], _SALARY_CLASSES),
        }
    )


@cache
def _tables() -> _Tables:
    regions = {country: region for region in census_population.REGIONS for country in region.countries}
    races, schoolings = list(census_population.RACE_SHARES), list(census_population.SCHOOLING_TILT)
    without_work = [sector == census_population.WITHOUT_WORK for _, sector, _, _ in _WORK_CLASS_ROWS]
    return _Tables(
        age=by_chance(between(AGES, census_population.AGE_SHARES)),
        gender=by_chance(census_population.GENDER_SHARES),
        country=by_chance(country_shares()),
        race=by_chance(list(census_population.RACE_SHARES.values())),
        education=by_chance(_education_shares()),
        marital=by_chance([census_population.MARITAL_SHARES[gender] for gender in census_population.GENDERS]),
        work_class=by_chance(_work_class_shares()),
        occupation=by_chance(_occupation_shares()),
        gender_band=bands(AGES, census_population.GENDER_BANDS),
        country_band=bands(AGES, census_population.COUNTRY_BANDS),
        education_band=bands(AGES, census_population.EDUCATION_BANDS),
        marital_band=bands(AGES, census_population.MARITAL_BANDS),
        work_class_band=bands(AGES, census_population.WORK_CLASS_BANDS),
        work_class_schooling=bands(EDUCATIONS, census_population.WORK_CLASS_SCHOOLING),
        occupation_schooling=bands(EDUCATIONS, census_population.OCCUPATION_SCHOOLING),
        races=np.array(
            [races.index(census_population.RACE_OF_COUNTRY.get(name, region.race)) for name, region in regions.items()],
            np.uint8,
        ),
        schooling=np.array([schoolings.index(region.schooling) for region in regions.values()], np.uint8),
        sector=np.array([_SECTORS.index(sector) for _, sector, _, _ in _WORK_CLASS_ROWS], np.uint8),
        pay_of_occupation=_logarithms([1000 * job.pay for job in _JOBS]),
        pay_of_age=_logarithms(between(AGES, census_population.PAY_BY_AGE)),
        pay_of_gender=_logarithms([1, census_population.PAY_OF_WOMEN]),
        pay_of_education=_logarithms(
            census_population.PAY_PER_EDUCATION ** (EDUCATIONS - census_population.HIGH_SCHOOL)
        ),
        pay_of_work_class=_logarithms(np.where(without_work, census_population.PAY_WITHOUT_WORK, 1)),
        pay_by_chance=_pay_by_chance(),
        salary_class=_salary_classes(),
    )


def country_shares() -> NDArray[np.float64]:
    """Return the shares of the countries, in the order of ``COUNTRY_ROWS``, for each band of ``COUNTRY_BANDS``."""
    return np.array(
        [
            [share * region.by_age[band] for region in census_population.REGIONS for share in region.countries.values()]
            for band in range(len(census_population.COUNTRY_BANDS))
        ]
    )


def _education_shares() -> NDArray[np.float64]:
    tilt = np.add.outer(census_population.EDUCATION_TILT, list(census_population.SCHOOLING_TILT.values()))
    tilted = np.exp(tilt[:, :, np.newaxis] * (EDUCATIONS - census_population.HIGH_SCHOOL))
    reached = np.less_equal.outer(EDUCATIONS, census_population.EDUCATION_CEILING).T
    return np.array(census_population.EDUCATION_SHARES) * tilted * reached[:, np.newaxis, :]


def _work_class_shares() -> NDArray[np.float64]:
    by_age, by_education = np.array(census_population.WORK_CLASS_BY_AGE), np.array(census_population.WORK_CLASS_SHARES)
    return np.asarray(by_age[:, np.newaxis, :] * by_education, np.float64)


def _occupation_shares() -> NDArray[np.float64]:
    bands = np.arange(len(census_population.OCCUPATION_SCHOOLING))
    mismatch = np.abs(np.subtract.outer(bands, [job.schooling for job in _JOBS]))
    by_education = census_population.SCHOOLING_MISMATCH**mismatch
    women = np.array([job.women for job in _JOBS])
    by_gender = np.stack([1 - women, women])
    by_sector = np.array(
        [[census_population.COMMON_SECTOR if job.sector == sector else 1.0 for job in _JOBS] for sector in _SECTORS]
    )
    shares = np.array([job.share for job in _JOBS])
    return np.asarray(
        shares * by_education[:, np.newaxis, np.newaxis] * by_gender[:, np.newaxis] * by_sector, np.float64
    )


def _logarithms(factors: ArrayLike) -> Thousandths:
    return np.asarray(np.rint(1000 * np.log(factors)), np.int16)


def _pay_by_chance() -> Thousandths:
    """Return quantiles of a normal distribution, one for the middle of each chance."""
    normal = NormalDist(0, 1000 * census_population.SALARY_SPREAD)
    return np.array([round(normal.inv_cdf((number + 0.5) / CHANCES)) for number in range(CHANCES)], np.int16)


def _salary_classes() -> Codes:
    """Return the class of each logarithm of pay, in thousandths, from 0 to the largest int16."""
    pay = np.exp(np.arange(2**15) / 1000)
    return np.asarray(
        np.minimum(pay // census_population.SALARY_CLASS_WIDTH, census_population.SALARY_CLASSES - 1), np.uint8
    )
