"""The command line: what it reads, what it prints where, and how it ends."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from sfumato._version import __version__
from sfumato.cli import demo, main
from sfumato.cli.flag_values import by_column, column_names, one_k
from sfumato.cli.progress_bar import COMPILING, DrawnProgress
from sfumato.errors import AuditError, UsageError

HEAVY = ("numba", "duckdb", "polars", "pandas", "pyarrow", "sklearn", "scipy", "pyspark", "numpy")
COMMANDS = (
    "anonymize", "fit", "apply", "aggregate", "audit", "measure", "bound", "compare", "tradeoff", "plot", "report",
    "policy", "taxonomy", "risk", "runs", "generate", "methods", "demo",
)  # fmt: skip
SECRET = "zzsecretzz"
ROLES = ["--quasi-identifiers", "age,city", "--sensitive", "diagnosis", "--identifiers", "name"]


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep run records in a temporary directory; tests share the cache of compiled kernels."""
    directory = tmp_path_factory.mktemp("state") / "sfumato"
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(directory))
    return directory


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a table of 40 records in it."""
    monkeypatch.chdir(tmp_path)
    rows = [f"n{number},{20 + number % 10},c{number % 4},d{number % 3}" for number in range(40)]
    (tmp_path / "table.csv").write_text("\n".join(["name,age,city,diagnosis", *rows]) + "\n")
    return tmp_path


class Shell:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: str | Path, code: int = 0) -> str:
        found = main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        assert found == code, captured.err
        self.err = captured.err
        return captured.out

    def json(self, *arguments: str | Path, code: int = 0) -> dict[str, Any]:
        content = json.loads(self(*arguments, "--json", code=code))
        assert isinstance(content, dict)
        assert self.err == ""
        return content


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


def process(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "sfumato", *map(str, arguments)], text=True, check=False, **options)


def written(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def released(path: Path) -> list[dict[str, str]]:
    options = pyarrow.csv.ConvertOptions(column_types=None, strings_can_be_null=False)
    table = pyarrow.csv.read_csv(path, convert_options=options)
    return [{name: str(value) for name, value in row.items()} for row in table.to_pylist()]


# Light, and helpful


@pytest.mark.not_quick
def test_help_and_import_load_no_large_library() -> None:
    helps = "".join(f"main([{command!r}, '--help']);" for command in COMMANDS)
    script = (
        "import sys, sfumato; from sfumato.cli import main; main(['--help']); main(['--version']);"
        f"{helps} print('LOADED', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "LOADED []"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_in_its_help(command: str, shell: Shell) -> None:
    text = " ".join(shell(command, "--help").split())
    assert f"Example: sfumato {command}" in text
    assert "!" not in text


def test_version_is_that_of_the_package(shell: Shell) -> None:
    assert shell("--version") == f"sfumato {__version__}\n"


def test_without_a_command_the_help_is_shown(shell: Shell) -> None:
    assert "anonymize" in shell(code=2)


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["anonimize"], "anonimize"),
        (["anonymize"], "INPUT"),
        (["anonymize", "table.csv", "--seed", "x"], "--seed"),
        (["generate", "census", "-o", "x.csv"], "-n"),
        (["anonymize", "table.csv", *ROLES, "-k", "3"], "-o"),
        (["generate", "cencus", "-n", "5", "-o", "x.csv"], "Did you mean 'census'"),
        (["generate", "census", "-n", "0", "-o", "x.csv"], "at least 1"),
        (["generate", "census", "-n", "5", "-o", "x.csv", "--dimensions", "3"], "no option 'dimensions'"),
        (["generate", "agrawal", "-n", "5", "-o", "x.csv", "--function", "C8"], "C7"),
        (["audit", "table.csv"], "nothing says what to check"),
        (["audit", "table.csv", "--quasi-identifiers", "age", "-k", "2,3"], "one value"),
        (["measure", "table.csv", "table.csv", "--quasi-identifiers", "age", "-k", "2", "--target", "x"], "target"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(arguments: list[str], says: str, shell: Shell, directory: Path) -> None:
    assert shell(*arguments, code=2) == ""
    assert shell.err.startswith("error: ")
    assert shell.err.count("\n") == 1
    assert says in shell.err
    assert written(directory) == {"table.csv"}


@given(st.integers(1, 10**17))
def test_any_single_k_is_taken(k: int) -> None:
    assert one_k(f" {k} ") == k


@pytest.mark.parametrize("text", ["5,10", "5, 10 ,25", "2..100", "2 .. 9"])
def test_several_k_are_refused_as_such(text: str) -> None:
    with pytest.raises(UsageError, match=r"takes one value here.*single number"):
        one_k(text)


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "ten", "²", "9" * 5000, "1e3", "5,"])
def test_what_is_no_k_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="whole number of at least 1"):
        one_k(text)


def test_lists_of_columns_are_split_at_commas_and_joined_over_repetitions() -> None:
    assert column_names("--identifiers", ["a, b", "c"]) == ["a", "b", "c"]
    assert column_names("--identifiers", None) == []


def test_a_file_behind_a_column_may_hold_an_equals_sign() -> None:
    assert by_column("--taxonomy", "FILE", ["a=x=1.csv", "b=flat"], str) == {"a": "x=1.csv", "b": "flat"}


# anonymize


@pytest.mark.not_quick
def test_json_is_one_object_on_standard_output_and_nothing_on_standard_error(directory: Path) -> None:
    result = process("anonymize", "table.csv", "-o", "out.csv", *ROLES, "-k", "3", "--json", capture_output=True)
    assert result.returncode == 0
    assert result.stderr == ""
    content = json.loads(result.stdout)
    assert set(content) >= {
        *("records", "released", "classes", "smallest_class", "suppressed", "gcp", "c_dm", "c_avg", "c_mdm", "audit"),
        *("method", "chosen", "engine", "seed", "version", "seconds"),
    }
    assert (content["records"], content["released"], content["suppressed"]) == (40, 40, 0)
    assert content["smallest_class"] >= 3
    assert content["audit"] == [
        {"requirement": "k-anonymity, k = 3", "holds": True, "value": content["smallest_class"]}
    ]
    assert (content["method"], content["chosen"], content["engine"]) == ("auto", "snake-hilbert", "memory")
    assert written(directory) == {"table.csv", "out.csv", "out.csv.sfumato.json"}


def test_the_summary_says_what_was_done(directory: Path, shell: Shell) -> None:
    text = shell("anonymize", "table.csv", "-o", "out.csv", *ROLES, "-k", "3")
    assert text.startswith("40 records in ")
    for part in ("holds", "k-anonymity, k = 3", "information loss (GCP)", "  age", "warning", "out.csv.sfumato.json"):
        assert part in text
    assert "next    sfumato audit out.csv" in text
    assert "!" not in text
    assert shell.err == ""


def test_names_are_printed_as_they_are(directory: Path, shell: Shell) -> None:
    pq.write_table(pa.table({"[bold]a[/bold]": [1, 2, 3, 4], ":smile:": ["x"] * 4}), directory / "odd.parquet")
    text = shell(
        "anonymize", "odd.parquet", "-o", "[red]out.csv", "--quasi-identifiers", "[bold]a[/bold],:smile:", "-k", "2"
    )
    assert "[bold]a[/bold]" in text
    assert ":smile:" in text
    assert "[red]out.csv" in text


@pytest.mark.not_quick
def test_a_terminal_of_few_characters_is_enough(directory: Path) -> None:
    result = process(
        *("anonymize", "table.csv", "-o", "outé.csv", *ROLES, "-k", "3"),
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert result.returncode == 0
    assert "out\\xe9.csv" in result.stdout
    assert "#" in result.stdout
    assert (directory / "outé.csv").exists()


def test_flags_override_the_policy(directory: Path, shell: Shell) -> None:
    (directory / "policy.toml").write_text(
        'other = "drop"\n[columns.age]\nrole = "quasi-identifier"\n[privacy]\nk = 2\n[method]\nname = "hilbert-fast"\n'
    )
    plain = shell.json("anonymize", "table.csv", "-o", "a.csv", "--policy", "policy.toml")
    over = shell.json(
        *("anonymize", "table.csv", "-o", "b.csv", "--policy", "policy.toml", "-k", "7", "--method", "hilbert"),
        *("--quasi-identifiers", "city"),
    )
    assert plain["audit"][0]["requirement"] == "k-anonymity, k = 2"
    assert (plain["chosen"], list(plain["columns"])) == ("hilbert-fast", ["age"])
    assert over["audit"][0]["requirement"] == "k-anonymity, k = 7"
    assert (over["chosen"], list(over["columns"])) == ("hilbert", ["age", "city"])


@pytest.mark.parametrize(
    "other, columns",
    [
        (["drop"], ["age"]),
        (["keep"], ["age", "city", "diagnosis"]),
        (["city,diagnosis"], ["age", "city", "diagnosis"]),
        (["city", "diagnosis"], ["age", "city", "diagnosis"]),
    ],
)
def test_other_columns_are_kept_dropped_or_named(
    other: list[str], columns: list[str], directory: Path, shell: Shell
) -> None:
    flags = [part for value in other for part in ("--other", value)]
    accept = ["--accept-linkable", "city"] if "city" in columns else []
    shell(
        *("anonymize", "table.csv", "-o", "out.csv", "--quasi-identifiers", "age", "--identifiers", "name"),
        *(*flags, *accept, "-k", "3"),
    )
    assert list(released(directory / "out.csv")[0]) == columns


def test_text_is_read_as_the_flags_say(directory: Path, shell: Shell) -> None:
    rows = [f"{day:02d}.03.2020;{day},5;Z\u00fcrich;NA" for day in range(1, 9)]
    (directory / "export.csv").write_bytes("\n".join(["date;dose;town;none", *rows]).encode("cp1252"))
    plan = shell.json(
        *("anonymize", "export.csv", "--dry-run", "--quasi-identifiers", "date,dose,town,none", "-k", "4"),
        *("--separator", ";", "--decimal", ",", "--encoding", "cp1252", "--date-format", "%d.%m.%Y"),
        *("--null", "NA", "--null", "?", "--type", "dose=numeric"),
    )
    columns = {column["name"]: column for column in plan["columns"]}
    assert [columns[name]["type"] for name in ("date", "dose", "town")] == ["date", "numeric", "categorical"]
    assert [columns[name]["inferred"] for name in ("date", "dose", "town")] == [True, False, True]
    assert columns["none"]["nulls"] == 8
    assert columns["none"]["distinct"] == 0


def test_a_tab_can_be_written_as_backslash_t(directory: Path, shell: Shell) -> None:
    (directory / "tabs.txt").write_text("a\tb\n1\t2\n1\t2\n")
    plan = shell.json(
        "anonymize", "tabs.txt", "--dry-run", "--separator", r"\t", "--quasi-identifiers", "a,b", "-k", "2"
    )
    assert [column["name"] for column in plan["columns"]] == ["a", "b"]


def test_rounding_bounds_order_and_taxonomies_reach_the_release(directory: Path, shell: Shell) -> None:
    (directory / "towns.csv").write_text("c0,north,*\nc1,north,*\nc2,south,*\nc3,south,*\n")
    shell(
        *("anonymize", "table.csv", "-o", "out.csv", "--quasi-identifiers", "age,city", "--other", "drop", "-k", "8"),
        *("--round", "age=5", "--taxonomy", "city=towns.csv", "--weight", "city=2", "--form", "bounds"),
        *("--keep-order", "--seed", "3", "--engine", "memory"),
    )
    certificate = json.loads((directory / "out.csv.sfumato.json").read_text())
    assert certificate["policy"]["columns"]["city"]["weight"] == 2
    assert certificate["policy"]["release"] == {"seed": 3, "keep_order": True, "form": "bounds"}
    rows = released(directory / "out.csv")
    assert list(rows[0]) == ["age", "age_min", "age_max", "city"]
    assert {row["city"] for row in rows} <= {"c0", "c1", "c2", "c3", "north", "south", "*"}
    wide = [row for row in rows if row["age_min"] != row["age_max"] and row["age"] != "*"]
    assert all(int(row["age_min"]) % 5 == 0 and int(row["age_max"]) % 5 == 0 for row in wide)


# --dry-run


def test_a_dry_run_writes_nothing_at_all(directory: Path, shell: Shell, state: Path) -> None:
    text = shell("anonymize", "table.csv", "-o", "out.csv", *ROLES, "-k", "3", "--dry-run")
    assert "40 records; nothing was written" in text
    assert "numeric (inferred)" in text
    assert "feasible     k-anonymity, k = 3 (the whole table reaches 40)" in text
    assert written(directory) == {"table.csv"}
    assert not state.exists()


def test_a_dry_run_shows_how_every_column_is_read(directory: Path, shell: Shell) -> None:
    plan = shell.json("anonymize", "table.csv", *ROLES, "-k", "3", "--taxonomy", "city=flat", "--dry-run")
    assert plan["columns"] == [
        {
            **{"name": "name", "role": "identifier", "released": False},
            **{"type": None, "inferred": False, "distinct": None, "nulls": None, "levels": None, "shown": None},
            "form": None,
        },
        {
            **{"name": "age", "role": "quasi-identifier", "released": True},
            **{"type": "numeric", "inferred": True, "distinct": 10, "nulls": 0, "levels": None},
            "shown": [
                {"level": 0, "name": "single values and ranges", "groups": 10},
                {"level": 1, "name": "*", "groups": 1},
            ],
            "form": "labels",
        },
        {
            **{"name": "city", "role": "quasi-identifier", "released": True},
            **{"type": "categorical", "inferred": False, "distinct": 4, "nulls": 0, "levels": 2},
            "shown": [{"level": 0, "name": "single values", "groups": 4}, {"level": 1, "name": "*", "groups": 1}],
            "form": "labels",
        },
        {
            **{"name": "diagnosis", "role": "sensitive", "released": True},
            **{"type": "text", "inferred": False, "distinct": 3, "nulls": 0, "levels": None, "shown": None},
            "form": None,
        },
    ]
    assert (plan["records"], plan["k"], plan["feasible"], plan["chosen"]) == (40, 3, True, "auto")


# audit and measure


def test_audit_holds_for_a_release_and_not_for_a_changed_one(directory: Path, shell: Shell) -> None:
    shell("anonymize", "table.csv", "-o", "out.csv", *ROLES, "-k", "3")
    assert "the release holds" in shell("audit", "out.csv", "--original", "table.csv")
    lines = (directory / "out.csv").read_text().splitlines()
    (directory / "out.csv").write_text("\n".join([*lines, f'"{SECRET}","{SECRET}","d0"']) + "\n")
    report = shell.json("audit", "out.csv", code=1)
    assert report["holds"] is False
    assert [verdict["holds"] for verdict in report["audit"]] == [False, False]
    text = shell("audit", "out.csv", code=1)
    assert "FAILS" in text
    assert SECRET not in text


@pytest.mark.parametrize("k, code", [(4, 0), (5, 1)])
def test_a_release_made_elsewhere_is_audited_by_flags(k: int, code: int, directory: Path, shell: Shell) -> None:
    (directory / "foreign.csv").write_text("age;zip\n" + "20-29;1*\n" * 5 + "30-39;2*\n" * 4)
    report = shell.json(
        *("audit", "foreign.csv", "--quasi-identifiers", "age,zip", "-k", str(k), "--separator", ";"), code=code
    )
    assert (report["records"], report["classes"], report["smallest_class"]) == (9, 2, 4)
    assert report["holds"] is (code == 0)
    assert "no certificate" in report["remarks"][0]


def test_a_released_identifier_fails_the_audit(directory: Path, shell: Shell) -> None:
    text = shell("audit", "table.csv", "--quasi-identifiers", "city", "--identifiers", "name", "-k", "10", code=1)
    assert "the identifier 'name' is not released" in text


def test_a_dropped_column_is_not_released_and_fails_the_audit_if_it_is(directory: Path, shell: Shell) -> None:
    flags = ["--quasi-identifiers", "age,city", "--sensitive", "diagnosis", "--drop", "name", "-k", "4"]
    shell("anonymize", "table.csv", "-o", "out.csv", *flags)
    assert (directory / "out.csv").read_text().partition("\n")[0] == "age,city,diagnosis"
    text = shell("audit", "table.csv", "--quasi-identifiers", "city", "--drop", "name", "-k", "10", code=1)
    assert "the column 'name' is not released" in text


def test_measure_finds_the_loss_that_anonymize_reported(directory: Path, shell: Shell) -> None:
    made = shell.json("anonymize", "table.csv", "-o", "out.parquet", *ROLES, "-k", "4")
    found = shell.json("measure", "table.csv", "out.parquet", "--target", "diagnosis")
    for key in ("records", "released", "classes", "smallest_class", "suppressed", "gcp", "c_dm", "c_avg", "c_mdm"):
        assert found[key] == made[key]
    assert found["columns"] == made["columns"]
    assert (found["method"], found["chosen"], found["seed"]) == ("auto", None, 0)
    assert found["private_figures"] == ["gcp", "gcp_released", "cost", "max_size", "cm", "columns"]
    assert 0 <= found["cm"] <= 1
    assert "information loss (GCP)" in shell("measure", "table.csv", "out.parquet")


def test_measure_counts_records_that_were_left_out(directory: Path, shell: Shell) -> None:
    (directory / "some.csv").write_text("age\n" + "20\n" * 3 + "21\n" * 3)
    found = shell.json("measure", "table.csv", "some.csv", "--quasi-identifiers", "age", "-k", "3")
    assert (found["records"], found["released"], found["suppressed"]) == (40, 6, 34)


TOWNS = "c0,north,*\nc1,north,*\nc2,south,*\nc3,south,*\n"


def test_measure_says_where_it_looked_for_a_taxonomy_that_a_certificate_only_names(
    directory: Path, shell: Shell
) -> None:
    (directory / "trees").mkdir()
    (directory / "trees" / "towns.csv").write_text(TOWNS)
    shell("anonymize", "table.csv", "-o", "out.csv", *ROLES, "-k", "3", "--taxonomy", "city=trees/towns.csv")
    shell("measure", "table.csv", "out.csv", code=4)
    assert f"in none of the folders {directory}, {directory / 'taxonomies'}." in shell.err
    assert "--taxonomy city=FILE" in shell.err
    assert "--policy" in shell.err
    assert shell.json("measure", "table.csv", "out.csv", "--taxonomy", "city=trees/towns.csv")["records"] == 40
    shell("measure", "table.csv", "out.csv", "--taxonomy", f"city={directory / 'nothing.csv'}", code=4)
    assert "there is no such file" in shell.err


@pytest.mark.parametrize(
    ("taxonomies", "release"),
    [
        ("taxonomies", "out.csv"),  # as a policy that `generate` writes has it
        ("taxonomies", "releases/out.csv"),  # the release is elsewhere, the command is run here
        ("releases/taxonomies", "releases/out.csv"),
        ("releases", "releases/out.csv"),
        (".", "releases/out.csv"),
    ],
)
def test_commands_find_the_taxonomies_of_a_release_without_a_policy(
    directory: Path, shell: Shell, taxonomies: str, release: str
) -> None:
    for folder in (directory / taxonomies, directory / "releases"):
        folder.mkdir(parents=True, exist_ok=True)
    towns, roles = f"{taxonomies}/towns.csv", [*ROLES, "-k", "3", "--taxonomy"]
    (directory / towns).write_text(TOWNS)
    shell("anonymize", "table.csv", "-o", release, *roles, f"city={towns}")
    given = shell.json("measure", "table.csv", release, "--taxonomy", f"city={towns}")
    found = shell.json("measure", "table.csv", release)
    assert (found["gcp"], found["columns"]) == (given["gcp"], given["columns"])
    blur = shell.json("report", "table.csv", release, "--taxonomy", f"city={towns}")["blur"]
    assert shell.json("report", "table.csv", release, "-o", "second.html")["blur"] == blur
    assert "not available" not in shell("plot", release, "--x", "city", "--y", "age")
    assert shell.json("bound", "table.csv", "--release", release)["release"]["gcp"] == pytest.approx(given["gcp"])


def test_the_taxonomy_beside_the_release_comes_first(directory: Path, shell: Shell) -> None:
    (directory / "releases").mkdir()
    (directory / "towns.csv").write_text(TOWNS.replace("north", "*").replace("south", "*"))
    (directory / "releases" / "towns.csv").write_text(TOWNS)
    release, towns = "releases/out.csv", "releases/towns.csv"
    shell(
        "anonymize", "table.csv", "-o", release, *ROLES, "-k", "15", "--weight", "city=9", "--taxonomy", f"city={towns}"
    )
    assert "north" in (directory / release).read_text()
    found, given = (
        shell.json("measure", "table.csv", release, *flags) for flags in ((), ("--taxonomy", f"city={towns}"))
    )
    assert found["gcp"] == given["gcp"]


# generate, methods, demo


def test_generate_writes_a_table_that_its_policy_anonymizes(directory: Path, shell: Shell) -> None:
    made = shell.json(
        "generate", "normal", "-n", "200", "-o", "x.csv", "--dimensions", "2", "--mean", "5", "--seed", "4"
    )
    assert made["options"] == {"dimensions": 2, "mean": 5.0}
    assert made["files"] == ["x.csv", "x.policy.toml"]
    assert shell.json("anonymize", "x.csv", "--policy", "x.policy.toml", "-o", "y.csv")["records"] == 200
    assert "x.policy.toml" in shell("generate", "normal", "-n", "200", "-o", "x.csv", "--force")


def test_the_options_of_agrawal_reach_it(directory: Path, shell: Shell) -> None:
    flags = ("generate", "agrawal", "-n", "50", "--function", "C3", "--salary", "normal")
    shell(*flags, "-o", "a.csv")
    shell(*flags, "-o", "b.csv", "--random-constants")
    classes = [[row["class"] for row in released(directory / name)] for name in ("a.csv", "b.csv")]
    assert len(classes[0]) == 50
    assert classes[0] != classes[1]


def test_methods_are_listed_with_their_papers(shell: Shell) -> None:
    listed = {method["name"]: method for method in shell.json("methods")["methods"]}
    assert listed["auto"]["default"] is True
    assert "VLDB 2007" in listed["hilbert-fast"]["paper"]
    text = shell("methods")
    assert "auto (default)" in text
    assert "hilbert-fast" in text


@pytest.mark.not_quick
def test_the_demonstration_leaves_an_audited_release(directory: Path) -> None:
    result = process("demo", capture_output=True)
    assert result.returncode == 0
    assert result.stderr == ""
    assert "holds   k-anonymity, k = 10" in result.stdout
    assert "demo/release.parquet.sfumato.json" in result.stdout
    assert pq.read_metadata(directory / "demo" / "release.parquet").num_rows == 100_000


@pytest.mark.not_quick
def test_the_demonstration_can_be_run_again_in_any_directory(
    directory: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "RECORDS", 500)
    texts = [shell("demo", "--directory", "some/where") for _ in range(2)]
    assert "some/where/release.parquet" in texts[0]
    assert texts[0] == texts[1]


# How it ends


def test_an_unexpected_error_shows_its_type_and_line_but_not_its_text(
    directory: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError(SECRET)

    monkeypatch.setattr("sfumato.api.draft_release", fail)
    assert shell("anonymize", "table.csv", "-o", "out.csv", *ROLES, "-k", "3", code=70) == ""
    assert shell.err.startswith("error: unexpected KeyError in ")
    assert "test_cli.py, line " in shell.err
    assert "called from sfumato/api.py, line " in shell.err
    assert "report" in shell.err
    assert shell.err.count("\n") == 1
    assert SECRET not in shell.err
    assert written(directory) == {"table.csv"}


def test_a_release_that_fails_its_audit_is_withheld_with_exit_70(
    directory: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise AuditError("the release did not pass its audit")

    monkeypatch.setattr("sfumato.pipeline.examination.require_pass", fail)
    shell("anonymize", "table.csv", "-o", "out.csv", *ROLES, "-k", "3", code=70)
    assert shell.err == "error: the release did not pass its audit\n"
    assert written(directory) == {"table.csv"}


def test_a_lack_of_memory_has_a_plain_error(directory: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError(SECRET)

    monkeypatch.setattr("sfumato.api.draft_release", fail)
    shell("anonymize", "table.csv", "-o", "out.csv", *ROLES, "-k", "3", code=70)
    assert shell.err.startswith("error: not enough memory. ")
    assert SECRET not in shell.err


def test_a_run_record_that_cannot_be_kept_is_a_warning(
    directory: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr("sfumato.pipeline.recognition.record_run", fail)
    made = shell.json("anonymize", "table.csv", "-o", "out.csv", *ROLES, "-k", "3")
    assert "the run record was not" in made["warnings"][-1]
    assert shell.json("audit", "out.csv")["holds"] is True


@pytest.mark.not_quick
@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_reader_that_goes_away_is_no_error(flags: tuple[str, ...], directory: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = process(
        *("audit", "table.csv", "--quasi-identifiers", "city", "-k", "11", *flags),
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    assert result.stderr == ""
    assert result.returncode == 1


@pytest.mark.not_quick
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_standard_output_on_a_full_disk_is_exit_4() -> None:
    with Path("/dev/full").open("w") as full:
        result = process("methods", stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 4
    assert result.stderr.startswith("error: no space left")


# Progress


def drawn(delay: float) -> tuple[DrawnProgress, io.StringIO]:
    screen = io.StringIO()
    return DrawnProgress(Console(file=screen, force_terminal=True, width=120), delay), screen


def test_a_short_run_draws_nothing() -> None:
    progress, screen = drawn(delay=60)
    with progress.phase("read", 10):
        progress.advance(10)
    progress.close()
    assert screen.getvalue() == ""
    assert progress.seconds.keys() == {"read"}


def test_a_long_run_draws_its_phases_and_the_compilation_of_kernels() -> None:
    progress, screen = drawn(delay=0)
    deadline = time.monotonic() + 10
    with progress.phase("read", 10):
        progress.advance(5)
    with progress.phase("partition"):
        progress.compiling()
        while COMPILING not in screen.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    progress.close()
    assert "reading" in screen.getvalue()
    assert "compiling kernels (once per machine and version)" in screen.getvalue()
    assert "forming classes" in screen.getvalue()


def test_nothing_is_drawn_after_the_end() -> None:
    progress, screen = drawn(delay=0.05)
    progress.close()
    time.sleep(0.1)
    assert screen.getvalue() == ""


def test_what_is_reached_is_shown_shortly_and_also_where_it_has_no_bound(tmp_path: Path, shell: Shell) -> None:
    release = tmp_path / "release.csv"
    release.write_text("age,ward\n1,x\n1,x\n1,y\n2,y\n2,y\n2,y\n")
    arguments = [str(release), "--quasi-identifiers", "age", "--sensitive", "ward", "-k", "3"]
    text = shell("audit", *arguments, "--require", "delta-disclosure(ward, delta=2)", code=1)
    assert "FAILS   delta-disclosure of 'ward', delta = 2 (reached: no bound)" in text
    text = shell("audit", *arguments, "--require", "alpha-k(ward, alpha=0.7)", code=1)
    assert "FAILS   (alpha, k)-anonymity of 'ward', alpha = 0.7 (reached: 1)" in text
    assert "holds   k-anonymity, k = 3 (reached: 3)" in text
    text = shell("audit", *arguments, "--require", "t-closeness(ward, t=0.5)")
    assert "(reached: 0.3333)" in text
