"""Every kind of requirement against its definition, written out in whole numbers and fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from requirement_definitions import (
    Asked,
    Counts,
    Reference,
    alpha,
    basic_likeness,
    disclosure,
    distance_of,
    distinct,
    enhanced_likeness,
    entropy,
    equal_closeness,
    frequency,
    ordered_closeness,
    recursive,
    variance,
)

import sfumato
from sfumato.errors import InfeasibleError, PolicyError, UsageError
from sfumato.policy import Policy, merge_flags
from sfumato.requirements import (
    AlphaAnonymity,
    BetaLikeness,
    ClassCounts,
    DeltaDisclosure,
    EntropyDiversity,
    Hierarchy,
    Histogram,
    RecursiveDiversity,
    Requirements,
    TCloseness,
    VarianceDiversity,
)
from sfumato.requirements.conjunction import class_holds, conjunction

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


SHARES = st.fractions(Fraction(1, 12), 1, max_denominator=12)
RATIOS = st.fractions(Fraction(1, 10), 6, max_denominator=10)
LEVELS = st.integers(1, 6)
KINDS: dict[str, st.SearchStrategy[Asked]] = {
    "entropy": st.builds(entropy, LEVELS | st.sampled_from([Fraction(9, 8), Fraction(3, 2), Fraction(7, 3)])),
    "recursive": st.builds(recursive, RATIOS, LEVELS),
    "variance": st.builds(variance, RATIOS),
    "closeness, equal": st.builds(equal_closeness, SHARES),
    "closeness, ordered": st.builds(ordered_closeness, SHARES),
    "alpha-k": st.builds(alpha, SHARES),
    "likeness": st.builds(basic_likeness, RATIOS),
    "likeness, enhanced": st.builds(enhanced_likeness, RATIOS),
    "disclosure": st.builds(disclosure, RATIOS),
}
WHOLE_KINDS = {"frequency": st.builds(frequency, LEVELS), "distinct": st.builds(distinct, LEVELS)}
every_kind = pytest.mark.parametrize("kind", KINDS)


# ---- classes ----


@dataclass(frozen=True)
class Classes:
    """Classes by the counts of their values; every value occurs somewhere."""

    counts: list[list[int]]
    nulls: list[int]
    numbers: list[int]

    @property
    def reference(self) -> list[Fraction]:
        total = [sum(column) for column in zip(*self.counts, strict=True)]
        return [Fraction(count, sum(total)) for count in total]

    @property
    def sizes(self) -> list[int]:
        return [sum(counts) + nulls for counts, nulls in zip(self.counts, self.nulls, strict=True)]


@st.composite
def class_tables(draw: st.DrawFn, largest: int = 5) -> Classes:
    """Up to five classes over up to five values, some with no value at all."""
    values = draw(st.integers(0, 5))
    count = st.one_of(st.just(0), st.integers(0, largest))
    rows = draw(st.lists(st.lists(count, min_size=values, max_size=values), min_size=1, max_size=5))
    if draw(st.booleans()):
        rows = [list(row) for row in [*rows, [1] * values]]
    occurring = [value for value in range(values) if any(row[value] for row in rows)]
    rows = [[row[value] for value in occurring] for row in rows]
    nulls = [draw(st.integers(0 if sum(row) else 1, 2)) for row in rows]
    numbers = sorted(draw(st.sets(st.integers(-9, 9), min_size=len(occurring), max_size=len(occurring))))
    return Classes(rows, nulls, numbers)


def class_counts(classes: Sequence[Counts], sizes: Sequence[int], reference: Reference, numbers: Sequence[int]) -> Any:
    """The classes as requirements see them."""
    pairs = [(owner, value, count) for owner, row in enumerate(classes) for value, count in enumerate(row) if count]
    owner, value, count = np.array(pairs, np.int64).reshape(-1, 3).T
    shares_of_all = np.array([float(q) for q in reference])
    histogram = Histogram(owner, count, value, shares_of_all, np.array(numbers, np.float64))
    return ClassCounts(np.array(sizes, np.int64), {"s": histogram})


def verdict_holds(asked: Asked, table: Classes) -> bool:
    return asked.requirement.verdict(class_counts(table.counts, table.sizes, table.reference, table.numbers)).holds


def one_class(counts: Counts, reference: Reference, numbers: Sequence[int]) -> Any:
    return class_counts([counts], [max(sum(counts), 1)], reference, numbers)


@dataclass(frozen=True)
class Values:
    """What the kernel is told of the column "s"."""

    distinct: int
    numbers: NDArray[np.float64]
    hierarchy: Hierarchy | None = None


def kernel_holds(asked: Asked, counts: Counts, reference: Reference, numbers: Sequence[int], nulls: int = 0) -> bool:
    values = Values(len(numbers), np.array(numbers, np.float64))
    tests = conjunction(Requirements((asked.requirement,)), [values], [np.array([float(q) for q in reference])])
    known, largest, different = sum(counts), max(counts, default=0), sum(count > 0 for count in counts)
    return bool(
        class_holds(
            tests,
            known + nulls,
            np.array([counts], np.int64),
            np.array([known]),
            np.array([largest]),
            np.array([different]),
        )
    )


# ---- verdicts ----


@every_kind
@given(table=class_tables(), data=st.data())
def test_a_verdict_is_the_definition_in_every_class(kind: str, table: Classes, data: st.DataObject) -> None:
    asked = data.draw(KINDS[kind])
    expected = all(asked.holds(counts, table.reference, table.numbers) for counts in table.counts)
    assert verdict_holds(asked, table) == expected


@pytest.mark.parametrize("kind", [*KINDS, *WHOLE_KINDS])
@given(table=class_tables(), data=st.data())
def test_the_kernel_agrees_with_the_definition(kind: str, table: Classes, data: st.DataObject) -> None:
    asked = data.draw({**KINDS, **WHOLE_KINDS}[kind])
    for counts, nulls in zip(table.counts, table.nulls, strict=True):
        expected = asked.holds(counts, table.reference, table.numbers)
        assert kernel_holds(asked, counts, table.reference, table.numbers, nulls) == expected


@pytest.mark.parametrize("kind", [*KINDS, *WHOLE_KINDS])
@given(table=class_tables(), data=st.data())
def test_each_class_is_told_by_itself(kind: str, table: Classes, data: st.DataObject) -> None:
    asked = data.draw({**KINDS, **WHOLE_KINDS}[kind])
    found = asked.requirement.holds(class_counts(table.counts, table.sizes, table.reference, table.numbers))
    assert found.tolist() == [asked.holds(counts, table.reference, table.numbers) for counts in table.counts]


@every_kind
@given(data=st.data())
def test_the_kernel_never_promises_what_the_verdict_denies(kind: str, data: st.DataObject) -> None:
    values = data.draw(st.integers(1, 30))
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scale = data.draw(st.sampled_from([3, 50, 10**6, 10**9]))
    counts = generator.integers(0, scale, values).tolist()
    total = [count + int(more) for count, more in zip(counts, generator.integers(1, scale, values), strict=True)]
    reference = [Fraction(one, sum(total)) for one in total]
    numbers = sorted(generator.integers(-(10**6), 10**6, values).tolist())
    asked = data.draw(KINDS[kind])
    promised = kernel_holds(asked, counts, reference, numbers)
    assert asked.requirement.verdict(one_class(counts, reference, numbers)).holds or not promised


# ---- borders ----


@given(values=st.integers(1, 40), each=st.integers(1, 10**6))
def test_equally_frequent_values_have_exactly_their_number_as_entropy(values: int, each: int) -> None:
    counts, reference = [each] * values, [Fraction(1, values)] * values
    for level, expected in ((values, True), (values + 1, False)):
        found = entropy(level).requirement.verdict(one_class(counts, reference, range(values)))
        assert found.holds == expected
        assert kernel_holds(entropy(level), counts, reference, range(values)) == expected
        assert found.value == pytest.approx(values)


@given(values=st.integers(1, 40), each=st.integers(1, 10**6))
def test_a_share_of_exactly_alpha_is_allowed(values: int, each: int) -> None:
    counts, reference = [each] * values, [Fraction(1, values)] * values
    asked = alpha(Fraction(1, values))
    assert asked.requirement.verdict(one_class(counts, reference, range(values))).holds
    assert kernel_holds(asked, counts, reference, range(values))
    below = Asked(AlphaAnonymity("s", 1 / values - 1e-9), asked.holds)
    assert not below.requirement.verdict(one_class(counts, reference, range(values))).holds
    assert not kernel_holds(below, counts, reference, range(values))


@given(c=st.fractions(Fraction(1, 10), 5, max_denominator=100), rest=st.integers(1, 1000))
def test_recursive_diversity_is_strict(c: Fraction, rest: int) -> None:
    rest *= c.denominator
    largest = int(c * rest)
    assume(largest >= rest)  # else the rest is not the smaller part
    reference = [Fraction(1, 2)] * 2
    for first, expected in ((largest, False), (largest - 1, largest - 1 >= rest)):
        if first >= rest:
            assert kernel_holds(recursive(c, 2), [first, rest], reference, [0, 1]) == expected
            found = recursive(c, 2).requirement.verdict(one_class([first, rest], reference, [0, 1]))
            assert found.holds == expected
            assert found.value == pytest.approx(first / rest)


def test_recursive_diversity_with_fewer_values_than_l_fails_and_with_l_of_one_holds() -> None:
    reference = [Fraction(1, 2)] * 2
    for counts in ([3, 3], [6, 0], [0, 0]):
        assert not recursive(Fraction(1000), 3).requirement.verdict(one_class(counts, reference, [0, 1])).holds
        assert not kernel_holds(recursive(Fraction(1000), 3), counts, reference, [0, 1])
        assert recursive(Fraction(1, 1000), 1).requirement.verdict(one_class(counts, reference, [0, 1])).holds
        assert kernel_holds(recursive(Fraction(1, 1000), 1), counts, reference, [0, 1])


def test_disclosure_is_strict_and_infinite_where_a_value_is_lacking() -> None:
    reference = [Fraction(1, 4), Fraction(3, 4)]
    twice = one_class([2, 2], reference, [0, 1])
    assert DeltaDisclosure("s", math.log(2)).verdict(twice).value == math.log(2)
    assert not DeltaDisclosure("s", math.log(2)).verdict(twice).holds
    assert DeltaDisclosure("s", math.log(2) + 1e-9).verdict(twice).holds
    for lacking in ([4, 0], [0, 4], [0, 0]):
        found = DeltaDisclosure("s", 1e9).verdict(one_class(lacking, reference, [0, 1]))
        assert (found.holds, found.value) == (False, math.inf)
        assert not kernel_holds(disclosure(Fraction(10**9)), lacking, reference, [0, 1])


def test_variance_divides_by_the_records_that_have_a_value() -> None:
    reference = [Fraction(1, 2)] * 2
    table = class_counts([[2, 2]], [9], reference, [0, 10])
    assert VarianceDiversity("s", 25.0).verdict(table).value == 25.0
    assert VarianceDiversity("s", 25.0).verdict(table).holds
    assert not VarianceDiversity("s", 25.01).verdict(table).holds


def test_equal_numbers_have_no_variance_however_small_v_is() -> None:
    table = one_class([5], [Fraction(1)], [7])
    assert not VarianceDiversity("s", 1e-300).verdict(table).holds
    assert not kernel_holds(Asked(VarianceDiversity("s", 1e-300), entropy(1).holds), [5], [Fraction(1)], [7])


def test_values_of_verdicts_are_those_of_the_worst_class() -> None:
    table = class_counts([[1, 1, 2], [0, 4, 0]], [4, 4], [Fraction(1, 8), Fraction(5, 8), Fraction(2, 8)], [1, 2, 3])
    assert AlphaAnonymity("s", 0.5).verdict(table).value == 1.0
    assert EntropyDiversity("s", 2).verdict(table).value == 1.0
    assert VarianceDiversity("s", 1.0).verdict(table).value == 0.0
    assert RecursiveDiversity("s", 1.0, 2).verdict(table).value == math.inf
    assert TCloseness("s", 0.5).verdict(table).value == pytest.approx(3 / 8)
    assert TCloseness("s", 0.5, "ordered").verdict(table).value == pytest.approx(3 / 16)
    assert BetaLikeness("s", 1.0).verdict(table).value == pytest.approx(1.0)
    assert DeltaDisclosure("s", 1.0).verdict(table).value == math.inf


def test_ordered_closeness_of_many_classes_is_that_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [[place % 3, 1, (place * 7) % 4, 2] for place in range(50)]
    table = Classes(counts, [0] * 50, [1, 2, 3, 4])
    expected = max(distance_of(one, table.reference, "ordered") for one in counts)
    monkeypatch.setattr("sfumato.requirements.t_closeness.CELLS", 28)  # seven classes at once
    found = TCloseness("s", 0.5, "ordered").verdict(class_counts(counts, table.sizes, table.reference, table.numbers))
    assert found.value == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("kind", [*KINDS, *WHOLE_KINDS])
@given(table=class_tables(), data=st.data())
def test_the_union_of_classes_that_hold_holds(kind: str, table: Classes, data: st.DataObject) -> None:
    asked = data.draw({**KINDS, **WHOLE_KINDS}[kind])
    assert asked.requirement.closed_under_union

    def holds(counts: Counts) -> bool:
        return asked.requirement.verdict(one_class(counts, table.reference, table.numbers)).holds

    holding = [counts for counts in table.counts if holds(counts)]
    for first in holding:
        for second in holding:
            times = data.draw(st.integers(1, 3))
            assert holds([one + times * other for one, other in zip(first, second, strict=True)])


# ---- policies ----

PARAMETERS: dict[str, dict[str, Any]] = {
    "frequency": {"l": 3},
    "distinct": {"l": 3},
    "entropy": {"l": 3},
    "recursive": {"c": 2.5, "l": 3},
    "variance": {"v": 10.5},
    "t-closeness": {"t": 0.25, "distance": "ordered"},
    "alpha-k": {"alpha": 0.5},
    "beta-likeness": {"beta": 1.5, "enhanced": True},
    "delta-disclosure": {"delta": 0.75},
}
OPTIONAL = {"distance", "enhanced"}
ALL_PARAMETERS = {name: value for one in PARAMETERS.values() for name, value in one.items()}


def policy_of(kind: str, **parameters: Any) -> Policy:
    asked = {"attribute": "s", "kind": kind, **parameters}
    return Policy.from_dict(
        {
            "columns": {"a": {"role": "quasi-identifier"}, "s": {"role": "sensitive"}},
            "privacy": {"sensitive": [asked]},
        }
    )


@pytest.mark.parametrize("kind", PARAMETERS)
def test_a_kind_has_its_own_parameters_and_refuses_others(kind: str) -> None:
    (asked,) = policy_of(kind, **PARAMETERS[kind]).privacy.sensitive
    assert asked.parameters() == PARAMETERS[kind]
    for foreign in ALL_PARAMETERS.keys() - PARAMETERS[kind].keys():
        with pytest.raises(PolicyError, match=rf"\b{foreign}\b.* does not belong to the kind '{kind}'"):
            policy_of(kind, **PARAMETERS[kind], **{foreign: ALL_PARAMETERS[foreign]})


@pytest.mark.parametrize("kind", PARAMETERS)
def test_a_missing_parameter_is_named(kind: str) -> None:
    for name in PARAMETERS[kind]:
        others = {key: value for key, value in PARAMETERS[kind].items() if key != name}
        if name in OPTIONAL:
            assert policy_of(kind, **others).privacy.sensitive[0].parameters() == others
        else:
            with pytest.raises(PolicyError, match=rf"\b{name}\b is missing: the kind '{kind}' needs it"):
                policy_of(kind, **others)


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("entropy", "l", 0),
        ("entropy", "l", 0.5),
        ("recursive", "c", 0),
        ("recursive", "c", float("inf")),
        ("variance", "v", -1),
        ("t-closeness", "t", 1.1),
        ("t-closeness", "distance", "far"),
        ("alpha-k", "alpha", 0),
        ("beta-likeness", "beta", "much"),
        ("beta-likeness", "enhanced", 1),
        ("delta-disclosure", "delta", 0),
    ],
)
def test_a_parameter_out_of_bounds_is_refused(kind: str, name: str, value: object) -> None:
    with pytest.raises(PolicyError, match=rf"\b{name}\b"):
        policy_of(kind, **{**PARAMETERS[kind], name: value})


@pytest.mark.parametrize("kind", PARAMETERS)
def test_a_policy_comes_back_from_its_file(kind: str, tmp_path: Path) -> None:
    policy = policy_of(kind, **PARAMETERS[kind])
    policy.save(tmp_path / "policy.toml")
    loaded = Policy.load(tmp_path / "policy.toml")
    assert loaded == policy
    assert loaded.privacy.sensitive[0].parameters() == PARAMETERS[kind]


def written(kind: str, column: str = "s") -> str:
    values = {True: "true"}
    parameters = ", ".join(f"{name}={values.get(value, value)}" for name, value in PARAMETERS[kind].items())
    return f"{kind}({column}, {parameters})"


@pytest.mark.parametrize("kind", PARAMETERS)
def test_a_requirement_is_read_from_a_flag(kind: str) -> None:
    (asked,) = merge_flags(sensitive="s", require=written(kind)).privacy.sensitive
    assert (asked.attribute, asked.kind, asked.parameters()) == ("s", kind, PARAMETERS[kind])


def test_flags_may_have_spaces_and_columns_may_have_them_too() -> None:
    (asked,) = merge_flags(require="  recursive ( main illness (ICD) ,c = 2 ,  l=3 ) ").privacy.sensitive
    assert (asked.attribute, asked.parameters()) == ("main illness (ICD)", {"c": 2.0, "l": 3})


def test_flags_add_requirements_and_replace_those_of_the_same_kind_and_column() -> None:
    start = merge_flags(require=["entropy(s, l=2)", "entropy(t, l=2)"])
    merged = merge_flags(start, require=["entropy(s, l=4)", "variance(s, v=1)"])
    assert [(one.attribute, one.kind, one.parameters().get("l")) for one in merged.privacy.sensitive] == [
        ("t", "entropy", 2),
        ("s", "entropy", 4),
        ("s", "variance", None),
    ]


@pytest.mark.parametrize(
    "text", ["", "entropy", "entropy()", "entropy( )", "entropy(s,)", "entropy(s, )", "entropy(s, 3)", "entropy(s, l=)"]
)
def test_a_flag_that_is_not_understood_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(PolicyError, match=r"is not understood\. Write it as kind\(column, name=value\)"):
        merge_flags(require=text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("entropie(s, l=3)", "kind"),
        ("entropy(s, m=3)", "unknown key 'm'"),
        ("entropy(s, l=three)", "l"),
        ("entropy(s, l=2, l=3)", "'l' twice"),
        ("entropy(s, kind=distinct, l=3)", "'kind' twice"),
        ("entropy(s, attribute=t, l=3)", "'attribute' twice"),
        ("entropy(s, v=3)", "v"),
        ("entropy(s)", r"l is missing: the kind 'entropy' needs it, such as l = 3\."),
        ("recursive(s, l=3)", "c is missing: the kind 'recursive' needs it, such as c = "),
        (f"entropy(s, l={'9' * 5000})", "l"),
        (f"entropy(s, l={'[' * 5000})", "l"),
        ("beta-likeness(s, beta=1, enhanced=yes)", "enhanced"),
    ],
)
def test_a_flag_with_something_wrong_in_it_names_it(text: str, named: str) -> None:
    with pytest.raises(PolicyError, match=named):
        merge_flags(require=text)


# ---- from the table to the file ----

ASKED: dict[str, list[str]] = {
    "entropy": ["entropy(illness, l=3)"],
    "entropy, real": ["entropy(illness, l=1.75)"],
    "recursive": ["recursive(illness, c=1.5, l=2)"],
    "variance": ["variance(pay, v=40)"],
    "closeness, equal": ["t-closeness(illness, t=0.3)"],
    "closeness, ordered": ["t-closeness(pay, t=0.2, distance=ordered)"],
    "alpha-k": ["alpha-k(illness, alpha=0.4)"],
    "likeness": ["beta-likeness(illness, beta=1)"],
    "likeness, enhanced": ["beta-likeness(illness, beta=2, enhanced=true)"],
    "disclosure": ["delta-disclosure(illness, delta=1)"],
    "all at once": [
        "entropy(illness, l=2)",
        "t-closeness(pay, t=0.4, distance=ordered)",
        "frequency(illness, l=2)",
        "distinct(pay, l=3)",
    ],
}


def people(nulls: bool) -> pa.Table:
    generator = np.random.default_rng(5)
    illness = generator.choice(["flu", "cold", "gout", "ague"], 80, p=[0.3, 0.3, 0.2, 0.2]).tolist()
    pay = generator.integers(1, 30, 80).tolist()
    if nulls:
        illness = [None if place % 9 == 0 else value for place, value in enumerate(illness)]
        pay = [None if place % 7 == 0 else value for place, value in enumerate(pay)]
    return pa.table(
        {
            "age": generator.integers(18, 90, 80).tolist(),
            "city": generator.choice(["Pisa", "Roma", "Lucca"], 80).tolist(),
            "illness": pa.array(illness, pa.string()),
            "pay": pa.array(pay, pa.int64()),
        }
    )


def released_classes(table: pa.Table, column: str) -> tuple[list[list[int]], list[Fraction], list[int]]:
    """Counts by class, the reference and the numbers, by plain grouping."""
    rows = table.to_pylist()
    values = sorted({row[column] for row in rows} - {None})
    groups: dict[tuple[object, object], list[object]] = {}
    for row in rows:
        groups.setdefault((row["age"], row["city"]), []).append(row[column])
    counts = [[group.count(value) for value in values] for group in groups.values()]
    total = [sum(column_of) for column_of in zip(*counts, strict=True)]
    numbers = [value if isinstance(value, int) else 0 for value in values]
    return counts, [Fraction(one, sum(total)) for one in total], numbers


DEFINED: dict[str, tuple[str, Asked]] = {
    "entropy": ("illness", entropy(3)),
    "entropy, real": ("illness", entropy(Fraction(7, 4))),
    "recursive": ("illness", recursive(Fraction(3, 2), 2)),
    "variance": ("pay", variance(Fraction(40))),
    "closeness, equal": ("illness", equal_closeness(Fraction(3, 10))),
    "closeness, ordered": ("pay", ordered_closeness(Fraction(1, 5))),
    "alpha-k": ("illness", alpha(Fraction(2, 5))),
    "likeness": ("illness", basic_likeness(Fraction(1))),
    "likeness, enhanced": ("illness", enhanced_likeness(Fraction(2))),
    "disclosure": ("illness", disclosure(Fraction(1))),
    "all at once": ("illness", entropy(2)),
}


@pytest.mark.parametrize("nulls", [False, True], ids=["no nulls", "nulls"])
@pytest.mark.parametrize("k", [None, 7])
@pytest.mark.parametrize("kind", ASKED)
def test_a_release_meets_what_was_asked_and_its_file_says_so(
    kind: str, k: int | None, nulls: bool, tmp_path: Path
) -> None:
    table = people(nulls)
    release = sfumato.anonymize(
        table, quasi_identifiers=["age", "city"], sensitive=["illness", "pay"], require=ASKED[kind], k=k
    )
    assert release.audit.holds
    assert release.audit.classes > 1
    assert release.audit.smallest_class >= (k or 1)
    column, asked = DEFINED[kind]
    counts, reference, numbers = released_classes(release.data, column)
    assert sum(map(sum, counts)) == 80 - table.column(column).null_count
    assert all(asked.holds(one, reference, numbers) for one in counts)
    for name in ("release.parquet", "release.csv"):
        release.write(tmp_path / name)
        report = sfumato.audit(tmp_path / name)
        assert report.holds
        for ours, again in zip(release.audit.verdicts, report.verdicts, strict=False):
            assert (ours.requirement, ours.holds) == (again.requirement, again.holds)
            assert ours.value == pytest.approx(again.value, abs=1e-12)


@pytest.mark.parametrize("require", ["variance(pay, v=40)", "t-closeness(pay, t=0.2, distance=ordered)"])
def test_numbers_written_as_text_give_the_same_release(require: str, tmp_path: Path) -> None:
    table = people(nulls=True)
    pacsv.write_csv(table, tmp_path / "people.csv")
    pq.write_table(table, tmp_path / "people.parquet")
    lines = []
    for name in ("people.csv", "people.parquet"):
        release = sfumato.anonymize(
            tmp_path / name, quasi_identifiers=["age", "city"], sensitive=["illness", "pay"], require=require
        )
        release.write(tmp_path / f"release of {name}.csv")
        assert sfumato.audit(tmp_path / f"release of {name}.csv").holds
        assert release.audit.classes > 1
        text = (tmp_path / f"release of {name}.csv").read_text("utf-8").replace('"', "")
        lines.append(sorted(text.splitlines()))
    assert lines[0] == lines[1]


def test_texts_of_the_same_number_pass_the_audit_of_the_file(tmp_path: Path) -> None:
    values = ["1.0", "2", "1", "3", "01", "2.0"] * 8
    table = pa.table({"age": range(48), "pay": values[::-1]})
    release = sfumato.anonymize(
        table, quasi_identifiers=["age"], sensitive="pay", require="t-closeness(pay, t=0.1, distance=ordered)"
    )
    release.write(tmp_path / "release.csv")
    assert sfumato.audit(tmp_path / "release.csv").holds


@pytest.mark.parametrize(
    ("require", "advice"),
    [
        ("entropy(s, l=3)", "Choose an l of at most 2"),
        (f"entropy(s, l={10**30})", "Choose an l of at most 2"),
        ("recursive(s, c=0.5, l=2)", "Choose a larger c or a smaller l"),
        (f"recursive(s, c=2, l={10**30})", "Choose an l of at most 3"),
        ("variance(n, v=1e9)", "Choose a smaller v"),
        ("alpha-k(s, alpha=0.2)", "Choose an alpha of at least 0.5715"),
    ],
)
def test_what_no_release_can_meet_is_refused_without_a_value(require: str, advice: str) -> None:
    table = pa.table(
        {"a": range(7), "s": ["hidden1"] * 4 + ["hidden2"] * 2 + ["hidden3"], "n": [90001, 90007, 90013] * 2 + [90001]}
    )
    with pytest.raises(InfeasibleError) as caught:
        sfumato.anonymize(table, quasi_identifiers=["a"], sensitive=["s", "n"], require=require)
    assert advice in str(caught.value)
    assert "hidden" not in str(caught.value)
    assert "9000" not in str(caught.value)


def test_advice_on_the_l_of_entropy_can_be_followed() -> None:
    table = pa.table({"a": range(7), "s": list("aaaabbc")})  # 7 / (4^4 2^2)^(1/7) = 2.6005
    asks: dict[str, Any] = {"quasi_identifiers": ["a"], "sensitive": "s"}
    with pytest.raises(InfeasibleError, match=r"Choose an l of at most 2\.6\. "):
        sfumato.anonymize(table, require="entropy(s, l=2.601)", **asks)
    assert sfumato.anonymize(table, require="entropy(s, l=2.6)", **asks).audit.holds


def test_the_l_of_entropy_is_any_number_of_at_least_1_and_written_as_it_is() -> None:
    asked = [merge_flags(require=f"entropy(s, l={l})").privacy.sensitive[0] for l in ("1.5", "2.0", "3", "1")]
    assert [repr(one.parameters()["l"]) for one in asked] == ["1.5", "2", "3", "1"]
    for wrong in ("0.99", "0", "-2", "inf", "nan", "true"):
        with pytest.raises(PolicyError, match="must be a finite number of at least 1"):
            merge_flags(require=f"entropy(s, l={wrong})")


def test_advice_on_alpha_can_be_followed() -> None:
    table = pa.table({"a": range(7), "s": list("aaaabbc")})
    sfumato.anonymize(table, quasi_identifiers=["a"], sensitive="s", require="alpha-k(s, alpha=0.5715)")


@pytest.mark.parametrize(
    "values", [["hidden", "1", "2"], [True, False, True], [1.0, float("inf"), 2.0]], ids=["words", "truth", "infinite"]
)
def test_variance_of_what_is_not_a_number_is_refused(values: list[object]) -> None:
    table = pa.table({"a": range(3), "s": values})
    with pytest.raises(UsageError, match="needs numbers") as caught:
        sfumato.anonymize(table, quasi_identifiers=["a"], sensitive="s", require="variance(s, v=1)")
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("off", [-4e-16, 0.0, 4e-16])
def test_a_variance_that_only_the_whole_table_has_makes_one_class(off: float) -> None:
    numbers = [0.1, 0.7, 0.3, 0.1, 0.9, 0.3, 0.2, 0.1]
    bound = float(np.var(numbers)) * (1 + off)
    table = pa.table({"a": range(8), "s": numbers})
    release = sfumato.anonymize(table, quasi_identifiers=["a"], sensitive="s", require=f"variance(s, v={bound!r})")
    assert release.audit.classes == 1


@pytest.mark.parametrize(
    "require",
    [
        "delta-disclosure(s, delta=1)",
        "t-closeness(s, t=0.1)",
        "t-closeness(s, t=0.1, distance=ordered)",
        "alpha-k(s, alpha=0.1)",
        "beta-likeness(s, beta=0.1)",
        "entropy(s, l=1)",
        "recursive(s, c=1, l=1)",
        f"frequency(s, l={10**30})",
    ],
)
def test_a_column_without_any_value_has_nothing_to_protect(require: str) -> None:
    table = pa.table({"a": range(6), "s": pa.nulls(6, pa.string())})
    release = sfumato.anonymize(table, quasi_identifiers=["a"], sensitive="s", require=require, k=2)
    assert (release.audit.holds, release.audit.classes) == (True, 3)


@pytest.mark.parametrize("require", ["delta-disclosure(s, delta=1e-15)", "t-closeness(s, t=1e-15)"])
def test_the_whole_table_is_as_close_to_itself_as_can_be_asked(require: str) -> None:
    table = pa.table({"a": range(7), "s": list("aaabbca")})
    release = sfumato.anonymize(table, quasi_identifiers=["a"], sensitive="s", require=require)
    assert release.audit.classes == 1


def test_a_value_without_bound_is_null_in_json() -> None:
    table = pa.table({"age": ["*"] * 4, "illness": ["a", "a", "a", "a"], "ward": ["x", "x", "y", "y"]})
    report = sfumato.audit(
        table.set_column(0, "age", pa.array(["1", "1", "2", "2"])),
        quasi_identifiers=["age"],
        sensitive=["ward"],
        k=2,
        require="delta-disclosure(ward, delta=5)",
    )
    assert not report.holds
    assert report.as_dict()[1]["value"] is None
