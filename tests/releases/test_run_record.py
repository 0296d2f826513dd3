"""The run record: kept by the user alone, it warns when a table is released again under another policy."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

import sfumato
from sfumato.policy import Policy, merge_flags
from sfumato.releases import run_record
from sfumato.releases.run_record import earlier_releases, fingerprints, record_run, state_directory
from sfumato.tables.coding.domains import CategoricalDomain, NumericDomain
from sfumato.taxonomies.derived_taxonomies import flat

NOBODY = 65534
CHANCE = np.random.default_rng(3)
TABLE = pa.table(
    {
        "age": CHANCE.integers(20, 60, 80),
        "height": CHANCE.integers(1500, 1999, 80) / 10,
        "town": [f"town {number}" for number in CHANCE.integers(0, 6, 80)],
        "land": ["Italy"] * 80,
    }
)
QUASI_IDENTIFIERS = ["age", "height", "town"]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / "deep" / "state"))
    return tmp_path / "deep" / "state"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def release(data: object, target: Path | None = None, **flags: Any) -> list[str]:
    """Anonymize, write, and give the warnings that say something of earlier releases or the record."""
    asked: dict[str, Any] = {"quasi_identifiers": QUASI_IDENTIFIERS, "other": "drop", "k": 5, **flags}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = sfumato.anonymize(data, **asked)
    if target is not None:
        made.write(target)
    assert made.warnings == tuple(str(one.message) for one in caught if one.category is sfumato.SfumatoWarning)
    return [text for text in made.warnings if "released" in text or "run record" in text]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def runs(state: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (state / "runs.jsonl").read_text().splitlines() if line]


def test_the_record_is_the_users_alone(state: Path, folder: Path) -> None:
    before = os.umask(0)
    try:
        release(TABLE, folder / "out.csv")
    finally:
        os.umask(before)
    assert mode(state) == 0o700
    assert {path.name: mode(path) for path in state.iterdir()} == {"secret": 0o600, "runs.jsonl": 0o600}


def test_a_line_tells_when_from_where_and_to_where_but_no_value(state: Path, folder: Path) -> None:
    parquet.write_table(TABLE, folder / "in.parquet")
    release(folder / "in.parquet", folder / "out.csv")
    release(TABLE, folder / "two.csv")
    first, second = runs(state)
    assert list(first) == ["time", "input", "output", "policy", "columns", "private_figures"]
    assert (first["input"], first["output"]) == (str(folder / "in.parquet"), str(folder / "out.csv"))
    assert second["input"] == "pyarrow"
    assert first["time"].endswith("+00:00")
    assert first["columns"] == second["columns"]
    assert len(first["columns"]) == 3
    assert set(first["private_figures"]) == {"gcp", "max_size", "chosen", "choice"}
    assert "town" not in json.dumps(first)


def test_only_a_written_release_is_recorded(state: Path) -> None:
    release(TABLE)
    assert runs(state) == []


def test_the_same_table_under_another_policy_warns(folder: Path) -> None:
    assert release(TABLE, folder / "one.csv") == []
    (warning,) = release(TABLE, folder / "two.csv", k=6)
    assert warning.startswith("this table was released 1 time before under another policy")
    (warning,) = release(TABLE, k=7)
    assert warning.startswith("this table was released 2 times before under another policy")


def test_the_same_policy_does_not_warn(folder: Path) -> None:
    for name in ("one.csv", "two.csv", "three.parquet"):
        assert release(TABLE, folder / name) == []


def test_another_table_does_not_warn(folder: Path) -> None:
    release(TABLE, folder / "one.csv")
    changed = TABLE.set_column(0, "age", pa.array(TABLE["age"].to_numpy() + 1))
    changed = changed.set_column(1, "height", pa.array(TABLE["height"].to_numpy()[::-1]))
    changed = changed.set_column(2, "town", pa.array([f"{town}!" for town in TABLE["town"].to_pylist()]))
    assert release(changed, k=6) == []


def test_a_column_with_one_value_does_not_make_two_tables_the_same(folder: Path) -> None:
    release(TABLE, folder / "one.csv", quasi_identifiers=["age", "land"])
    other = pa.table({"age": TABLE["age"].to_numpy() + 1, "land": ["Italy"] * 80})
    assert release(other, quasi_identifiers=["age", "land"], k=6) == []


@pytest.mark.parametrize(
    "flags",
    [
        {"quasi_identifiers": ["age"]},
        {"quasi_identifiers": ["town", "land"]},
        {"quasi_identifiers": ["age", "height", "town", "land"]},
        {"type": {"age": "categorical"}},
        {"taxonomy": {"age": {"intervals": [5, 10]}}},
        {"round": {"height": 10}},
        {"weight": {"age": 2.0}},
        {"method": "hilbert-fast"},
        {"form": "bounds"},
        {"seed": 1},
    ],
    ids=str,
)
def test_any_other_policy_that_shares_a_quasi_identifier_warns(folder: Path, flags: dict[str, Any]) -> None:
    release(TABLE, folder / "one.csv")
    assert len(release(TABLE, **flags)) == 1


def test_a_column_is_known_again_whatever_the_size_of_the_others(folder: Path) -> None:
    numbers = np.arange(1000)
    table = pa.table({"small": numbers % 7, "large": numbers})
    release(table, folder / "one.csv", quasi_identifiers=["small"])
    assert len(release(table, quasi_identifiers=["small", "large"])) == 1


@pytest.mark.parametrize("first", ["csv", "parquet", "arrow", "csv.gz", "semicolons"])
@pytest.mark.parametrize("second", ["csv", "parquet", "pandas", "polars"])
def test_a_table_is_known_again_whatever_its_form(folder: Path, first: str, second: str) -> None:
    def form(name: str) -> tuple[object, dict[str, Any]]:
        path = folder / f"in.{name}"
        if name == "pandas":
            return TABLE.to_pandas(), {}
        if name == "polars":
            import polars

            return polars.DataFrame(TABLE), {}
        if name == "parquet":
            parquet.write_table(TABLE, path)
        elif name == "arrow":
            with pa.ipc.new_file(str(path), TABLE.schema) as writer:
                writer.write_table(TABLE)
        elif name == "semicolons":
            path = folder / "semicolons.csv"
            pa.csv.write_csv(TABLE, path, pa.csv.WriteOptions(delimiter=";"))
            return path, {"input": {"separator": ";"}}
        else:
            with pa.output_stream(str(path), compression="gzip" if name == "csv.gz" else None) as sink:
                pa.csv.write_csv(TABLE, sink)
        return path, {}

    data, flags = form(first)
    assert release(data, folder / "out.csv", **flags) == []
    data, flags = form(second)
    assert release(data, **flags) == []
    assert len(release(data, k=6, **flags)) == 1


def test_a_changed_taxonomy_is_another_policy_and_a_moved_one_is_not(folder: Path) -> None:
    towns = sorted(set(TABLE["town"].to_pylist()))
    for name in ("towns.csv", "moved.csv"):
        (folder / name).write_text("".join(f"{town},{town[-1] < '3'},*\n" for town in towns))
    release(TABLE, folder / "out.csv", taxonomy={"town": folder / "towns.csv"})
    assert release(TABLE, taxonomy={"town": folder / "moved.csv"}) == []
    (folder / "towns.csv").write_text("".join(f"{town},{town[-1] < '2'},*\n" for town in towns))
    assert len(release(TABLE, taxonomy={"town": folder / "towns.csv"})) == 1


def test_the_secret_never_changes_and_keys_the_record(
    state: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(TABLE, folder / "one.csv")
    secret = (state / "secret").read_bytes()
    assert len(secret) == 32
    release(TABLE, folder / "two.csv", k=6)
    assert (state / "secret").read_bytes() == secret
    columns = runs(state)[0]["columns"]
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(folder / "other"))
    release(TABLE, folder / "three.csv")
    other = runs(folder / "other")[0]["columns"]
    assert not set(columns) & set(other)
    assert not set(columns.values()) & set(other.values())


def test_a_damaged_secret_is_not_used(state: Path, folder: Path) -> None:
    state.mkdir(parents=True)
    (state / "secret").write_bytes(b"")
    (warning,) = release(TABLE, folder / "out.csv")
    assert warning.startswith("no run record can be kept")
    assert (folder / "out.csv.sfumato.json").exists()
    assert not (state / "runs.jsonl").exists()


@pytest.mark.parametrize("cut", [1, 2, 3, 40, 150])
def test_half_a_line_is_ignored_and_does_not_spoil_the_next(state: Path, folder: Path, cut: int) -> None:
    release(TABLE, folder / "one.csv")
    whole = (state / "runs.jsonl").read_bytes()
    (state / "runs.jsonl").write_bytes(whole + whole[:-cut])
    (warning,) = release(TABLE, folder / "two.csv", k=6)
    # Without its line end alone a line is whole.
    assert warning.startswith(f"this table was released {2 if cut == 1 else 1} time")
    assert json.loads((state / "runs.jsonl").read_bytes().splitlines()[-1])["output"] == str(folder / "two.csv")


def test_lines_that_are_something_else_are_ignored(state: Path, folder: Path) -> None:
    release(TABLE, folder / "one.csv")
    with (state / "runs.jsonl").open("ab") as file:
        file.write(b'\n[]\n1\n{}\n{"columns": 3, "policy": ""}\n\xff\xfe}\n')
    assert len(release(TABLE, k=6)) == 1


def test_names_of_any_alphabet_stay_on_one_line(state: Path, folder: Path) -> None:
    release(TABLE, folder / "caffè\u2028\x85.csv")
    assert [json.loads(line)["output"] for line in (state / "runs.jsonl").read_bytes().split(b"\n") if line] == [
        str(folder / "caffè\u2028\x85.csv")
    ]
    assert len(release(TABLE, k=6)) == 1


WRITER = """
import sys
from pathlib import Path
from sfumato.policy import Policy
from sfumato.releases.run_record import _secret, record_run
_secret()
for number in range(100):
    record_run({f"{sys.argv[1]}{column}": "x" * 64 for column in range(200)}, Policy(), sys.argv[1], Path(str(number)))
