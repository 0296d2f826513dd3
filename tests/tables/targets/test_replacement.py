"""What an output replaces: an earlier release, or a file that Sfumato wrote; anything else by force alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import UsageError

FLAGS: dict[str, Any] = {"quasi_identifiers": ["age", "sex"], "sensitive": "ward", "k": 2}
PEOPLE = pa.table({"age": [1, 2, 3, 4] * 5, "sex": ["f", "m", "f", "m"] * 5, "ward": ["a", "b", "c", "d", "e"] * 4})
ROLES = ["--quasi-identifiers", "age,sex", "--sensitive", "ward", "-k", "2"]
MINE = "my own work\n"

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / ".state"))
    monkeypatch.chdir(tmp_path)
    rows = [",".join(map(str, row.values())) for row in PEOPLE.to_pylist()]
    Path("table.csv").write_text("\n".join(["age,sex,ward", *rows]) + "\n")
    return tmp_path


def released(**flags: Any) -> sfumato.Release:
    return sfumato.anonymize(PEOPLE, **{**FLAGS, **flags})


def command(*arguments: str, code: int, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    found = main(list(arguments))
    printed = capsys.readouterr()
    assert found == code, printed.err
    return printed.out, printed.err


# Releases in files; those in directories and databases are in test_targets.py


def test_an_earlier_release_is_replaced_as_a_whole_and_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["anonymize", "table.csv", "-o", "out.csv", *ROLES]
    out, err = command(*arguments, code=0, capsys=capsys)
    assert "instead of" not in out
    assert err == ""
    out, err = command(*arguments, "-k", "5", code=0, capsys=capsys)
    assert "instead of the earlier release out.csv" in out
    assert err == "replaced the earlier release out.csv\n"
    out, err = command(*arguments, "--json", code=0, capsys=capsys)
    summary = json.loads(out)
    assert summary["replaced"] == ["the earlier release out.csv"]
    assert "replaced" in summary["private_figures"]
    certificate = json.loads(Path("out.csv.sfumato.json").read_text())
    assert "replaced" not in certificate
    assert certificate["policy"]["privacy"]["k"] == 2
    assert main(["audit", "out.csv"]) == 0


def test_a_certificate_whose_release_is_gone_is_replaced() -> None:
    released().write("out.csv")
    Path("out.csv").unlink()
    release = released()
    release.write("out.csv")
    assert release.replaced == ("the certificate out.csv.sfumato.json, whose release was gone",)


def forget_certificate() -> None:
    Path("out.csv.sfumato.json").unlink()


def name_another_file() -> None:
    certificate = json.loads(Path("out.csv.sfumato.json").read_text())
    certificate["files"][0]["name"] = "other.csv"
    Path("out.csv.sfumato.json").write_text(json.dumps(certificate))


def damage_certificate() -> None:
    Path("out.csv.sfumato.json").write_text('{"files": 1}')


def put_other_json() -> None:
    Path("out.csv").unlink()
    Path("out.csv.sfumato.json").write_text('["' + MINE.strip() + '"]')


@pytest.mark.parametrize("change", [forget_certificate, name_another_file, damage_certificate, put_other_json])
def test_without_a_certificate_that_names_it_a_file_is_no_release(
    change: Callable[[], None], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    released().write("out.csv")
    change()
    before = {path: path.read_bytes() for path in place.glob("out*")}
    arguments = ["anonymize", "table.csv", "-o", "out.csv", *ROLES]
    for flags in ([], ["--dry-run"]):
        _, err = command(*arguments, *flags, code=2, capsys=capsys)
        assert " and there is no certificate that makes " in err
        assert "add --force to replace " in err
    assert {path: path.read_bytes() for path in place.glob("out*")} == before
    _, err = command(*arguments, "--force", code=0, capsys=capsys)
    assert err.startswith("replaced out.csv")
    assert err.endswith(", no release of Sfumato\n")
    assert main(["audit", "out.csv"]) == 0


def test_what_exists_is_told_before_the_table_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("out.csv").write_text(MINE)
    Path("table.csv").write_text("age,sex,ward\n1\n")
    _, err = command("anonymize", "table.csv", "-o", "out.csv", *ROLES, code=2, capsys=capsys)
    assert "out.csv exists" in err
    assert Path("out.csv").read_text() == MINE


def test_the_second_table_of_anatomy_is_not_replaced_unless_the_certificate_names_it() -> None:
    release = sfumato.anonymize(
        PEOPLE, quasi_identifiers=["age", "sex"], sensitive="ward", l=2, method="anatomy", seed=0
    )
    Path("out.sensitive.csv").write_text(MINE)
    with pytest.raises(UsageError, match=r"out\.sensitive\.csv exists"):
        release.write("out.csv")
    assert not Path("out.csv").exists()
    release.write("out.csv", force=True)
    release.write("out.csv")
    assert release.replaced == ("the earlier release out.csv",)


def test_a_release_of_one_table_leaves_no_second_table_of_an_earlier_one_behind() -> None:
    flags = {**FLAGS, "k": 1, "l": 2, "method": "anatomy", "seed": 0}
    sfumato.anonymize(PEOPLE, **flags).write("out.csv")
    before = {path: path.read_bytes() for path in Path().glob("out*")}
    for force in (False, True):
        with pytest.raises(UsageError, match=r"has a second table, out\.sensitive\.csv, which this one would leave"):
            released().write("out.csv", force=force)
    assert {path: path.read_bytes() for path in Path().glob("out*")} == before
    Path("out.sensitive.csv").unlink()
    released().write("out.csv")


def test_a_pipe_or_device_is_never_replaced() -> None:
    os.mkfifo("out.csv")
    for force in (False, True):
        with pytest.raises(UsageError, match="no ordinary file"):
            released().write("out.csv", force=force)
    Path("out.csv").unlink()
    os.mkfifo("out.csv.sfumato.json")
    with pytest.raises(UsageError, match="no ordinary file"):
        released().write("out.csv", force=True)
    Path("out.csv.sfumato.json").unlink()
    released().write("out.csv")
    Path("out.csv").unlink()
    os.mkfifo("out.csv")  # the certificate names it all the same
    with pytest.raises(UsageError, match="no ordinary file"):
        released().write("out.csv", force=True)
    os.mkfifo("page.html")
    with pytest.raises(UsageError, match="no ordinary file"):
        released().report("page.html", force=True)


def test_a_link_counts_as_something_that_exists() -> None:
    Path("mine.csv").write_text(MINE)
    Path("out.csv").symlink_to("mine.csv")
    with pytest.raises(UsageError, match=r"out\.csv exists"):
        released().write("out.csv")
    released().write("out.csv", force=True)
    assert Path("mine.csv").read_text() == MINE


def test_an_empty_directory_is_not_worth_a_word() -> None:
    Path("out").mkdir()
    release = released()
    release.write("out/")
    assert release.replaced == ()


def test_apply_replaces_as_anonymize_does(capsys: pytest.CaptureFixture[str]) -> None:
    command("fit", "table.csv", "-o", "rules.json", *ROLES, code=0, capsys=capsys)
    arguments = ["apply", "rules.json", "table.csv", "-o", "out.csv"]
    Path("out.csv").write_text(MINE)
    _, err = command(*arguments, code=2, capsys=capsys)
    assert "out.csv exists" in err
    assert Path("out.csv").read_text() == MINE
    _, err = command(*arguments, "--force", code=0, capsys=capsys)
    assert err == "replaced out.csv, no release of Sfumato\n"
    _, err = command(*arguments, code=0, capsys=capsys)
    assert err == "replaced the earlier release out.csv\n"


# Other outputs: the command, its output, and whether the output is replaced when Sfumato wrote it

OUTPUTS = [
    (["fit", "table.csv", *ROLES, "-o", "rules.json"], "rules.json", True),
    (["fit", "table.csv", *ROLES, "-o", "r.json", "--sql", "query.sql"], "query.sql", True),
    (["report", "table.csv", "release.csv", "-o", "page.html"], "page.html", True),
    (["report", "table.csv", "release.csv", "-o", "p.html", "--private", "mine.html"], "mine.html", True),
    (["compare", "table.csv", *ROLES, "--methods", "hilbert-fast", "-o", "page.html"], "page.html", True),
    (["compare", "table.csv", *ROLES, "--methods", "hilbert-fast", "-o", "figures.csv"], "figures.csv", False),
    (["plot", "release.csv", "--x", "age", "--y", "sex", "-o", "picture.svg"], "picture.svg", False),
    (["policy", "table.csv", "-o", "policy.toml"], "policy.toml", False),
    (["generate", "normal", "-n", "30", "-o", "normal.csv"], "normal.csv", True),
    (["anonymize", "table.csv", *ROLES, "-o", "o.csv", "--report", "page.html"], "page.html", True),
    (["anonymize", "table.csv", *ROLES, "-o", "o.csv", "--report-private", "page.html"], "page.html", True),
    (["anonymize", "table.csv", *ROLES, "-o", "o.csv", "--shareable-policy", "mine.toml"], "mine.toml", False),
]


@pytest.mark.parametrize("arguments, output, own", OUTPUTS)
def test_another_file_is_replaced_by_force_alone(
    arguments: list[str], output: str, own: bool, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    released().write("release.csv")
    Path(output).write_text(MINE)
    before = {path for path in place.iterdir() if path.name != ".state"}
    _, err = command(*arguments, code=2, capsys=capsys)
    assert f"{output} exists" in err
    assert "--force" in err
    assert Path(output).read_text() == MINE
    assert {path for path in place.iterdir() if path.name != ".state"} == before
    _, err = command(*arguments, "--force", code=0, capsys=capsys)
    assert f"replaced {output}\n" in err
    assert Path(output).read_text() != MINE
    _, err = command(*arguments, code=0 if own else 2, capsys=capsys)
    assert f"replaced {output}\n" in err if own else f"{output} exists" in err


def test_python_forces_by_a_keyword() -> None:
    release = released()
    writers: dict[str, Callable[..., object]] = {
        "p.html": release.report,
        "q.html": release.report_private,
        "c.svg": release.plot("age", "sex").write,
        "p.toml": sfumato.propose_policy(PEOPLE).save,
        "r.json": sfumato.fit(PEOPLE, **FLAGS).write,
        "c.csv": sfumato.compare(PEOPLE, methods="hilbert-fast", **FLAGS).write,
    }
    for name, write in writers.items():
        Path(name).write_text(MINE)
        with pytest.raises(UsageError, match=f"{name} exists"):
            write(name)
        assert Path(name).read_text() == MINE
        write(name, force=True)
        assert Path(name).read_text() != MINE


def test_a_generated_table_is_known_by_the_policy_beside_it() -> None:
    sfumato.generate("normal", 20, "normal.csv")
    sfumato.generate("normal", 30, "normal.csv")
    policy = Path("normal.policy.toml")
    text = policy.read_text()
    policy.write_text(text + "# mine\n")
    with pytest.raises(UsageError, match=r"normal\.policy\.toml exists with other contents"):
        sfumato.generate("normal", 40, "normal.csv")
    policy.unlink()
    with pytest.raises(UsageError, match="no policy beside it says that it was generated"):
        sfumato.generate("normal", 40, "normal.csv")
    assert len(Path("normal.csv").read_text().splitlines()) == 31
    sfumato.generate("normal", 40, "normal.csv", force=True)
    assert policy.read_text() == text
