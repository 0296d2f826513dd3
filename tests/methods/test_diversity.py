"""l-diversity from end to end: what is released, what is refused, what the audit finds by itself."""

from __future__ import annotations

import datetime
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from naming import hiding_methods

import sfumato
from sfumato.api import anonymize_to_file
from sfumato.cli import main
from sfumato.methods import ClassBatch, Records, methods
from sfumato.methods.line.optimal_cut import OptimalOneDimensional
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.requirements import Requirements

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
# Methods that search for classes under sensitive requirements; the others see to k, and their classes are joined.
SEARCHING = {name for name, one in methods().items() if isinstance(one, OptimalOneDimensional)}
by_method = pytest.mark.parametrize("method", hiding_methods())
KEY = ["age", "city"]


def people(sensitive: Sequence[Any], kind: pa.DataType | None = None, **more: Sequence[Any]) -> pa.Table:
    """As many records as there are sensitive values, with quasi-identifiers that have nothing to do with them."""
    choose = random.Random(len(sensitive))
    return pa.table(
        {
            "age": [choose.randrange(90) for _ in sensitive],
            "city": [choose.choice(["Lucca", "Pisa", "Roma", None]) for _ in sensitive],
            "illness": pa.array(sensitive, kind),
            **more,
        }
    )


def shuffled(counts: dict[Any, int], seed: int = 1) -> list[Any]:
    values = [value for value, count in counts.items() for _ in range(count)]
    random.Random(seed).shuffle(values)
    return values


def asking(*requirements: tuple[str, str, int], k: int | None = None) -> Policy:
    """A policy with requirements (kind, column, l)."""
    return Policy.from_dict(
        {
            "columns": {name: {"role": "quasi-identifier"} for name in KEY}
            | {name: {"role": "sensitive"} for _, name, _ in requirements},
            "privacy": ({} if k is None else {"k": k})
            | {"sensitive": [{"attribute": name, "kind": kind, "l": least} for kind, name, least in requirements]},
        }
    )


def release_of(table: pa.Table, policy: Policy, **settings: Any) -> tuple[sfumato.Release, list[dict[str, Any]]]:
    release = sfumato.anonymize(table, policy, **settings)
    return release, release.data.to_pylist()


# ---- what is released ----


@by_method
@pytest.mark.parametrize("l", [1, 2, 3, 5])
@pytest.mark.parametrize("k", [None, 12])
def test_frequency_diversity_holds_by_plain_counting(method: str, l: int, k: int | None) -> None:
    table = people(shuffled({"flu": 60, "cold": 60, "gout": 60, "acne": 60, "rash": 60, "cough": 20}))
    release = sfumato.anonymize(table, quasi_identifiers=KEY, sensitive="illness", l=l, k=k, method=method)
    rows = release.data.to_pylist()
    reached = oracle.reached_frequency(rows, KEY, "illness")
    assert len(rows) == table.num_rows
    assert reached is not None
    assert reached >= l
    assert oracle.smallest_class(rows, KEY) == release.audit.smallest_class >= (k or l)
    assert [(one.requirement, one.holds, one.value) for one in release.audit.verdicts] == [
        (f"k-anonymity, k = {k or 1}", True, release.audit.smallest_class),
        (f"frequency l-diversity of 'illness', l = {l}", True, float(reached)),
    ]
    assert release.audit.classes > (5 if method in SEARCHING else 0)


@by_method
@pytest.mark.parametrize("l, k", [(1, None), (3, None), (6, None), (3, 10)])
def test_distinct_diversity_holds_by_plain_counting(method: str, l: int, k: int | None) -> None:
    table = people(shuffled({"flu": 100, "cold": 20, "gout": 20, "acne": 10, "rash": 10, "cough": 5}))
    release, rows = release_of(table, asking(("distinct", "illness", l), k=k), method=method)
    assert oracle.fewest_values(rows, KEY, "illness") >= l
    assert oracle.smallest_class(rows, KEY) >= (k or l)
    assert len(rows) == table.num_rows
    assert release.audit.classes >= (2 if method in SEARCHING else 1)


