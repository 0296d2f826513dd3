"""A CSV release is read as it was written: by its certificate, or by what the file and the policy tell."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from sfumato.cli.main import main
from sfumato.errors import InputError
from sfumato.policy import Policy

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

GERMAN = {"separator": ";", "encoding": "cp1252", "decimal": ","}
FORMS = [
    {},
    GERMAN,
    {"separator": "|", "encoding": "utf-8-sig"},
    {"separator": "\t", "encoding": "utf-16", "decimal": ","},
    {"encoding": "cp037", "decimal": ","},
    {"encoding": "utf-16-le"},  # without a mark
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def patients(count: int = 120) -> pa.Table:
    draw = np.random.default_rng(5)
    return pa.table(
        {
            "Größe": (draw.integers(150, 200, count) / 100).tolist(),
            "Ort": [["Köln", "Bonn", "Öhringen"][number] for number in draw.integers(0, 3, count)],
            "Kosten": (draw.integers(100, 90000, count) / 100).tolist(),
            "Grund": [["=a", "Übelkeit", "-", "Sturz"][number] for number in draw.integers(0, 4, count)],
        }
    )


def policy(**release: Any) -> Policy:
    return Policy.from_dict(
        {
            "columns": {
                "Größe": {"role": "quasi-identifier", "round": 0.05},
                "Ort": {"role": "quasi-identifier"},
                "Kosten": {"role": "sensitive"},
                "Grund": {"role": "other"},
            },
            "accept_linkable": ["Kosten"],
            "privacy": {"k": 6, "sensitive": [{"attribute": "Kosten", "kind": "variance", "v": 1}]},
            "method": {"name": "hilbert"},
            "release": release,
        }
    )


def without_certificate(file: str) -> str:
    shutil.copy(file, "bare.csv")
    return "bare.csv"


@pytest.mark.parametrize("written", FORMS)
@pytest.mark.parametrize("form", ["labels", "statistics"])
def test_every_reader_sees_the_same_release_however_it_was_written(written: dict[str, str], form: str) -> None:
    table = patients()
    sfumato.anonymize(table, policy(form=form)).write("plain.csv")
    sfumato.anonymize(table, policy(form=form, formulas="disarm", **written)).write("release.csv")
    assert Path("plain.csv").read_bytes() != Path("release.csv").read_bytes()  # formulas are disarmed in one of them
    for read in (
        lambda file: sfumato.audit(file, original=table).as_dict()[:-1],
        lambda file: sfumato.measure(table, file).values,
        lambda file: sfumato.plot(file, "Größe", "Ort").svg,
        lambda file: {**sfumato.report_release(table, file).summary(), "files": None},
        sfumato.risk,
        lambda file: sfumato.aggregate(file) if form == "statistics" else None,
    ):
        assert read("release.csv") == read("plain.csv")
    assert sfumato.audit("release.csv", original=table).holds


@pytest.mark.parametrize("written", FORMS)
def test_without_a_certificate_the_file_and_the_policy_tell(written: dict[str, str]) -> None:
    table, asked = patients(), policy(**written)
    sfumato.anonymize(table, asked).write("release.csv")
    bare = without_certificate("release.csv")
    report = sfumato.audit(bare, asked)
    assert report.holds
    assert report.smallest_class == sfumato.audit("release.csv").smallest_class
    assert sfumato.measure(table, bare, asked).values == sfumato.measure(table, "release.csv").values


def test_a_german_file_without_a_certificate_is_read_by_the_flags_of_its_input() -> None:
    sfumato.anonymize(patients(), policy(**GERMAN)).write("release.csv")
    bare = without_certificate("release.csv")
    flags = ["--quasi-identifiers", "Größe,Ort", "-k", "6"]
    assert main(["audit", bare, *flags, "--encoding", "cp1252"]) == 0  # the header tells the separator
    assert main(["audit", bare, *flags]) == 4


def test_utf_8_is_recognised_whatever_the_policy_says() -> None:
    sfumato.anonymize(patients(), policy(encoding="utf-8")).write("release.csv")
    asked = policy(encoding="cp1252", separator=";", decimal=",")
    assert sfumato.audit(without_certificate("release.csv"), asked).holds


def test_plain_ascii_is_read_whatever_encoding_the_policy_names() -> None:
    asked = {"quasi_identifiers": "Ort", "k": 2}
    Path("made-elsewhere.csv").write_text("Ort,ill\n" + "*,flu\n" * 4)
    for encoding in ("utf-16", "cp1252", "cp037"):
        assert sfumato.audit("made-elsewhere.csv", input={"encoding": encoding}, **asked).records == 4  # type: ignore[arg-type]


def test_numbers_with_points_stay_numbers_where_the_policy_writes_commas() -> None:
    table = patients()
    sfumato.anonymize(table, policy()).write("release.csv")
    bare = without_certificate("release.csv")
    assert sfumato.measure(table, bare, policy(decimal=",")).values == sfumato.measure(table, bare, policy()).values


@pytest.mark.parametrize("written", [{}, GERMAN])
def test_a_release_that_somebody_saved_in_another_way_is_read_and_is_not_the_certified_one(
    written: dict[str, str],
) -> None:
    sfumato.anonymize(patients(), policy(**written)).write("release.csv")
    text = Path("release.csv").read_bytes().decode(written.get("encoding", "utf-8"))
    saved = text.replace(",", ";") if not written else text
    Path("release.csv").write_bytes(saved.encode("utf-16" if written else "utf-8-sig"))
    report = sfumato.audit("release.csv")
    assert [verdict.requirement for verdict in report.failed] == ["the file is the one that was certified"]
    assert report.records == 120


@pytest.mark.parametrize(
    "text",
    [
        3,
        {},
        {"separator": ";;", "encoding": "utf-8", "decimal": "."},
        {"separator": ";", "encoding": "base64", "decimal": "."},
        {"separator": ";", "encoding": "utf-8", "decimal": ",", "numbers": "Größe"},
        {"separator": ";", "encoding": "utf-8", "decimal": ",", "numbers": [1]},
    ],
)
def test_a_certificate_that_says_nonsense_about_its_file_is_refused(text: object) -> None:
    sfumato.anonymize(patients(), policy()).write("release.csv")
    path = Path("release.csv.sfumato.json")
    content = json.loads(path.read_text("utf-8"))
    content["files"][0]["text"] = text
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(InputError, match=r"the certificate .* cannot be read"):
        sfumato.audit("release.csv")


def test_the_flags_write_what_the_policy_would(capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow.csv

    pyarrow.csv.write_csv(patients(), "table.csv")
    columns = ["--quasi-identifiers", "Größe,Ort", "--other", "keep", "--accept-linkable", "Kosten", "-k", "6"]
    flags = ["--release-separator", "tab", "--release-encoding", "utf-16", "--release-decimal", ","]
    assert main(["anonymize", "table.csv", "-o", "release.csv", *columns, "--method", "mondrian", *flags]) == 0
    assert Path("release.csv").read_bytes().decode("utf-16").startswith("Größe\tOrt\tKosten\tGrund\n")
    assert main(["audit", "release.csv"]) == 0
    assert main(["fit", "table.csv", "-o", "rules.json", *columns, *flags]) == 0
    assert main(["apply", "rules.json", "table.csv", "-o", "applied.csv", "--release-separator", "|"]) == 0
    assert Path("applied.csv").read_bytes().decode("utf-16").startswith("Größe|Ort|Kosten|Grund\n")
    assert main(["audit", "applied.csv"]) == 0
    capsys.readouterr()
    assert main(["anonymize", "table.csv", "-o", "x.csv", *columns, "--release-encoding", "ascii"]) == 4
    said = capsys.readouterr().err
    assert "the name of the column 'Größe' has a character that the encoding ascii cannot hold" in " ".join(
        said.split()
    )
    assert not Path("x.csv").exists()


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_engines_write_the_same_bytes(engine: Any) -> None:
    release = sfumato.anonymize(patients(), policy(**GERMAN), engine=engine)
    release.write("release.csv")
    header, *rows = Path("release.csv").read_bytes().decode("cp1252").splitlines()
    assert header == "Größe;Ort;Kosten;Grund"
    assert all(float(row.split(";")[2].replace(",", ".")) > 0 for row in rows)
    assert sfumato.audit("release.csv").holds
