"""The certificate: what was asked and what holds, the same for the same release, with nothing about the input."""

from __future__ import annotations

import hashlib
import json
import os
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato
from sfumato.errors import InputError
from sfumato.policy import Policy
from sfumato.releases.certificate import read_certificate
from sfumato.tables.locations import certificate_path

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

TABLE = pa.table(
    {
        "name": [f"SECRET{row}" for row in range(12)],
        "age": [20 + row for row in range(12)],
        "town": ["Roma", "Pisa", "Lucca"] * 4,
        "ill": ["yes", "no"] * 6,
    }
)
FLAGS: dict[str, Any] = {"quasi_identifiers": ["age", "town"], "identifiers": "name", "sensitive": "ill", "k": 3}
KEYS = [
    "format", "records", "released", "classes", "smallest_class", "suppressed", "suppression_cost", "blur",
    "blur_by_column", "c_dm", "c_avg", "c_mdm", "audit", "method", "engine", "seed", "version", "libraries", "policy",
    "files",
]  # fmt: skip


def written(path: Path, **flags: Any) -> dict[str, Any]:
    sfumato.anonymize(TABLE, **{**FLAGS, **flags}).write(path)
    content: dict[str, Any] = json.loads(certificate_path(path).read_text("utf-8"))
    return content


def test_it_has_exactly_these_keys(tmp_path: Path) -> None:
    content = written(tmp_path / "out.csv")
    assert list(content) == KEYS
    assert content["format"] == 2
    assert content["version"] == sfumato.__version__
    assert content["libraries"] == {name: version(name) for name in ("numba", "numpy", "pyarrow")}


def test_it_says_what_was_asked_and_what_holds(tmp_path: Path) -> None:
    content = written(tmp_path / "out.csv")
    release = sfumato.anonymize(TABLE, **FLAGS)
    assert content["policy"] == release.policy.to_dict()
    assert Policy.from_dict(content["policy"]) == release.policy
    assert content["records"] == content["released"] == 12
    assert content["audit"][0]["holds"] is True
    assert content["c_dm"] == release.losses.c_dm
    assert {"format": 2, **release.public_summary()}.items() <= content.items()


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz", ".arrow", ".xlsx"])
def test_it_has_the_name_size_and_hash_of_the_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    content = path.read_bytes() if written(path) else b""
    text = {"text": {"separator": ",", "encoding": "utf-8", "decimal": "."}} if ".csv" in suffix else {}
    assert read_certificate(path)["files"] == [  # type: ignore[index]
        {"name": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), **text}
    ]


def test_the_same_release_has_the_same_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificates = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        written(Path("out.parquet"))
        certificates.append(Path("out.parquet.sfumato.json").read_bytes())
        time.sleep(0.01)
    assert certificates[0] == certificates[1]


def test_it_tells_nothing_about_the_input_or_the_machine(tmp_path: Path) -> None:
    folder = tmp_path / "PATHTOKEN"
    folder.mkdir()
    pa.csv.write_csv(TABLE, folder / "INPUTTOKEN.csv")
    rows = ["Roma,Italy,*", "Pisa,Tuscany,*", "Lucca,Tuscany,*"]
    (folder / "towns.csv").write_text("\n".join(rows))
    content = (folder / "INPUTTOKEN.csv").read_bytes()
    release = sfumato.anonymize(folder / "INPUTTOKEN.csv", taxonomy={"town": folder / "towns.csv"}, **FLAGS)
    release.write(folder / "out.csv")
    text = certificate_path(folder / "out.csv").read_text("utf-8")
    assert json.loads(text)["policy"]["columns"]["town"]["taxonomy"] == "towns.csv"
    hashes = [hashlib.new(kind, content).hexdigest() for kind in ("md5", "sha1", "sha256", "sha512")]
    for told in ["PATHTOKEN", "INPUTTOKEN", str(tmp_path), "SECRET", os.uname().nodename, *hashes]:
        assert told not in text
    assert "seconds" not in json.loads(text)
    assert time.strftime("%Y-%m") not in text


def test_a_path_of_another_system_is_cut_too(tmp_path: Path) -> None:
    from sfumato.releases.certificate import certificate

    columns = {"town": {"role": "quasi-identifier", "taxonomy": r"C:\people\PATHTOKEN\towns.csv"}}
    text = certificate({}, Policy.from_dict({"columns": columns}), {})
    assert json.loads(text)["policy"]["columns"]["town"]["taxonomy"] == "towns.csv"


def test_a_file_name_of_any_alphabet_is_certified(tmp_path: Path) -> None:
    path = tmp_path / "caffè \U0001f600.csv"
    written(path)
    assert read_certificate(path)["files"][0]["name"] == path.name  # type: ignore[index]
    assert sfumato.audit(path).holds


def test_the_audit_of_an_untouched_file_holds(tmp_path: Path) -> None:
    written(tmp_path / "out.csv")
    report = sfumato.audit(tmp_path / "out.csv")
    assert report.holds
    assert "the file is the one that was certified" in [verdict.requirement for verdict in report.verdicts]


