"""Forms of single columns: labels, bounds, means and medians side by side, and what asks for them."""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recoding_tables import people
from strategies import Case, cases

import sfumato
from sfumato.cli import main
from sfumato.errors import InputError, PolicyError, UsageError
from sfumato.methods import ClassBatch
from sfumato.policy import InputOptions, merge_flags
from sfumato.releases.local_recoding import Recoder
from sfumato.releases.statistics import class_statistic
from sfumato.tables.coding.domains import NumericDomain
from sfumato.tables.sources.source import open_source

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
ASKED: dict[str, Any] = {
    "quasi_identifiers": ["age", "weight", "born", "sex"],
    "identifiers": ["name"],
    "sensitive": "diagnosis",
    "other": "drop",
    "k": 6,
    "form": {"age": "median", "weight": "mean", "born": "median"},
}
ADDED = {
    "labels": [],
    "bounds": ["min", "max"],
    "mean": ["mean"],
    "median": ["median"],
    "statistics": ["min", "max", "mean"],
}


def exact(value: Any) -> Fraction:
    """A number, the days of a date or the microseconds of a moment, without rounding."""
    if isinstance(value, datetime.datetime):
        return Fraction((value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1))
    if isinstance(value, datetime.date):
        return Fraction((value - datetime.date(1970, 1, 1)).days)
    return Fraction(value)


