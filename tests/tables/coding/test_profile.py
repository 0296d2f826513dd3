"""What a quasi-identifier is: numbers, dates or categories, from text and from typed columns."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest

import sfumato
from sfumato.pipeline.prepare import prepare
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain


def domain_of(data: object, **settings: Any) -> Domain:
    policy = merge_flags(None, quasi_identifiers=["q"], other="drop", k=1, **settings)
    return prepare(data, policy, Progress()).encoded.domains[0]


def csv_of(tmp_path: Path, *cells: str, encoding: str = "utf-8") -> Path:
    path = tmp_path / "table.csv"
    path.write_bytes("".join(f"{line}\n" for line in ("q;r", *(f"{cell};0" for cell in cells))).encode(encoding))
    return path


def inferred(tmp_path: Path, *cells: str, options: dict[str, Any] | None = None, **settings: Any) -> Domain:
    return domain_of(csv_of(tmp_path, *cells), input={"separator": ";", **(options or {})}, **settings)


def values_of(domain: Domain) -> list[Any]:
    assert isinstance(domain, NumericDomain)
    values: list[Any] = domain.values.tolist()
    return values


def leaves_of(domain: Domain) -> tuple[str, ...]:
    assert isinstance(domain, CategoricalDomain)
    return domain.taxonomy.leaves


def test_text_of_whole_numbers_is_numeric(tmp_path: Path) -> None:
    domain = inferred(tmp_path, "5", "-3", "+4", "0", " 7 ")
    assert values_of(domain) == [-3, 0, 4, 5, 7]
    assert isinstance(domain, NumericDomain)
    assert domain.values.dtype == np.int64


def test_text_of_decimals_is_numeric(tmp_path: Path) -> None:
    assert values_of(inferred(tmp_path, "5.5", "-3", "1e3", ".5", "-0.0", "0")) == [-3, 0, 0.5, 5.5, 1000]


def test_decimal_comma_is_read_where_the_policy_says_so(tmp_path: Path) -> None:
    assert values_of(inferred(tmp_path, "5,5", "-3", options={"decimal": ","})) == [-3, 5.5]
    assert leaves_of(inferred(tmp_path, "5,5", "-3")) == ("-3", "5,5")
    assert leaves_of(inferred(tmp_path, "5.5", "-3", options={"decimal": ","})) == ("-3", "5.5")


@pytest.mark.parametrize("cells", [("007", "12"), ("00118", "50121"), ("-01", "5")])
def test_leading_zeros_make_categories(tmp_path: Path, cells: tuple[str, ...]) -> None:
    assert leaves_of(inferred(tmp_path, *cells)) == cells


def test_leading_zeros_are_numbers_where_the_policy_says_so(tmp_path: Path) -> None:
    assert values_of(inferred(tmp_path, "007", "12", type={"q": "numeric"})) == [7, 12]


def test_numbers_are_categories_where_the_policy_says_so(tmp_path: Path) -> None:
    assert leaves_of(inferred(tmp_path, "10", "9", type={"q": "categorical"})) == ("10", "9")
    assert leaves_of(inferred(tmp_path, "10", "9", taxonomy={"q": "flat"})) == ("10", "9")
    assert leaves_of(domain_of(pa.table({"q": [1.0, 2.5]}), type={"q": "categorical"})) == ("1", "2.5")


def test_iso_dates_are_dates_and_with_a_time_moments(tmp_path: Path) -> None:
    days = inferred(tmp_path, "1970-01-03", "1969-12-31")
    assert (days.kind, values_of(days)) == ("date", [-1, 2])
    moments = inferred(tmp_path, "1970-01-01T00:00:01", "1970-01-01 00:00:02.5", "1970-01-01T01:00:03+01:00")
    assert (moments.kind, values_of(moments)) == ("moment", [1_000_000, 2_500_000, 3_000_000])
    midnights = inferred(tmp_path, "1970-01-01 00:00:00", "1970-01-02T00:00:00")
    assert (midnights.kind, values_of(midnights)) == ("date", [0, 1])


def test_date_format_of_the_policy_is_used(tmp_path: Path) -> None:
    days = inferred(tmp_path, "03.01.1970", "31.12.1969", options={"date_format": "%d.%m.%Y"})
    assert (days.kind, values_of(days)) == ("date", [-1, 2])
    assert inferred(tmp_path, "03.01.1970", "31.12.1969").kind == "categorical"
    years = inferred(tmp_path, "19700103", "19691231", options={"date_format": "%Y%m%d"})
    assert (years.kind, values_of(years)) == ("date", [-1, 2])


def test_numbers_beside_dates_with_a_format_stay_numbers(tmp_path: Path) -> None:
    assert values_of(inferred(tmp_path, "31", "44", options={"date_format": "%d.%m.%Y"})) == [31, 44]


def test_null_tokens_are_null(tmp_path: Path) -> None:
    domain = inferred(tmp_path, "5", "NA", "?", "", options={"nulls": ["", "NA", "?"]})
    assert (values_of(domain), domain.has_null) == ([5], True)
    cities = inferred(tmp_path, "Roma", "NA", "Pisa", options={"nulls": ["NA"]})
    assert (leaves_of(cities), cities.has_null) == (("Pisa", "Roma"), True)
    assert leaves_of(inferred(tmp_path, "Roma", "NA")) == ("NA", "Roma")


def test_nan_is_null(tmp_path: Path) -> None:
    assert (values_of(inferred(tmp_path, "1.5", "nan")), inferred(tmp_path, "1.5", "NaN").has_null) == ([1.5], True)
    domain = domain_of(pa.table({"q": [1.5, float("nan")]}))
    assert (values_of(domain), domain.has_null) == ([1.5], True)
    domain = domain_of(pandas.DataFrame({"q": [1.5, float("nan")]}))
    assert (values_of(domain), domain.has_null) == ([1.5], True)


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999"])
def test_infinities_are_refused(tmp_path: Path, cell: str) -> None:
    with pytest.raises(sfumato.InputError, match=r"'q' holds 1 infinite number"):
        inferred(tmp_path, "1", cell)
    with pytest.raises(sfumato.InputError, match=r"'q' holds 1 infinite number"):
        domain_of(pa.table({"q": [1.0, float(cell)]}))


def test_cell_that_is_no_number_is_refused_by_its_place_alone(tmp_path: Path) -> None:
    with pytest.raises(sfumato.InputError, match="1 distinct value is not a number; the first is in line 4") as error:
        inferred(tmp_path, "5", "6", "Zaphod", type={"q": "numeric"})
    assert "Zaphod" not in str(error.value)
    with pytest.raises(sfumato.InputError, match=r"not a date of the form %d\.%m\.%Y; the first is in line 3"):
        inferred(tmp_path, "01.01.1970", "x", options={"date_format": "%d.%m.%Y"}, type={"q": "date"})


@pytest.mark.parametrize("rule", [{"intervals": [5]}, {"calendar": ["month"]}])
def test_taxonomy_rule_makes_the_column_numbers_or_dates(tmp_path: Path, rule: dict[str, Any]) -> None:
    with pytest.raises(sfumato.InputError, match="the first is in line 3"):
        inferred(tmp_path, "1970-01-01" if "calendar" in rule else "1", "x", taxonomy={"q": rule})
    texts = ["1970-01-09", "1970-01-03"] if "calendar" in rule else ["8", "2"]
    assert values_of(domain_of(pa.table({"q": texts}), taxonomy={"q": rule})) == [2, 8]
    nothing = domain_of(pa.table({"q": pa.nulls(2, pa.string())}), taxonomy={"q": rule})
    assert (values_of(nothing), nothing.has_null) == ([], True)


def test_star_in_the_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sfumato.InputError, match=r"'q' holds the value '\*'"):
        inferred(tmp_path, "a", "*")
    assert leaves_of(inferred(tmp_path, "a", "*", options={"nulls": ["*"]})) == ("a",)


@pytest.mark.parametrize(
    ("column", "kind", "values"),
    [
        (pa.array([3, 1, None], pa.int8()), "numeric", [1, 3]),
        (pa.array([3, 2**63 - 1], pa.uint64()), "numeric", [3, 2**63 - 1]),
        (pa.array([-(2**63), 2**63 - 1], pa.int64()), "numeric", [-(2**63), 2**63 - 1]),
        (pa.array([2.5, -0.0, 0.0], pa.float64()), "numeric", [0, 2.5]),
        (pa.array([2.5, 1.0], pa.float32()), "numeric", [1, 2.5]),
        (pa.array([decimal.Decimal("2.50"), decimal.Decimal("1")]), "numeric", [10, 25]),
        (pa.array([3, 1, 3]).dictionary_encode(), "numeric", [1, 3]),
        (pa.array([datetime.date(1970, 1, 3), None]), "date", [2]),
        (pa.array([86_400_000], pa.date64()), "date", [1]),
        (pa.array([5, 7], pa.timestamp("s")), "moment", [5_000_000, 7_000_000]),
        (pa.array([5_000, 7_000], pa.timestamp("ns", "UTC")), "moment", [5, 7]),
        (pa.array([0, 86_400], pa.timestamp("s")), "date", [0, 1]),
    ],
    ids=str,
)
def test_typed_columns_keep_their_meaning(column: pa.Array, kind: str, values: list[Any]) -> None:
    domain = domain_of(pa.table({"q": column}))
    assert (domain.kind, values_of(domain), domain.has_null) == (kind, values, column.null_count > 0)


def test_booleans_and_text_of_typed_tables_are_categories() -> None:
    assert leaves_of(domain_of(pa.table({"q": [True, False, None]}))) == ("false", "true")
    assert leaves_of(domain_of(pa.table({"q": ["10", "9", ""]}))) == ("", "10", "9")
    assert values_of(domain_of(pa.table({"q": ["10", "9"]}), type={"q": "numeric"})) == [9, 10]


def test_unused_categories_of_pandas_are_no_part_of_the_domain() -> None:
    series = pandas.Series(["b", "a", None], dtype=pandas.CategoricalDtype(["zz", "b", "a"], ordered=True))
    domain = domain_of(pandas.DataFrame({"q": series}))
    assert (leaves_of(domain), domain.has_null) == (("a", "b"), True)
    numbers = pandas.Series([2, 1, 2], dtype="category")
    assert values_of(domain_of(pandas.DataFrame({"q": numbers}))) == [1, 2]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**64 - 1, 1], pa.uint64()),
        pa.array([10**7, 5], pa.int32()).cast(pa.date32()),
        pa.array([2**63 - 1, 5], pa.int64()).cast(pa.timestamp("us")),
        pa.array([2**60, 5], pa.int64()).cast(pa.timestamp("s")),
        pa.array([86_400_005, 5], pa.int64()).cast(pa.date64()),
    ],
    ids=["uint64", "date32", "timestamp[us]", "timestamp[s]", "date64"],
)
def test_what_cannot_be_held_exactly_is_refused_without_showing_it(column: pa.Array) -> None:
    with pytest.raises(sfumato.InputError, match="column 'q' holds") as error:
        domain_of(pa.table({"q": column}))
    assert not any(digits in str(error.value) for digits in ("18446744073709551615", "86400005", "9223372036854775807"))
    assert error.value.__suppress_context__ or error.value.__context__ is None


def test_text_of_numbers_beyond_64_bits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sfumato.InputError, match="64 bits"):
        inferred(tmp_path, str(2**63), "5")
    assert values_of(inferred(tmp_path, str(2**63 - 1), str(-(2**63)))) == [-(2**63), 2**63 - 1]
    assert leaves_of(inferred(tmp_path, str(2**63), "5", type={"q": "categorical"})) == ("5", str(2**63))


@pytest.mark.parametrize(
    ("column", "type_"),
    [(pa.array([[1]]), "list<"), (pa.array([b"x"]), "binary"), (pa.array([datetime.time(1)]), "time64")],
    ids=["list", "binary", "time"],
)
def test_types_that_have_no_ranges_are_refused(column: pa.Array, type_: str) -> None:
    with pytest.raises(sfumato.InputError, match=f"type {type_}"):
        domain_of(pa.table({"q": column}))


def test_value_outside_the_taxonomy_is_refused_by_its_place(tmp_path: Path) -> None:
    path = tmp_path / "taxonomy.csv"
    path.write_text("1,*\n2,*\ntrue,*\n")
    asked = {"taxonomy": {"q": str(path)}}
    with pytest.raises(sfumato.TaxonomyError, match="1 distinct value is not in the taxonomy") as error:
        domain_of(pa.table({"q": ["1", "2", "Zaphod"]}), **asked)
    assert "record 3" in str(error.value)
    assert "Zaphod" not in str(error.value)
    with pytest.raises(sfumato.TaxonomyError) as error:
        domain_of(pa.table({"q": [True, True, None, False]}), **asked)
    assert "record 4" in str(error.value)
    with pytest.raises(sfumato.TaxonomyError) as error:
        domain_of(pa.table({"q": [2, 2, 1, 77]}), **asked)
    assert "record 1" not in str(error.value)


def test_leaves_of_a_taxonomy_stay_when_no_record_has_them(tmp_path: Path) -> None:
    path = tmp_path / "taxonomy.csv"
    path.write_text("1,low,*\n2,low,*\n30,high,*\n")
    assert leaves_of(domain_of(pa.table({"q": [2, 2]}), taxonomy={"q": str(path)})) == ("1", "2", "30")


def test_column_without_values_has_null_alone(tmp_path: Path) -> None:
    for data in (pa.table({"q": pa.nulls(2)}), pa.table({"q": pa.nulls(2, pa.float64())}), csv_of(tmp_path, "", "")):
        domain = domain_of(data, input={"separator": ";"})
        assert (domain.size, domain.has_null) == (1, True)


def test_many_distinct_values_over_several_batches_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.tables.sources.source_batches.BATCH_ROWS", 100)
    generator = np.random.default_rng(3)
    values = generator.permutation(np.arange(0, 10**9, 10**6))
    domain = domain_of(pa.table({"q": values}))
    assert values_of(domain) == sorted(values.tolist())
    texts = [f"v{value}" for value in values]
    assert leaves_of(domain_of(pa.table({"q": texts}))) == tuple(sorted(texts))