@by_method
def test_frequency_of_one_column_and_distinct_of_another_hold_together(method: str) -> None:
    table = people(shuffled({"flu": 40, "cold": 40, "gout": 40}), salary=shuffled({1: 90, 2: 20, 3: 10}, seed=2))
    asked = asking(("frequency", "illness", 3), ("distinct", "salary", 3), ("distinct", "illness", 2), k=4)
    release, rows = release_of(table, asked, method=method)
    reached = oracle.reached_frequency(rows, KEY, "illness")
    assert reached is not None
    assert reached >= 3
    assert oracle.fewest_values(rows, KEY, "salary") == 3
    assert oracle.fewest_values(rows, KEY, "illness") == 3
    assert oracle.smallest_class(rows, KEY) >= 4
    assert release.audit.classes >= (2 if method in SEARCHING else 1)


@by_method
def test_of_two_frequencies_of_one_column_the_stricter_holds(method: str) -> None:
    table = people(shuffled({"flu": 20, "cold": 20, "gout": 20}))
    _, rows = release_of(table, asking(("frequency", "illness", 3), ("frequency", "illness", 2)), method=method)
    assert oracle.reached_frequency(rows, KEY, "illness") == 3


@by_method
def test_barely_eligible_table_is_released(method: str) -> None:
    for seed in range(8):
        table = people(shuffled({"flu": 10, "cold": 7, "gout": 3, "acne": 10}, seed))
        release, rows = release_of(table, asking(("frequency", "illness", 3)), method=method)
        assert oracle.reached_frequency(rows, KEY, "illness") == 3
        assert len(rows) == 30
        assert release.audit.classes > (1 if method in SEARCHING else 0)


@by_method
def test_l_of_one_keeps_every_record_apart(method: str) -> None:
    table = people(["flu"] * 30)
    _, rows = release_of(table, asking(("frequency", "illness", 1)), method=method, keep_order=True)
    assert [row["age"] for row in rows] == [str(age) for age in table["age"].to_pylist()]
    assert [row["city"] for row in rows] == table["city"].to_pylist()


@by_method
def test_classes_with_equal_boxes_are_one_class_and_still_diverse(method: str) -> None:
    table = pa.table({"age": [30] * 40, "city": ["Roma"] * 40, "illness": shuffled({"flu": 20, "cold": 20})})
    release, rows = release_of(table, asking(("frequency", "illness", 2), k=2), method=method)
    assert (release.audit.classes, release.audit.smallest_class, release.losses.gcp) == (1, 40, 0)
    assert oracle.reached_frequency(rows, KEY, "illness") == 2


@by_method
def test_kept_order_shows_each_record_with_its_own_values(method: str) -> None:
    table = people(shuffled({"flu": 20, "cold": 20, "gout": 20}))
    _, rows = release_of(table, asking(("frequency", "illness", 2)), method=method, keep_order=True)
    ages = oracle.NumberColumn(table["age"].to_pylist())
    cities = oracle.CategoryColumn(oracle.flat_rows(table["city"].to_pylist()))
    for before, after in zip(table.to_pylist(), rows, strict=True):
        assert after["illness"] == before["illness"]
        assert ages.covers(after["age"], before["age"])
        assert cities.covers(after["city"], before["city"])


@by_method
def test_bounds_are_part_of_a_diverse_class(method: str) -> None:
    table = people(shuffled({"flu": 20, "cold": 20, "gout": 20}))
    _, rows = release_of(table, asking(("frequency", "illness", 2)), method=method, form="bounds")
    reached = oracle.reached_frequency(rows, ["age", "age_min", "age_max", "city"], "illness")
    assert reached is not None
    assert reached >= 2


@by_method
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_diverse_release_has_the_same_bytes_every_time(method: str, suffix: str, tmp_path: Path) -> None:
    table = people(shuffled({"flu": 40, "cold": 40, "gout": 40, None: 5}))
    contents = []
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        target = tmp_path / run / f"release.{suffix}"
        sfumato.anonymize(table, asking(("frequency", "illness", 3), k=5), method=method).write(target)
        contents.append([path.read_bytes() for path in sorted(target.parent.iterdir())])
    assert contents[0] == contents[1]
    assert len(contents[0]) == 2


# ---- null ----


