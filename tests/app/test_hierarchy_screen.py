"""Hierarchies on the page: each action gives the policy that it should, and the command finds the same tree."""

from __future__ import annotations

import csv
import datetime
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from page_client import PageClient, alarm
from source_kinds import write_xlsx

from sfumato.cli import main

ORDER = ("age", "town", "zip", "born", "country", "ill", "person")


def position(column: str) -> int:
    return ORDER.index(column)


def settings(page: PageClient, column: str) -> dict[str, Any]:
    found: dict[str, Any] = page.opened.policy.to_dict()["columns"][column]
    return found


def rows(page: PageClient, column: str) -> dict[str, list[str]]:
    """The tree file of a column, read without the code of the product."""
    file = page.opened.directory / settings(page, column)["taxonomy"]
    with file.open(encoding="utf-8", newline="") as lines:
        return {leaf: groups for leaf, *groups in csv.reader(lines)}


def number_of(page: PageClient, label: str) -> str:
    found = re.search(rf'value="(\d+)" id="node-\d+" aria-label="Choose {label}"', page.text)
    assert found, label
    return found[1]


def look(page: PageClient, column: str, **query: Any) -> str:
    return page.look("hierarchies", column=position(column), **query)


@pytest.mark.parametrize(
    ("column", "wizard", "given", "taxonomy"),
    [
        ("age", "intervals", {"intervals": "20, 5 10"}, {"intervals": [5, 10, 20]}),
        ("born", "calendar", {"calendar": ["year", "decade"]}, {"calendar": ["year", "decade"]}),
        ("zip", "prefix", {"prefix": "4,3"}, {"prefix": [3, 4]}),
        ("country", "ready", {"ready": "countries"}, {"ready": "countries"}),
        ("town", "flat", {}, "flat"),
    ],
)
def test_a_wizard_with_a_rule_writes_the_rule(
    examined_page: PageClient, column: str, wizard: str, given: dict[str, Any], taxonomy: Any
) -> None:
    look(examined_page, column)
    examined_page.send("make", _form(examined_page, wizard), wizard=wizard, **given)
    assert settings(examined_page, column) == {"role": "quasi-identifier", "taxonomy": taxonomy}


def _form(page: PageClient, wizard: str) -> int:
    """The number of the card of a wizard, behind the buttons of what fits."""
    return max(n for n, form in enumerate(page.forms("make")) if form.fields["wizard"] == [wizard])


def test_a_wizard_without_a_rule_writes_the_file_that_the_command_writes(
    examined_page: PageClient, tmp_path: Path
) -> None:
    page = examined_page
    table = page.opened.table
    look(page, "town")
    page.send("make", _form(page, "frequent"), frequent="2", others="elsewhere")
    assert (
        main(
            ["taxonomy", str(table), "town", "--frequent", "2", "--others", "elsewhere", "-o", str(tmp_path / "t.csv")]
        )
        == 0
    )
    made = page.opened.directory / settings(page, "town")["taxonomy"]
    assert made.parent == page.opened.directory / "taxonomies"
    assert made.read_bytes() == (tmp_path / "t.csv").read_bytes()
    assert made.stat().st_mode & 0o077 == 0
    look(page, "age")
    page.send("make", _form(page, "intervals"), intervals="5", groups="3")
    flags = ["--intervals", "5", "--groups", "3", "-o", str(tmp_path / "a.csv")]
    assert main(["taxonomy", str(table), "age", *flags]) == 0
    made = page.opened.directory / settings(page, "age")["taxonomy"]
    assert made.read_bytes() == (tmp_path / "a.csv").read_bytes()


