"""Records left out: none unless asked for, as many as help and no more than allowed, and all of it told."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naming import hiding_methods

import sfumato
from sfumato.cli import main
from sfumato.methods import ClassBatch, Records
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.requirements import Requirements

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
by_method = pytest.mark.parametrize("method", hiding_methods())


def patients(illness: Sequence[Any], ages: Sequence[int] | None = None, **more: Sequence[Any]) -> pa.Table:
    size = len(illness)
    generator = np.random.default_rng(size)
    ages = generator.integers(20, 80, size).tolist() if ages is None else ages
    return pa.table({"age": ages, "illness": pa.array(illness), "row": range(size), **more})


def asks(require: str | Sequence[str] = (), **more: Any) -> dict[str, Any]:
    flags = {"quasi_identifiers": ["age"], "other": "keep", "accept_linkable": ["row"], "sensitive": "illness"}
    return {**flags, "require": require, **more}


def counts(release: sfumato.Release, column: str = "illness") -> Counter[Any]:
    return Counter(release.data[column].to_pylist())


# Flu has 7 of 10; with 3 of 6 it has a half.
SEVEN_OF_TEN = patients(["flu"] * 7 + ["cold"] * 2 + ["gout"])


# ---- a table that is not eligible ----


def test_without_leave_nothing_is_left_out_and_the_error_says_what_would_do() -> None:
    for more in ({}, {"max_suppressed": 0}, {"max_suppressed": 0.0}):
        with pytest.raises(sfumato.InfeasibleError) as caught:
            sfumato.anonymize(SEVEN_OF_TEN, **asks("frequency(illness, l=2)", **more))
        assert str(caught.value) == (
            "frequency l-diversity of 'illness' with l = 2 allows the most frequent value 50.0% of the records, but it "
            "has 70.0%. Choose an l of at most 1. Or leave out 4 of the 10 records (40.00%): "
            "max_suppressed_fraction = 0.4000 would be enough."
        )
        assert caught.value.exit_code == 3


@by_method
def test_the_surplus_of_a_value_that_is_too_frequent_is_left_out(method: str) -> None:
    release = sfumato.anonymize(SEVEN_OF_TEN, **asks("frequency(illness, l=2)", max_suppressed=0.4), method=method)
    assert counts(release) == {"flu": 3, "cold": 2, "gout": 1}
    assert oracle.reached_frequency(release.data.to_pylist(), ["age"], "illness") == 2
    summary = release.summary()
    assert (summary["records"], summary["released"], summary["suppressed"]) == (10, 6, 4)
    assert release.losses.suppressed == 4


@pytest.mark.parametrize("fraction", [0.05, 0.3, 0.3999])
def test_less_than_the_surplus_is_not_enough(fraction: float) -> None:
    with pytest.raises(sfumato.InfeasibleError, match=r"max_suppressed_fraction = 0\.4000 would be enough"):
        sfumato.anonymize(SEVEN_OF_TEN, **asks("frequency(illness, l=2)", max_suppressed=fraction))


@pytest.mark.parametrize("size, surplus", [(100, 7), (100, 29), (300, 57), (1000, 35), (10, 1)])
def test_a_share_is_as_many_records_as_it_says_in_decimals(size: int, surplus: int) -> None:
    # 0.07 * 100 is more than 7 in floating point, 0.29 * 100 is less than 29.
    rest = (size - surplus) // 2
    table = patients(["flu"] * (size - rest) + ["cold"] * rest)
    need = size - 2 * rest
    enough, scarce = need / size, (need - 1) / size
    assert sfumato.anonymize(table, **asks("frequency(illness, l=2)", max_suppressed=enough)).losses.suppressed == need
    with pytest.raises(sfumato.InfeasibleError, match=rf"Or leave out {need} of the {size:,} records"):
        sfumato.anonymize(table, **asks("frequency(illness, l=2)", max_suppressed=scarce))


@by_method
@pytest.mark.parametrize(
    "require, left",
    [
        ("alpha-k(illness, alpha=0.4)", {"flu": 2, "cold": 2, "gout": 1}),
        ("entropy(illness, l=3)", {"flu": 1, "cold": 1, "gout": 1}),
        ("recursive(illness, c=1, l=2)", {"flu": 2, "cold": 2, "gout": 1}),
    ],
)
def test_values_are_cut_down_to_the_largest_common_count_that_holds(
    method: str, require: str, left: dict[str, int]
) -> None:
    release = sfumato.anonymize(SEVEN_OF_TEN, **asks(require, max_suppressed=0.7), method=method)
    assert counts(release) == left
    with pytest.raises(sfumato.InfeasibleError) as caught:
        sfumato.anonymize(SEVEN_OF_TEN, **asks(require), method=method)
    assert f"leave out {10 - sum(left.values())} of the 10 records" in str(caught.value)


def test_of_a_value_that_is_too_frequent_those_go_that_stand_closest_together() -> None:
    # Four with flu stand side by side, where it is hardest to hide them; the others are spread.
    illness = ["flu", "cold", "flu", "gout", "flu", "flu", "flu", "flu", "cold"]
    release = sfumato.anonymize(
        patients(illness, list(range(9))), **asks("frequency(illness, l=2)", max_suppressed=0.34)
    )
    assert counts(release) == {"flu": 3, "cold": 2, "gout": 1}
    gone = set(range(9)) - set(release.data["row"].to_pylist())
    assert gone <= {4, 5, 6, 7}


@pytest.mark.parametrize(
    "require, more",
    [
        ("distinct(illness, l=4)", {}),
        ("entropy(illness, l=4)", {}),
        ("recursive(illness, c=3, l=4)", {}),
        ("frequency(illness, l=4)", {}),
        ((), {"k": 11}),
        ("frequency(illness, l=2)", {"k": 7}),
    ],
)
def test_where_leaving_out_does_not_help_it_is_not_proposed(require: str, more: dict[str, Any]) -> None:
    for fraction in (0.0, 0.99):
        with pytest.raises(sfumato.InfeasibleError) as caught:
            sfumato.anonymize(SEVEN_OF_TEN, **asks(require, max_suppressed=fraction, **more))
        assert "leave out" not in str(caught.value)


@pytest.mark.parametrize("size", [10_000, 30_000, 100_001])
def test_what_would_do_is_a_share_that_a_policy_takes_however_large_the_table(size: int) -> None:
    table = patients(["flu"] * (size - 1) + ["cold"], [20] * size)
    with pytest.raises(sfumato.InfeasibleError) as caught:
        sfumato.anonymize(table, **asks("frequency(illness, l=2)"))
    proposed = re.search(r"max_suppressed_fraction = ([\d.]+) would be enough", str(caught.value))
    assert proposed is not None
    release = sfumato.anonymize(table, **asks("frequency(illness, l=2)", max_suppressed=float(proposed[1])))
    assert counts(release) == {"flu": 1, "cold": 1}


@by_method
def test_all_of_a_persons_records_with_the_value_go(method: str) -> None:
    # By persons flu has a, b, c, d of five; two of them must go, with both of their records.
    table = patients(["flu"] * 8 + ["cold"] * 2, pid=list("aabbccddef"))
    release = sfumato.anonymize(
        table, **asks("frequency(illness, l=2)", max_suppressed=0.4, person="pid"), method=method
    )
    assert counts(release) == {"flu": 4, "cold": 2}
    persons = Counter("aabbccdd"[row] for row in release.data["row"].to_pylist() if row < 8)
    assert sorted(persons.values()) == [2, 2]


@by_method
def test_jointly_each_part_is_relieved_and_what_cannot_be_helped_goes(method: str) -> None:
    # The north needs two fewer with flu; in the south there is nothing but gout.
    ward = ["north"] * 6 + ["south"] * 2
    table = patients(["flu"] * 4 + ["cold"] * 2 + ["gout"] * 2, ward=ward)
    flags = asks("frequency(illness, l=2)", joint=True) | {"sensitive": ["illness", "ward"]}
    with pytest.raises(sfumato.InfeasibleError, match=r"leave out 4 of the 8 records \(50\.00%\)"):
        sfumato.anonymize(table, **flags, method=method)
    release = sfumato.anonymize(table, **flags, max_suppressed=0.5, method=method)
    assert counts(release) == {"flu": 2, "cold": 2}
    assert counts(release, "ward") == {"north": 4}


# ---- outliers ----

FAR = patients(["flu", "cold"] * 5 + ["flu"], [20, 21, 22, 40, 41, 42, 60, 61, 62, 63, 1060])


@pytest.mark.parametrize("method", ["hilbert", "idistance"])
def test_an_outlier_goes_where_that_lowers_the_loss(method: str) -> None:
    whole = sfumato.anonymize(FAR, **asks(k=3), method=method)
    assert (whole.losses.suppressed, whole.audit.records) == (0, 11)
    release = sfumato.anonymize(FAR, **asks(k=3, max_suppressed=0.1), method=method)
    rows = release.data.to_pylist()
    assert sorted(row["row"] for row in rows) == list(range(10))
    assert {row["age"] for row in rows} == {"[20..22]", "[40..42]", "[60..63]"}
    expected = oracle.losses(11, rows, {"age": oracle.NumberColumn(FAR["age"].to_pylist())}, 3)
    # Six records of 2/1040, four of 3/1040, and one that counts 1; two classes of three, one of four, and one record
    # that could be any of the eleven.
    assert expected["gcp"] == (Fraction(6 * 2 + 4 * 3, 1040) + 1) / 11
    assert expected["c_dm"] == 2 * 9 + 16 + 11
    for name, value in expected.items():
        assert release.losses.values[name] == pytest.approx(float(value)), name
    assert release.losses.gcp < whole.losses.gcp


def test_an_outlier_goes_also_from_a_class_of_two() -> None:
    table = patients(["flu", "cold"] * 5 + ["flu"], [20, 21, 30, 31, 40, 41, 50, 51, 60, 61, 1060])
    release = sfumato.anonymize(table, **asks(k=2, max_suppressed=0.1))
    assert sorted(release.data["row"].to_pylist()) == list(range(10))


@by_method
def test_nothing_goes_that_does_not_lower_the_loss(method: str) -> None:
    table = patients(["flu", "cold"] * 10, [30] * 10 + [70] * 10)
    release = sfumato.anonymize(table, **asks(k=5, max_suppressed=0.9), method=method)
    assert (release.audit.records, release.losses.gcp) == (20, 0)


THREE_FAR = patients(["flu", "cold", "gout"] * 15, [*range(20, 62), 9000, 14_000, 20_000])


@by_method
@pytest.mark.parametrize("allowed", [1, 2, 5])
def test_no_more_go_than_allowed_and_never_for_more_loss(method: str, allowed: int) -> None:
    release = sfumato.anonymize(THREE_FAR, **asks(k=5, max_suppressed=allowed / 45), method=method)
    assert release.losses.suppressed <= allowed
    assert release.losses.gcp <= sfumato.anonymize(THREE_FAR, **asks(k=5), method=method).losses.gcp
    assert oracle.smallest_class(release.data.to_pylist(), ["age"]) >= 5


def test_one_outlier_after_the_other_goes_and_then_no_more() -> None:
    expected = {0: 45, 1: 44, 2: 43, 3: 42, 20: 42}
    for allowed, stay in expected.items():
        release = sfumato.anonymize(THREE_FAR, **asks(k=5, max_suppressed=allowed / 45))
        assert release.audit.records == stay
    assert set(release.data["row"].to_pylist()) == set(range(42))


@by_method
def test_a_record_that_a_requirement_needs_stays(method: str) -> None:
    # The outlier is the only one with gout, and without it no class would have three values.
    table = patients(["flu", "cold"] * 5 + ["gout"], FAR["age"].to_pylist())
    release = sfumato.anonymize(table, **asks("distinct(illness, l=3)", max_suppressed=0.1), method=method)
    assert counts(release)["gout"] == 1
    assert oracle.fewest_values(release.data.to_pylist(), ["age"], "illness") == 3


@given(data=st.data())
def test_the_released_records_are_the_reference(data: st.DataObject) -> None:
    size = data.draw(st.integers(4, 30))
    illness = data.draw(st.lists(st.sampled_from(["flu", "cold", "gout"]), min_size=size, max_size=size))
    ages = data.draw(st.lists(st.sampled_from([*range(12), 400, 900]), min_size=size, max_size=size))
    fraction = data.draw(st.sampled_from([0.1, 0.3, 0.6]))
    require = ["t-closeness(illness, t=0.4)", "beta-likeness(illness, beta=1)"]
    release = sfumato.anonymize(patients(illness, ages), **asks(require, max_suppressed=fraction))
    rows = release.data.to_pylist()
    everything = oracle.Counting().counts(rows, "illness")
    parts = [oracle.Counting().counts(part, "illness") for part in oracle.classes(rows, ["age"]).values()]
    distance = max(oracle.Asked("t-closeness", "illness", {}).distance(part, everything, "equal") for part in parts)
    gain = max(part.shares[value] / everything.shares[value] - 1 for part in parts for value in part.of)
    assert distance <= Fraction(2, 5)
    assert gain <= 1
    assert [one.value for one in release.audit.verdicts[1:]] == [
        pytest.approx(float(distance)),
        pytest.approx(float(gain)),
    ]


@pytest.mark.parametrize("outlier", [-9, 1, 9], ids=["before", "between", "after"])
def test_a_value_that_was_left_out_altogether_is_not_among_the_ordered_ones(outlier: int) -> None:
    # The outlier alone has its value. Of what stays, each half of the records is half of the two values away.
    table = patients([0, 0, 0, 2, 2, 2, outlier], [20, 21, 22, 60, 61, 62, 1000])
    require = "t-closeness(illness, t={}, distance=ordered)"
    apart = sfumato.anonymize(table, **asks(require.format(0.5), k=3, max_suppressed=0.2))
    assert (apart.losses.suppressed, apart.audit.classes, apart.audit.verdicts[1].value) == (1, 2, 0.5)
    together = sfumato.anonymize(table, **asks(require.format(0.3), k=3, max_suppressed=0.2))
    assert together.audit.classes == 1


@by_method
def test_kept_order_is_that_of_the_records_that_stay(method: str) -> None:
    release = sfumato.anonymize(FAR, **asks(k=3, max_suppressed=0.1, keep_order=True), method=method)
    rows = release.data["row"].to_pylist()
    assert rows == sorted(rows)
    assert [FAR["illness"][row].as_py() for row in rows] == release.data["illness"].to_pylist()
    column = oracle.NumberColumn(FAR["age"].to_pylist())
    ages = release.data["age"].to_pylist()
    assert all(column.covers(label, FAR["age"][row].as_py()) for label, row in zip(ages, rows, strict=True))
    canonical = sfumato.anonymize(FAR, **asks(k=3, max_suppressed=0.1), method=method).data.to_pylist()
    assert canonical == oracle.canonical_order(release.data.to_pylist(), ["age"], ["illness", "row"])


# ---- what is told ----


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_files_tell_how_many_were_left_out_and_nothing_of_them(
    suffix: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = patients(["flu", "cold"] * 5 + ["leprosy"], FAR["age"].to_pylist())
    release = sfumato.anonymize(table, **asks(k=3, max_suppressed=0.1))
    target = release.write(tmp_path / f"release.{suffix}")
    certificate = json.loads((tmp_path / f"release.{suffix}.sfumato.json").read_text())
    assert (certificate["records"], certificate["released"], certificate["suppressed"]) == (11, 10, 1)
    assert certificate["policy"]["release"]["max_suppressed_fraction"] == 0.1
    for path in tmp_path.iterdir():
        assert b"leprosy" not in path.read_bytes()
        assert b"1060" not in path.read_bytes()
    assert sfumato.audit(target, original=table).holds
    measured = sfumato.measure(table, target)
    assert measured.suppressed == 1
    assert measured.values == pytest.approx(release.losses.values)
    pq.write_table(table, tmp_path / "patients.parquet")
    assert main(["measure", str(tmp_path / "patients.parquet"), str(target), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["records"], found["released"], found["suppressed"]) == (11, 10, 1)
    assert found["c_dm"] == 2 * 9 + 16 + 11


def test_the_command_line_leaves_out_what_it_may(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pq.write_table(SEVEN_OF_TEN.drop(["row"]), tmp_path / "patients.parquet")
    flags = ["--quasi-identifiers", "age", "--sensitive", "illness", "-l", "2"]
    command = ["anonymize", str(tmp_path / "patients.parquet"), "-o", str(tmp_path / "release.csv"), *flags]
    assert main(command) == 3
    assert "max_suppressed_fraction = 0.4000 would be enough" in " ".join(capfd.readouterr().err.split())
    assert main([*command, "--max-suppressed", "0.3", "--dry-run"]) == 3
    assert main([*command, "--max-suppressed", "0.4", "--dry-run"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["patients.parquet"]
    capfd.readouterr()
    assert main([*command, "--max-suppressed", "0.4", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["records"], found["released"], found["suppressed"]) == (10, 6, 4)
    assert len((tmp_path / "release.csv").read_text().splitlines()) == 7
    assert main([*command, "--max-suppressed", "0.4"]) == 0
    output = capfd.readouterr()
    assert "6 records (4 left out) in" in output.out + output.err
    assert main([*command, "--max-suppressed", "1"]) == 2


# ---- the policy ----


def test_a_policy_with_a_share_comes_back_from_its_file(tmp_path: Path) -> None:
    policy = merge_flags(None, **asks("frequency(illness, l=2)", max_suppressed=0.4))
    policy.save(tmp_path / "policy.toml")
    assert "max_suppressed_fraction = 0.4" in (tmp_path / "policy.toml").read_text()
    again = Policy.load(tmp_path / "policy.toml")
    assert again == policy
    assert again.release.max_suppressed_fraction == 0.4
    assert sfumato.anonymize(SEVEN_OF_TEN, again).losses.suppressed == 4
    with pytest.raises(sfumato.InfeasibleError):
        sfumato.anonymize(SEVEN_OF_TEN, again, max_suppressed=0.2)


@pytest.mark.parametrize("value", ["1", "1.5", "-0.1", "true", '"some"', "nan", "inf"])
def test_a_share_is_at_least_0_and_below_1(value: str, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(f"[release]\nmax_suppressed_fraction = {value}\n")
    with pytest.raises(sfumato.PolicyError, match=r"line 2.*must be a number of at least 0 and below 1") as caught:
        Policy.load(tmp_path / "policy.toml")
    assert caught.value.exit_code == 2


# ---- a method that loses records ----


class LosesRecords:
    """A method that makes one class of all but the first records."""

    name = "hilbert"
    paper = summary = use = ""
    separates = False

    def __init__(self, lost: int) -> None:
        self.lost = lost

    def check(self, requirements: Requirements) -> None:
        return

    def meets(self, requirements: Requirements) -> bool:
        return True

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        rows, codes = records.rows[self.lost :], records.codes
        low, high = codes.min(axis=0, keepdims=True), codes.max(axis=0, keepdims=True)
        yield ClassBatch(rows, np.array([0, len(rows)]), low, high)


def test_a_release_that_lost_more_records_than_allowed_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    table = patients(["flu", "cold"] * 10, [30] * 20)
    monkeypatch.setattr("sfumato.pipeline.prepare.method_named", lambda name: LosesRecords(3))
    with pytest.raises(sfumato.AuditError, match="the release has 17 records and the table 20, which leaves out more"):
        sfumato.anonymize(table, **asks(k=2))
    with pytest.raises(sfumato.AuditError, match="the release has 17 records and the table 20, which leaves out more"):
        sfumato.anonymize(table, **asks(k=2, max_suppressed=0.1))
    monkeypatch.setattr("sfumato.pipeline.prepare.method_named", lambda name: LosesRecords(2))
    assert sfumato.anonymize(table, **asks(k=2, max_suppressed=0.1)).losses.suppressed == 2
