"""The run record: kept by the user alone, it warns when a table, or one that shares its records, is released again."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import sfumato
from sfumato.api import anonymize_to_file
from sfumato.engines.memory.engine import MemoryEngine
from sfumato.engines.spark.column_profiles import ColumnCounts, content_of
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.releases.earlier_releases import EarlierReleases, earlier_releases
from sfumato.releases.fingerprints import Fingerprints
from sfumato.releases.keyed_sample import KeyedSample, shared_part
from sfumato.releases.ordered_fingerprints import content_fingerprints
from sfumato.releases.run_record import ClassRecipe, record_run, record_secret, state_directory

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
    return [text for text in made.warnings if " before" in text or "run record" in text]


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
    assert list(first) == [
        *("time", "input", "output", "policy", "anew", "requirements", "records", "released", "method", "engine"),
        *("columns", "version", "sample", "private_figures"),
    ]
    assert [first[key] for key in ("requirements", "records", "released", "method", "engine")] == [
        ["k = 5 records"], 80, 80, "auto", "memory",
    ]  # fmt: skip
    assert (first["input"], first["output"]) == (str(folder / "in.parquet"), str(folder / "out.csv"))
    assert second["input"] == "pyarrow"
    assert first["time"].endswith("+00:00")
    assert first["columns"] == second["columns"]
    assert first["sample"] == second["sample"]
    assert len(first["columns"]) == 3
    assert set(first["private_figures"]) == {
        *("gcp", "gcp_released", "cost", "max_size", "groups", "c_dm_groups", "chosen", "choice")
    }
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
    changed = changed.set_column(1, "height", pa.array(TABLE["height"].to_numpy() + 1))
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
from sfumato.releases.earlier_releases import EarlierReleases, earlier_releases
from sfumato.releases.fingerprints import Fingerprints
from sfumato.releases.keyed_sample import KeyedSample
from sfumato.releases.run_record import ClassRecipe, _secret, record_run
_secret()
for number in range(100):
    columns = {f"{sys.argv[1]}{column}": "x" * 64 for column in range(200)}
    record_run(Fingerprints(columns, {}, KeyedSample.empty()), ClassRecipe(Policy()), sys.argv[1], Path(str(number)))
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


# ---- other tables ----


def people(count: int, seed: int) -> pa.Table:
    """Persons of one population, of whom few are like another."""
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "age": chance.integers(18, 90, count),
            "height": np.round(chance.normal(170, 10, count), 1),
            "town": [f"town {number}" for number in chance.zipf(1.5, count) % 40],
            "sex": [("f", "m")[number] for number in chance.integers(0, 2, count)],
        }
    )


def shuffled(table: pa.Table, seed: int = 1) -> pa.Table:
    return table.take(np.random.default_rng(seed).permutation(len(table)))


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("again", ["memory", "disk"])
def test_the_same_rows_in_another_order_are_the_same_table(folder: Path, engine: str, again: str) -> None:
    asked = {"method": "hilbert", "engine": engine}
    assert release(TABLE, folder / "one.csv", **asked) == []
    asked["engine"] = again
    assert release(shuffled(TABLE), **asked) == []
    (warning,) = release(shuffled(TABLE), k=6, **asked)
    assert warning.startswith("this table was released 1 time before under another policy")


def test_one_record_more_warns_even_under_the_same_policy(folder: Path) -> None:
    table = people(2000, 1)
    release(table.slice(0, 1999), folder / "one.csv")
    (warning,) = release(shuffled(table))
    assert warning.startswith(
        "a table that shares about 100% of the smaller one's records with this one was released 1 time before: "
    )
    assert "and see who came or went; 'sfumato runs' lists what was released (run 1)" in warning
    assert len(release(table, k=6)) == 1


def test_a_new_month_warns_and_an_old_one_that_is_gone_does_not(folder: Path) -> None:
    year = people(6000, 2)
    release(year.slice(0, 3000), folder / "one.csv")
    (warning,) = release(year.slice(500, 3000))
    assert re.search(r"shares about (7[5-9]|8\d|9[01])% of the smaller", warning)
    assert release(year.slice(3000, 3000)) == []
    assert release(year.slice(2500, 3000)) == []


def test_the_largest_part_is_told_of_several_tables_that_share_records(folder: Path) -> None:
    table = people(4000, 3)
    for number, first in enumerate((1800, 500, 900)):
        release(table.slice(first, 2000), folder / f"{number}.csv")
    (warning,) = release(table.slice(0, 2000), k=7)
    assert re.search(r"^tables that share up to about (6\d|7\d|8\d)% .* were released 2 times before", warning)


def test_another_table_of_the_same_population_does_not_warn(folder: Path) -> None:
    for seed in range(6):
        assert release(people(1000, seed), folder / f"{seed}.csv", k=5 + seed) == []


def test_another_table_with_the_same_counts_of_one_small_column_does_not_warn(folder: Path) -> None:
    one, other = people(400, 4), people(400, 5)
    other = other.set_column(3, "sex", shuffled(one)["sex"])
    asked = {"quasi_identifiers": ["age", "height", "town", "sex"]}
    release(one, folder / "one.csv", **asked)
    assert release(other, k=6, **asked) == []
    assert release(other, quasi_identifiers=["sex"]) == []


def visits(persons: pa.Table, seed: int) -> pa.Table:
    """Some visits of each person, told apart by nothing but their number."""
    chance = np.random.default_rng(seed)
    number = pa.array(np.arange(len(persons)))
    return persons.append_column("person", number).take(
        np.repeat(np.arange(len(persons)), 1 + chance.poisson(2, len(persons)))
    )


def test_the_same_persons_are_noticed_whichever_of_their_records_are_released(folder: Path) -> None:
    persons = people(900, 6)
    asked = {"person": "person", "identifiers": ["person"]}
    assert release(visits(persons.slice(0, 600), 1), folder / "one.csv", **asked) == []
    (warning,) = release(visits(persons.slice(300, 600), 2), **asked)
    assert re.search(r"^a table that shares about (4|5|6)\d% of the smaller one's records", warning)
    assert release(visits(people(600, 7), 1), **asked) == []


def test_a_table_is_the_same_whether_records_or_persons_are_counted(folder: Path) -> None:
    table = visits(people(300, 8), 1)
    release(table, folder / "one.csv", person="person", identifiers=["person"])
    (warning,) = release(table, identifiers=["person"])
    assert warning.startswith("this table was released 1 time before under another policy")


def test_a_table_that_shares_a_telling_column_alone_warns(folder: Path) -> None:
    one, other = people(400, 4), people(400, 5)
    release(one, folder / "one.csv")
    (warning,) = release(other.set_column(1, "height", shuffled(one)["height"]))
    assert warning.startswith("a table that shares whole columns with this one was released 1 time before: ")


@pytest.mark.parametrize("flags", [{"seconds": 0.1}, {"method": "anatomy", "k": 1}], ids=str)
def test_classes_that_are_formed_anew_warn_under_the_same_policy(folder: Path, flags: dict[str, Any]) -> None:
    asked = {
        "quasi_identifiers": ["age", "height"],
        "sensitive": ["town"],
        "require": ["frequency(town, l=2)"],
        **flags,
    }
    assert release(TABLE, folder / "one.csv", **asked) == []
    (warning,) = release(TABLE, **asked)
    assert warning.startswith("this table was released 1 time before, grouped anew each time: ")


def test_a_search_that_was_interrupted_may_have_formed_other_classes(folder: Path) -> None:
    asked = merge_flags(None, quasi_identifiers=QUASI_IDENTIFIERS, other="drop", k=5, effort="balanced")
    progress = Progress()
    progress.stopped = True
    anonymize_to_file(TABLE, asked, folder / "one.csv", progress)
    (warning,) = release(TABLE, effort="balanced")
    assert warning.startswith("this table was released 1 time before")


@pytest.mark.parametrize(
    ("flags", "more", "expected"),
    [({"method": "hilbert"}, {}, 0), ({"method": "auto"}, {}, 1), ({"method": "mondrian"}, {"sampled": True}, 1)],
    ids=str,
)
def test_another_engine_may_form_other_classes(
    folder: Path, flags: dict[str, Any], more: dict[str, Any], expected: int
) -> None:
    release(TABLE, folder / "one.csv", **flags)
    assert len(release(TABLE, engine="disk", **flags, **more)) == expected


def test_numbers_that_files_write_differently_may_give_other_classes(folder: Path) -> None:
    table = TABLE.append_column("dose", pa.array([0.5] * TABLE.num_rows))
    parquet.write_table(table, folder / "in.parquet")
    csv.write_csv(table, folder / "in.csv")
    asked = {"other": "keep", "accept_linkable": ["dose"], "method": "hilbert"}
    release(folder / "in.parquet", folder / "one.csv", **asked)
    assert release(folder / "in.parquet", **asked) == []
    (warning,) = release(folder / "in.csv", **asked)
    assert warning.startswith("this table was released 1 time before under another policy")


def test_another_version_may_form_other_classes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release(TABLE, folder / "one.csv")
    monkeypatch.setattr("sfumato.releases.earlier_releases.__version__", "1000.0")
    (warning,) = release(TABLE)
    assert "under another policy, engine or version" in warning


@pytest.mark.parametrize("sample", [None, 3, {}, {"hashes": "!", "counts": []}, {"hashes": "AAAA", "counts": [1]}])
def test_a_damaged_sample_leaves_the_columns(state: Path, folder: Path, sample: object) -> None:
    release(TABLE, folder / "one.csv")
    (line,) = runs(state)
    (state / "runs.jsonl").write_text(json.dumps({**line, "sample": sample}) + "\n")
    assert release(TABLE) == []
    assert len(release(TABLE, k=6)) == 1


# ---- records of version 0.1 ----

OLD_SECRET = bytes(range(32))
OLD_TABLE = pa.table(
    {
        "age": [20 + (7 * row) % 31 for row in range(40)],
        "height": [150 + ((13 * row) % 47) / 2 for row in range(40)],
        "town": [f"town {(5 * row) % 6}" if row % 9 else None for row in range(40)],
    }
)
OLD_POLICY = {"k": 5, "method": "hilbert"}
OLD_NAMES = (
    "14d397df67a818d1767b1cc1f346b3be76eaed70425899829fd15b730969e049",
    "0f80d6ed91387cc7a569ce1f3ad010c197a50ba6025cf6cf330540b93c4d221a",
    "65425132a231e949c194f63b96090f4dd4dfd95044ce1448cb41345831197e51",
)
OLD_DIGESTS = {
    "memory": (
        "09b920be2f603942ba416c2b01461116221aded8d0c07d0760ef828e04f2feac",
        "fc1e5f7cd18d30cddb02e896eebd264b537eada8ab8143293903889c4e41b654",
        "86209925b9c542c98944b08d3a550917f5bf4cb915a8ce44a290b1ced0e0c06d",
    ),
    "spark": (
        "d7fbfc9c257722b0a18c934c2767626db3d6df9bd595a02e8e084583bfc73fab",
        "736dd132927b31d5094a49f793145281ac75d3369118baa750a9abc1b8f36560",
        "3ac576c7cfb4a648716049d353850b66d378617a26779818a3e6b62ff1eee392",
    ),
}


@pytest.fixture
def old_record(state: Path) -> Path:
    """A record as version 0.1 left it, written by its memory engine."""
    state.mkdir(parents=True)
    (state / "secret").write_bytes(OLD_SECRET)
    line = {
        "time": "2026-11-17T04:57:26+00:00",
        "input": "pyarrow",
        "output": "release.csv",
        "policy": "7b8dcd9e7477f756a89c6ec358e26c1761040ae8876039fa672f6cae1591e2a2",
        "columns": dict(zip(OLD_NAMES, OLD_DIGESTS["memory"], strict=True)),
    }
    (state / "runs.jsonl").write_text(json.dumps(line) + "\n")
    return state


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("flags", [{}, {"k": 6}, {"quasi_identifiers": ["town"]}], ids=str)
def test_a_table_released_by_version_0_1_is_recognised(old_record: Path, engine: str, flags: dict[str, Any]) -> None:
    (warning,) = release(OLD_TABLE, **{**OLD_POLICY, "engine": engine, **flags})
    assert warning.startswith("this table was released 1 time before")


def test_a_table_that_version_0_1_did_not_release_is_not_recognised(old_record: Path) -> None:
    assert release(TABLE, **OLD_POLICY) == []


def test_the_order_of_rows_is_read_only_for_records_of_version_0_1(
    old_record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(MemoryEngine, "ordered_fingerprints", lambda _, table: asked.append(table) or {})
    release(TABLE)
    assert len(asked) == 1
    (old_record / "runs.jsonl").write_text("")
    release(TABLE)
    assert len(asked) == 1


def test_spark_has_the_fingerprints_of_version_0_1() -> None:
    contents = {}
    for name in OLD_TABLE.column_names:
        counted = OLD_TABLE[name].combine_chunks().value_counts()
        contents[name] = content_of(ColumnCounts(counted.field("values"), counted.field("counts").to_numpy()))
    assert content_fingerprints(OLD_SECRET, contents) == dict(zip(OLD_NAMES, OLD_DIGESTS["spark"], strict=True))


# ---- the functions by themselves ----


def marks(**columns: str) -> Fingerprints:
    record_secret()
    return Fingerprints(columns, dict.fromkeys(columns, 20.0), KeyedSample.empty())


def test_a_run_is_found_again() -> None:
    policy, other = (ClassRecipe(merge_flags(quasi_identifiers=["age"], k=k)) for k in (2, 3))
    assert earlier_releases(marks(a="1"), policy) == EarlierReleases()
    record_run(marks(a="1", b="2"), policy, "here", Path("there"))
    assert earlier_releases(marks(a="1", b="2"), policy) == EarlierReleases()
    assert earlier_releases(marks(a="1", b="2"), replace(policy, anew=True)) == EarlierReleases(same=(1,))
    assert earlier_releases(marks(a="1"), other) == EarlierReleases(same=(1,))
    assert earlier_releases(marks(a="1", b="3"), other) == EarlierReleases(overlapping=(1,))
    assert earlier_releases(marks(a="2"), other) == EarlierReleases()
    assert earlier_releases(marks(b="1"), other) == EarlierReleases()


def test_a_table_that_was_released_often_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = np.arange(30, dtype=np.uint64)
    samples = [KeyedSample(hashes, counts) for counts in (np.ones(30, np.int64), np.full(30, 2))]
    tables = [Fingerprints({"a": str(number)}, {"a": 20.0}, sample) for number, sample in enumerate(samples)]
    record_secret()
    for number in range(5):
        record_run(tables[number % 2], ClassRecipe(Policy()), "here", Path(f"there {number}"))
    compared = []

    def counted(one: KeyedSample, other: KeyedSample) -> float:
        compared.append(one.counts.tolist())
        return shared_part(one, other)

    monkeypatch.setattr("sfumato.releases.earlier_releases.shared_part", counted)
    other = ClassRecipe(merge_flags(quasi_identifiers=["age"], k=3))
    assert earlier_releases(tables[0], other) == EarlierReleases(same=(1, 3, 5), overlapping=(2, 4), part=1.0)
    assert compared == [[1] * 30, [2] * 30]


def test_the_same_rules_are_the_same_classes_for_every_table() -> None:
    record_run(marks(a="1", b="2"), ClassRecipe(Policy(), rules="these"), "here", Path("there"))
    assert earlier_releases(marks(a="1", b="3"), ClassRecipe(Policy(), rules="these")) == EarlierReleases()
    assert earlier_releases(marks(a="1", b="3"), ClassRecipe(Policy(), rules="those")) == EarlierReleases(
        overlapping=(1,)
    )


def test_how_a_file_is_written_is_not_part_of_the_policy() -> None:
    record_run(marks(a="1"), ClassRecipe(Policy()), "here", Path("there"))
    policy = merge_flags(Policy(), input={"separator": ";", "encoding": "cp1252"})
    assert earlier_releases(marks(a="1"), ClassRecipe(policy)) == EarlierReleases()