@pytest.mark.not_quick
@pytest.mark.usefixtures("runs_here")
def test_values_of_typed_files_are_written_as_the_command_writes_them(tmp_path: Path) -> None:
    start = datetime.datetime(2020, 1, 1)
    table = pa.table(
        {
            "day": [start.date() + datetime.timedelta(days=37 * number) for number in range(60)],
            "moment": [start + datetime.timedelta(hours=7 * number) for number in range(60)],
            "share": [number / 7 for number in range(60)],
            "whole": [number % 20 for number in range(60)],
            "truth": [number % 2 == 0 for number in range(60)],
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "typed.parquet")
    page = PageClient(tmp_path)
    page.begin("typed.parquet")
    page.send("examine")
    page.wait("examine")
    page.look("columns")
    columns = {name: {"role": "quasi-identifier"} for name in table.column_names}
    page.opened.change(page.opened.state.version, "page.steps.role", lambda data: {**data, "columns": columns})
    for number, column in enumerate(table.column_names):
        page.look("hierarchies", column=number)
        page.send("make", _form(page, "frequent"), frequent="1")
        file = tmp_path / f"{column}.csv"
        assert main(["taxonomy", str(tmp_path / "typed.parquet"), column, "--frequent", "1", "-o", str(file)]) == 0
        assert (page.opened.directory / settings(page, column)["taxonomy"]).read_bytes() == file.read_bytes()
    page.close()


@pytest.mark.not_quick
@pytest.mark.usefixtures("runs_here")
def test_dates_of_a_workbook_are_shown_without_their_midnight(tmp_path: Path) -> None:
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=37 * number) for number in range(60)]
    rows: list[list[object]] = [["day", "few", "size"]]
    rows += [[day, days[number % 3], number / 8] for number, day in enumerate(days)]
    write_xlsx(tmp_path / "t.xlsx", {"one": rows})
    page = PageClient(tmp_path)
    page.begin("t.xlsx")
    page.send("examine")
    page.wait("examine")
    cards = page.look("columns")
    assert "2020-01-01 to 2020-03-15" in cards  # few different days, each with a bar
    columns = {"day": {"role": "quasi-identifier", "taxonomy": {"calendar": ["month", "year"]}}}
    page.opened.change(
        page.opened.state.version,
        "page.steps.role",
        lambda data: {**data, "columns": {**data["columns"], **columns}},
    )
    found = page.look("hierarchies", column=0, q=days[12].isoformat())
    assert f"<bdi>{days[12]}</bdi>" in found
    assert "00:00:00" not in cards + found
    page.http.cookies.set("sfumato-language", "de")
    assert "0 bis 7,375" in page.look("columns")  # numbers that the page has rounded have the marks of its language
    page.close()


def test_only_wizards_that_suit_the_values_are_offered(examined_page: PageClient) -> None:
    def offered(column: str) -> set[str]:
        look(examined_page, column)
        return {form.fields["wizard"][0] for form in examined_page.forms("make")}

    everywhere = {"prefix", "groups", "frequent", "ready", "flat"}
    assert offered("town") == everywhere
    assert offered("age") == {*everywhere, "intervals"}
    assert offered("born") == {*everywhere, "calendar"}


def test_bars_of_a_tree_are_as_long_as_the_largest_line(examined_page: PageClient) -> None:
    look(examined_page, "town")
    bars = re.findall(r'<meter min="0" max="(\d+)" value="(\d+)"', examined_page.text)
    assert {int(most) for most, _ in bars} == {max(int(value) for _, value in bars)}


def test_what_fits_is_what_the_command_says(examined_page: PageClient, capsys: pytest.CaptureFixture[str]) -> None:
    for column in ("age", "zip", "born"):
        capsys.readouterr()
        main(["taxonomy", str(examined_page.opened.table), column, "--json"])
        told = json.loads(capsys.readouterr().out)["fits"]
        look(examined_page, column)
        offered = [form.fields for form in examined_page.forms("make")][: len(told)]
        assert [f"--{fields['wizard'][0]} {fields[fields['wizard'][0]][0]}" for fields in offered] == list(told)


def test_groups_are_made_renamed_moved_and_dissolved_and_undone(examined_page: PageClient) -> None:
    page = examined_page
    look(page, "town")
    counts = Counter(line.split(",")[1] for line in page.opened.table.read_text("utf-8").splitlines()[1:])
    for town, count in counts.items():
        assert f"<bdi>{town}</bdi>" in page.text
        assert f"{count} records" in page.text
    page.send("groups", node=[number_of(page, "Bonn"), number_of(page, "Köln")], name="Rhine", do="group")
    alone = {town: [town, "*"] for town in ("Jena", "Kiel", "Trier")}
    assert rows(page, "town") == {"Bonn": ["Rhine", "*"], "Köln": ["Rhine", "*"], **alone}
    page.send("groups", node=[number_of(page, "Trier")], name="Rhine", do="move")
    page.send("groups", node=[number_of(page, "Rhine")], name="West", do="rename")
    assert rows(page, "town")["Trier"] == rows(page, "town")["Bonn"] == ["West", "*"]
    before = settings(page, "town")
    page.send("groups", node=[number_of(page, "Jena")], target=number_of(page, "West"), do="move")  # as by drag
    assert rows(page, "town")["Jena"] == ["West", "*"]
    page.send("step/undo")
    assert settings(page, "town") == before
    assert rows(page, "town")["Jena"] == ["Jena", "*"]
    look(page, "town")
    page.send("groups", node=[number_of(page, "West")], do="dissolve")
    assert settings(page, "town") == {"role": "quasi-identifier", "taxonomy": "flat"}


