"""The codebook of a release: it explains what is there, counts by the release, and tells nothing of the original."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import OutputError, UsageError
from sfumato.policy import ColumnSettings
from sfumato.report.label_meanings import LabelMeanings, Meaning
from sfumato.taxonomies.taxonomy_file import read_taxonomy
from sfumato.texts import ENGLISH

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

TOWNS = "Wien,East,Austria,*\nLinz,West,Austria,*\nGraz,East,Austria,*\nRoma,Lazio,Italy,*\nPisa,Toscana,Italy,*\n"
POLICY = """
other = "keep"
accept_linkable = ["note"]
[columns.age]
role = "quasi-identifier"
taxonomy = { intervals = [10, 50] }
top = 90
[columns.born]
role = "quasi-identifier"
taxonomy = { calendar = ["quarter", "decade"] }
finest = "quarter"
[columns.zip]
role = "quasi-identifier"
taxonomy = { prefix = [1, 2] }
[columns.town]
role = "quasi-identifier"
taxonomy = "towns.csv"
[columns.size]
role = "quasi-identifier"
round = 0.5
[columns.ill]
role = "sensitive"
[privacy]
k = 4
[method]
name = "mondrian"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("towns.csv").write_text(TOWNS)
    Path("policy.toml").write_text(POLICY)
    draw = np.random.default_rng(3)
    with Path("table.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "born", "zip", "town", "size", "ill", "note"])
        for row in range(160):
            year, month = draw.integers(1950, 1970), draw.integers(1, 13)
            town = ["Wien", "Linz", "Graz", "Roma"][draw.integers(0, 4)]
            size = "" if row % 9 == 0 else f"{draw.integers(100, 200) / 100:g}"
            ill = f"<b>ill {draw.integers(0, 5)}</b>"
            writer.writerow(
                [draw.integers(0, 100), f"{year}-{month:02}-15", f"1{draw.integers(0, 9999):04}", town, size, ill, row]
            )
    return tmp_path


def rows_of(file: str, **form: str) -> list[dict[str, str]]:
    with Path(file).open(newline="", encoding=form.get("encoding", "utf-8")) as text:
        return list(csv.DictReader(text, delimiter=form.get("separator", ",")))


def columns_of(book: Any) -> dict[str, dict[str, Any]]:
    return {column["name"]: column for column in book.as_dict()["columns"]}


@pytest.mark.parametrize("written", [{}, {"separator": ";", "encoding": "cp1252", "decimal": ","}])
def test_labels_and_counts_are_those_of_the_file(written: dict[str, Any]) -> None:
    flags = {f"release_{key}": value for key, value in written.items()}
    release = sfumato.anonymize("table.csv", "policy.toml", **flags)
    release.write("release.csv", codebook=True)
    rows = rows_of("release.csv", **written)
    columns = columns_of(release.codebook())
    assert list(columns) == list(rows[0])
    for name, column in columns.items():
        counts = Counter(row[name] or None for row in rows)
        listed = {entry["label"]: entry["records"] for entry in column["labels"]}
        assert listed.items() <= counts.items()
        assert column["different_labels"] == len(counts)
        assert column["further_labels"] == len(counts) - len(listed)
        assert column["further_records"] == len(rows) - sum(listed.values())
        if column["role"] == "quasi-identifier":
            assert sum(level["records"] for level in column["levels"]) == len(rows)
            assert sum(level["labels"] for level in column["levels"]) == len(counts)
    assert columns["note"]["further_labels"] > 0
    assert (columns["note"]["smallest"], columns["note"]["largest"]) == ("0", "159")
    assert columns["ill"]["role"] == "sensitive"
    page = Path("release.csv.codebook.html").read_text("utf-8")
    assert page == release.codebook().page()
    assert ("separated by semicolons" in page) is bool(written)
    assert "<b>" not in page


def test_the_codebook_of_a_file_is_the_one_that_was_published_with_it() -> None:
    """So everything in it follows from the release and its policy."""
    assert main(["anonymize", "table.csv", "-o", "release.csv", "--policy", "policy.toml", "--codebook"]) == 0
    page = Path("release.csv.codebook.html").read_text("utf-8")
    Path("table.csv").unlink()
    assert sfumato.codebook("release.csv").page() == page
    assert main(["codebook", "release.csv", "-o", "again.html"]) == 0
    assert Path("again.html").read_text("utf-8") == page


def test_values_of_records_that_are_hidden_or_left_out_are_not_told() -> None:
    with Path("table.csv").open("a") as file:
        file.write("12,1111-11-11,00999,Wien,1.5,gone,1000\n")
    release = sfumato.anonymize("table.csv", "policy.toml", max_suppressed=0.2, method="global")
    release.write("release.csv", codebook=True)
    shown = {value for row in rows_of("release.csv") for value in row.values()}
    assert shown.isdisjoint(["1111-Q4", "00999", "gone"])
    page = Path("release.csv.codebook.html").read_text("utf-8")
    assert "1111" not in page
    assert "00999" not in page
    assert "gone" not in page


def test_a_group_is_explained_by_its_file_and_never_by_values_of_the_table() -> None:
    release = sfumato.anonymize("table.csv", "policy.toml", k=40)
    columns = columns_of(release.codebook())
    towns = {entry["label"]: entry for entry in columns["town"]["labels"]}
    assert {label: entry.get("values") for label, entry in towns.items() if label in ("Austria", "Italy")} == {
        label: values
        for label, values in (("Austria", ["Wien", "Graz", "Linz"]), ("Italy", ["Roma", "Pisa"]))
        if label in towns
    }
    assert towns.keys() & {"Austria", "Italy", "*"}
    for entry in columns["zip"]["labels"]:
        assert entry["meaning"] in (
            "any value: the label says nothing",
            f"all values that begin with {entry['label'].rstrip('*')}",
        )
        assert "values" not in entry


def meaning(label: str | None, kind: str = "numeric", **settings: Any) -> Meaning:
    column = ColumnSettings(role="quasi-identifier", **settings)
    return LabelMeanings(column, kind, None, ENGLISH).of(label)


@pytest.mark.parametrize(
    ("label", "kind", "settings", "text"),
    [
        ("[20..29]", "numeric", {}, "from 20 to 29, both included"),
        ("[-5..-2]", "numeric", {}, "from -5 to -2, both included"),
        ("25", "numeric", {}, "the value itself"),
        ("90+", "numeric", {"top": 90}, "90 or more"),
        ("18-", "numeric", {"bottom": 18}, "18 or less"),
        ("-18-", "numeric", {"bottom": -18}, "-18 or less"),
        ("[85..90+]", "numeric", {"top": 90}, "85 or more"),
        ("[18-..30]", "numeric", {"bottom": 18}, "30 or less"),
        ("*", "numeric", {}, "any value: the label says nothing"),
        (None, "numeric", {}, "no value in the original either"),
        ("2023-Q1", "date", {}, "from 2023-01-01 to 2023-03-31"),
        ("1950s", "date", {}, "from 1950-01-01 to 1959-12-31"),
        ("[2023-01-02..2023-01-08]", "date", {}, "from 2023-01-02 to 2023-01-08, both included"),
        ("101**", "categorical", {"taxonomy": {"prefix": [3]}}, "all values that begin with 101"),
        ("E11.-", "categorical", {"taxonomy": {"ready": "icd-10"}}, "all values of this category"),
        ("E11.9", "categorical", {"taxonomy": {"ready": "icd-10"}}, "the value itself"),
        ("Wien", "categorical", {}, "the value itself"),
    ],
)
def test_every_kind_of_label_has_a_meaning(label: str | None, kind: str, settings: dict[str, Any], text: str) -> None:
    assert meaning(label, kind, **settings) == Meaning(text)


def test_a_large_group_names_some_values_and_counts_the_others() -> None:
    Path("many.csv").write_text("".join(f"v{number:02},all,*\n" for number in range(40)) + "w,w,*\n")
    column = ColumnSettings(role="quasi-identifier", taxonomy="many.csv")
    meanings = LabelMeanings(column, "categorical", read_taxonomy(Path("many.csv"), "c"), ENGLISH)
    found = meanings.of("all")
    assert (found.text, found.values[0], len(found.values), found.further) == ("one of 40 values", "v00", 12, 28)
    assert meanings.of("w") == Meaning("the value itself")


def test_long_lists_of_labels_are_shortened_and_the_rest_is_counted() -> None:
    with Path("wide.csv").open("w") as file:
        file.write("n\n" + "".join(f"{number}\n{number}\n" for number in range(150)) + "7\n" * 3)
    column = columns_of(sfumato.anonymize("wide.csv", quasi_identifiers="n", k=2).codebook())["n"]
    assert (column["different_labels"], len(column["labels"])) == (150, 100)
    assert (column["further_labels"], column["further_records"]) == (50, 100)
    assert [entry["records"] for entry in column["labels"] if entry["label"] == "7"] == [5]
    assert [int(entry["label"]) for entry in column["labels"]] == sorted(
        int(entry["label"]) for entry in column["labels"]
    )


def test_both_tables_of_anatomy_are_explained() -> None:
    release = sfumato.anonymize(
        "table.csv", quasi_identifiers=["age", "zip"], sensitive="ill", other="drop", l=3, method="anatomy", seed=1
    )
    book = release.codebook().as_dict()
    assert [column["name"] for column in book["columns"]] == ["age", "zip", "group"]
    assert [column["name"] for column in book["sensitive_columns"]] == ["group", "ill", "count"]
    ill = book["sensitive_columns"][1]
    assert sum(entry["records"] for entry in ill["labels"]) == 160
    assert "Recoded" not in release.codebook().page()


@pytest.mark.parametrize("target", ["release.parquet", "release/", "release.sqlite#people", "release.xlsx"])
def test_every_kind_of_release_has_a_codebook_beside_it(target: str) -> None:
    sfumato.anonymize("table.csv", "policy.toml", codebook=True).write(target)
    (page,) = Path().glob("*.codebook.html")
    assert page.name == target.replace("#", ".").rstrip("/") + ".codebook.html"
    assert page.read_text("utf-8") == sfumato.codebook(target).page()


def test_a_file_that_is_no_page_is_not_replaced_and_an_old_codebook_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    page = Path("release.csv.codebook.html")
    page.write_text("mine")
    asked = ["anonymize", "table.csv", "-o", "release.csv", "--policy", "policy.toml"]
    assert main([*asked, "--codebook"]) == 2
    assert page.read_text() == "mine"
    assert not Path("release.csv").exists()
    assert main([*asked, "--codebook", "--force"]) == 0
    capsys.readouterr()
    assert main(asked) == 0
    assert "is that of an earlier release" in capsys.readouterr().out
    Path("other.html").write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        sfumato.codebook("release.csv").write("other.html")


def test_a_codebook_that_cannot_be_written_keeps_the_release_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OutputError("no space left for the page")

    monkeypatch.setattr("sfumato.tables.targets.file_target.stage_pages", full)
    with pytest.raises(OutputError, match="no space left"):
        sfumato.anonymize("table.csv", "policy.toml").write("release.csv", codebook=True)
    assert not list(Path().glob("*release.csv*"))


def test_the_command_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    sfumato.anonymize("table.csv", "policy.toml").write("release.csv")
    assert main(["codebook", "release.csv", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["file"] == "release.csv.codebook.html"
    assert printed["columns"] == sfumato.codebook("release.csv").as_dict()["columns"]
    assert main(["codebook", "table.csv", "-o", "t.html"]) == 2  # nothing says which columns are quasi-identifiers
    assert main(["codebook", "table.csv", "-o", "t.html", "--quasi-identifiers", "age"]) == 0