def summary_of(values: Sequence[Any], kind: str) -> Fraction:
    ordered = sorted(map(exact, values))
    return sum(ordered, Fraction(0)) / len(ordered) if kind == "mean" else ordered[(len(ordered) - 1) // 2]


def classes_of(table: pa.Table, key: Sequence[str]) -> list[list[int]]:
    classes: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(table.to_pylist()):
        classes[repr([row[name] for name in key])].append(place)
    return list(classes.values())


@pytest.mark.not_quick
@given(case=cases(rows=24, columns=3), data=st.data())
def test_every_column_shows_what_its_form_says_of_its_class(
    tmp_path_factory: pytest.TempPathFactory, case: Case, data: st.DataObject
) -> None:
    if case.table.num_rows < 5:
        return
    numeric = [name for name, quasi in case.quasi.items() if isinstance(quasi.column, oracle.NumberColumn)]
    forms = {name: data.draw(st.sampled_from(list(ADDED)), name) for name in numeric}
    default = data.draw(st.sampled_from(list(ADDED)), "default")
    own = {name: form for name, form in forms.items() if form != default or data.draw(st.booleans(), f"say {name}")}
    policy = merge_flags(None, **case.settings(tmp_path_factory.mktemp("case"))).to_dict()
    for name in numeric:
        policy["columns"][name]["statistic_round"] = 7
        policy["columns"][name] |= {"form": own[name]} if name in own else {}
    policy["release"] = {"form": default, "keep_order": True}
    released = sfumato.anonymize(case.table, policy, method="hilbert").data
    key = [
        column for name in case.quasi for column in [name, *(f"{name}_{a}" for a in ADDED[forms.get(name, "labels")])]
    ]
    assert [name for name in released.column_names if name not in case.others] == key
    classes = classes_of(released, key)
    summaries = {"mean", "median", "statistics"} & {
        *forms.values(),
        *([default] if len(numeric) < len(case.quasi) else []),
    }
    assert min(map(len, classes)) >= max(case.k, 5 if summaries else 1)
    rows = released.to_pylist()
    for name, form in forms.items():
        unit = 1_000_000 if pa.types.is_timestamp(case.quasi[name].type) else 1
        for members in classes:
            values = [oracle.plain(case.table[name][place].as_py()) for place in members]
            for kind in ADDED[form]:
                shown = rows[members[0]][f"{name}_{kind}"]
                if None in values:
                    assert shown is None
                elif kind in ("min", "max"):
                    assert exact(shown) == (min if kind == "min" else max)(map(exact, values))
                else:
                    rounded = round(summary_of(values, kind) / (7 * unit)) * 7 * unit
                    assert exact(shown) == (float(rounded) if isinstance(shown, float) else rounded)


def released(table: pa.Table, columns: dict[str, dict[str, Any]], k: int = 5, **more: Any) -> sfumato.Release:
    roles = {name: {"role": "quasi-identifier", **column} for name, column in columns.items()}
    return sfumato.anonymize(table, {"other": "drop", "columns": roles, "privacy": {"k": k}, **more})


def test_the_median_is_the_lower_one_of_exact_values_and_keeps_the_type() -> None:
    table = pa.table(
        {
            "age": [20, 21, 30, 40, 41, 60],
            "born": [datetime.date(1970, 1, day) for day in range(1, 7)],
            "seen": [datetime.datetime(2000, 1, 1, hour) for hour in range(6)],
            "price": pa.array(["0.10", "0.20", "0.30", "0.40", "0.50", "9.00"]).cast(pa.decimal128(5, 2)),
        }
    )
    median = {"form": "median", "statistic_round": 1}
    release = released(
        table, dict.fromkeys(table.column_names[:3], median) | {"price": {**median, "statistic_round": 0.1}}, 6
    )
    row = release.data.slice(0, 1).to_pylist()[0]
    assert {name: row[f"{name}_median"] for name in table.column_names} == {
        "age": 30,
        "born": datetime.date(1970, 1, 3),
        "seen": datetime.datetime(2000, 1, 1, 2),
        "price": 0.3,
    }
    assert release.data["age_median"].type == pa.int64()


def test_a_median_of_whole_numbers_is_whole_unless_its_grid_is_not() -> None:
    table = pa.table({"age": [20, 21, 22, 23, 24, 50, 51, 52, 53, 54]})
    fine, odd = (
        released(table, {"age": {"form": "median", "statistic_round": grid}}).data["age_median"] for grid in (0.1, 0.8)
    )
    assert (fine.type, set(fine.to_pylist())) == (pa.int64(), {22, 52})
    assert (odd.type, set(odd.to_pylist())) == (pa.float64(), {22.4, 52.0})


@pytest.mark.parametrize(
    "column, grid",
    [
        ({"round": 5}, 5),
        ({"taxonomy": {"intervals": [5, 10, 40]}}, 5),
        ({"taxonomy": {"intervals": [5, 10, 40]}, "statistic_round": 2}, 2),
    ],
)
def test_a_median_is_by_default_no_finer_than_the_bounds(column: dict[str, Any], grid: int) -> None:
    release = released(people(), {"age": {"form": "median", **column}, "sex": {}})
    assert release.summary()["statistics"] == {"age": {"grid": grid}}
    assert {median % grid for median in release.data["age_median"].to_pylist() if median is not None} == {0}


def test_a_median_of_a_calendar_is_by_default_no_finer_than_its_shortest_period() -> None:
    release = released(people(), {"born": {"form": "median", "taxonomy": {"calendar": ["month", "year"]}}, "sex": {}})
    assert release.summary()["statistics"] == {"born": {"grid": 28, "unit": "days"}}


def test_the_range_behind_a_star_does_not_decide_the_grid() -> None:
    """Without bounds, the release does not say how far the whole column reaches."""
    rows = 60
    table = pa.table(
        {
            "age": [20 + row % 10 for row in range(rows)] + [10**6, None, None, None, None],
            "sex": ["F"] * rows + ["M"] * 5,
        }
    )
    release = released(table, {"age": {"form": "mean"}, "sex": {}})
    assert release.summary()["statistics"]["age"]["grid"] <= 0.1
    with pytest.raises(PolicyError, match=r"every class that has numbers shows '\*'.*Set statistic_round"):
        released(people(20), {"age": {"form": "mean"}}, k=20)
    assert (
        released(people(20), {"age": {"form": "mean", "statistic_round": 10}}, k=20).data["age"].to_pylist()
        == ["*"] * 20
    )


def test_a_star_with_a_mean_and_one_without_are_two_classes_of_at_least_k() -> None:
    ages = np.array([1, 2, 3, 98, 99])
    domain = NumericDomain("age", ages, has_null=True, kind="numeric")
    codes = np.array([0, 4, 1, 3, 2, 5, 3, 4, 0, 1], np.uint8)  # 5 is null
    batch = ClassBatch(
        np.arange(10, dtype=np.uint32),
        np.array([0, 5, 10]),
        np.array([[0], [0]], np.uint8),
        np.array([[4], [5]], np.uint8),
    )
    recoder = Recoder([domain], 10, numbered={"age"})
    recoder.add(batch)
    recoded = recoder.finish()
    (column,) = recoded.columns
    assert column.labels.take(pa.array(column.entry)).to_pylist() == ["*", "*"]
    assert recoded.sizes.tolist() == [5, 5]
    for kind, shown in (("mean", 41), ("median", 3)):
        found = class_statistic(kind, codes, domain, recoded, column, Fraction(1))  # type: ignore[arg-type]
        assert sorted(found.to_pylist(), key=str) == [shown, None]


# ---- who asks, and who refuses ----


def test_a_form_of_a_column_goes_before_that_of_the_release() -> None:
    release = sfumato.anonymize(people(), **{**ASKED, "form": {None: "statistics", "age": "labels", "born": "median"}})
    assert release.data.column_names == [
        *("age", "weight", "weight_min", "weight_max", "weight_mean", "born", "born_median", "sex", "diagnosis")
    ]
    assert set(release.summary()["statistics"]) == {"weight", "born"}
    assert release.policy.release.form == "statistics"
    alone = sfumato.anonymize(
        people(),
        **{**ASKED, "form": {None: "statistics", **dict.fromkeys(["age", "weight", "born"], "labels")}, "k": 2},
    )
    assert "statistics" not in alone.summary()


def test_flags_say_a_form_for_all_or_for_one_column() -> None:
    policy = merge_flags(None, quasi_identifiers=["age", "zip"], form={"age": "mean"})
    assert (policy.form_of("age"), policy.form_of("zip"), policy.k) == ("mean", "labels", 5)
    again = merge_flags(policy, form="bounds")
    assert (again.form_of("age"), again.form_of("zip")) == ("mean", "bounds")
    assert merge_flags(again, form={"age": "labels"}).k == 1
    with pytest.raises(PolicyError, match="form is given for the column 'ill', which is not a quasi-identifier"):
        merge_flags(policy, form={"ill": "mean"})
    with pytest.raises(
        PolicyError, match="form of column 'age' must be one of 'labels', 'bounds', 'mean', 'median', 'statistics'"
    ):
        merge_flags(policy, form={"age": "average"})  # type: ignore[dict-item]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(people(60).select(["age", "weight", "born", "sex"]), "table.csv")
    return tmp_path


COMMAND = ["anonymize", "table.csv", "--quasi-identifiers", "age,weight,born,sex", "-k", "5"]


@pytest.mark.not_quick
def test_the_command_line_takes_forms_by_column(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forms = ["--form", "bounds", "--form", "age=mean", "--form", "born=median"]
    assert main([*COMMAND, "--dry-run", *forms, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert {column["name"]: column["form"] for column in plan["columns"]} == {
        "age": "mean",
        "weight": "bounds",
        "born": "median",
        "sex": "labels",
    }
    assert main([*COMMAND, "--dry-run", *forms]) == 0
    assert "median" in capsys.readouterr().out
    assert main([*COMMAND, "-o", "out.parquet", *forms]) == 0
    certificate = json.loads(Path("out.parquet.sfumato.json").read_text())
    assert certificate["policy"]["release"] == {"form": "bounds"}
    assert certificate["policy"]["columns"]["age"] == {"role": "quasi-identifier", "form": "mean"}
    for command in (["audit", "out.parquet"], ["measure", "table.csv", "out.parquet"], ["risk", "out.parquet"]):
        assert main(command) == 0
    assert main(["report", "table.csv", "out.parquet", "-o", "page.html"]) == 0


@pytest.mark.parametrize(
    "flags, says",
    [
        (["--form", "bounds", "--form", "mean"], "--form is given twice for all columns"),
        (["--form", "age=mean", "--form", "age=median"], "--form is given twice for the column 'age'"),
        (["--form", "age="], "Write it as --form COL=FORM"),
        (["--form", "ages=mean"], "form is given for the column 'ages'"),
        (["--form", "sex=mean"], "the column 'sex' in the form 'mean', which is for numbers and dates"),
        (["--form", "age=mean", "--engine", "disk"], 'the disk engine does not support form = "mean"'),
        (["--form", "age=median", "--engine", "disk"], 'the disk engine does not support form = "median"'),
        (["--form", "age=median", "--boxes", "regions"], "statistics describe one table"),
        (["--form", "age=mean", "--taxonomy", "age=flat"], "form of column 'age' is 'mean', which is only for numbers"),
    ],
)
def test_forms_that_do_not_fit_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], flags: list[str], says: str
) -> None:
    assert main([*COMMAND, "-o", "out.csv", *flags]) in (2, 4)
    assert says in " ".join(capsys.readouterr().err.split())
    assert not Path("out.csv").exists()


@pytest.mark.parametrize("form", ["mean", "median", "statistics"])
def test_a_finest_level_does_not_go_with_what_would_tell_of_finer_values(form: Any) -> None:
    asked: dict[str, Any] = {"quasi_identifiers": ["age", "sex"], "other": "drop", "k": 5}
    asked["taxonomy"] = {"age": {"intervals": [5, 10, 40]}}
    with pytest.raises(PolicyError, match=f"finest of column 'age' hides what is below.* its form is '{form}'"):
        sfumato.anonymize(people(), **asked, finest={"age": 1}, form=form)
    release = sfumato.anonymize(people(), **asked, finest={"age": 1}, form={None: form, "age": "bounds"})
    assert release.data.column_names == ["age", "age_min", "age_max", "sex"]
    narrow = {high - low for low, high in zip(*release.data.select([1, 2]).to_pydict().values(), strict=True)}
    assert narrow <= {4, 9, 39}


def test_rules_and_anatomy_have_no_place_for_means_of_a_column() -> None:
    with pytest.raises(PolicyError, match="statistics describe one table"):
        sfumato.fit(people(), **ASKED)
    with pytest.raises(UsageError, match="form does not go with anatomy"):
        sfumato.anonymize(people(), **ASKED, method="anatomy", require="frequency(diagnosis, l=2)")


def test_text_in_a_frame_needs_a_type_before_it_has_a_mean() -> None:
    table = pa.table({"age": [str(age) for age in range(20, 40)]})
    with pytest.raises(InputError, match="set its type"):
        sfumato.anonymize(table, quasi_identifiers=["age"], k=5, form={"age": "mean"})
    release = sfumato.anonymize(table, quasi_identifiers=["age"], k=5, form={"age": "mean"}, type={"age": "numeric"})
    assert sum(release.data["age_mean"].to_pylist()) == pytest.approx(sum(range(20, 40)), abs=1)


def test_bounds_of_one_column_are_the_same_on_every_engine_that_has_files(tmp_path: Path) -> None:
    flags: dict[str, Any] = {**ASKED, "form": {"age": "bounds"}, "method": "hilbert"}
    memory, disk = (sfumato.anonymize(people(), **flags, engine=engine).data for engine in ("memory", "disk"))
    assert memory.column_names == ["age", "age_min", "age_max", "weight", "born", "sex", "diagnosis"]
    assert disk.to_pylist() == memory.to_pylist()


def test_rules_show_the_bounds_of_one_column() -> None:
    recoding = sfumato.fit(people(), **{**ASKED, "form": {"age": "bounds"}})
    names = recoding.transform(people()).column_names
    assert [name for name in names if name.endswith(("_min", "_max"))] == ["age_min", "age_max"]
    assert recoding.to_sql("duckdb", "people").count("_min") == 1
    again = people().append_column("age_min", people()["age"])
    with pytest.raises(PolicyError, match="adds the column 'age_min'"):
        sfumato.apply(sfumato.fit(people(), **{**ASKED, "other": "keep", "form": {"age": "bounds"}}), again)


# ---- the former name of the grid ----


def test_the_former_name_of_the_grid_is_read() -> None:
    def policy(**column: Any) -> sfumato.Policy:
        return sfumato.Policy.from_dict({"columns": {"age": {"role": "quasi-identifier", **column}}})

    assert policy(mean_round=5) == policy(statistic_round=5)
    assert policy(mean_round=5).to_dict()["columns"]["age"] == {"role": "quasi-identifier", "statistic_round": 5}
    with pytest.raises(PolicyError, match="mean_round of column 'age' must be a finite number above 0, not -1"):
        policy(mean_round=-1)
    with pytest.raises(PolicyError, match="mean_round of column 'age' is the former name of statistic_round"):
        policy(mean_round=5, statistic_round=5)


# ---- what comes after ----


@pytest.mark.parametrize(
    "column, change", [("age_median", 1), ("weight_mean", 0.5), ("born_median", datetime.timedelta(1))]
)
def test_the_audit_notices_a_forged_number_of_one_record(column: str, change: Any) -> None:
    release = sfumato.anonymize(people(), **ASKED)
    numbers = release.data[column].to_pylist()
    numbers[0] += change
    forged = release.data.set_column(release.data.column_names.index(column), column, pa.array(numbers))
    found = sfumato.audit(forged, release.policy)
    assert not found.holds
    assert found.smallest_class == 1


def test_aggregates_come_from_means_and_their_range_from_bounds() -> None:
    table = people()
    release = sfumato.anonymize(table, **{**ASKED, "form": {"age": "mean", "weight": "statistics", "born": "median"}})
    age, weight = release.aggregates()
    assert (age.column, age.minimum, age.maximum) == ("age", None, None)
    assert abs(age.sum - sum(table["age"].to_pylist())) <= 400 * age.margin
    assert (weight.minimum, weight.maximum) == (min(table["weight"].to_pylist()), max(table["weight"].to_pylist()))
    with pytest.raises(UsageError, match="no means"):
        sfumato.anonymize(table, **{**ASKED, "form": {"age": "median"}}).aggregates()


def test_who_asks_is_told_what_means_and_medians_show() -> None:
    release = sfumato.anonymize(people(), **{**ASKED, "k": 2})
    told = " ".join(release.warnings)
    assert "a class shows the mean of its records" in told
    assert "the median of its records, which is the value of one of them, rounded" in told
    assert "means and medians need classes of at least 5 records, so k = 5 is used" in told
    page = release.report().page()
    assert "It is the value of one of its records" in page
    assert "Ends of ranges and means" not in page


@pytest.mark.parametrize("target", ["out.parquet", "out.arrow", "out.xlsx", "out.duckdb#people", "out.sqlite#people"])
def test_means_and_medians_keep_their_types_in_every_kind_of_file(tmp_path: Path, target: str) -> None:
    release = sfumato.anonymize(people(60), **ASKED)
    release.write(tmp_path / target)
    names = ["age_median", "weight_mean", "born_median"]
    back = pa.Table.from_batches(open_source(f"{tmp_path / target}", InputOptions()).batches(names))
    original = release.data.select(names)
    if target == "out.xlsx":  # a sheet has one kind of number, and moments for dates
        kinds = (pa.float64(), pa.float64(), pa.timestamp("ms"))
        original = original.cast(pa.schema(list(zip(names, kinds, strict=True))))
    assert back.to_pylist() == original.to_pylist()
    assert back.schema.types == original.schema.types
    assert sfumato.audit(f"{tmp_path / target}").holds
