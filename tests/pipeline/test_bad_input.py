"""Bad input ends in a clear error: its exit code, one line, no output, and never a cell of the table."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_disk import WITHOUT_BYTECODE

from sfumato.cli import main
from sfumato.errors import InfeasibleError
from sfumato.synthetic import generate

SECRET_TEXT = "zzsecretzz"
SECRET_NUMBER = "987654.321"
HEADER = "name,age,city,diagnosis"
ROWS = [f"n{number % 7}{SECRET_TEXT},{20 + number % 9},c{number % 4},d{number % 3}" for number in range(30)]
ROWS[4] = f"{SECRET_TEXT},{SECRET_NUMBER},{SECRET_TEXT},{SECRET_TEXT}"
FIRST_RECORD = f"{SECRET_TEXT},{SECRET_NUMBER},c0{SECRET_TEXT},d0{SECRET_TEXT}"
ROLES = ["--quasi-identifiers", "age,city", "--sensitive", "diagnosis", "--identifiers", "name"]
IS_ROOT = os.geteuid() == 0


def csv_text(rows: list[str] | None = None, header: str = HEADER) -> str:
    return "\n".join([header, *(ROWS if rows is None else rows)]) + "\n"


def with_cell(position: int, cell: str, row: int = 11) -> list[str]:
    cells = ROWS[row].split(",")
    cells[position] = cell
    return [*ROWS[:row], ",".join(cells), *ROWS[row + 1 :]]


@dataclass(frozen=True)
class Case:
    """One wrong thing: the files it needs, the flags beside ``INPUT -o OUTPUT``, and what the error must say."""

    name: str
    code: int
    says: tuple[str, ...]
    flags: list[str] = field(default_factory=lambda: [*ROLES, "-k", "3"])
    table: str | bytes | None = csv_text()
    files: dict[str, str | bytes] = field(default_factory=dict)
    output: str = "out.csv"


CASES = [
    Case("k is 0", 2, ("k must be", "at least 1", "-k 10"), [*ROLES, "-k", "0"]),
    Case("k is negative", 2, ("k must be", "at least 1"), [*ROLES, "-k", "-3"]),
    Case("k is no number", 2, ("k must be", "whole number"), [*ROLES, "-k", "ten"]),
    Case("k is a list", 2, ("one value", "5,10", "single number"), [*ROLES, "-k", "5,10"]),
    Case("k is a range", 2, ("one value", "2..100", "single number"), [*ROLES, "-k", "2..100"]),
    Case("k is absent", 2, ("k is absent", "Set k"), ROLES),
    Case("k exceeds the records", 3, ("31", "30", "at most 30"), [*ROLES, "-k", "31"]),
    Case(
        "unknown column",
        2,
        ("'agee'", "Did you mean 'age'"),
        ["--quasi-identifiers", "agee,city", "--other", "drop", "-k", "3"],
    ),
    Case(
        "column in two roles",
        2,
        ("'age'", "two roles", "one of them"),
        [*ROLES, "--other", "age", "-k", "3"],
    ),
    Case(
        "column without a role",
        2,
        ("no role", "'diagnosis'", "keep"),
        ["--quasi-identifiers", "age,city", "--identifiers", "name", "-k", "3"],
    ),
    Case(
        "no header",
        2,
        ("'age'", "not listed", "Add the header"),
        table=csv_text(header=FIRST_RECORD),
    ),
    Case(
        "the first record in the line of the header",
        2,
        ("no role", "4 columns, not listed", "other = "),
        table=csv_text(header=f"{HEADER},{FIRST_RECORD}"),
    ),
    Case(
        "no quasi-identifier",
        2,
        ("no column is a quasi-identifier", "Name the columns"),
        ["--sensitive", "diagnosis", "--other", "drop", "-k", "3"],
    ),
    Case(
        "kept column that is nearly unique",
        2,
        ("'name'", "accept_linkable"),
        ["--quasi-identifiers", "age,city", "--other", "keep", "-k", "3"],
        csv_text([f"{SECRET_TEXT}{number},{row.split(',', 1)[1]}" for number, row in enumerate(ROWS)]),
    ),
    Case(
        "taxonomy with two parents for a node",
        4,
        ("'city'", "city_tree.csv", "lines 1 and 3", "'a' has two parents", "Give it one parent"),
        [*ROLES, "--taxonomy", "city=city_tree.csv", "-k", "3"],
        files={"city_tree.csv": f"{SECRET_TEXT},a,north,*\nc0,a,north,*\nc1,a,south,*\nc2,b,south,*\nc3,b,south,*\n"},
    ),
    Case(
        "value outside its taxonomy",
        4,
        (
            "'city'",
            "city_tree.csv",
            "line 6",
            "Run: sfumato taxonomy INPUT city --check city_tree.csv --missing missing.csv",
        ),
        [*ROLES, "--taxonomy", "city=city_tree.csv", "-k", "3"],
        files={"city_tree.csv": "c0,north,*\nc1,north,*\nc2,south,*\nc3,south,*\n"},
    ),
    Case(
        "missing taxonomy file",
        4,
        ("'city'", "nowhere.csv", "no such file"),
        [*ROLES, "--taxonomy", "city=nowhere.csv", "-k", "3"],
    ),
    Case("missing input", 4, ("table.csv", "does not exist", "Check the path"), table=None),
    Case("empty file", 4, ("table.csv", "is empty", "Give a file"), table=""),
    Case("header only", 4, ("table.csv", "no records", "at least one record"), table=csv_text([])),
    Case(
        "duplicate column names",
        4,
        ("columns 1 and 3", "table.csv", "Rename"),
        table=csv_text(header="name,age,name,diagnosis"),
    ),
    Case(
        "ragged row",
        4,
        ("line 13", "table.csv", "5 fields", "4", "separator"),
        table=csv_text(with_cell(2, f"{SECRET_TEXT},{SECRET_TEXT}")),
    ),
    Case("short row", 4, ("line 13", "1 field", "4"), table=csv_text([*ROWS[:11], SECRET_TEXT, *ROWS[12:]])),
    Case(
        "open quote",
        4,
        ("line 13", "never closed", "Close it"),
        table=csv_text(with_cell(3, f'"{SECRET_TEXT}')),
    ),
    Case(
        "wrong encoding",
        4,
        ("table.csv", "utf-8", "line 13", "--encoding cp1252"),
        table=csv_text(with_cell(2, f"{SECRET_TEXT}é")).encode("cp1252"),
    ),
    Case(
        "unknown encoding",
        2,
        ("encoding", "klingon", "cp1252"),
        [*ROLES, "-k", "3", "--encoding", "klingon"],
    ),
    Case(
        "number that does not parse",
        4,
        ("'age'", "line 13", "Correct the data"),
        [*ROLES, "--type", "age=numeric", "-k", "3"],
        csv_text(with_cell(1, SECRET_TEXT)),
    ),
    Case(
        "date that does not parse",
        4,
        ("'age'", "not dates of the form", "line 2"),
        [*ROLES, "--type", "age=date", "-k", "3"],
    ),
    Case("infinity", 4, ("'age'", "infinit"), table=csv_text(with_cell(1, "inf"))),
    Case("infinity by overflow", 4, ("'age'", "infinit"), table=csv_text(with_cell(1, "1e999"))),
    Case("star as a value", 4, ("'city'", "'*'", "Replace it"), table=csv_text(with_cell(2, "*"))),
    Case("directory as input", 4, ("directory", "single file"), files={"table.csv/x": SECRET_TEXT}, table=None),
    Case("directory as output", 2, ("directory", "Name a file"), files={"out.csv/x": SECRET_TEXT}),
    Case("output equal to input", 2, ("the output is the input", "another file"), output="table.csv"),
    Case(
        "output by another path is the input",
        2,
        ("the output is the input",),
        output="./x/../table.csv",
        files={"x/y": ""},
    ),
    Case("output in no directory", 4, ("nowhere", "does not exist", "Create it"), output="nowhere/out.csv"),
    Case("output without a format", 2, ("'out'", "suffix", ".parquet"), output="out"),
    Case(
        "input without a kind",
        4,
        ("table.unknown", "Give a file that ends"),
        files={"table.unknown": csv_text()},
        table=None,
    ),
    Case(
        "unknown method", 2, ("method", "'hilbrt'", "Did you mean 'hilbert'"), [*ROLES, "-k", "3", "--method", "hilbrt"]
    ),
    Case("unknown engine", 2, ("engine", "'abacus'", "memory"), [*ROLES, "-k", "3", "--engine", "abacus"]),
    Case("unknown form", 2, ("form", "'round'", "bounds"), [*ROLES, "-k", "3", "--form", "round"]),
    Case("negative seed", 2, ("seed", "whole number"), [*ROLES, "-k", "3", "--seed", "-1"]),
    Case("unknown flag", 2, ("--kk", "--help"), [*ROLES, "--kk", "3"]),
    Case("flag without a column", 2, ("--round", "COL=STEP"), [*ROLES, "-k", "3", "--round", "5"]),
    Case("weight that is no number", 2, ("--weight", "COL=W"), [*ROLES, "-k", "3", "--weight", "age=much"]),
    Case("weight given twice", 2, ("--weight", "twice", "'age'"), [*ROLES, "-k", "3", *["--weight", "age=2"] * 2]),
    Case(
        "weight of another column",
        2,
        ("weight", "'diagnosis'", "not a quasi-identifier"),
        [*ROLES, "-k", "3", "--weight", "diagnosis=2"],
    ),
    Case("empty name in a list", 2, ("--identifiers", "empty name"), [*ROLES, "-k", "3", "--identifiers", "x,,y"]),
    Case("missing policy", 4, ("policy", "nowhere.toml", "Check the path"), ["--policy", "nowhere.toml"]),
    Case(
        "unknown key in the policy",
        2,
        ("policy.toml, line 3", "roles"),
        ["--policy", "policy.toml"],
        files={"policy.toml": '[columns.age]\nrole = "quasi-identifier"\nroles = "other"\n[privacy]\nk = 3\n'},
    ),
    Case(
        "policy that is no TOML",
        2,
        ("policy.toml, line 2", "TOML"),
        ["--policy", "policy.toml"],
        files={"policy.toml": "[privacy]\nk = = 3\n"},
    ),
    Case(
        "policy with an unknown column",
        2,
        ("policy.toml, line 2", "'agee'", "Did you mean 'age'"),
        ["--policy", "policy.toml"],
        files={"policy.toml": 'other = "drop"\n[columns.agee]\nrole = "quasi-identifier"\n[privacy]\nk = 3\n'},
    ),
]


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run records go to a directory of their own; compiled kernels stay where all tests share them."""
    directory = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(directory))
    return directory


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lay_out(case: Case, place: Path) -> None:
    for name, content in {**case.files, **({} if case.table is None else {"table.csv": case.table})}.items():
        file = place / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)