@by_method
@pytest.mark.parametrize("nulls", [1, 5, 150])
def test_null_is_a_record_but_never_a_value(method: str, nulls: int) -> None:
    table = people(shuffled({"flu": 20, "cold": 20, "gout": 20, None: nulls}))
    asked = asking(("frequency", "illness", 3), ("distinct", "illness", 2), k=4)
    _, rows = release_of(table, asked, method=method)
    assert len(rows) == 60 + nulls
    assert oracle.reached_frequency(rows, KEY, "illness") == 3
    assert oracle.fewest_values(rows, KEY, "illness") == 3
    assert sum(row["illness"] is None for row in rows) == nulls


@by_method
@pytest.mark.parametrize("value, kind", [(None, pa.string()), ("", pa.string()), (float("nan"), pa.float64())])
def test_column_without_any_value_is_fine_for_frequency_and_fails_distinct(
    method: str, value: Any, kind: pa.DataType
) -> None:
    table = people([value] * 12, kind)
    release, rows = release_of(table, asking(("frequency", "illness", 4), k=3), method=method)
    assert len(rows) == 12
    assert release.audit.smallest_class >= 3
    with pytest.raises(sfumato.InfeasibleError, match="needs 1 different values, but the table has 0"):
        sfumato.anonymize(table, asking(("distinct", "illness", 1)), method=method)


def test_empty_text_protects_nobody_unless_it_is_not_a_null() -> None:
    table = people(["", "flu"] * 6)
    with pytest.raises(sfumato.InfeasibleError):
        sfumato.anonymize(table, asking(("frequency", "illness", 2)))
    release, rows = release_of(table, asking(("frequency", "illness", 2)), input={"nulls": ["NA"]})
    assert release.audit.holds
    assert oracle.reached_frequency(rows, KEY, "illness", nulls=["NA"]) == 2


@by_method
@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "xlsx"])
def test_null_tokens_of_a_csv_file_are_nulls_in_the_release_and_in_its_audit(
    method: str, suffix: str, tmp_path: Path
) -> None:
    table = people(shuffled({"flu": 20, "cold": 20, "NA": 30, "?": 9, "": 4}))
    original = tmp_path / "people.csv"
    pandas.DataFrame(table.to_pylist()).astype({"age": str}).to_csv(original, index=False)
    asked = merge_flags(
        asking(("frequency", "illness", 2), ("distinct", "illness", 2)), method=method, input={"nulls": ["", "NA", "?"]}
    )
    target = tmp_path / f"release.{suffix}"
    anonymize_to_file(original, asked, target, Progress())
    report = sfumato.audit(target)
    assert report.holds
    assert [one.value for one in report.verdicts[1:3]] == [2.0, 2]
    assert report.records == 83
    if suffix == "parquet":
        rows = pq.read_table(target).to_pylist()
        assert oracle.reached_frequency(rows, KEY, "illness", nulls=["", "NA", "?"]) == 2
        assert oracle.fewest_values(rows, KEY, "illness", nulls=["", "NA", "?"]) == 2
    # Were they values, the most frequent one would be seen to have too large a share.
    if method in SEARCHING:
        assert not sfumato.audit(target, input={"nulls": [""]}, l=2).holds


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "xlsx"])
def test_nan_and_the_two_zeros_are_counted_alike_in_memory_and_in_files(suffix: str, tmp_path: Path) -> None:
    nan = float("nan")
    table = people([1.5, 2.5, nan, nan, nan, None, 0.0, -0.0, 3.5, 4.5, nan, 0.0, 5.5, 6.5])
    release, rows = release_of(table, asking(("frequency", "illness", 3)))
    reached = oracle.reached_frequency(rows, KEY, "illness")
    assert reached is not None
    assert reached >= 3
    assert sfumato.audit(release.write(tmp_path / f"release.{suffix}")).holds


# ---- kinds of sensitive columns ----