def test_levels_keep_their_meaning_when_a_level_is_put_in(examined_page: PageClient) -> None:
    page = examined_page
    look(page, "zip")
    page.send("make", _form(page, "prefix"), prefix="3,4")
    page.send("levels", finest=1, coarsest=2)
    assert settings(page, "zip") | {"finest": 1, "coarsest": 2} == settings(page, "zip")
    page.send("groups", node=[number_of(page, "10100"), number_of(page, "10101")], name="first two", do="group")
    kept = settings(page, "zip")
    assert (kept["finest"], kept["coarsest"]) == (2, 3)
    assert rows(page, "zip")["10100"] == ["first two", "1010*", "101**", "*"]
    page.send("levels", finest=0, coarsest=9)
    assert set(settings(page, "zip")) == {"role", "taxonomy"}
    look(page, "born")
    page.send("make", _form(page, "calendar"), calendar=["month", "year"])
    page.send("levels", finest=1, coarsest=2)
    assert settings(page, "born") | {"finest": "month", "coarsest": "year"} == settings(page, "born")


def test_values_that_a_hierarchy_lacks_are_listed_and_get_a_place(examined_page: PageClient) -> None:
    page = examined_page
    look(page, "country")
    text = page.send("make", _form(page, "ready"), ready="countries")
    assert "1 value of the table is not in the hierarchy" in text
    assert "<bdi>Atlantis</bdi>" in text
    page.send("missing", value=["0"], name="Europe", do="place")
    found = rows(page, "country")
    assert found["Atlantis"] == ["Atlantis", "Europe", "*"]
    assert found["Germany"] == ["Western Europe", "Europe", "*"]
    assert "is not in the hierarchy" not in page.text
    page.send("step/undo")
    look(page, "country")
    page.send("missing", name="Legends", do="all")
    assert rows(page, "country")["Atlantis"] == ["Legends", "Legends", "*"]
    page.send("step/undo")
    look(page, "country")
    text = page.send("missing", value=["0"], do="null")
    assert settings(page, "country")["nulls"] == ["Atlantis"]
    assert "is not in the hierarchy" not in text


def test_numbers_are_rounded_and_coded_at_their_ends(examined_page: PageClient) -> None:
    page = examined_page
    look(page, "age")
    text = page.send("numbers", round="5", bottom="25", top="80")
    assert settings(page, "age") == {"role": "quasi-identifier", "round": 5, "bottom": 25, "top": 80}
    ages = [int(line.split(",")[0]) for line in page.opened.table.read_text("utf-8").splitlines()[1:]]
    assert f"{sum(age >= 80 for age in ages)} records are there." in text
    assert "80+" in text
    text = page.send("numbers", status=422, round="5", bottom="90", top="80")
    assert "not above bottom" in alarm(text)
    look(page, "age")
    page.send("numbers", round="", bottom="", top="80,5")
    assert settings(page, "age") == {"role": "quasi-identifier", "top": 80.5}


def test_the_preview_shows_what_a_release_shows(examined_page: PageClient) -> None:
    page = examined_page
    look(page, "age")
    page.send("make", _form(page, "intervals"), intervals="5,10")
    text = page.send("numbers", bottom="", top="80")
    shown = [
        re.findall(r"<td[^>]*>(?:<bdi>)?([^<]*)", row) for row in re.findall(r'<tr class="example">(.*?)</tr>', text)
    ]
    assert shown[0] == ["20", "[20..24]", "[20..29]", "*"]
    assert shown[-1] == ["80+", "80+", "80+", "*"]
    assert len(shown) == 7


