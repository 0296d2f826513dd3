"""Releases of summary statistics: ranges and means of classes, and what can be computed from them."""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from hypothesis import given
from recoding_tables import people
from strategies import Case, cases

import sfumato
from sfumato.cli import main
from sfumato.errors import PolicyError, UsageError

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
ASKED: dict[str, Any] = {
    "quasi_identifiers": ["age", "weight", "born", "sex"],
    "identifiers": ["name"],
    "sensitive": "diagnosis",
    "other": "drop",
    "k": 6,
    "form": "statistics",
}


def days(value: Any) -> Fraction:
    return Fraction((value - datetime.date(1970, 1, 1)).days) if isinstance(value, datetime.date) else Fraction(value)


def nearest(value: Fraction, grid: Fraction) -> Fraction:
    return round(value / grid) * grid


def test_every_class_shows_its_range_and_its_rounded_mean() -> None:
    table = people()
    release = sfumato.anonymize(table, **ASKED, keep_order=True)
    grids = release.summary()["statistics"]
    # The ages reach over 72 years, the weights over some 60, the dates over some 900 days.
    assert grids == {"age": {"grid": 0.1}, "weight": {"grid": 0.1}, "born": {"grid": 1, "unit": "days"}}
    names = [name for name in release.data.column_names if name != "diagnosis"]
    classes: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for place, row in enumerate(release.data.to_pylist()):
        classes[tuple(row[name] for name in names)].append(place)
    assert min(map(len, classes.values())) >= 6
    for shown, members in classes.items():
        told = dict(zip(names, shown, strict=True))
        for name in ("age", "weight", "born"):
            values = [days(table[name][place].as_py()) for place in members]
            assert (days(told[f"{name}_min"]), days(told[f"{name}_max"])) == (min(values), max(values))
            mean = nearest(sum(values) / len(values), Fraction(str(grids[name]["grid"])))
            assert days(told[f"{name}_mean"]) == days(float(mean) if name != "born" else mean)
        assert "sex_mean" not in told


@given(cases(rows=24, columns=3))
def test_means_are_those_of_exact_sums_and_absent_where_null_is_mixed_in(
    tmp_path_factory: pytest.TempPathFactory, case: Case
) -> None:
    if case.table.num_rows < 5:
        return
    settings = case.settings(tmp_path_factory.mktemp("case"))
    release = sfumato.anonymize(case.table, **settings, form="statistics", method="hilbert", keep_order=True)
    grids = release.summary().get("statistics", {})
    shown = release.data.to_pylist()
    key = [name for name in release.data.column_names if name.split("_")[0] in case.quasi]
    classes: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(shown):
        classes[repr([row[name] for name in key])].append(place)
    assert min(map(len, classes.values())) >= max(case.k, 5)
    for name, stated in grids.items():
        unit = Fraction(1_000_000) if stated.get("unit") == "seconds" else Fraction(1)
        for members in classes.values():
            values = [oracle.plain(case.table[name][place].as_py()) for place in members]
            found = shown[members[0]][f"{name}_mean"]
            if None in values:
                assert found is None
                continue
            mean = sum(map(exact, values), Fraction(0)) / len(values)
            rounded = nearest(mean, Fraction(str(stated["grid"])) * unit)
            assert found == as_type(rounded, found)


def exact(value: Any) -> Fraction:
    if isinstance(value, datetime.datetime):
        return Fraction((value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1))
    return days(value)


def as_type(number: Fraction, like: Any) -> Any:
    if isinstance(like, datetime.datetime):
        return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=int(number))
    if isinstance(like, datetime.date):
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=int(number))
    return int(number) if isinstance(like, int) else float(number)


def test_classes_have_at_least_five_records_and_whoever_asked_for_less_is_told() -> None:
    release = sfumato.anonymize(people(), **{**ASKED, "k": 2})
    assert release.audit.smallest_class >= 5
    assert release.audit.verdicts[0].requirement.endswith("5")
    assert any("at least 5 records" in text for text in release.warnings)
    assert not any("at least 5 records" in text for text in sfumato.anonymize(people(), **ASKED).warnings)


def test_that_the_ends_of_a_range_are_values_of_records_is_warned_of() -> None:
    release = sfumato.anonymize(people(), **ASKED)
    assert any("some record has each of the two" in text for text in release.warnings)
    assert "Ends of ranges and means" in release.report().page()
    assert "Ends of ranges and means" not in sfumato.anonymize(people(), **{**ASKED, "form": "bounds"}).report().page()


def test_the_audit_counts_the_mean_among_what_tells_classes_apart(tmp_path: Path) -> None:
    release = sfumato.anonymize(people(), **ASKED)
    release.write(tmp_path / "release.csv")
    assert main(["audit", str(tmp_path / "release.csv")]) == 0
    data = release.data
    means = data["age_mean"].to_pylist()
    means[0] += 1  # one record would be alone with its mean
    wrong = data.set_column(data.column_names.index("age_mean"), "age_mean", pa.array(means))
    found = sfumato.audit(wrong, release.policy)
    assert not found.holds
    assert found.smallest_class == 1


