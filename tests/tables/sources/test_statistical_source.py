"""Files of SPSS, Stata and SAS: what another library writes is read with labels, missing values, dates and times."""

from __future__ import annotations

import csv
import datetime
import sys
import tomllib
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
import pyreadstat
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sas_files import write_sas7bdat

import sfumato
from sfumato.cli import main
from sfumato.errors import InputError, ReadingWarning, UsageError
from sfumato.files.crash_probe import crashes
from sfumato.policy import InputOptions
from sfumato.tables.sources import statistical_source
from sfumato.tables.sources.source import Source, open_source
from sfumato.tables.sources.time_formats import NumberFacts, time_format

SECRET = "Zaphod"
WRITERS: dict[str, Callable[..., None]] = {
    ".sav": pyreadstat.write_sav,
    ".zsav": lambda frame, path, **options: pyreadstat.write_sav(frame, path, compress=True, **options),
    ".por": pyreadstat.write_por,
    ".dta": pyreadstat.write_dta,
    ".xpt": pyreadstat.write_xport,
}
LABELLING = (".sav", ".zsav", ".dta")


@pytest.fixture(autouse=True)
def _no_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file here crashes the library, and a process for each of them would take long."""
    monkeypatch.setattr(statistical_source, "crashes", lambda *_: False)


def write(folder: Path, suffix: str, columns: dict[str, Any], **options: Any) -> Path:
    path = folder / f"table{suffix}"
    WRITERS[suffix](pandas.DataFrame(columns), str(path), **options)
    return path


def opened(path: Path, **options: Any) -> Source:
    return open_source(path, InputOptions(**options))


def values(source: Source) -> dict[str, list[Any]]:
    batches = list(source.batches(source.names))
    return {name: [value for batch in batches for value in batch.column(name).to_pylist()] for name in source.names}


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        values(opened(path, **options))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def objects(cells: list[Any]) -> pandas.Series:
    return pandas.Series(cells, dtype=object)


TABLE = {
    "AGE": [31, 22, None, 67],
    "WEIGHT": [70.5, None, 81.25, 60.0],
    "CITY": ["Roma", "", "Città", "x"],
    "BORN": [datetime.date(1890, 5, 6), None, datetime.date(2020, 2, 29), datetime.date(9999, 12, 31)],
    "SEEN": [datetime.datetime(2020, 1, 1, 3, 4, 5, 250_000), None, datetime.datetime(1890, 5, 6), None],
    "AT": [datetime.time(3, 4, 5), None, datetime.time(23, 59, 59), datetime.time(0, 0)],
}
TYPES = {
    "AGE": pa.int64(),
    "WEIGHT": pa.float64(),
    "CITY": pa.string(),
    "BORN": pa.date32(),
    "SEEN": pa.timestamp("ms"),
    "AT": pa.time32("s"),
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_file_of_another_library_is_read_with_its_types(tmp_path: Path, suffix: str) -> None:
    frame = {name: objects(cells) if name != "AGE" else cells for name, cells in TABLE.items()}
    frame["WEIGHT"] = TABLE["WEIGHT"]
    if suffix == ".por":  # this one has a character set of its own
        frame["CITY"] = ["Roma", "", "Citta", "x"]
    source = opened(write(tmp_path, suffix, frame))
    assert source.types == TYPES
    assert source.rows == 4
    assert source.kind == {".dta": "stata", ".xpt": "sas"}.get(suffix, "spss")
    city = ["Roma", None, "Citta" if suffix == ".por" else "Città", "x"]
    assert values(source) == TABLE | {"CITY": city}


def test_a_table_of_sas_is_read_with_its_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistical_source, "CELLS", 10)
    formats = {"AGE": None, "WEIGHT": "BEST12", "CITY": "$", "BORN": "YYMMDD10", "SEEN": "DATETIME20", "AT": "TIME8"}
    rows = [(31, 70.5, "Roma", 0, 0.25, 61), (None, None, "", 21_975, 86_400, None), (-4, 1, "Città", -1, None, 0)]
    source = opened(write_sas7bdat(tmp_path / "table.sas7bdat", formats, rows * 5))
    assert (source.kind, source.rows, source.types) == ("sas", 15, TYPES)
    assert values(source) == {
        "AGE": [31, None, -4] * 5,
        "WEIGHT": [70.5, None, 1.0] * 5,
        "CITY": ["Roma", None, "Città"] * 5,
        "BORN": [datetime.date(1960, 1, 1), datetime.date(2020, 3, 1), datetime.date(1959, 12, 31)] * 5,
        "SEEN": [datetime.datetime(1960, 1, 1, 0, 0, 0, 250_000), datetime.datetime(1960, 1, 2), None] * 5,
        "AT": [datetime.time(0, 1, 1), None, datetime.time(0)] * 5,
    }


moments = st.datetimes(datetime.datetime(1600, 1, 1), datetime.datetime(9999, 12, 31)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
rows = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**53), 2**53),
        st.none() | st.floats(-1e300, 1e300, allow_subnormal=False),
        st.none() | st.dates(datetime.date(1600, 1, 1)),
        st.none() | moments,
        st.none() | st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=9,
)


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(0.4))
@given(rows=rows)
def test_values_come_back_as_they_were_written(tmp_path: Path, suffix: str, rows: list[tuple[Any, ...]]) -> None:
    whole, number, day, moment, text = (list(column) for column in zip(*rows, strict=True))
    frame = {
        "whole": pandas.Series(whole, dtype="float64"),
        "number": pandas.Series(number, dtype="float64"),
        "day": objects(day),
        "moment": objects(moment),
        "text": objects(text),
    }
    read = values(opened(write(tmp_path, suffix, frame)))
    assert read["whole"] == whole
    assert read["number"] == number
    assert read["text"] == text
    assert read["day"] == day
    assert read["moment"] == moment


@pytest.mark.parametrize("suffix", LABELLING)
def test_labels_become_the_values(tmp_path: Path, suffix: str) -> None:
    path = write(
        tmp_path,
        suffix,
        {"sex": pandas.Series([2, 1, 1], dtype="int32"), "age": [4, 5, 6]},
        variable_value_labels={"sex": {1: "male", 2: "female", 3: "never occurs"}},
    )
    assert values(opened(path)) == {"sex": ["female", "male", "male"], "age": [4, 5, 6]}
    assert values(opened(path, labels=False)) == {"sex": [2, 1, 1], "age": [4, 5, 6]}


def test_text_may_have_labels_too(tmp_path: Path) -> None:
    labels = {"sex": {"F": "female", "M": "male"}}
    path = write(tmp_path, ".sav", {"sex": ["F", "M", ""]}, variable_value_labels=labels)
    assert values(opened(path)) == {"sex": ["female", "male", None]}
    assert values(opened(path, labels=False)) == {"sex": ["F", "M", None]}


def test_a_value_without_a_label_keeps_its_code_and_only_its_number_is_said(tmp_path: Path) -> None:
    labels = {"sex": {1.0: "male", 2.0: "female"}}
    path = write(tmp_path, ".sav", {"sex": [1, 2, 77.25]}, variable_value_labels=labels)
    with pytest.warns(ReadingWarning) as told:
        source = opened(path)
    assert values(source) == {"sex": ["male", "female", "77.25"]}
    assert [str(warning.message).removeprefix(f"the file {str(path)!r} ") for warning in told] == [
        "has values without a label, which keep their codes as text, in column 'sex' (1)."
    ]


@pytest.mark.parametrize(
    "cells, labels",
    [
        ([*range(20, 60), -9], {-9: "refused"}),
        (list(range(11)), {0: "not at all", 10: "completely"}),
        ([2018, 2019, 2020, -1], {-1: "no answer", -2: "does not apply", -3: "implausible"}),
    ],
)
def test_a_column_of_numbers_with_a_few_labels_stays_one_and_that_is_said(
    tmp_path: Path, cells: list[int], labels: dict[int, str]
) -> None:
    path = write(tmp_path, ".dta", {"x": pandas.Series(cells, dtype="int32")}, variable_value_labels={"x": labels})
    with pytest.warns(ReadingWarning, match=r"labels for fewer than half of the values of column 'x' \([12]\)"):
        source = opened(path)
    assert values(source) == {"x": cells}
    with pytest.warns(ReadingWarning, match=r"values without a label, which keep their codes as text"):
        listed = opened(path, labels=("x",))
    assert values(listed)["x"] == [labels.get(cell, str(cell)) for cell in cells]


def test_missing_values_of_spss_are_null_whatever_their_labels(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        ".sav",
        {"age": [31.0, -9.0, -8.0, 40.0, 998.0], "ward": ["A", "Z", "B", "A", "B"]},
        variable_value_labels={"age": {-9.0: "refused", -8.0: "unknown"}, "ward": {"Z": "none"}},
        missing_ranges={"age": [{"lo": -9.0, "hi": -8.0}, 998.0], "ward": ["Z"]},
    )
    assert values(opened(path)) == {"age": [31, None, None, 40, None], "ward": ["A", None, "B", "A", "B"]}


def test_missing_values_of_stata_are_null(tmp_path: Path) -> None:
    path = write(tmp_path, ".dta", {"x": objects(["a", 1, 2, "z"])}, missing_user_values={"x": ["a", "z"]})
    assert values(opened(path)) == {"x": [None, 1, 2, None]}


def test_codes_that_share_a_label_become_one_value_and_that_is_said(tmp_path: Path) -> None:
    labels = {"x": {1: "other", 2: "other", 3: "Bonn"}}
    path = write(tmp_path, ".sav", {"x": [1.0, 2.0, 3.0]}, variable_value_labels=labels)
    with pytest.warns(ReadingWarning, match=r"become the same value, in column 'x' \(1\)\. Set labels = false"):
        source = opened(path)
    assert values(source) == {"x": ["other", "other", "Bonn"]}


def test_a_warning_names_a_few_columns_and_counts_the_others(tmp_path: Path) -> None:
    columns = {f"x{number}": [1.0, 2.0] for number in range(8)}
    path = write(tmp_path, ".sav", columns, variable_value_labels={name: {1: "one"} for name in columns})
    with pytest.warns(ReadingWarning, match=r"columns 'x0' \(1\), .*'x4' \(1\) and 3 others\."):
        opened(path)


def test_listed_columns_alone_are_read_by_their_labels(tmp_path: Path) -> None:
    labels = {"a": {1: "one"}, "b": {1: "one"}}
    path = write(tmp_path, ".sav", {"a": [1.0, 1.0], "b": [1.0, 1.0], "c": [1.0, 2.0]}, variable_value_labels=labels)
    assert values(opened(path, labels=("b",))) == {"a": [1, 1], "b": ["one", "one"], "c": [1, 2]}
    with pytest.raises(UsageError, match=r"labels in \[input\] names the column 'd', which the table does not have"):
        opened(path, labels=("d",))
    with pytest.raises(UsageError, match=r"names the column 'c', whose values have no labels in .* Remove it"):
        opened(path, labels=("c",))


def test_times_that_no_clock_has_stay_numbers_and_that_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, ".sav", {"stay": [90_000.0, 5.0]}, variable_format={"stay": "TIME8"})
    with pytest.warns(ReadingWarning, match=r"no calendar or clock has, in column 'stay': the stored numbers are read"):
        source = opened(path)
    assert values(source) == {"stay": [90_000, 5]}


def days(year: int, month: int, day: int) -> int:
    return (datetime.date(year, month, day) - datetime.date(1960, 1, 1)).days


@pytest.mark.parametrize(
    "program, stored, number, meaning",
    [
        ("spss", "MOYR8", 13_797_216_000, datetime.date(2020, 1, 1)),
        ("spss", "EDATE10", 0, datetime.date(1582, 10, 14)),
        ("spss", "YMDHMS19.2", 13_797_216_000.25, datetime.datetime(2020, 1, 1, 0, 0, 0, 250_000)),
        ("spss", "DTIME10", 90_000, 90_000),
        ("spss", "WKDAY3", 3, 3),
        ("spss", "F8.2", 3, 3),
        ("stata", "%td", days(2020, 2, 29), datetime.date(2020, 2, 29)),
        ("stata", "%-tdDD/NN/CCYY", -1, datetime.date(1959, 12, 31)),
        ("stata", "%d", 0, datetime.date(1960, 1, 1)),
        ("stata", "%tw", 52 * 60 + 8, datetime.date(2020, 2, 26)),
        ("stata", "%tm", -1, datetime.date(1959, 12, 1)),
        ("stata", "%tq", 4 * 60 + 3, datetime.date(2020, 10, 1)),
        ("stata", "%th", 2 * 60 + 1, datetime.date(2020, 7, 1)),
        ("stata", "%ty", 2020, 2020),
        ("stata", "%tC", 1_893_456_027_000, 1_893_456_027_000),  # has leap seconds
        ("stata", "%tc", 1, datetime.datetime(1960, 1, 1, 0, 0, 0, 1000)),
        ("stata", "%tcHH:MM", 3_600_000, datetime.time(1)),
        ("stata", "%9.0g", 7, 7),
        ("sas", "DATE9.", days(2020, 2, 29), datetime.date(2020, 2, 29)),
        ("sas", "YYMMDDN8.", days(2020, 2, 29), datetime.date(2020, 2, 29)),
        ("sas", "E8601DA10.", days(2020, 2, 29), datetime.date(2020, 2, 29)),
        ("sas", "E8601DT26.6", 86_400, datetime.datetime(1960, 1, 2)),
        ("sas", "TIME8.", 61, datetime.time(0, 1, 1)),
        ("sas", "BEST12.", 61, 61),
        ("sas", "COMMA10.2", 61.5, 61.5),
        ("sas", None, 61, 61),
    ],
)
def test_a_format_says_what_a_number_means(program: str, stored: str | None, number: float, meaning: object) -> None:
    facts = NumberFacts("double", time_format(program, stored))
    column = pa.array([number, None], pa.float64())
    facts.see(column)
    assert facts.typed(column).to_pylist() == [meaning, None]


def test_a_date_with_a_time_of_day_is_a_moment() -> None:
    facts = NumberFacts("double", time_format("spss", "DATE11"))
    column = pa.array([13_797_216_000.0, 13_797_216_060.0])
    facts.see(column)
    assert facts.typed(column).to_pylist() == [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, 0, 1)]


def test_a_file_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistical_source, "CELLS", 10)
    columns = {"x": [float(row) for row in range(23)], "y": [float(row % 2) for row in range(23)]}
    for suffix in (".sav", ".dta", ".xpt"):
        source = opened(write(tmp_path, suffix, columns))
        batches = list(source.batches(["y", "x"]))
        assert [batch.num_rows for batch in batches] == [5, 5, 5, 5, 3]
        assert pa.Table.from_batches(batches).to_pydict() == {"y": columns["y"], "x": columns["x"]}
        assert source.rows == 23


@pytest.mark.parametrize("suffix", [*WRITERS, ".sas7bdat"])
def test_a_damaged_file_is_refused_without_a_cell(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    path.write_text(SECRET * 900)
    assert "it is damaged, encrypted, or not what its name says. Save it again." in refusal(path)


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path, suffix, {"x": [float(row) for row in range(99)], "y": [SECRET] * 99})
    path.write_bytes(path.read_bytes()[:-300])
    assert "it is damaged, encrypted, or not what its name says. Save it again." in refusal(path)


def test_text_in_another_encoding_is_refused_with_the_flag_to_add(tmp_path: Path) -> None:
    path = write(tmp_path, ".sav", {"x": [f"{SECRET} ÄÄ", "y"]})
    path.write_bytes(path.read_bytes().replace("ÄÄ".encode(), "ÄÄ  ".encode("cp1252")))
    assert "Set --encoding, or encoding in [input], to that of the file, such as 'cp1252'." in refusal(path)
    assert values(opened(path, encoding="cp1252")) == {"x": [f"{SECRET} ÄÄ", "y"]}


def test_a_file_that_crashes_the_library_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, ".sav", {"x": [1.0]})
    tried = []
    monkeypatch.setattr(statistical_source, "crashes", lambda *arguments: tried.append(arguments) or True)
    assert "it is damaged, encrypted, or not what its name says. Save it again." in refusal(path, encoding="latin-1")
    assert tried == [(statistical_source.PROBE, path, "read_sav", "iso8859-1")]


@pytest.mark.not_quick
def test_the_probe_reads_a_whole_file_without_a_crash(tmp_path: Path) -> None:
    path = write(tmp_path, ".sav", {"x": [1.0]})
    code = statistical_source.PROBE + "\nimport os; os.abort()"
    assert crashes(code, path, "read_sav", "cp1252")  # it got to its end
    assert not crashes(statistical_source.PROBE, path, "read_sav")


def test_a_missing_package_is_said_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, ".sav", {"x": [1.0]})
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    assert "Install it with: pip install 'sfumato[statistics]'" in refusal(path)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    source = opened(write(tmp_path, ".sav", {"x": [1.0, 2.0]}))
    write(tmp_path, ".sav", {"x": [1.0, 2.0, 3.0]})
    with pytest.raises(InputError, match="changed while it was read"):
        values(source)


@pytest.fixture
def survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write(
        tmp_path,
        ".sav",
        {
            "age": [float(20 + row % 30) for row in range(60)],
            "sex": [float(1 + row % 2) for row in range(60)],
            "income": [float(-1 if row % 9 == 0 else 900 + row * 7) for row in range(60)],
        },
        variable_value_labels={"sex": {1: "male", 2: "female"}, "income": {-1: "no answer"}},
        column_labels={"sex": "Sex of the respondent"},
    )


@pytest.mark.parametrize("tokens", [[], ["--column-null", "income=-1"]])
def test_a_first_policy_fixes_how_labels_are_read_and_quotes_what_the_file_says(
    survey: Path, tokens: list[str]
) -> None:
    assert main(["policy", str(survey), "-o", "policy.toml", *tokens]) == 0
    text = Path("policy.toml").read_text("utf-8")
    assert tomllib.loads(text)["input"] == {"labels": ["sex"]}
    assert "[columns.sex]\n# Sex of the respondent\n" in text


@pytest.mark.not_quick
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_release_holds_labels_or_codes_as_the_flag_says(
    survey: Path, engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--quasi-identifiers", "age", "--other", "sex", "--drop", "income", "-k", "5", "--engine", engine]
    expected = {"on": {"male", "female"}, "off": {"1", "2"}, "sex": {"male", "female"}, "income": {"1", "2"}}
    for flag, released in expected.items():
        assert main(["anonymize", str(survey), "-o", "release.csv", *asked, "--labels", flag, "--force"]) == 0
        with Path("release.csv").open(newline="", encoding="utf-8") as file:
            assert {row["sex"] for row in csv.DictReader(file)} == released
        assert ("labels for fewer than half" in capsys.readouterr().err) == (flag == "on")


@pytest.mark.parametrize("name", ["release.sav", "release.dta", "release.xpt"])
def test_a_release_is_not_written_in_such_a_format(survey: Path, name: str) -> None:
    with pytest.raises(
        UsageError, match=rf"the output '{name}' has no suffix that names a format. Use .parquet, .arrow"
    ):
        sfumato.anonymize(survey, quasi_identifiers=["age"], other="drop", k=5, input={"labels": False}).write(name)


def test_spark_refuses_such_a_file_in_the_words_of_all_refusals(survey: Path) -> None:
    with pytest.raises(UsageError) as caught:
        sfumato.anonymize(survey, quasi_identifiers=["age"], other="drop", k=5, engine="spark")
    assert str(caught.value) == (
        "the spark engine does not support files of SPSS, Stata and SAS. Leave it out, or choose --engine memory or "
        "--engine disk."
    )


@pytest.mark.parametrize("labels", ["x", [1], {"a": 1}, [""]])
def test_a_wrong_setting_of_labels_is_said(labels: object) -> None:
    with pytest.raises(UsageError, match="labels must be true, false, or a list of the columns that are read by"):
        sfumato.Policy.from_dict({"input": {"labels": labels}})