def test_a_file_of_the_folder_is_copied_into_the_project(examined_page: PageClient) -> None:
    page = examined_page
    page.opened.folder.root.joinpath("towns.csv").write_text("Bonn;West;*\nKöln;West;*\nJena;East;*\n", "utf-8")
    look(page, "town")
    text = page.send("file", path="towns.csv")
    assert rows(page, "town") == {"Bonn": ["West", "*"], "Köln": ["West", "*"], "Jena": ["East", "*"]}
    assert "2 values of the table are not in the hierarchy" in text
    for path in ("../people.csv", "/etc/passwd", "towns.sfumato"):
        look(page, "town")
        assert alarm(page.send("file", status=422, path=path))


def test_a_name_that_stands_for_two_sets_is_refused_and_nothing_changes(examined_page: PageClient) -> None:
    page = examined_page
    look(page, "town")
    before = settings(page, "town")
    text = page.send(
        "groups", status=422, node=[number_of(page, "Bonn"), number_of(page, "Köln")], name="Kiel", do="group"
    )
    assert alarm(text)
    assert settings(page, "town") == before
    text = page.send("groups", status=422, name="nothing chosen", do="group")
    assert "Nothing is chosen" in alarm(text)


def test_a_sensitive_column_gets_a_file_for_its_distances(examined_page: PageClient) -> None:
    page = examined_page
    look(page, "ill")
    page.send("groups", node=[number_of(page, "flu"), number_of(page, "cold")], name="lungs", do="group")
    assert rows(page, "ill")["flu"] == ["lungs", "*"]
    assert settings(page, "ill")["role"] == "sensitive"


def test_values_that_no_tree_can_have_and_files_that_change_are_told(examined_page: PageClient) -> None:
    page = examined_page
    look(page, "town")
    page.send("groups", node=[number_of(page, "Bonn"), number_of(page, "Köln")], name="Rhine", do="group")
    page.send("levels", finest=1, coarsest=1)
    file = page.opened.directory / settings(page, "town")["taxonomy"]
    for text in ("Bonn,*\nKöln,*\n", "Bonn,Rhine,*\nBonn,West,*\n", '"'):
        file.write_text(text, "utf-8")
        assert 'role="alert"' in look(page, "town")
        assert page.forms("make")  # another hierarchy can be made
    file.unlink()
    assert "there is no such file" in look(page, "town")
    page.look("requirements")


@pytest.mark.not_quick
@pytest.mark.usefixtures("runs_here")
def test_a_hundred_thousand_values_are_shown_page_by_page(tmp_path: Path) -> None:
    lines = "\n".join(f"code{number:06},{number % 3}" for number in range(100_000))
    (tmp_path / "codes.csv").write_text(f"code,group\n{lines}\n", "utf-8")
    page = PageClient(tmp_path)
    page.begin("codes.csv")
    page.send("examine")
    page.wait("examine")
    page.look("columns")
    columns = {"code": {"role": "quasi-identifier"}, "group": {"role": "quasi-identifier"}}
    page.opened.change(page.opened.state.version, "page.steps.role", lambda data: {**data, "columns": columns})
    text = page.look("hierarchies", column=0)
    assert len(text) < 150_000
    assert "1 to 50 of 100,000; 99,950 are not shown." in text
    text = page.look("hierarchies", column=0, **{"from": 99_990})
    assert "99,951 to 100,000 of 100,000" in text
    text = page.look("hierarchies", column=0, q="code0123")
    assert "100 matches" in text
    page.send("groups", node=[number_of(page, "code012300"), number_of(page, "code012301")], name="pair", do="group")
    found = rows(page, "code")
    assert len(found) == 100_000
    assert found["code012300"] == found["code012301"] == ["pair", "*"]
    assert found["code000000"] == ["code000000", "*"]
    page.close()


# What the page does for somebody who has just started it, in a process that has nothing loaded yet.
FIRST_LOOK = """
import sys
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from page_client import PageClient
Dispatcher.compile = Dispatcher._compile_for_args = None
page = PageClient(Path(sys.argv[1]))
page.project = "people"
for column in range(6):
    assert "column-title" in page.look("hierarchies", column=column)
sys.exit("pandas" in sys.modules)
"""


@pytest.mark.not_quick
def test_a_first_look_waits_for_no_compiled_kernel_and_no_pandas(examined_once: Path) -> None:
    command = [sys.executable, "-c", FIRST_LOOK, str(examined_once)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
