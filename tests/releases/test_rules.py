"""A recoding as rules: JSON that gives the same recoding again, and SQL that gives the same rows in two databases."""

from __future__ import annotations

import json
import math
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given, settings
from numpy.typing import NDArray
from recoding_tables import ASKED, people
from strategies import Case, cases

import sfumato
from sfumato.errors import InputError, UsageError
from sfumato.tables.coding.domains import NumericDomain

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
Rows = list[tuple[Any, ...]]


# ---- JSON ----


@given(cases(rows=16))
def test_json_gives_the_same_recoding_again(tmp_path_factory: pytest.TempPathFactory, case: Case) -> None:
    recoding = sfumato.fit(case.table, **case.settings(tmp_path_factory.mktemp("case")))
    again = sfumato.Recoding.from_json(recoding.to_json())
    assert again.to_json() == recoding.to_json()
    assert again.labels() == recoding.labels()
    assert again.regions_of(case.table).tolist() == recoding.regions_of(case.table).tolist()
    assert again.transform(case.table).equals(recoding.transform(case.table))
    assert again.bounds(case.table).tolist() == recoding.bounds(case.table).tolist()


def test_a_file_of_rules_is_its_owners_alone_and_loads_without_the_taxonomy_files(tmp_path: Path) -> None:
    tree = tmp_path / "zip.csv"
    tree.write_text("".join(f"{code},{code[:2]},*\n" for code in ("10115", "10117", "20095", "20099", "80331")))
    recoding = sfumato.fit(people(), **{**ASKED, "taxonomy": {"zip": str(tree)}})
    file = recoding.write(tmp_path / "rules.json")
    tree.unlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = sfumato.Recoding.load(file)
    assert again.transform(people()).equals(recoding.transform(people()))
    assert str(tmp_path) not in file.read_text()


def test_the_rules_can_be_read_by_a_person() -> None:
    table = pa.table({"age": [20, 30, 40, 50], "sex": ["F", "F", "F", "F"]})
    rules = json.loads(sfumato.fit(table, quasi_identifiers=["age", "sex"], k=2).to_json())
    assert rules["columns"][0] == {
        "name": "age", "kind": "numeric", "null": False, "whole": True, "bounds": [20, 30, 31, 50],
    }  # fmt: skip
    assert rules["nodes"] == [
        {"split": "age", "to": [30, 50], "parts": [1, 2]},
        {"region": 0, "shows": ["[20..30]", "F"]},
        {"region": 1, "shows": ["[31..50]", "F"]},
    ]


def test_rules_hold_no_value_but_bounds_of_regions_and_categories() -> None:
    text = sfumato.fit(people(), **ASKED).to_json()
    rules = json.loads(text)
    told = {bound for column in rules["columns"] for bound in column.get("bounds", [])}
    weights = set(people()["weight"].to_pylist())
    assert weights - told
    assert not any(f" {weight}" in text for weight in weights - told)
    assert "flu" not in text
    assert "p17" not in text


def test_rounded_rules_do_not_hold_the_smallest_and_the_largest_value() -> None:
    ages = [*range(23, 60), 77]
    recoding = sfumato.fit(pa.table({"age": ages}), quasi_identifiers="age", round={"age": 10}, k=4, method="mondrian")
    (column,) = json.loads(recoding.to_json())["columns"]
    assert (min(column["bounds"]), max(column["bounds"])) == (20, 80)
    assert not {'"23"', "23", "77"} & set(re.findall(r"[\w\"]+", recoding.to_json()))
    exact = sfumato.fit(pa.table({"age": ages}), quasi_identifiers="age", k=4, method="mondrian")
    shown = [labels for (labels,) in recoding.labels()]
    assert shown[0].startswith("[20..")
    assert shown[-1].endswith("..80]")
    assert len(recoding) == len(exact)
    assert recoding.regions_of(pa.table({"age": ages})).tolist() == exact.regions_of(pa.table({"age": ages})).tolist()


