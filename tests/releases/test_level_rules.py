"""Rules of a recoding that shows every column on one level: learnt, written, read, and applied to other tables."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from sfumato.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

FIRST = datetime.date(2020, 1, 1)
CITIES = "Pisa,west,Tuscany,*\nLucca,west,Tuscany,*\nSiena,south,Tuscany,*\nRoma,Lazio,Lazio,*\n"
ASKED: dict[str, Any] = {
    "quasi_identifiers": ["age", "day", "zip", "weight"],
    "taxonomy": {
        "age": {"intervals": [5, 20]},
        "day": {"calendar": ["month", "year"]},
        "zip": {"prefix": [2]},
        "weight": {"intervals": [10.5, 21]},
    },
    "k": 5,
    "method": "global",
    "max_suppressed": 0.2,
}


def people(count: int = 200, seed: int = 1) -> pa.Table:
    generator = np.random.default_rng(seed)
    days = [FIRST + datetime.timedelta(days=int(day)) for day in generator.integers(0, 700, count)]
    return pa.table(
        {
            "age": pa.array([None if age == 20 else age for age in generator.integers(20, 60, count).tolist()]),
            "day": pa.array(days),
            "zip": generator.choice(["10115", "10117", "20095"], count),
            "weight": generator.normal(70, 9, count),
        }
    )


@pytest.mark.parametrize("method", ["global", "datafly", "samarati", "incognito"])
@pytest.mark.parametrize("form", ["labels", "bounds"])
def test_rules_recode_the_table_that_they_were_learnt_from_like_a_release(method: str, form: str) -> None:
    asked = {**ASKED, "method": method, "form": form}
    release, recoding = sfumato.anonymize(people(), **asked), sfumato.fit(people(), **asked)
    assert recoding.levels == release.summary()["levels"]
    applied = sfumato.apply(sfumato.Recoding.from_json(recoding.to_json()), people())
    assert applied.data.equals(release.data)
    assert recoding.transform(people()).equals(sfumato.Recoding.from_json(recoding.to_json()).transform(people()))


def test_numbers_and_days_beyond_those_of_the_first_table_have_cells() -> None:
    recoding = sfumato.fit(people(), **ASKED)
    assert recoding.levels == {"age": 2, "day": 2, "zip": 0, "weight": 2}
    new = pa.table(
        {
            "age": [1, 99, None],
            "day": [datetime.date(2031, 5, 1)] * 3,
            "zip": ["10117"] * 3,
            "weight": [500.5, 0.0, -1.0],
        }
    )
    assert [tuple(row.values()) for row in recoding.transform(new).to_pylist()] == [
        ("[0..19]", "2031", "10117", "[483..504]"),
        ("[80..99]", "2031", "10117", "[0..21]"),
        (None, "2031", "10117", "[-21..0]"),
    ]


def test_bounds_to_learn_from_are_those_of_cells() -> None:
    table = pa.table({"age": [*range(20, 60)] * 3})
    recoding = sfumato.fit(table, quasi_identifiers="age", taxonomy={"age": {"intervals": [20]}}, k=30, method="global")
    assert recoding.levels == {"age": 1}
    assert recoding.bounds(pa.table({"age": [1, 25, 59]})).tolist() == [[0, 19], [20, 39], [40, 59]]


def test_a_column_that_shows_a_star_shows_it_even_if_all_records_agree() -> None:
    recoding = sfumato.fit(people().select(["day", "zip"]), quasi_identifiers=["day", "zip"], k=5, method="global")
    assert recoding.levels == {"day": 1, "zip": 0}
    alike = pa.table({"day": [FIRST] * 6, "zip": ["10115"] * 6})
    assert sfumato.apply(recoding, alike).data.to_pylist() == [{"day": "*", "zip": "10115"}] * 6


def test_unknown_categories_are_outside_and_known_ones_show_their_group(tmp_path: Path) -> None:
    (tmp_path / "city.csv").write_text(CITIES)
    table = pa.table({"city": ["Pisa", "Lucca", "Roma", "Roma"]})
    recoding = sfumato.fit(
        table, quasi_identifiers="city", taxonomy={"city": tmp_path / "city.csv"}, k=2, method="global"
    )
    (tmp_path / "city.csv").unlink()
    again = sfumato.Recoding.from_json(recoding.to_json())
    assert again.levels == {"city": 1}
    new = pa.table({"city": ["Siena", "Roma", "Oslo"]})
    assert again.transform(new)["city"].to_pylist() == ["south", "Lazio", "*"]
    assert again.regions_of(new).tolist()[2] == -1


def test_classes_that_are_too_small_in_the_other_table_are_left_out_or_it_is_refused() -> None:
    recoding = sfumato.fit(people(), **ASKED)
    other = people(400, seed=2)
    applied = sfumato.apply(recoding, other)
    assert applied.audit.smallest_class >= 5
    with pytest.raises(sfumato.UnmetError, match=r"max_suppressed_fraction allows 0\.00%"):
        sfumato.apply(recoding, other, max_suppressed=0)


def test_rules_hold_no_number_of_the_table() -> None:
    rules = json.loads(sfumato.fit(people(), **ASKED).to_json())
    assert rules["format"] == 2
    assert [column.get("bounds", []) for column in rules["columns"]] == [[], [], [], []]
    assert rules["levels"] == {"age": 2, "day": 2, "zip": 0, "weight": 2}


@pytest.mark.parametrize("levels", [{"age": 2, "day": 2, "zip": 0}, {"age": 9, "day": 2, "zip": 0, "weight": 2}, {}])
def test_damaged_levels_are_refused(levels: dict[str, int]) -> None:
    rules = json.loads(sfumato.fit(people(), **ASKED).to_json())
    with pytest.raises(sfumato.InputError, match="are damaged"):
        sfumato.Recoding.from_json(json.dumps({**rules, "levels": levels}))


def test_cells_and_queries_have_no_rules() -> None:
    with pytest.raises(sfumato.UsageError, match="rules for further tables suppress no single cells"):
        sfumato.fit(people(), **ASKED, cells=True)
    with pytest.raises(sfumato.UsageError, match="are levels of columns, for which there is no query"):
        sfumato.fit(people(), **ASKED).to_sql("duckdb", "people")


def test_the_command_names_the_levels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "people.csv"
    table.write_text("age,city\n" + "30,Pisa\n31,Pisa\n30,Roma\n31,Roma\n" * 3)
    rules = tmp_path / "rules.json"
    arguments = [
        "fit",
        str(table),
        "-o",
        str(rules),
        "--quasi-identifiers",
        "age,city",
        "-k",
        "3",
        "--method",
        "global",
    ]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["levels"] == {"age": 0, "city": 0}