KINDS: dict[str, tuple[list[Any], pa.DataType]] = {
    "int": ([1, 2, 3], pa.int32()),
    "large int": ([2**63, 2**63 + 1, 0], pa.uint64()),
    "float": ([0.5, -2.5, 1e300], pa.float64()),
    "half": ([np.float16(0.5), np.float16(1.5), np.float16(2)], pa.float16()),
    "text": (["flu", "cold", "gout"], pa.string()),
    "large text": (["flu", "cold", "gout"], pa.large_string()),
    "bool": ([True, False], pa.bool_()),
    "date": ([datetime.date(2020, 1, day) for day in (1, 2, 3)], pa.date32()),
    "moment": ([datetime.datetime(2020, 1, 1, hour) for hour in (1, 2, 3)], pa.timestamp("us")),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("requirement", ["frequency", "distinct"])
def test_sensitive_columns_of_every_type_are_counted(kind: str, requirement: str, tmp_path: Path) -> None:
    values, type_ = KINDS[kind]
    table = people([*values * 12, None, None], type_)
    l = len(values)
    release, rows = release_of(table, asking((requirement, "illness", l)))
    if requirement == "frequency":  # which a class without any value meets
        assert oracle.reached_frequency(rows, KEY, "illness") == l
    else:
        assert oracle.fewest_values(rows, KEY, "illness") == l
    assert Counter(row["illness"] for row in rows) == Counter(table["illness"].to_pylist())
    for suffix in ("csv", "parquet"):
        assert sfumato.audit(release.write(tmp_path / f"release.{suffix}")).holds


def test_categories_of_pandas_are_counted_by_their_values_and_stay_categories() -> None:
    values = pandas.Categorical(["flu", "cold", "gout", None] * 10, categories=["gout", "none", "flu", "cold", "x"])
    frame = pandas.DataFrame({"age": range(40), "city": ["Roma", "Pisa"] * 20, "illness": values})
    released = sfumato.anonymize(frame, asking(("frequency", "illness", 3))).data
    assert isinstance(released["illness"].dtype, pandas.CategoricalDtype)
    rows = [
        {name: None if pandas.isna(value) else value for name, value in row.items()}
        for row in released.to_dict("records")
    ]
    assert oracle.reached_frequency(rows, KEY, "illness") == 3
    with pytest.raises(sfumato.InfeasibleError, match="table has 3"):
        sfumato.anonymize(frame, asking(("distinct", "illness", 4)))


# ---- what is refused ----


SECRET = "syphilis"


def infeasible(table: pa.Table, policy: Policy, method: str = "auto") -> str:
    with pytest.raises(sfumato.InfeasibleError) as caught:
        sfumato.anonymize(table, policy, method=method)
    assert caught.value.exit_code == 3
    assert SECRET not in str(caught.value)
    return str(caught.value)


@by_method
@pytest.mark.parametrize(
    "counts, l, allowed, share",
    [
        ({SECRET: 11, "cold": 9, "gout": 10}, 3, "33.3%", "36.7%"),
        ({SECRET: 16, "cold": 7, "gout": 7}, 2, "50.0%", "53.3%"),
        ({SECRET: 30}, 2, "50.0%", "100.0%"),
        ({SECRET: 10, "cold": 10, "gout": 10}, 4, "25.0%", "33.3%"),
        ({SECRET: 6, "cold": 2, "gout": 2, None: 20}, 2, "50.0%", "60.0%"),
    ],
)
def test_table_that_is_not_eligible_is_refused_with_an_l_that_works(
    method: str,
    counts: dict[Any, int],
    l: int,
    allowed: str,
    share: str,
) -> None:
    table = people(shuffled(counts))
    message = infeasible(table, asking(("frequency", "illness", l)), method)
    assert "'illness'" in message
    assert allowed in message
    assert share in message
    proposed = re.search(r"l of at most ([\d,]+)", message)
    assert proposed is not None
    smaller = int(proposed[1])
    assert 1 <= smaller < l
    _, rows = release_of(table, asking(("frequency", "illness", smaller)), method=method)
    reached = oracle.reached_frequency(rows, KEY, "illness")
    assert reached is not None
    assert reached >= smaller
    infeasible(table, asking(("frequency", "illness", smaller + 1)), method)


@by_method
def test_more_different_values_than_the_table_has_are_refused(method: str) -> None:
    table = people(shuffled({SECRET: 10, "cold": 10, None: 5, "": 5}))
    message = infeasible(table, asking(("distinct", "illness", 3)), method)
    assert "'illness' with l = 3 needs 3 different values, but the table has 2" in message
    _, rows = release_of(table, asking(("distinct", "illness", 2)), method=method)
    assert oracle.fewest_values(rows, KEY, "illness") == 2


def test_k_above_the_number_of_records_is_refused_beside_l() -> None:
    assert "k = 7 needs" in infeasible(people(["flu", "cold"] * 3), asking(("frequency", "illness", 2), k=7))


@by_method
def test_frequency_of_two_columns_holds_in_both(method: str) -> None:
    table = people(shuffled({"flu": 10, "cold": 10}), salary=shuffled({1: 10, 2: 10}, seed=2))
    release = sfumato.anonymize(table, asking(("frequency", "illness", 2), ("frequency", "salary", 2)), method=method)
    rows = release.data.to_pylist()
    for column in ("illness", "salary"):
        reached = oracle.reached_frequency(rows, KEY, column)
        assert reached is not None
        assert reached >= 2


def test_command_line_has_the_exit_codes_and_keeps_values_to_itself(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(people(shuffled({SECRET: 11, "cold": 9, "gout": 10})), tmp_path / "people.parquet")

    def run(policy: Policy, *, target: str = "release.csv") -> int:
        policy.save(tmp_path / "policy.toml")
        paths = [str(tmp_path / name) for name in ("people.parquet", target, "policy.toml")]
        return main(["anonymize", paths[0], "-o", paths[1], "--policy", paths[2]])

    assert run(asking(("frequency", "illness", 3))) == 3
    assert run(asking(("distinct", "illness", 4))) == 3
    assert {path.name for path in tmp_path.iterdir()} == {"people.parquet", "policy.toml"}
    assert run(asking(("frequency", "illness", 2))) == 0
    output = capfd.readouterr()
    assert SECRET not in output.out + output.err
    target = tmp_path / "release.csv"
    assert main(["audit", str(target), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)["audit"]
    assert found[1]["requirement"] == "frequency l-diversity of 'illness', l = 2"
    assert found[1]["holds"]
    assert found[1]["value"] >= 2


def test_audit_by_the_certificate_checks_l_in_a_changed_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table = people(shuffled({SECRET: 20, "cold": 20}))
    target = sfumato.anonymize(table, asking(("frequency", "illness", 2))).write(tmp_path / "release.csv")
    target.write_text(target.read_text().replace("cold", SECRET, 1))
    verdicts = {one.requirement: one.holds for one in sfumato.audit(target).verdicts}
    assert not verdicts["frequency l-diversity of 'illness', l = 2"]
    assert verdicts["k-anonymity, k = 1"]
    assert main(["audit", str(target)]) == 1
    output = capfd.readouterr()
    assert SECRET not in output.out + output.err


# ---- a method that breaks l ----


class Careless:
    """A method that cuts the line into classes of two, whatever they hold."""

    name = "hilbert"
    paper = ""
    summary = ""

    def check(self, requirements: Requirements) -> None:
        return

    separates = False
    use = "never"

    def meets(self, requirements: Requirements) -> bool:
        return True

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        at = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
        codes = records.codes[at].reshape(records.count // 2, 2, -1)
        yield ClassBatch(records.rows, np.arange(0, records.count + 1, 2), codes.min(axis=1), codes.max(axis=1))


@pytest.mark.parametrize("requirement", ["frequency", "distinct"])
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_release_of_a_method_that_breaks_l_is_withheld(
    requirement: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.engines.memory.classes.method_named", lambda name: Careless())
    table = pa.table({"age": range(12), "city": ["Roma"] * 12, "illness": [SECRET, SECRET, "cold", "cold"] * 3})
    policy, target = asking((requirement, "illness", 2)), tmp_path / f"release.{suffix}"
    with pytest.raises(AssertionError, match="does not meet the requirements"):
        anonymize_to_file(table, policy, target, Progress())
    # The audit finds it by itself too.
    monkeypatch.setattr(Requirements, "holds", lambda self, classes: np.ones(len(classes.sizes), np.bool_))
    words = f"{requirement} l-diversity of 'illness', l = 2"
    with pytest.raises(sfumato.AuditError, match=words) as caught:
        sfumato.anonymize(table, policy)
    assert SECRET not in str(caught.value)
    with pytest.raises(sfumato.AuditError, match=words):
        anonymize_to_file(table, policy, target, Progress())
    assert list(tmp_path.iterdir()) == []