def node(rules: dict[str, Any], number: int) -> list[Any]:
    """A node of the taxonomy of postal codes: its label, parent, first and last leaf."""
    found: list[Any] = rules["columns"][3]["taxonomy"]["nodes"][number]
    return found


def damaged() -> Iterator[tuple[str, Callable[[dict[str, Any]], Any]]]:
    yield "no nodes", lambda rules: rules.pop("nodes")
    yield "a part too few", lambda rules: rules["nodes"][0]["parts"].pop()
    yield "an unknown column", lambda rules: rules["nodes"][0].update(split="nothing")
    yield "a bound that is none", lambda rules: rules["nodes"][0]["to"].__setitem__(0, 3)
    yield "bounds that descend", lambda rules: rules["columns"][0]["bounds"].reverse()
    yield "a node that nothing leads to", lambda rules: rules["nodes"].append({"region": 9, "shows": []})
    yield "no policy", lambda rules: rules.update(policy={})
    yield "another key in the policy", lambda rules: rules["policy"].update(nothing=1)
    yield "a kind that is a table", lambda rules: rules["columns"][0].update(kind={})
    yield "another kind", lambda rules: rules["columns"][2].update(kind="nothing")
    yield "a name that is a list", lambda rules: rules["columns"][0].update(name=[])
    yield "bounds that are a text", lambda rules: rules["columns"][0].update(bounds="17")
    yield "bounds that are no numbers", lambda rules: rules["columns"][0]["bounds"].__setitem__(0, "17")
    yield "a bound that is no whole number", lambda rules: rules["columns"][0]["bounds"].__setitem__(0, 16.5)
    yield "a bound beyond 64 bits", lambda rules: rules["columns"][0]["bounds"].__setitem__(-1, 10**30)
    yield "dates that are numbers", lambda rules: rules["columns"][2]["bounds"].__setitem__(0, 3)
    yield "a column that is a number", lambda rules: rules["columns"].__setitem__(0, 3)
    yield "taxonomies in a list", lambda rules: rules.update(taxonomies=[])
    yield "a node that is a number", lambda rules: rules["nodes"].__setitem__(1, 3)
    yield "parts that are a number", lambda rules: rules["nodes"][0].update(parts=3)
    yield "a split that is a table", lambda rules: rules["nodes"][0].update(split={})
    yield "an end that is a table", lambda rules: rules["nodes"][0]["to"].__setitem__(0, {})
    yield "a format that is a text", lambda rules: rules.update(format="1")
    yield "names that are a number", lambda rules: rules.update(names=3)
    yield "a method that is a list", lambda rules: rules.update(method=[])
    yield "a policy that is a list", lambda rules: rules.update(policy=[])
    yield (
        "a kind of requirement that is a table",
        lambda rules: rules["policy"]["privacy"].update(sensitive=[{"attribute": "diagnosis", "kind": {}}]),
    )
    yield "a leaf that is a number", lambda rules: rules["columns"][3]["taxonomy"]["leaves"].__setitem__(0, 3)
    yield "a leaf that occurs twice", lambda rules: rules["columns"][3]["taxonomy"]["leaves"].__setitem__(0, "10117")
    yield "a taxonomy without nodes", lambda rules: rules["columns"][3]["taxonomy"].update(nodes=[])
    yield "a group that begins before the first leaf", lambda rules: node(rules, 1).__setitem__(2, -1)
    yield "a group that ends after the last leaf", lambda rules: node(rules, 1).__setitem__(3, 99)
    yield "a group that ends before it begins", lambda rules: node(rules, 1).__setitem__(2, 4)
    yield "a group of other leaves", lambda rules: node(rules, 1).__setitem__(3, 2)
    yield "a leaf of another name", lambda rules: node(rules, 2).__setitem__(0, "99999")
    yield "a root of another name", lambda rules: node(rules, 0).__setitem__(0, "all")
    yield "a taxonomy in a circle", lambda rules: rules["columns"][3]["taxonomy"]["nodes"][1].__setitem__(1, 1)


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in damaged()])
def test_damaged_rules_are_refused(change: Callable[[dict[str, Any]], Any]) -> None:
    rules = json.loads(sfumato.fit(people(), **ASKED).to_json())
    change(rules)
    with pytest.raises(InputError, match="are damaged"):
        sfumato.Recoding.from_json(json.dumps(rules))


