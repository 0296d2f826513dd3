"""Persons with salaries, houses and loans, and a class or number that is a function of these attributes.

Agrawal, Imielinski and Swami 1993, as used by LeFevre et al. 2008: attributes by Table I, classes C2 to C7 and C9 by
Table II, numeric targets R7 and R10 by Table VI. The nine attributes are quasi-identifiers. The class or target, which
somebody wants to learn from the release, is released unchanged. elevel and car have taxonomies, as in LeFevre's
sec. 4.4.

Differs from the papers:

- C3, which Table II leaves out, is function 3 of Agrawal et al.
- All attributes are whole numbers: only that fits the size of a frequency group in sec. 6.1.
- The papers do not print the two hierarchies; here they are ranges.
- For the normal salary of Fig. 24, only the variance is printed, 1.1e8. Here the mean is the middle of the uniform
  range, and salaries are cut to that range.
- With random constants, the ends of each interval are two numbers drawn from the attribute's range. The education
  levels of C3 and C4 are consecutive in the papers, so they are intervals here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.synthetic.generator import (
    BATCH_RECORDS,
    GeneratedColumn,
    RandomStream,
    draw_batches,
    policy_of,
    random_numbers,
    taxonomies_of,
)

Function = Literal["C2", "C3", "C4", "C5", "C6", "C7", "C9", "R7", "R10"]
Salary = Literal["uniform", "normal"]
Attribute = Literal["salary", "elevel", "loan", "income"]
Numbers = NDArray[np.int64]
Attributes = Mapping[str, Numbers]


class Interval(NamedTuple):
    """The whole numbers from ``low`` to ``high``, both included."""

    low: int
    high: int

    def holds(self, values: Numbers) -> NDArray[np.bool_]:
        return (values >= self.low) & (values <= self.high)


# Table I
SALARY = Interval(20_000, 150_000)
NO_COMMISSION_FROM = 75_000
COMMISSION = Interval(10_000, 75_000)
AGE = Interval(20, 80)
EDUCATION_LEVEL = Interval(0, 4)
CAR = Interval(1, 20)
ZIPCODE = Interval(0, 9)
HOUSE_YEARS = Interval(1, 30)
LOAN = Interval(0, 500_000)
# Fig. 24
NORMAL_SALARY_MEAN = (SALARY.low + SALARY.high) / 2
NORMAL_SALARY_DEVIATION = 1.1e8**0.5

EDUCATION_GROUPS = (Interval(0, 1), Interval(2, 4))
CAR_GROUPS = tuple(Interval(low, low + 4) for low in range(1, 21, 5))
CAR_HALVES = (Interval(1, 10), Interval(11, 20))

RANGES: dict[Attribute, Interval] = {
    "salary": SALARY,
    "elevel": EDUCATION_LEVEL,
    "loan": LOAN,
    "income": SALARY,  # salary and commission together
}


class AgrawalCondition(NamedTuple):
    """The condition under which a record of one age group has class A: the deciding attribute lies in ``interval``.

    With ``question``, the deciding attribute must lie in ``interval`` if the attribute that the rule asks for lies in
    ``question``, and in ``otherwise`` if not.
    """

    interval: Interval
    question: Interval | None = None
    otherwise: Interval | None = None


class AgrawalRule(NamedTuple):
    """One of C2 to C6: a condition for the young, one from ``middle_age`` on, and one from ``old_age`` on."""

    decides: Attribute
    young: AgrawalCondition
    middle: AgrawalCondition
    old: AgrawalCondition
    asks: Attribute | None = None
    middle_age: int = 40
    old_age: int = 60


def _thousands(low: int, high: int) -> Interval:
    return Interval(1000 * low, 1000 * high)


RULES: dict[str, AgrawalRule] = {
    "C2": AgrawalRule(
        "salary",
        young=AgrawalCondition(_thousands(50, 100)),
        middle=AgrawalCondition(_thousands(75, 125)),
        old=AgrawalCondition(_thousands(25, 75)),
    ),
    "C3": AgrawalRule(
        "elevel",
        young=AgrawalCondition(Interval(0, 1)),
        middle=AgrawalCondition(Interval(1, 3)),
        old=AgrawalCondition(Interval(2, 4)),
    ),
    "C4": AgrawalRule(
        "salary",
        asks="elevel",
        young=AgrawalCondition(_thousands(25, 75), Interval(0, 1), _thousands(50, 100)),
        middle=AgrawalCondition(_thousands(50, 100), Interval(1, 3), _thousands(75, 125)),
        old=AgrawalCondition(_thousands(50, 100), Interval(2, 4), _thousands(25, 75)),
    ),
    "C5": AgrawalRule(
        "loan",
        asks="salary",
        young=AgrawalCondition(_thousands(100, 300), _thousands(50, 100), _thousands(200, 400)),
        middle=AgrawalCondition(_thousands(200, 400), _thousands(75, 125), _thousands(300, 500)),
        old=AgrawalCondition(_thousands(300, 500), _thousands(25, 75), _thousands(100, 300)),
    ),
    "C6": AgrawalRule(
        "income",
        young=AgrawalCondition(_thousands(50, 100)),
        middle=AgrawalCondition(_thousands(75, 125)),
        old=AgrawalCondition(_thousands(25, 75)),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Agrawal:
    """The table of one function, with a column ``class`` (A or B) or, for R7 and R10, ``target``.

    ``random_constants`` draws the constants of C2 to C6 from the seed instead of using the published ones.
    """

    name: ClassVar[str] = "agrawal"
    version: ClassVar[str] = "1"

    function: Function = "C2"
    random_constants: bool = False
    salary: Salary = "uniform"

    def __post_init__(self) -> None:
        if self.function not in get_args(Function):
            raise UsageError.unknown_choice("function", self.function, get_args(Function))
        if self.salary not in get_args(Salary):
            raise UsageError.unknown_choice("distribution of the salary", self.salary, get_args(Salary))
        if not isinstance(self.random_constants, bool):
            raise UsageError(f"random_constants must be true or false, not {self.random_constants!r}.")
        if self.random_constants and self.function not in RULES:
            raise UsageError(
                f"{self.function} has no constants to draw at random. Available with random_constants: "
                f"{', '.join(RULES)}."
            )

    def batches(self, records: int, seed: int) -> Iterator[pa.RecordBatch]:
        def draw(numbers: np.random.Generator) -> pa.RecordBatch:
            attributes = self._attributes(numbers)
            columns = {name: pa.array(values) for name, values in attributes.items()}
            return pa.record_batch({**columns, self._label: self._labels(attributes, seed)})

        return draw_batches(records, seed, draw)

    def taxonomies(self) -> dict[str, list[tuple[str, ...]]]:
        return taxonomies_of(self._columns())

    def policy(self) -> dict[str, Any]:
        policy = policy_of(self._columns())
        if self._label == "target":
            # Nearly every record has a different target, which is refused as linkable unless it is accepted.
            policy["accept_linkable"] = ["target"]
        return policy

    def rule(self, seed: int) -> AgrawalRule:
        """Return the rule of C2 to C6 with the constants of a table of this seed."""
        rule = RULES[self.function]
        return _with_random_constants(rule, seed) if self.random_constants else rule

    @property
    def _label(self) -> str:
        return "target" if self.function in {"R7", "R10"} else "class"

    def _columns(self) -> list[GeneratedColumn]:
        taxonomies = {
            "elevel": _taxonomy(EDUCATION_LEVEL, EDUCATION_GROUPS),
            "car": _taxonomy(CAR, CAR_GROUPS, CAR_HALVES),
        }
        columns = [
            GeneratedColumn(
                name=name,
                role="quasi-identifier",
                type="categorical" if name in taxonomies else "numeric",
                taxonomy=taxonomies.get(name, ()),
            )
            for name in ("salary", "commission", "age", "elevel", "car", "zipcode", "hvalue", "hyears", "loan")
        ]
        label_type: Literal["categorical", "numeric"] = "categorical" if self._label == "class" else "numeric"
        return [*columns, GeneratedColumn(name=self._label, role="other", type=label_type)]

    def _attributes(self, numbers: np.random.Generator) -> dict[str, Numbers]:
        def uniform(interval: Interval) -> Numbers:
            return numbers.integers(interval.low, interval.high, BATCH_RECORDS, endpoint=True)

        zipcode = uniform(ZIPCODE)
        factor = 0.5 + numbers.random(BATCH_RECORDS)
        table = {
            "commission": uniform(COMMISSION),
            "age": uniform(AGE),
            "elevel": uniform(EDUCATION_LEVEL),
            "car": uniform(CAR),
            "zipcode": zipcode,
            "hvalue": np.rint(zipcode * factor * 100_000).astype(np.int64),
            "hyears": uniform(HOUSE_YEARS),
            "loan": uniform(LOAN),
        }
        # The salary is drawn last, so that the other attributes do not depend on its distribution.
        if self.salary == "uniform":
            salary = uniform(SALARY)
        else:
            normal = numbers.normal(NORMAL_SALARY_MEAN, NORMAL_SALARY_DEVIATION, BATCH_RECORDS)
            salary = np.clip(np.rint(normal), *SALARY).astype(np.int64)
        table["commission"][salary >= NO_COMMISSION_FROM] = 0
        return {"salary": salary, **table}

    def _labels(self, attributes: Attributes, seed: int) -> pa.Array:
        match self.function:
            case "C7":
                return _classes(_hundredths_after_loan(attributes) > 0)
            case "C9":
                return _classes(_hundredths_after_loan_and_education(attributes) > 0)
            case "R7":
                return pa.array(_hundredths_after_loan(attributes) / 100)
            case "R10":
                return pa.array(_hundredths_with_equity(attributes) / 100)
            case _:
                return _classes(_in_class_a(self.rule(seed), attributes))


def _income(attributes: Attributes) -> Numbers:
    return attributes["salary"] + attributes["commission"]


# Tables II and VI in hundredths: whole numbers, so that no rounding decides a class.


def _hundredths_after_loan(attributes: Attributes) -> Numbers:
    """C7 and R7: 0.67 (salary + commission) - 0.2 loan - 20,000."""
    return 67 * _income(attributes) - 20 * attributes["loan"] - 2_000_000


def _hundredths_after_loan_and_education(attributes: Attributes) -> Numbers:
    """C9: 0.67 (salary + commission) - 5000 elevel - 0.2 loan - 10,000."""
    return 67 * _income(attributes) - 500_000 * attributes["elevel"] - 20 * attributes["loan"] - 1_000_000


def _hundredths_with_equity(attributes: Attributes) -> Numbers:
    """R10: 0.67 (salary + commission) - 5000 elevel + 0.2 equity - 10,000, equity = 0.1 hvalue (hyears - 20)+."""
    equity_tenths = attributes["hvalue"] * np.maximum(attributes["hyears"] - 20, 0)
    return 67 * _income(attributes) - 500_000 * attributes["elevel"] + 2 * equity_tenths - 1_000_000


def _in_class_a(rule: AgrawalRule, attributes: Attributes) -> NDArray[np.bool_]:
    age = attributes["age"]
    values = {**attributes, "income": _income(attributes)}

    def holds(condition: AgrawalCondition) -> NDArray[np.bool_]:
        decided = condition.interval.holds(values[rule.decides])
        if rule.asks is None or condition.question is None or condition.otherwise is None:
            return decided
        return np.where(
            condition.question.holds(values[rule.asks]), decided, condition.otherwise.holds(values[rule.decides])
        )

    return np.where(
        age < rule.middle_age, holds(rule.young), np.where(age < rule.old_age, holds(rule.middle), holds(rule.old))
    )


def _classes(in_class_a: NDArray[np.bool_]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.where(in_class_a, 0, 1), pa.int32()), pa.array(["A", "B"]))


def _with_random_constants(rule: AgrawalRule, seed: int) -> AgrawalRule:
    numbers = random_numbers(seed, RandomStream.CONSTANTS)

    def interval(within: Interval) -> Interval:
        low, high = sorted(numbers.integers(within.low, within.high, 2, endpoint=True).tolist())
        return Interval(low, high)

    def condition() -> AgrawalCondition:
        decided = RANGES[rule.decides]
        if rule.asks is None:
            return AgrawalCondition(interval(decided))
        return AgrawalCondition(interval(decided), interval(RANGES[rule.asks]), interval(decided))

    ages = interval(AGE)
    return rule._replace(middle_age=ages.low, old_age=ages.high, young=condition(), middle=condition(), old=condition())


def _taxonomy(domain: Interval, *levels: tuple[Interval, ...]) -> tuple[tuple[str, ...], ...]:
    """Return one row per number: the number, its range on each level, and the root."""
    return tuple(
        (
            str(value),
            *(f"[{group.low}..{group.high}]" for level in levels for group in level if value in _members(group)),
            "*",
        )
        for value in _members(domain)
    )


def _members(interval: Interval) -> range:
    return range(interval.low, interval.high + 1)