def files_in(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def assert_clear_error(stdout: str, stderr: str, says: tuple[str, ...]) -> None:
    assert stdout == ""
    assert stderr.startswith("error: ")
    assert stderr.count("\n") == 1
    assert stderr.endswith("\n")
    for fragment in says:
        assert fragment in stderr
    assert_no_cell(stdout + stderr)


def assert_no_cell(text: str) -> None:
    assert SECRET_TEXT not in text
    assert SECRET_NUMBER not in text
    assert "987654" not in text


@pytest.mark.parametrize("flag", [(), ("--json",), ("--dry-run",)], ids=["text", "json", "dry-run"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_input_is_one_clear_line_and_leaves_nothing(
    case: Case, flag: tuple[str, ...], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(case, place)
    before = files_in(place)
    table = "table.unknown" if "table.unknown" in case.files else "table.csv"
    code = main(["anonymize", table, "-o", case.output, *case.flags, *flag])
    captured = capsys.readouterr()
    assert code == case.code
    if "--dry-run" in flag and code == InfeasibleError.exit_code:
        assert "\nNOT FEASIBLE " in captured.out  # what is required is listed all the same
        assert_no_cell(captured.out)
        assert_clear_error("", captured.err, case.says)
    else:
        assert_clear_error(captured.out, captured.err, case.says)
    assert files_in(place) == before


def test_infinity_in_a_numeric_column_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ages = [20.0, 30.0, float(SECRET_NUMBER), float("-inf")] * 5
    pq.write_table(pa.table({"age": ages}), place / "table.parquet")
    code = main(["anonymize", "table.parquet", "-o", "out.parquet", "--quasi-identifiers", "age", "-k", "2"])
    captured = capsys.readouterr()
    assert code == 4
    assert_clear_error(captured.out, captured.err, ("'age'", "infinit"))
    assert files_in(place).keys() == {"table.parquet"}


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv.gz", ".csv.zst"])
def test_a_damaged_file_is_refused(suffix: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / f"table{suffix}").write_text(csv_text())
    code = main(["anonymize", f"table{suffix}", "-o", "out.csv", *ROLES, "-k", "3"])
    captured = capsys.readouterr()
    assert code == 4
    assert_clear_error(captured.out, captured.err, (f"table{suffix}",))
    assert files_in(place).keys() == {f"table{suffix}"}


@pytest.mark.parametrize(
    "flags, code",
    [
        (["nowhere.csv", *ROLES, "-k", "0"], 2),
        (["nowhere.csv", "--policy", "nowhere.toml", "-k", "0"], 2),
        (["nowhere.csv", *ROLES, "-k", "3", "--method", "none"], 2),
        (["table.csv", "--quasi-identifiers", "nothing", "--other", "drop", "-k", "99"], 2),
        (["table.csv", *ROLES, "--type", "city=numeric", "-k", "99"], 4),
    ],
)
def test_the_first_failing_check_wins(
    flags: list[str], code: int, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "table.csv").write_text(csv_text())
    assert main(["anonymize", *flags, "-o", "out.csv"]) == code
    assert_no_cell(capsys.readouterr().err)


def test_an_earlier_release_survives_a_failed_run(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "table.csv").write_text(csv_text())
    assert main(["anonymize", "table.csv", "-o", "out.csv", *ROLES, "-k", "3"]) == 0
    before = files_in(place)
    assert main(["anonymize", "table.csv", "-o", "out.csv", *ROLES, "-k", "31"]) == 3
    assert files_in(place) == before
    assert main(["audit", "out.csv"]) == 0
    capsys.readouterr()


# What needs a process of its own


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "sfumato", *map(str, arguments)]


@pytest.fixture
def without_privileges() -> list[str]:
    """What a command is started with so that permissions count, which they do not for root."""
    if not IS_ROOT:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root may do everything, and there is no setpriv to give that up")
    return [setpriv, "--bounding-set=-all", "--inh-caps=-all"]


@pytest.mark.not_quick
@pytest.mark.parametrize("closed", ["table.csv", "policy.toml", "tree.csv", "release"])
def test_without_permission_the_error_names_the_place(closed: str, place: Path, without_privileges: list[str]) -> None:
    (place / "table.csv").write_text(csv_text())
    (place / "tree.csv").write_text("c0,north,*\nc1,north,*\nc2,south,*\nc3,south,*\n")
    (place / "policy.toml").write_text(
        'other = "drop"\n[columns.age]\nrole = "quasi-identifier"\n[columns.city]\nrole = "quasi-identifier"\n'
        'taxonomy = "tree.csv"\n[privacy]\nk = 3\n'
    )
    release = place / "release"
    release.mkdir()
    (place / closed).chmod(0o555 if closed == "release" else 0)
    result = subprocess.run(
        [*without_privileges, *command("anonymize", "table.csv", "-o", "release/out.csv", "--policy", "policy.toml")],
        capture_output=True,
        text=True,
        check=False,
    )
    release.chmod(0o755)
    assert result.returncode == 4
    assert_clear_error(result.stdout, result.stderr, (closed,))
    assert "permission" in result.stderr or "may not be read" in result.stderr
    assert list(release.iterdir()) == []


def small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


@pytest.fixture(scope="module")
def large_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = tmp_path_factory.mktemp("large") / "table.parquet"
    generate("census", 1_000_000, table)
    return table


@pytest.fixture(scope="module")
def warm_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose release is longer than a small disk, after a run that has compiled all kernels."""
    table = tmp_path_factory.mktemp("warm") / "table.parquet"
    generate("census", 20_000, table)
    finished = table.with_name("finished.parquet")
    state = {**os.environ, "SFUMATO_STATE_DIR": str(table.parent / "state")}
    subprocess.run(anonymize_command(table, finished), check=True, capture_output=True, env=state)
    return table


def anonymize_command(table: Path, output: Path) -> list[str]:
    return command("anonymize", table, "-o", output, "--policy", table.with_suffix(".policy.toml"))


@pytest.mark.not_quick
@pytest.mark.parametrize("suffix", [".parquet", ".xlsx"])
def test_a_file_that_cannot_grow_is_a_full_disk(suffix: str, warm_table: Path, tmp_path: Path) -> None:
    result = subprocess.run(
        anonymize_command(warm_table, tmp_path / f"out{suffix}"),
        preexec_fn=small_files,
        env={**os.environ, **WITHOUT_BYTECODE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 4
    place = f"no space left for {tmp_path}/out{suffix};"
    assert_clear_error(result.stdout, result.stderr, (place, "Free some space"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.not_quick
def test_a_full_disk_leaves_nothing(warm_table: Path, tmp_path: Path) -> None:
    mount = shutil.which("mount")
    if not IS_ROOT or mount is None:
        pytest.skip("only root can mount a small disk")
    if subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=16k", "tmpfs", tmp_path], capture_output=True, check=False
    ).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        result = subprocess.run(
            anonymize_command(warm_table, tmp_path / "out.parquet"), capture_output=True, text=True, check=False
        )
        left = list(tmp_path.iterdir())
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert result.returncode == 4
    assert_clear_error(result.stdout, result.stderr, ("no space left", "out.parquet"))
    assert left == []


WITHOUT_SEARCH = ("--effort", "fast")  # comes to writing soon


def started(table: Path, output: Path, *flags: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*anonymize_command(table, output), *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_stage(directory: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not any("sfumato-stage" in path.name for path in directory.iterdir()):
        assert process.poll() is None, "the run ended before it wrote anything"
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.not_quick
def test_a_run_that_is_interrupted_while_it_writes_leaves_nothing(
    warm_table: Path, large_table: Path, tmp_path: Path
) -> None:
    process = started(large_table, tmp_path / "out.parquet", *WITHOUT_SEARCH)
    wait_for_stage(tmp_path, process)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (130, "", "interrupted\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.not_quick
@pytest.mark.parametrize(
    "number, code, word", [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_run_that_is_stopped_while_it_computes_leaves_nothing(
    number: signal.Signals, code: int, word: str, large_table: Path, tmp_path: Path, state: Path
) -> None:
    process = started(large_table, tmp_path / "out.parquet")
    deadline = time.monotonic() + 60
    while not (state / "secret").exists():  # made just before the classes are formed
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (code, "", f"{word}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.not_quick
def test_a_killed_run_leaves_no_release_and_the_next_run_cleans_up(
    warm_table: Path, large_table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.parquet"
    process = started(large_table, output, *WITHOUT_SEARCH)
    wait_for_stage(tmp_path, process)
    process.kill()
    process.communicate(timeout=60)
    left = list(tmp_path.iterdir())
    assert len(left) == 1
    assert "sfumato-stage" in left[0].name
    assert left[0].stat().st_mode & 0o777 == 0o600
    assert main(anonymize_command(warm_table, output)[3:]) == 0
    capsys.readouterr()
    assert {path.name for path in tmp_path.iterdir()} == {"out.parquet", "out.parquet.sfumato.json"}