def test_rules_that_show_something_else_than_their_bounds_are_refused() -> None:
    text = sfumato.fit(people(), **ASKED).to_json()
    with pytest.raises(InputError, match="were changed"):
        sfumato.Recoding.from_json(text.replace('"shows": ["[17..', '"shows": ["[18..', 1))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"what": "else"}', "age,zip\n1,2\n", "[" * 100_000])
def test_what_is_no_rules_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text(text)
    with pytest.raises(InputError, match="holds no recoding rules"):
        sfumato.Recoding.load(file)


def test_a_file_that_is_not_there_and_one_of_a_later_format_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read: no such file"):
        sfumato.Recoding.load(tmp_path / "nothing.json")
    text = sfumato.fit(people(), **ASKED).to_json().replace('"format": 1', '"format": 99')
    with pytest.raises(InputError, match="format 99, but this version reads the formats 1 and 2"):
        sfumato.Recoding.from_json(text)


# ---- SQL ----

HOSTILE = 'a"b; DROP TABLE "people"; --'


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def in_duckdb(recoding: sfumato.Recoding, table: pa.Table, name: str = "people") -> Rows:
    with duckdb.connect() as connection:
        connection.register("given", table)
        quoted = name.replace('"', '""')
        connection.execute(f'CREATE TABLE "{quoted}" AS SELECT * FROM given')
        return connection.execute(recoding.to_sql("duckdb", name)).fetchall()