print(_secret().hex())
"""


@pytest.mark.not_quick
def test_runs_at_the_same_time_do_not_spoil_the_record(state: Path) -> None:
    started = [subprocess.Popen([sys.executable, "-c", WRITER, letter], stdout=subprocess.PIPE) for letter in "abc"]
    secrets = {run.communicate(timeout=60)[0] for run in started}
    assert [run.returncode for run in started] == [0, 0, 0]
    assert len(secrets) == 1
    assert sorted(path.name for path in state.iterdir()) == ["runs.jsonl", "secret"]
    lines = runs(state)
    assert len(lines) == 300
    for letter in "abc":
        mine = [line for line in lines if line["input"] == letter]
        assert [Path(line["output"]).name for line in mine] == [str(number) for number in range(100)]


UNWRITABLE = """
import os, sys, warnings
import pyarrow, sfumato
table = pyarrow.table({"age": [1, 2, 3, 4]})
def release(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = sfumato.anonymize(table, quasi_identifiers=["age"], k=2)
    made.write(name)
    return [str(one.message)[:26] for one in caught]
os.chdir(sys.argv[1])
assert release("out.csv") == []  # also loads all that only root may read
for name in os.listdir():
    os.remove(name)
os.environ["SFUMATO_STATE_DIR"] = sys.argv[2]
if os.geteuid() == 0:
    os.setgid(int(sys.argv[3]))
    os.setuid(int(sys.argv[3]))
print(release("out.csv"), sorted(os.listdir()))
"""


@pytest.mark.not_quick
@pytest.mark.parametrize("closed", ["nothing", "directory", "record", "secret"])
def test_a_state_directory_that_is_not_writable_warns_and_releases(closed: str) -> None:
    # Not in pytest's directories, which only root may enter.
    with tempfile.TemporaryDirectory() as place:
        folder, state = Path(place) / "out", Path(place) / "state"
        for directory, permissions in ((Path(place), 0o755), (folder, 0o777), (state, 0o777)):
            directory.mkdir(exist_ok=True)
            directory.chmod(permissions)
        for path, content in ((state / "secret", b"x" * 32), (state / "runs.jsonl", b"")):
            path.write_bytes(content)
            path.chmod(0o666)
        if closed != "nothing":
            {"directory": state, "record": state / "runs.jsonl", "secret": state / "secret"}[closed].chmod(0o000)
        done = subprocess.run(
            [sys.executable, "-c", UNWRITABLE, str(folder), str(state), str(NOBODY)],
            capture_output=True,
            text=True,
            check=False,
        )
        recorded = len(runs(state)) if os.geteuid() == 0 else None
    expected = [] if closed == "nothing" else ["no run record can be kept "]
    assert done.stdout == f"{expected} ['out.csv', 'out.csv.sfumato.json']\n", done.stderr
    assert recorded in (None, 0 if expected else 1)


def test_the_default_place_is_the_users_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SFUMATO_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere/state")
    assert sys.platform != "linux" or state_directory() == Path("/somewhere/state/sfumato")


# The functions by themselves.


def numeric(values: list[float], name: str = "age") -> NumericDomain:
    return NumericDomain(name, np.unique(np.array(values)), False)


def prints(codes: NDArray[np.unsignedinteger], domains: list[Any]) -> dict[str, str]:
    used = [np.bincount(codes[:, q], minlength=domain.size) for q, domain in enumerate(domains)]
    whole = fingerprints([codes], used, domains)
    # Whatever the batches, the table is the same.
    assert whole == fingerprints([codes[:1], codes[1:]], used, domains)
    return whole


def test_fingerprints_differ_by_order_value_and_name() -> None:
    codes = np.array([[0], [1], [1]], np.uint8)
    same = prints(codes, [numeric([1, 2])])
    assert same == prints(codes.astype(np.uint32), [numeric([1.0, 2.0])])
    for other in (
        prints(codes[::-1], [numeric([1, 2])]),
        prints(codes, [numeric([1, 3])]),
        prints(codes, [numeric([1, 2], "years")]),
    ):
        assert not set(same.items()) & set(other.items())


def test_numbers_and_categories_of_the_same_texts_have_the_same_fingerprint() -> None:
    numbers = [9.0, 10.0, 2.5]
    domain = numeric(numbers)
    taxonomy = flat(["10", "2.5", "9", "unused"], "age")
    categories = CategoricalDomain("age", taxonomy, False)
    by_number = np.array([[domain.values.tolist().index(number)] for number in numbers], np.uint8)
    by_text = np.array([[taxonomy.leaves.index(text)] for text in ("9", "10", "2.5")], np.uint8)
    assert prints(by_number, [domain]) == prints(by_text, [categories])


def test_null_and_empty_text_have_different_fingerprints() -> None:
    taxonomy = flat(["", "a"], "c")
    empty, letter, null = taxonomy.leaves.index(""), taxonomy.leaves.index("a"), 2
    domain = CategoricalDomain("c", taxonomy, True)
    assert prints(np.array([[empty], [letter]], np.uint8), [domain]) != prints(
        np.array([[null], [letter]], np.uint8), [domain]
    )


def test_numbers_of_very_many_values_have_fingerprints_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_record, "MANY", 2)
    codes = np.array([[0], [1], [2], [3]], np.uint8)
    domain = NumericDomain("age", np.array([1.5, 2.5, 10.0]), True)
    assert prints(codes, [domain]) == prints(codes, [domain])
    assert prints(codes, [domain]) != prints(codes[::-1], [domain])


def test_a_run_is_found_again() -> None:
    policy, other = (merge_flags(quasi_identifiers=["age"], k=k) for k in (2, 3))
    assert earlier_releases({"a": "1"}, policy) == 0
    prints(np.array([[0]], np.uint8), [numeric([1])])
    record_run({"a": "1", "b": "2"}, policy, "here", Path("there"))
    assert earlier_releases({"a": "1"}, policy) == 0
    assert earlier_releases({"a": "1"}, other) == 1
    assert earlier_releases({"a": "2"}, other) == 0
    assert earlier_releases({"b": "1"}, other) == 0


def test_how_a_file_is_written_is_not_part_of_the_policy() -> None:
    prints(np.array([[0]], np.uint8), [numeric([1])])
    record_run({"a": "1"}, Policy(), "here", Path("there"))
    assert earlier_releases({"a": "1"}, merge_flags(Policy(), input={"separator": ";", "encoding": "cp1252"})) == 0