@pytest.mark.parametrize("change", [lambda text: text + "\n", lambda text: text.replace("yes", "no", 1)])
def test_the_audit_sees_that_a_file_was_changed(tmp_path: Path, change: Any) -> None:
    written(tmp_path / "out.csv")
    path = tmp_path / "out.csv"
    path.write_text(change(path.read_text()))
    report = sfumato.audit(path)
    assert not report.holds
    assert [verdict.requirement for verdict in report.verdicts if not verdict.holds] == [
        "the file is the one that was certified"
    ]


def test_the_audit_sees_a_certificate_of_another_file(tmp_path: Path) -> None:
    written(tmp_path / "out.csv")
    (tmp_path / "out.csv").rename(tmp_path / "new.csv")
    certificate_path(tmp_path / "out.csv").rename(certificate_path(tmp_path / "new.csv"))
    assert not sfumato.audit(tmp_path / "new.csv").holds


def test_a_release_without_its_certificate_is_called_incomplete(tmp_path: Path) -> None:
    written(tmp_path / "out.csv")
    certificate_path(tmp_path / "out.csv").unlink()
    assert read_certificate(tmp_path / "out.csv") is None
    report = sfumato.audit(tmp_path / "out.csv", quasi_identifiers=["age", "town"], k=3, other="keep")
    assert report.holds
    assert any("incomplete" in remark for remark in report.remarks)


def test_a_certificate_of_version_0_1_is_still_read_and_its_private_figures_go_no_further(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    content = written(path)
    private = {"gcp": 0.123456789, "columns": {"age": 0.123456789}, "max_size": 0.123456789, "bound": 0.123456789}
    choice = {"chosen": "snake-hilbert", "choice": {"start": "snake-hilbert", "tried": {"hilbert": 0.123456789}}}
    old = {key: value for key, value in content.items() if not key.startswith("blur")} | private | choice
    certificate_path(path).write_text(json.dumps({**old, "format": 1}), "utf-8")
    assert sfumato.audit(path).holds
    report = sfumato.report_release(TABLE, path)
    assert report.summary()["blur"] == content["blur"]
    assert report.summary()["files"] == content["files"]
    for told in ("0.123", "12.3%", "snake-hilbert", "least possible"):
        assert told not in report.page()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "1",
        "{}",
        '{"format": 3, "policy": {}, "files": []}',
        '{"format": 1, "files": []}',
        '{"format": 1, "policy": [], "files": []}',
        '{"format": 1, "policy": {}, "files": 3}',
        '{"format": 1, "policy": {}, "files": [{"name": "out.csv"}]}',
        '{"format": 1, "policy": {}, "files": ["out.csv"]}',
        "\udcff",
    ],
)
def test_a_certificate_that_cannot_be_read_is_an_error_with_a_next_step(tmp_path: Path, text: str) -> None:
    written(tmp_path / "out.csv")
    certificate_path(tmp_path / "out.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=r"certificate .* cannot be read. Restore it, or audit with --policy"):
        sfumato.audit(tmp_path / "out.csv")


@pytest.mark.parametrize(
    "key, values",
    [
        ("format", [True, "1", 1.0, 3, [], None]),
        ("policy", [3, "age", [1], None]),
        ("files", [3, "age", {"name": 3}, [1], [{}], [{"name": 3, "sha256": "x", "bytes": 1}], None]),
        ("audit", [3, "age", {"requirement": 3}, [1], [{"requirement": "k"}], [{"requirement": [], "holds": True}]]),
        ("method", [3, [], {}]),
        ("engine", [3, [], {}]),
        ("version", [3, [], {}]),
        ("seed", ["0", [], {}]),
        ("trial", ["yes", 1, None, []]),
        ("libraries", [3, [], {"numba": 3}]),
        ("statistics", [3, [], {"age": 3}, {"age": {"grid": "1"}}, {"age": {}}]),
    ],
)
def test_a_certificate_of_wrong_types_is_refused(tmp_path: Path, key: str, values: list[Any]) -> None:
    path = tmp_path / "out.csv"
    content = written(path)
    for value in values:
        certificate_path(path).write_text(json.dumps({**content, key: value}))
        with pytest.raises(InputError, match="cannot be read"):
            read_certificate(path)


@pytest.mark.parametrize("text", ["", "[]", "3", "null", "{", "[" * 100_000, '{"format": 1e400}', "\x00"])
def test_what_is_no_certificate_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "out.csv"
    written(path)
    certificate_path(path).write_text(text)
    with pytest.raises(InputError, match="cannot be read"):
        read_certificate(path)


@pytest.mark.parametrize("name", ["../other.csv", "/dev/zero", "", ".", "..", "a/b", "a\0b", "x" * 300, "pipe"])
def test_a_certificate_leads_to_no_file_but_those_beside_it(tmp_path: Path, name: str) -> None:
    """A certificate may come from anybody: no other file is read, and nothing keeps the audit waiting."""
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / "out.csv"
    content = written(path)
    (tmp_path / "other.csv").write_bytes(path.read_bytes())
    os.mkfifo(path.with_name("pipe"))
    more = {**content["files"][0], "name": name}
    certificate_path(path).write_text(json.dumps({**content, "files": [*content["files"], more]}))
    assert sfumato.audit(path).failed