@given(cases(rows=16))
def test_duckdb_gives_the_rows_of_transform(tmp_path_factory: pytest.TempPathFactory, case: Case) -> None:
    recoding = sfumato.fit(case.table, **case.settings(tmp_path_factory.mktemp("case")))
    half = case.table.slice(0, max(1, case.table.num_rows // 2))
    other = sfumato.fit(half, **{**case.settings(tmp_path_factory.mktemp("case")), "k": 1})
    for one in (recoding, other):  # with the second, some values lie outside the domain
        expected = rows_of(one.transform(case.table))
        assert Counter(map(plain, in_duckdb(one, case.table))) == Counter(map(plain, expected.elements()))


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(None if isinstance(value, float) and math.isnan(value) else value for value in row)


TYPES = {pa.int64(): "bigint", pa.float64(): "double precision", pa.date32(): "date", pa.string(): "text"}


def in_postgresql(connection: Any, recoding: sfumato.Recoding, table: pa.Table, name: str = "people") -> Rows:
    from psycopg import sql

    columns = [
        sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(TYPES.get(field.type, "timestamp")))
        for field in table.schema
    ]
    identifier = sql.Identifier(name)
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE TEMPORARY TABLE {} ({})").format(identifier, sql.SQL(", ").join(columns)))
        try:
            places = sql.SQL(", ").join([sql.Placeholder()] * table.num_columns)
            filled = sql.SQL("INSERT INTO {} VALUES ({})").format(identifier, places)
            cursor.executemany(filled, [tuple(row.values()) for row in table.to_pylist()])
            cursor.execute(recoding.to_sql("postgresql", name))
            return list(cursor.fetchall())
        finally:
            cursor.execute(sql.SQL("DROP TABLE {}").format(identifier))


@pytest.mark.not_quick
@settings(max_examples=examples(0.4))
@given(case=cases(rows=12))
def test_postgresql_gives_the_rows_of_transform(
    tmp_path_factory: pytest.TempPathFactory, postgres: Any, case: Case
) -> None:
    half = case.table.slice(0, max(1, case.table.num_rows // 2))
    recoding = sfumato.fit(half, **{**case.settings(tmp_path_factory.mktemp("case")), "k": 1})
    found = Counter(map(plain, in_postgresql(postgres, recoding, case.table)))
    assert found == Counter(map(plain, rows_of(recoding.transform(case.table)).elements()))


@pytest.mark.parametrize("form", ["labels", "bounds"])
def test_both_databases_give_the_rows_of_transform_for_records_that_were_not_there(postgres: Any, form: str) -> None:
    recoding = sfumato.fit(people(300), **ASKED, form=form)
    new = people(500, seed=2)
    expected = rows_of(recoding.transform(new))
    assert ("*",) * 5 in {row[:5] for row in expected} or form == "bounds"
    assert Counter(in_duckdb(recoding, new)) == expected
    assert Counter(in_postgresql(postgres, recoding, new)) == expected


def test_names_and_categories_that_would_break_out_of_a_query_are_only_names(postgres: Any) -> None:
    values = ["'; DROP TABLE people; --", 'x"y', "back\\slash", "line\nbreak", "%s {} $1", "ümläut", "'", "--"]
    table = pa.table(
        {
            HOSTILE: values * 4,
            "region": [row % 7 for row in range(32)],
            "q0": [row / 4 for row in range(32)],
            "Select": ["s"] * 32,
        }
    )
    keys = [HOSTILE, "region", "q0"]
    recoding = sfumato.fit(table, quasi_identifiers=keys, other="keep", k=3, accept_linkable=["Select"])
    expected = rows_of(recoding.transform(table))
    assert Counter(in_duckdb(recoding, table, HOSTILE)) == expected
    assert Counter(in_postgresql(postgres, recoding, table, HOSTILE)) == expected


def test_a_schema_and_a_table_are_quoted_apart() -> None:
    query = sfumato.fit(people(), **ASKED).to_sql("duckdb", ("main", "a.b"))
    assert 'FROM "main"."a.b"\n' in query


def test_a_dialect_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match=r"unknown dialect of SQL 'mysql'. Available: 'duckdb', 'postgresql'"):
        sfumato.fit(people(), **ASKED).to_sql("mysql", "people")


@dataclass(frozen=True)
class Chain:
    """A tree that divides off one value after the other, so that it is as deep as it has leaves."""

    attribute: NDArray[np.int64]
    first_child: NDArray[np.int64]
    low: NDArray[np.uint32]
    high: NDArray[np.uint32]

    @classmethod
    def of(cls, leaves: int) -> Chain:
        # Node 2i is divided into node 2i + 1, which is the value i alone, and node 2i + 2.
        nodes = np.arange(2 * leaves - 1)
        divided = (nodes % 2 == 0) & (nodes < len(nodes) - 1)
        low = (nodes // 2)[:, None].astype(np.uint32)
        high = np.where(nodes % 2 == 0, leaves - 1, nodes // 2)[:, None].astype(np.uint32)
        return cls(np.where(divided, 0, -1), np.where(divided, nodes + 1, -1), low, high)


def chained(leaves: int) -> sfumato.Recoding:
    policy = sfumato.Policy.from_dict({"columns": {"age": {"role": "quasi-identifier"}}, "privacy": {"k": 1}})
    return sfumato.Recoding.of(
        Chain.of(leaves), [NumericDomain("age", np.arange(leaves), False)], policy=policy, method="mondrian"
    )


def test_regions_nested_as_deep_as_a_query_may_be_are_run_by_both(postgres: Any) -> None:
    recoding, table = chained(195), pa.table({"age": range(-1, 196)})
    expected = rows_of(recoding.transform(table))
    assert expected == Counter({("*",): 2, **{(str(age),): 1 for age in range(195)}})
    assert Counter(in_duckdb(recoding, table)) == expected
    assert Counter(in_postgresql(postgres, recoding, table)) == expected


def test_regions_nested_deeper_are_refused() -> None:
    with pytest.raises(UsageError, match="nested more than 200 deep"):
        chained(300).to_sql("duckdb", "people")