def test_the_grid_can_be_chosen_and_follows_the_rounding_of_bounds() -> None:
    policy = sfumato.Policy.from_dict(
        {
            "other": "drop",
            "columns": {
                "age": {"role": "quasi-identifier", "statistic_round": 5},
                "weight": {"role": "quasi-identifier", "round": 10},
                "born": {"role": "quasi-identifier", "statistic_round": 30},
            },
            "privacy": {"k": 10},
            "release": {"form": "statistics"},
        }
    )
    release = sfumato.anonymize(people(), policy)
    assert {mean % 5 for mean in release.data["age_mean"].to_pylist()} == {0}
    assert {mean % 10 for mean in release.data["weight_mean"].to_pylist()} == {0}
    assert release.summary()["statistics"]["born"] == {"grid": 30, "unit": "days"}
    assert release.data["age_mean"].type == pa.int64()


@pytest.mark.parametrize(
    "change, says",
    [
        ({"boxes": "regions"}, "statistics describe one table"),
        ({"method": "anatomy", "require": "frequency(diagnosis, l=2)"}, "form does not go with anatomy"),
    ],
)
def test_what_does_not_go_with_statistics_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        sfumato.anonymize(people().drop_columns(["name"]), **{**ASKED, "identifiers": [], **change})


def test_a_grid_of_part_of_a_day_and_of_categories_is_refused() -> None:
    columns = {"born": {"role": "quasi-identifier", "statistic_round": 0.5}}
    content = {"other": "drop", "columns": columns, "privacy": {"k": 5}, "release": {"form": "statistics"}}
    with pytest.raises(PolicyError, match="whole number of days"):
        sfumato.anonymize(people(), sfumato.Policy.from_dict(content))
    with pytest.raises(PolicyError, match="statistic_round of column 'sex' is only for numbers and dates"):
        sfumato.Policy.from_dict(
            {"columns": {"sex": {"role": "quasi-identifier", "type": "categorical", "statistic_round": 1}}}
        )


def test_a_column_of_the_same_name_is_told_before_any_work() -> None:
    table = people().append_column("age_mean", people()["age"])
    with pytest.raises(PolicyError, match="adds the column 'age_mean'"):
        sfumato.anonymize(table, **{**ASKED, "other": "keep"}, accept_linkable=["age_mean"])


# ---- what can be computed from them ----


def test_min_max_avg_and_sum_are_those_of_the_original_within_the_margin(tmp_path: Path) -> None:
    table = people()
    release = sfumato.anonymize(table, **ASKED)
    release.write(tmp_path / "release.csv")
    for found in (release.aggregates(), sfumato.aggregate(tmp_path / "release.csv")):
        assert [one.column for one in found] == ["age", "weight", "born"]
        for one in found:
            values = table[one.column].to_pylist()
            assert (one.records, one.unknown) == (400, 0)
            assert (one.minimum, one.maximum) == (min(values), max(values))
            assert one.margin is not None
            mean = sum(map(days, values)) / 400
            assert abs(days(one.average) - mean) <= one.margin + (0.5 if one.column == "born" else 0)
            if one.column == "born":
                assert one.sum is None
            else:
                assert abs(Fraction(one.sum) - sum(map(days, values))) <= 400 * one.margin


def test_aggregates_by_what_the_release_shows() -> None:
    table = pa.table({"age": np.repeat([20, 30, 40, 50], 25), "sex": ["F"] * 50 + ["M"] * 50})
    release = sfumato.anonymize(table, quasi_identifiers=["age", "sex"], k=5, form="statistics", method="mondrian")
    found = {one.group["sex"]: one for one in release.aggregates(by="sex")}
    assert {sex: (one.average, one.sum, one.minimum, one.maximum) for sex, one in found.items()} == {
        "F": (25, 1250, 20, 30),
        "M": (45, 2250, 40, 50),
    }


def test_records_without_statistics_are_counted_apart() -> None:
    table = pa.table({"age": [*range(20, 30), None, None], "sex": ["F"] * 12})
    release = sfumato.anonymize(table, quasi_identifiers=["age", "sex"], k=6, form="statistics")
    (one,) = release.aggregates()
    assert one.unknown >= 2
    assert one.records + one.unknown == 12
    assert repr(one) == f"<Aggregate of 'age': {one.records} records, {one.unknown} without statistics>"


def test_aggregates_of_a_release_without_means_are_refused() -> None:
    with pytest.raises(UsageError, match="no means"):
        sfumato.anonymize(people(), **{**ASKED, "form": "bounds"}).aggregates()
    with pytest.raises(UsageError, match="unknown quasi-identifier 'diagnosis'"):
        sfumato.anonymize(people(), **ASKED).aggregates(by="diagnosis")


def test_the_command_prints_a_table_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sfumato.anonymize(people(), **ASKED).write(tmp_path / "release.parquet")
    assert main(["aggregate", str(tmp_path / "release.parquet"), "--by", "sex"]) == 0
    told = capsys.readouterr().out
    assert "± 0.05" in told
    assert main(["aggregate", str(tmp_path / "release.parquet"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["aggregates"]
    assert [one["column"] for one in found] == ["age", "weight", "born"]
    assert found[2]["minimum"] == min(people()["born"].to_pylist()).isoformat()
