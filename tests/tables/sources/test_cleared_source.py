"""Null tokens of single columns: null wherever the table is read, and in the release."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
import pytest
from oracle import smallest_class
from source_kinds import KINDS

import sfumato
from sfumato.errors import PolicyError, SfumatoWarning, UsageError
from sfumato.policy import InputOptions, Policy, merge_flags
from sfumato.tables.sources.source import open_source

DAY, LAST = datetime.date(2020, 2, 29), datetime.date(9999, 12, 31)
TABLE = pa.table(
    {
        "weight": pa.array([70, -999, 81, None]),
        "share": pa.array([0.5, -999.0, -99.0, 1.0]),
        "born": pa.array([DAY, LAST, None, DAY]),
        "ward": pa.array(["A", "?", "-999", "A"]),
        "free": pa.array(["-999", "a", "?", None]),
    }
)
TOKENS = {"weight": ("-999", "NA"), "share": ("-999", "-99"), "born": ("9999-12-31",), "ward": ("?", "x")}
KINDS_HERE = [kind for kind in KINDS if kind != "postgresql"]


def columns(source: Any, names: list[str]) -> dict[str, list[object]]:
    table = pa.Table.from_batches(source.batches(names))
    table.validate(full=True)
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            assert all(sorted(chunk.dictionary.to_pylist()) == sorted(chunk.unique().drop_null().to_pylist())
                       for chunk in column.chunks)  # fmt: skip
    return {name: table.column(name).to_pylist() for name in names}


@pytest.mark.parametrize("kind", KINDS_HERE)
def test_the_tokens_of_a_column_are_null_in_every_kind_of_source(tmp_path: Path, kind: str) -> None:
    made = KINDS[kind][1](TABLE, tmp_path)
    plain = columns(open_source(made, InputOptions()), TABLE.column_names)
    cleared = columns(open_source(made, InputOptions(column_nulls=TOKENS)), TABLE.column_names)
    # Text must be equal to the token, and "-999.0" is not. A number must be equal to the number.
    text = open_source(made, InputOptions()).text
    gone = {"weight": [1], "share": [] if text else [1, 2], "born": [1], "ward": [1], "free": []}
    for name, values in plain.items():
        assert cleared[name] == [None if row in gone[name] else value for row, value in enumerate(values)], name


def export(tmp_path: Path) -> Path:
    rows = [
        f"{20 + row % 5},{60 + row % 7 if row % 4 else -999},{'x' if row % 3 else '-1'},{'-1' if row % 6 else 'y'},n"
        for row in range(40)
    ]
    path = tmp_path / "export.csv"
    path.write_text("age,weight,ill,note,name\n" + "\n".join(rows) + "\n")
    return path


POLICY: dict[str, Any] = {
    "columns": {
        "age": {"role": "quasi-identifier"},
        "weight": {"role": "quasi-identifier", "nulls": ["-999"]},
        "ill": {"role": "sensitive", "nulls": ["-1"]},
        "note": {"role": "other", "nulls": ["-1"]},
        "name": {"role": "identifier"},
    },
    "privacy": {"k": 3},
}


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_release_has_null_where_the_table_has_a_token(tmp_path: Path, engine: str) -> None:
    path = export(tmp_path)
    with pytest.warns(SfumatoWarning, match="are released empty: 'ill', 'note'"):
        sfumato.anonymize(path, POLICY, engine=engine, method="mondrian").write(tmp_path / "out.csv")
    released = pandas.read_csv(tmp_path / "out.csv", dtype=str)
    assert smallest_class(released.fillna("").to_dict("records"), ["age", "weight"]) >= 3
    assert "999" not in (tmp_path / "out.csv").read_text()
    before = pandas.read_csv(path, dtype=str)
    for name in ("ill", "note"):
        counts = before[name].value_counts().drop("-1").to_dict()
        assert released[name].value_counts().to_dict() == counts
        assert released[name].isna().sum() == (before[name] == "-1").sum() > 0


def test_a_numpy_column_of_whole_numbers_can_be_cleared() -> None:
    frame = pandas.DataFrame({"age": [30, 30, 31, 31], "weight": [70, -999, 70, 71]})
    with pytest.warns(SfumatoWarning, match="released empty: 'weight'"):
        release = sfumato.anonymize(
            frame, k=2, quasi_identifiers=["age"], other=["weight"], column_nulls={"weight": "-999"},
            accept_linkable=["weight"],
        )  # fmt: skip
    assert sorted(release.data["weight"].dropna()) == [70, 70, 71]
    assert release.data["weight"].isna().sum() == 1
    assert frame["weight"].tolist() == [70, -999, 70, 71]


@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
def test_a_numpy_column_of_truth_values_can_be_cleared() -> None:
    frame = pandas.DataFrame({"age": [30, 30, 31, 31], "smokes": [True, False, True, False]})
    release = sfumato.anonymize(
        frame, k=4, quasi_identifiers=["age"], other=["smokes"], column_nulls={"smokes": "false"}
    )
    assert sorted(release.data["smokes"], key=str) == [None, None, True, True]


def test_nulls_of_an_identifier_are_refused() -> None:
    with pytest.raises(PolicyError, match="nulls of column 'name' is not for identifiers, which are never released"):
        Policy.from_dict({"columns": {"name": {"role": "identifier", "nulls": ["x"]}}})
    with pytest.raises(PolicyError, match="nulls is given for the column 'name', which is not a quasi-identifier"):
        merge_flags(identifiers=["name"], column_nulls={"name": "x"})


def test_labels_of_a_release_are_no_tokens() -> None:
    policy = Policy.from_dict(POLICY)
    assert policy.input_options.column_nulls == {"weight": ("-999",), "ill": ("-1",), "note": ("-1",)}
    assert policy.foreign_release_options.column_nulls == {"ill": ("-1",), "note": ("-1",)}


def test_a_query_for_rules_with_such_tokens_is_refused(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"age": [30, 30, 31, 31], "weight": [70, -999, 70, 71]})
    rules = sfumato.fit(frame, k=2, quasi_identifiers=["age", "weight"], column_nulls={"weight": ["-999"]})
    with pytest.raises(UsageError, match="the policy has nulls for the column 'weight', which a query would take"):
        rules.to_sql("duckdb", "people")
