"""Anatomy from end to end: two tables, read back as anybody would and counted in plain Python."""

from __future__ import annotations

import csv
import errno
import gzip
import json
import math
import os
import random
import struct
import zipfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import fastexcel
import numpy as np
import oracle
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import FrameKind
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SENSITIVE, Case, cases

import sfumato
from sfumato.cli import main
from sfumato.engines.memory import audit as memory_audit
from sfumato.engines.target_output import TargetOutput
from sfumato.errors import OutputError
from sfumato.kernels import heap
from sfumato.methods import anatomy
from sfumato.methods.anatomy import form_groups
from sfumato.methods.method import ClassBatch
from sfumato.pipeline import run as run_module
from sfumato.pipeline.prepare import prepare
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.releases.anatomy_tables import separated
from sfumato.releases.local_recoding import Recoder
from sfumato.requirements import kinds
from sfumato.tables.locations import sensitive_path

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

KEY = ["age", "city"]
SUFFIXES = [".csv", ".tsv", ".csv.gz", ".csv.zst", ".parquet", ".arrow", ".xlsx"]
SECRET = "zzsecretzz"
fewer_examples = settings(max_examples=max(settings().max_examples // 2, 1))
Rows = Sequence[oracle.Row]


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path_factory.mktemp("state")))


def people(sensitive: Sequence[Any], kind: pa.DataType | None = None) -> pa.Table:
    """As many records as there are sensitive values, with quasi-identifiers that have nothing to do with them."""
    choose = random.Random(len(sensitive))
    return pa.table(
        {
            "age": [choose.randrange(90) for _ in sensitive],
            "city": [choose.choice(["Lucca", "Pisa, Toscana", "Roma", None]) for _ in sensitive],
            "ill": pa.array(sensitive, kind),
        }
    )


def shuffled(counts: dict[Any, int], seed: int = 1) -> list[Any]:
    values = [value for value, count in counts.items() for _ in range(count)]
    random.Random(seed).shuffle(values)
    return values


def anatomized(data: object, l: int = 2, **settings: Any) -> sfumato.Release:
    return sfumato.anonymize(data, quasi_identifiers=KEY, sensitive="ill", l=l, method="anatomy", **settings)


# ---- the oracle ----


@dataclass(frozen=True)
class Two:
    """The two tables, group by group."""

    records: dict[Any, list[tuple[Any, ...]]]
    counts: dict[Any, Counter[Any]]

    def known(self, group: Any) -> int:
        return sum(count for value, count in self.counts[group].items() if value is not None)


def checked(first: Rows, second: Rows, key: Sequence[str], sensitive: str, l: int) -> Two:
    """Whether the two tables are what Anatomy promises of them, without knowing the original.

    A sensitive value is None where it protects nobody.
    """
    assert all(list(row) == [*key, "group"] for row in first)
    assert all(list(row) == ["group", sensitive, "count"] for row in second)
    records: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    counts: dict[int, Counter[Any]] = defaultdict(Counter)
    for row in first:
        records[int(row["group"])].append(tuple(row[name] for name in key))
    for row in second:
        assert int(row["count"]) == row["count"] > 0
        assert row[sensitive] not in counts[int(row["group"])]  # every value of a group has one row
        counts[int(row["group"])][row[sensitive]] = int(row["count"])
    two = Two(dict(records), dict(counts))
    assert sorted(records) == sorted(counts) == list(range(1, len(records) + 1))
    assert [int(row["group"]) for row in second] == sorted(int(row["group"]) for row in second)
    residues = 0
    for group, values in counts.items():
        assert sum(values.values()) == len(records[group])
        known = two.known(group)
        if known == 0:
            assert len(counts) == 1  # there are no values at all
            continue
        assert all(count * l <= known for value, count in values.items() if value is not None)
        # l records of l different values, and perhaps some that were left over, each of another value.
        assert all(count == 1 for value, count in values.items() if value is not None)
        residues += known - l
    assert 0 <= residues < max(l, 1)
    return two


def values_of(two: Two) -> Counter[Any]:
    return sum(two.counts.values(), Counter())


def records_of(two: Two) -> Counter[tuple[Any, ...]]:
    return Counter(record for members in two.records.values() for record in members)


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    return [{name: oracle.plain(value) for name, value in row.items()} for row in table.to_pylist()]


def tables_of(release: sfumato.Release) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return plain_rows(release.data), plain_rows(release.sensitive)


def expected_records(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The quasi-identifiers of ``people`` as labels show them."""
    return Counter((str(row["age"]), row["city"]) for row in table.to_pylist())


# ---- what is released ----


@pytest.mark.parametrize("l", [1, 2, 3, 5])
def test_the_two_tables_hold_every_record_once_and_every_value_once(l: int) -> None:
    table = people(shuffled({"flu": 61, "cold": 60, "gout": 60, "acne": 50, "rash": 40, "cough": 36}))
    release = anatomized(table, l)
    two = checked(*tables_of(release), KEY, "ill", l)
    assert records_of(two) == expected_records(table)
    assert values_of(two) == Counter(table["ill"].to_pylist())
    assert len(two.records) == release.audit.classes == table.num_rows // l
    assert release.audit.records == table.num_rows
    assert release.losses.gcp == 0


def exact(column: oracle.Column, value: Any, label: bool) -> Any:
    """What a released label or an original value stands for, such that both can be compared."""
    value = oracle.plain(value)
    if value is None or isinstance(column, oracle.CategoryColumn):
        return value
    text = value if label else value.isoformat() if hasattr(value, "isoformat") else repr(value)
    low, high = oracle.bounds(text)
    assert low == high
    return low


@dataclass(frozen=True)
class Sensitive:
    """A table of any kinds of quasi-identifiers with a sensitive column of any kind."""

    case: Case
    null_is_value: bool

    def value(self, value: Any) -> Any:
        """A sensitive value as it counts: None is no value, and '' is null."""
        value = None if oracle.plain(value) in (None, "") else value
        return "null" if value is None and self.null_is_value else value

    @property
    def values(self) -> list[Any]:
        return [self.value(value) for value in self.case.table["s"].to_pylist()]

    @property
    def reached(self) -> int:
        counts = Counter(value for value in self.values if value is not None)
        return sum(counts.values()) // max(counts.values()) if counts else 5

    def release(self, folder: Path, l: int) -> sfumato.Release:
        asked = {**self.case.settings(folder), "k": None, "accept_linkable": ()}
        nulls = "value" if self.null_is_value else None
        return sfumato.anonymize(
            self.case.table, **asked, sensitive="s", l=l, method="anatomy", null_sensitive=nulls, round={}
        )


@st.composite
def sensitive_tables(draw: st.DrawFn) -> Sensitive:
    case = draw(cases(rows=30, columns=3, others=False))
    values, kind = draw(st.sampled_from(SENSITIVE))
    cells = draw(st.sampled_from([values, values, st.one_of(st.none(), values)]))
    size = case.table.num_rows
    column = pa.array(draw(st.lists(cells, min_size=size, max_size=size)), kind, from_pandas=False)
    case = Case(case.table.append_column("s", column), case.quasi, ("s",), 1, case.weights)
    return Sensitive(case, draw(st.booleans()))


@fewer_examples
@given(table=sensitive_tables(), share=st.floats(0, 1))
def test_any_table_that_is_eligible_is_released(
    tmp_path_factory: pytest.TempPathFactory, table: Sensitive, share: float
) -> None:
    l = max(round(share * table.reached), 1)
    release = table.release(tmp_path_factory.getbasetemp(), l)
    first, second = tables_of(release)
    key = list(table.case.quasi)
    # Null and '' have rows of their own in the second table, but are counted as one.
    counted: dict[tuple[int, Any], int] = {}
    for row in second:
        pair = row["group"], table.value(row["s"])
        counted[pair] = counted.get(pair, 0) + row["count"]
    second = [{"group": group, "s": value, "count": count} for (group, value), count in counted.items()]
    two = checked(first, second, key, "s", l)
    columns = table.case.columns.values()
    shown = Counter(
        tuple(exact(column, label, True) for column, label in zip(columns, record, strict=True))
        for record in records_of(two).elements()
    )
    assert shown == Counter(
        tuple(exact(column, row[name], False) for name, column in table.case.columns.items())
        for row in table.case.table.to_pylist()
    )
    assert values_of(two) == Counter(table.values)
    assert release.audit.holds


@fewer_examples
@given(table=sensitive_tables())
def test_a_table_that_is_barely_not_eligible_is_refused(
    tmp_path_factory: pytest.TempPathFactory, table: Sensitive
) -> None:
    if all(value is None for value in table.values):
        assert table.release(tmp_path_factory.getbasetemp(), 9).audit.classes == 1  # there is nothing to hide
        return
    with pytest.raises(sfumato.InfeasibleError, match=f"Choose an l of at most {table.reached:,}"):
        table.release(tmp_path_factory.getbasetemp(), table.reached + 1)


@given(counts=st.lists(st.integers(1, 9), min_size=1, max_size=8), nulls=st.integers(0, 5), data=st.data())
def test_groups_of_the_most_frequent_values_never_fail(counts: list[int], nulls: int, data: st.DataObject) -> None:
    l = sum(counts) // max(counts)
    values = [value for value, count in enumerate(counts) for _ in range(count)] + [len(counts)] * nulls
    codes = data.draw(st.permutations(values))
    draws = data.draw(st.lists(st.sampled_from([0.0, 0.3, 0.99]), min_size=len(codes), max_size=len(codes)))
    groups = form_groups(np.array(codes, np.uint32), len(counts), l, np.array(draws))
    members: dict[int, list[int]] = defaultdict(list)
    for group, value in zip(groups.tolist(), codes, strict=True):
        members[group].append(value)
    assert sorted(members) == list(range(sum(counts) // l))
    for some in members.values():
        known = [value for value in some if value < len(counts)]
        assert len(known) == len(set(known)) >= l


@pytest.mark.compiled
def test_the_kernel_as_plain_python_gives_the_same_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    random_numbers = np.random.default_rng(3)
    for _ in range(50):
        size = int(random_numbers.integers(1, 40))
        values = random_numbers.integers(0, 6, size).astype(np.uint32)
        counts = np.bincount(values, minlength=6)[:5]
        l = int(counts.sum() // counts.max()) if counts.max() else 2
        draws = random_numbers.random(size)
        compiled = form_groups(values, 5, l, draws).tolist()
        with monkeypatch.context() as patch:
            for module, name in ((anatomy, "push"), (anatomy, "pop"), (heap, "replace_lowest")):
                function = getattr(heap, name)
                patch.setattr(module, name, getattr(function, "py_func", function))
            plain = form_groups.py_func(values, 5, l, draws)  # type: ignore[attr-defined]
        assert plain.tolist() == compiled


@pytest.mark.not_quick
def test_who_shares_a_group_is_drawn_evenly() -> None:
    together: Counter[str] = Counter()
    for seed in range(60):
        table = pa.table({"age": [1, 2, 3, 4], "city": ["Roma"] * 4, "ill": ["flu", "flu", "cold", "cold"]})
        rows = anatomized(table, seed=seed).data.to_pylist()
        group = {row["age"]: row["group"] for row in rows}
        together["3" if group["1"] == group["3"] else "4"] += 1
    assert 18 < together["3"] < 42


def test_l_of_one_gives_every_record_its_own_group() -> None:
    table = people(["flu"] * 30 + ["cold"])
    two = checked(*tables_of(anatomized(table, 1)), KEY, "ill", 1)
    assert [len(members) for members in two.records.values()] == [1] * 31
    before = Counter((str(row["age"]), row["city"], row["ill"]) for row in table.to_pylist())
    after = Counter((*two.records[group][0], *two.counts[group]) for group in two.records)
    assert after == before


@pytest.mark.parametrize("l, groups", [(2, 20), (3, 13), (7, 5), (40, 1)])
def test_values_that_are_all_different_go_into_groups_of_l(l: int, groups: int) -> None:
    two = checked(*tables_of(anatomized(people(list(range(40))), l)), KEY, "ill", l)
    assert len(two.records) == groups
    assert sum(len(members) > l for members in two.records.values()) <= 40 % l


def test_records_that_are_all_alike_are_told_apart_by_their_group_alone() -> None:
    table = pa.table({"age": [30] * 9, "city": ["Roma"] * 9, "ill": ["flu", "cold", "gout"] * 3})
    two = checked(*tables_of(anatomized(table, 3)), KEY, "ill", 3)
    assert two.records == {group: [("30", "Roma")] * 3 for group in (1, 2, 3)}


def test_taxonomies_and_rounding_show_what_a_single_record_shows() -> None:
    table = people(shuffled({"flu": 20, "cold": 20}))
    release = anatomized(table, round={"age": 10}, taxonomy={"city": "flat"})
    two = checked(*tables_of(release), KEY, "ill", 2)
    ages = oracle.NumberColumn(table["age"].to_pylist())
    for label, _ in records_of(two):
        low, high = oracle.bounds(label)
        assert low % 10 == high % 10 == 0
        assert high - low <= 10
    shown = sorted(oracle.bounds(label)[0] for label, _ in records_of(two).elements())
    assert shown == sorted(Fraction(age // 10 * 10) for age in ages.values)


@pytest.mark.parametrize("nulls", [1, 7, 150])
def test_a_record_without_a_value_is_in_a_group_and_protects_nobody(nulls: int) -> None:
    table = people(shuffled({"flu": 20, "cold": 20, "gout": 21, None: nulls}))
    two = checked(*tables_of(anatomized(table, 2)), KEY, "ill", 2)
    assert records_of(two) == expected_records(table)
    assert values_of(two) == Counter(table["ill"].to_pylist())
    assert len(two.records) == 30


@pytest.mark.parametrize("l", [1, 4, 10**10, 10**30])
def test_without_any_value_there_is_one_group(l: int) -> None:
    two = checked(*tables_of(anatomized(people([None] * 12, pa.string()), l)), KEY, "ill", l)
    assert two.counts == {1: Counter({None: 12})}


def test_null_as_a_value_is_one_of_the_l() -> None:
    table = people(shuffled({"flu": 10, None: 5, "": 5}))
    with pytest.raises(sfumato.InfeasibleError):
        anatomized(table)
    release = anatomized(table, null_sensitive="value")
    for counts in checked_with_null_as_value(release).values():
        assert counts == {"flu": 1, "null": 1}
    assert "null counts as a sensitive value like another, as the policy asks" in release.audit.remarks


def checked_with_null_as_value(release: sfumato.Release) -> dict[int, Counter[str]]:
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for row in release.sensitive.to_pylist():
        counts[row["group"]][row["ill"] or "null"] += row["count"]
    return counts


def test_tokens_that_stand_for_null_are_released_as_they_are_and_protect_nobody(tmp_path: Path) -> None:
    table = people(shuffled({"flu": 20, "cold": 20, "NA": 30, "?": 9}))
    pandas.DataFrame(table.to_pylist()).to_csv(tmp_path / "in.csv", index=False)
    release = anatomized(tmp_path / "in.csv", input={"nulls": ["", "NA", "?"]})
    assert len(release.sensitive["ill"].unique()) == 4
    two: Counter[Any] = Counter()
    for row in release.sensitive.to_pylist():
        two[row["group"], row["ill"]] = row["count"]
    assert len({group for group, _ in two}) == 20
    assert all(two[group, "flu"] == two[group, "cold"] == 1 for group, _ in list(two))
    assert sfumato.audit(release.write(tmp_path / "out.csv")).holds
    # Were they values, the most frequent one would be seen to have too large a share.
    assert not sfumato.audit(tmp_path / "out.csv", input={"nulls": [""]}, l=3).holds


def test_other_methods_have_no_second_table() -> None:
    table = people(shuffled({"flu": 20, "cold": 20}))
    release = sfumato.anonymize(table, quasi_identifiers=KEY, sensitive="ill", l=2)
    assert release.sensitive is None


def test_a_release_warns_that_identity_is_not_protected() -> None:
    with pytest.warns(sfumato.SfumatoWarning, match="identity is not protected"):
        anatomized(people(["flu", "cold"]))


# ---- suppression ----


def fewest_left_out(counts: Counter[Any], l: int) -> int:
    """How many records must go, by trying every number that the most frequent values may keep."""
    total = sum(counts.values())
    kept = (sum(min(count, cap) for count in counts.values()) for cap in range(1, total + 1))
    return min(total - some for cap, some in enumerate(kept, 1) if cap * l <= some)


@fewer_examples
@given(counts=st.lists(st.integers(1, 20), min_size=3, max_size=5), l=st.integers(2, 3), nulls=st.integers(0, 3))
def test_as_few_records_are_left_out_as_can_be(counts: list[int], l: int, nulls: int) -> None:
    known = Counter({f"v{place}": count for place, count in enumerate(counts)})
    table = people(shuffled({**known, None: nulls}))
    fewest, size = fewest_left_out(known, l), table.num_rows
    release = anatomized(table, l, max_suppressed=fewest / size)
    two = checked(*tables_of(release), KEY, "ill", l)
    assert release.summary()["suppressed"] == fewest == size - sum(records_of(two).values())
    assert records_of(two) <= expected_records(table)
    gone = Counter(table["ill"].to_pylist()) - values_of(two)
    # Only values that are too frequent lose records, down to the same number.
    assert len({known[value] - count for value, count in gone.items()}) <= 1
    if fewest:
        with pytest.raises(sfumato.InfeasibleError, match="max_suppressed_fraction"):
            anatomized(table, l, max_suppressed=(fewest - 0.5) / size)


# ---- files and frames ----


def read_back(path: Path) -> list[dict[str, Any]]:
    """A table from a file, without Sfumato. Of CSV the groups, counts and ages are numbers; an empty cell is null."""
    if path.suffix == ".parquet":
        return list(pq.read_table(path, partitioning=None).to_pylist())
    if path.suffix == ".arrow":
        with pa.ipc.open_file(str(path)) as reader:
            return list(reader.read_all().to_pylist())
    if path.suffix == ".xlsx":
        return list(pa.table(fastexcel.read_excel(path).load_sheet(0).to_arrow()).to_pylist())
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    if path.suffix == ".zst":
        with pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as stream:
            content = stream.read()
    separator = "\t" if ".tsv" in path.name else ","
    return [
        {name: (int(text) if name in ("group", "count") else text or None) for name, text in row.items()}
        for row in csv.DictReader(content.decode().splitlines(), delimiter=separator)
    ]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_files_are_the_two_tables(tmp_path: Path, suffix: str) -> None:
    table = people(shuffled({"flu": 30, 'the "cold"': 30, "gout, left": 30, None: 4}))
    release = anatomized(table, 3)
    path = release.write(tmp_path / f"out{suffix}")
    first, second = read_back(path), read_back(tmp_path / f"out.sensitive{suffix}")
    two = checked([{**row, "age": str(row["age"])} for row in first], second, KEY, "ill", 3)
    assert records_of(two) == expected_records(table)
    assert values_of(two) == Counter(table["ill"].to_pylist())
    in_memory = checked(*tables_of(release), KEY, "ill", 3)
    assert two.counts == in_memory.counts
    assert {group: sorted(map(str, some)) for group, some in two.records.items()} == {
        group: sorted(map(str, some)) for group, some in in_memory.records.items()
    }
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(
        [f"out{suffix}", f"out.sensitive{suffix}", f"out{suffix}.sfumato.json"]
    )
    report = sfumato.audit(path)
    assert report.holds
    assert [one.requirement for one in report.verdicts] == [
        "frequency l-diversity of 'ill', l = 3",
        "the two tables have the same groups of the same sizes",
        "the first table holds quasi-identifiers and the group alone",
        "the second table holds groups, sensitive values and counts alone",
        "the files are those that were certified",
    ]


@pytest.mark.parametrize(
    "name, beside",
    [
        ("out.csv", "out.sensitive.csv"),
        ("out.2024.csv", "out.2024.sensitive.csv"),
        ("out.csv.gz", "out.sensitive.csv.gz"),
        ("OUT.CSV.GZ", "OUT.sensitive.CSV.GZ"),
        ("out.Csv.Zst", "out.sensitive.Csv.Zst"),
        ("a.b.parquet", "a.b.sensitive.parquet"),
    ],
)
def test_the_second_file_has_the_suffixes_of_the_first(tmp_path: Path, name: str, beside: str) -> None:
    assert sensitive_path(tmp_path / name) == tmp_path / beside
    path = anatomized(people(["flu", "cold"])).write(tmp_path / name)
    assert (tmp_path / beside).exists()
    assert sfumato.audit(path).holds


def test_both_tables_are_frames_of_the_kind_that_came_in(frame_kind: FrameKind) -> None:
    table = people(shuffled({"flu": 10, "cold": 10, None: 3}))
    frame = frame_kind.make(table)
    release = anatomized(frame)
    assert type(release.data) is type(release.sensitive)
    assert type(release.data) is type(frame)
    first, second = (plain_rows(frame_kind.read(one)) for one in (release.data, release.sensitive))
    two = checked(first, second, KEY, "ill", 2)
    assert records_of(two) == expected_records(table)
    assert values_of(two) == Counter(table["ill"].to_pylist())
    assert frame_kind.read(frame).to_pylist() == table.to_pylist()
    asked: dict[str, Any] = {"quasi_identifiers": KEY, "sensitive": "ill", "l": 2, "method": "anatomy"}
    assert sfumato.audit((release.data, release.sensitive), **asked).holds


@pytest.mark.parametrize(
    "values, kind",
    [
        ([True, False], pa.bool_()),
        ([1, 2], pa.int16()),
        ([0.1, float("nan")], pa.float32()),
        (["a", "b"], pa.large_string()),
        (["a", "b"], pa.dictionary(pa.int8(), pa.string())),
    ],
    ids=str,
)
def test_sensitive_values_keep_their_type(values: list[Any], kind: pa.DataType) -> None:
    release = anatomized(people(values * 5, kind), 1)
    if pa.types.is_dictionary(kind):
        assert release.sensitive["ill"].type.value_type == pa.string()
    else:
        assert release.sensitive["ill"].type == kind
    counted: Counter[str] = Counter()
    for row in release.sensitive.to_pylist():
        counted[str(row["ill"])] += row["count"]
    assert counted == Counter(map(str, pa.array(values * 5, kind).to_pylist()))


# ---- canonical numbers and order ----


GROUPED = st.tuples(
    st.integers(0, 3),
    st.sampled_from(["b", "a", None]),
    st.sampled_from([0.0, -0.0, float("nan"), None, 1.5, -2.0]),
    st.integers(0, 3),
)


@fewer_examples
@given(rows=st.lists(GROUPED, min_size=1, max_size=14), data=st.data())
def test_numbers_and_order_are_a_function_of_what_is_released(rows: list[tuple[Any, ...]], data: st.DataObject) -> None:
    numbers = list(data.draw(st.permutations(range(4))))
    moved = data.draw(st.permutations(rows))
    listed = data.draw(st.permutations(range(len(rows))))
    before = both_tables(rows, list(range(4)), list(range(len(rows))))
    assert both_tables(moved, numbers, listed) == before


def both_tables(rows: Sequence[tuple[Any, ...]], numbers: list[int], listed: Sequence[int]) -> str:
    """The two tables of rows with a group; ``numbers`` are those that groups come with, ``listed`` the order of rows.

    As text: -0.0 equals 0.0, and NaN not even itself.
    """
    columns = list(zip(*rows, strict=True))
    table = pa.table(
        {"age": columns[0], "city": pa.array(columns[1], pa.string())}
        | {"ill": pa.array(columns[2], pa.float64(), from_pandas=False)}
    )
    policy = merge_flags(quasi_identifiers=KEY, sensitive="ill", l=1, method="anatomy")
    prepared = prepare(table, policy, Progress())
    records = prepared.records
    recoder = Recoder(prepared.encoded.domains, len(rows), numbered=())
    recoder.add(ClassBatch(records.rows, records.starts, records.codes, records.codes))
    used = sorted(set(columns[3]), key=lambda group: numbers[group])
    assert prepared.encoded.input_rows is not None
    groups = [columns[3][row] for row in prepared.encoded.input_rows.tolist()]
    group = np.array([used.index(one) for one in groups], np.int64)
    place = np.array(listed, np.uint32)
    two = separated(recoder.finish(), prepared.encoded.carried[0], place, group[place])
    return repr([one.to_pylist() for one in two])


def test_groups_are_numbered_by_their_records_and_then_by_their_values() -> None:
    table = people(shuffled({"flu": 30, "cold": 30, "gout": 32}))
    first, second = tables_of(anatomized(table, 2))
    shown = [(row["age"], row["city"] is None, row["city"] or "", row["group"]) for row in first]
    assert shown == sorted(shown)
    two = checked(first, second, KEY, "ill", 2)
    place = {record: at for at, record in enumerate(dict.fromkeys((row["age"], row["city"]) for row in first))}
    keys = {
        group: (sorted(place[record] for record in records), sorted(two.counts[group]))
        for group, records in two.records.items()
    }
    assert sorted(keys, key=lambda group: (keys[group], group)) == list(range(1, 47))
    assert [(row["group"], row["ill"]) for row in second] == sorted((row["group"], row["ill"]) for row in second)


# ---- chance ----


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".xlsx"])
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    table = people(shuffled({"flu": 40, "cold": 40, "gout": 40, None: 5}))
    contents = []
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        anatomized(table, 3, seed=5).write(tmp_path / run / f"out{suffix}")
        contents.append([path.read_bytes() for path in sorted((tmp_path / run).iterdir())])
    assert contents[0] == contents[1]
    assert len(contents[0]) == 3


def partners(release: sfumato.Release) -> dict[Any, frozenset[Any]]:
    """With whom each record is in a group, where ages are all different."""
    members = defaultdict(set)
    for row in release.data.to_pylist():
        members[row["group"]].add(row["age"])
    return {age: frozenset(some) for some in members.values() for age in some}


def apart(illnesses: Sequence[str]) -> pa.Table:
    return pa.table({"age": range(len(illnesses)), "city": ["Roma"] * len(illnesses), "ill": illnesses})


def test_without_a_seed_every_run_draws_other_groups() -> None:
    table = apart(shuffled({"flu": 50, "cold": 50}))
    one, two = anatomized(table), anatomized(table)
    same = [age for age, some in partners(one).items() if partners(two)[age] == some]
    assert len(same) < 20  # 2 are to be expected
    assert one.summary()["seed"] is None


def test_a_seed_alone_does_not_tell_the_groups() -> None:
    """The certificate shows the seed, and the first table all that groups are drawn from but the values."""
    values = shuffled({"flu": 50, "cold": 50})
    swapped = list(values)
    one, other = values.index("flu"), values.index("cold")
    swapped[one], swapped[other] = "cold", "flu"
    before, after = (partners(anatomized(apart(some), seed=5)) for some in (values, swapped))
    same = [age for age, some in before.items() if after[age] == some]
    assert len(same) < 20  # 2 are to be expected, almost all if the values of two records did not matter to the rest


def test_a_seed_is_warned_of() -> None:
    table = people(["flu", "cold"])
    assert any("drawn with a seed" in text for text in anatomized(table, seed=0).warnings)
    assert not any("drawn with a seed" in text for text in anatomized(table).warnings)


# ---- nothing rides along ----


def file_bytes(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".gz":
        return content + gzip.decompress(content)
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as archive:
            return content + b"".join(archive.read(entry) for entry in archive.infolist())
    return content


@pytest.fixture
def uncompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The writers of compressed formats without their compression: pages and buffers can be read in the file."""
    writer, new_file = pq.ParquetWriter, pa.ipc.new_file
    monkeypatch.setattr(pq, "ParquetWriter", lambda *given, **named: writer(*given, **{**named, "compression": "none"}))
    monkeypatch.setattr(pa.ipc, "new_file", lambda sink, schema, **_: new_file(sink, schema))


def people_with_tokens() -> pa.Table:
    """Every record has a city of its own; flu is so frequent that records must go; one illness nobody has."""
    illnesses = pa.DictionaryArray.from_arrays(
        pa.array(shuffled({0: 40, 1: 15, 2: 15, None: 3}), pa.int8()),
        pa.array(["FLUTOKEN", "COLDTOKEN", "GOUTTOKEN", "UNUSEDTOKEN"]),
    )
    size = len(illnesses)
    table = pa.table(
        {
            "NAMETOKEN": [f"NAMETOKEN{row}" for row in range(size)],
            "age": [10**12 + 7919 * row for row in range(size)],
            "city": [f"CITYTOKEN{row:03}" for row in range(size)],
            "ill": illnesses,
        }
    )
    return table.replace_schema_metadata({"METATOKEN": "METATOKEN"})


def tokens_of_left_out(table: pa.Table, shown: set[Any]) -> list[bytes]:
    gone = [row for row in table.to_pylist() if row["city"] not in shown]
    assert len(gone) == 10
    ages = [form for row in gone for form in (str(row["age"]).encode(), struct.pack("<q", row["age"]))]
    return [b"UNUSEDTOKEN", b"NAMETOKEN", b"METATOKEN", *ages, *(row["city"].encode() for row in gone)]


@pytest.mark.usefixtures("uncompressed")
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".arrow", ".xlsx"])
def test_the_files_hold_no_value_that_was_not_released(tmp_path: Path, suffix: str) -> None:
    table = people_with_tokens()
    release = anatomized(table, 2, identifiers="NAMETOKEN", max_suppressed=0.2)
    path = release.write(tmp_path / f"out{suffix}")
    first, second = file_bytes(path), file_bytes(sensitive_path(path))
    assert b"CITYTOKEN" in first  # it can be read indeed
    assert b"GOUTTOKEN" in second
    certificate = (tmp_path / f"out{suffix}.sfumato.json").read_bytes()
    shown = set(release.data["city"].to_pylist())
    tokens = tokens_of_left_out(table, shown)
    assert [token for token in tokens if token in first + second] == []
    # The certificate says of an identifier what it is called; that much is in the policy.
    assert [token for token in tokens if token in certificate.replace(b'"NAMETOKEN"', b"")] == []
    assert b"CITYTOKEN" not in second + certificate
    assert b"GOUTTOKEN" not in first + certificate


def test_the_tables_in_memory_hold_no_value_that_was_not_released() -> None:
    table = people_with_tokens()
    release = anatomized(table, 2, identifiers="NAMETOKEN", max_suppressed=0.2)
    rows = release._draft.rows
    tables = [rows.table, rows.sensitive]
    tokens = tokens_of_left_out(table, set(release.data["city"].to_pylist()))
    for one in [*tables, release.data, release.sensitive]:
        content = b"".join(
            part.to_pybytes()
            for column in one.columns
            for chunk in column.chunks
            for array in ([chunk, chunk.dictionary] if pa.types.is_dictionary(chunk.type) else [chunk])
            for part in array.buffers()
            if part is not None
        )
        assert [token for token in tokens if token in content] == []
        assert one.schema.metadata is None


def test_values_beneath_nulls_and_around_a_part_do_not_ride_along(tmp_path: Path) -> None:
    hidden = [0x5EC7E75EC7E7 + row for row in range(40)]
    valid = np.packbits(np.arange(40) % 4 > 0, bitorder="little").tobytes()
    shown = [row % 4 if row % 4 else hidden[row] for row in range(40)]
    column = pa.Array.from_buffers(
        pa.int64(), 40, [pa.py_buffer(valid), pa.py_buffer(np.array(shown, np.int64).tobytes())]
    )
    whole = pa.table({"age": range(40), "city": ["Roma"] * 40, "ill": column})
    beneath = [struct.pack("<q", number) for number in hidden]
    release = anatomized(whole.slice(0, 24))
    buffers = [part for chunk in release.sensitive["ill"].chunks for part in chunk.buffers() if part is not None]
    content = b"".join(part.to_pybytes() for part in buffers)
    assert content
    assert [number for number in beneath if number in content] == []


# ---- the audit ----


@st.composite
def any_two_tables(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, str | None, int]]]:
    """Groups of records, and what a second table says of them: often right, often not."""
    groups = draw(st.lists(st.integers(1, 4), min_size=1, max_size=12))
    values = draw(st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=len(groups), max_size=len(groups)))
    counts = Counter(zip(groups, values, strict=True))
    rows = [(group, value, count) for (group, value), count in counts.items()]
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(rows) - 1))
        more = draw(st.sampled_from([None, (rows[at][0], rows[at][1], rows[at][2] + 1), (9, "a", 1), rows[at]]))
        rows = rows[:at] + rows[at + 1 :] if more is None and len(rows) > 1 else [*rows, more or rows[at]]
    return groups, draw(st.permutations(rows))


@given(two=any_two_tables(), l=st.integers(1, 3), null_is_value=st.booleans(), text=st.booleans())
def test_the_audit_finds_what_plain_counting_finds(
    two: tuple[list[int], list[tuple[int, str | None, int]]],
    l: int,
    null_is_value: bool,
    text: bool,
) -> None:
    groups, rows = two
    kind = pa.string() if text else pa.float64()
    written = [str(group) if text else float(group) for group, _, _ in rows]
    first = pa.table({"age": [str(row) for row in range(len(groups))], "group": groups})
    second = pa.table(
        {
            "group": pa.array(written, kind),
            "ill": pa.array([value for _, value, _ in rows], pa.string()),
            "count": pa.array([str(count) if text else count for _, _, count in rows], kind),
        }
    )
    asked: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": "ill", "l": l, "method": "anatomy"}
    report = sfumato.audit((first, second), **asked, null_sensitive="value" if null_is_value else None)
    sizes, counts = Counter(groups), defaultdict[int, Counter[Any]](Counter)
    for group, value, count in rows:
        counts[group][value] += count
    differing = sum(sizes[group] != sum(counts[group].values()) for group in {*sizes, *counts})
    reached = [
        Fraction(sum(known.values()), max(known.values()))
        for group in sizes
        if (known := {v: count for v, count in counts[group].items() if v is not None or null_is_value})
    ]
    frequency, same = report.verdicts[:2]
    assert (same.holds, same.value) == (differing == 0, differing)
    assert frequency.value == pytest.approx(float(min(reached, default=Fraction(l))))
    assert frequency.holds == all(one >= l for one in reached)
    assert report.holds == (same.holds and frequency.holds)
    assert (report.records, report.classes, report.smallest_class) == (len(groups), len(sizes), min(sizes.values()))


FIRST = pa.table({"age": ["1", "2", "3", "4"], "group": [1, 1, 2, 2]})
SECOND = pa.table({"group": [1, 1, 2, 2], "ill": ["1", "2", "2", "10"], "count": [1, 1, 1, 1]})
ASKED: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": "ill", "l": 2, "method": "anatomy"}


def failed(report: Any) -> list[str]:
    return [one.requirement for one in report.verdicts if not one.holds]


def test_columns_that_do_not_belong_there_fail_the_audit() -> None:
    assert failed(sfumato.audit((FIRST, SECOND), **ASKED)) == []
    more = pa.array(["a", "b", "c", "d"])
    assert failed(sfumato.audit((FIRST.append_column("ill", more), SECOND), **ASKED)) == [
        "the first table holds quasi-identifiers and the group alone"
    ]
    assert failed(sfumato.audit((FIRST, SECOND.append_column("name", more)), **ASKED, identifiers="name")) == [
        "the second table holds groups, sensitive values and counts alone",
        "the identifier 'name' is not released",
    ]


def test_k_that_is_asked_for_is_that_of_equal_quasi_identifiers_and_not_of_groups() -> None:
    report = sfumato.audit((FIRST, SECOND), **ASKED, k=2)
    assert [(one.requirement, one.value) for one in report.verdicts if not one.holds] == [("k-anonymity, k = 2", 1)]
    alike = FIRST.set_column(0, "age", pa.array(["1"] * 4))
    assert sfumato.audit((alike, SECOND), **ASKED, k=4).holds


def test_other_kinds_are_checked_by_the_counts_of_the_second_table() -> None:
    def reached(*requirements: str) -> list[float]:
        # The rows of the second table are in no order of the values.
        report = sfumato.audit((FIRST, SECOND.take([3, 0, 1, 2])), **ASKED, require=requirements)
        return [one.value for one in report.verdicts[1 : len(requirements) + 1]]

    # Values in the order of numbers: 1, 2, 10, with shares of 1/4, 1/2, 1/4 in all and 1/2, 1/2, 0 in the first group.
    assert reached("distinct(ill, l=2)", "variance(ill, v=0.25)") == [2, 0.25]
    assert reached("t-closeness(ill, t=1, distance=equal)") == [0.25]
    assert reached("t-closeness(ill, t=1, distance=ordered)") == [0.25]


def test_persons_behind_two_tables_are_as_unknown_as_behind_one() -> None:
    def judged(second: pa.Table, **more: Any) -> list[tuple[str, bool | None]]:
        report = sfumato.audit((FIRST, second), **{**ASKED, **more}, person="pid")
        return [(one.requirement, one.holds) for one in report.verdicts[: 1 + ("k" in more)]]

    text = "frequency l-diversity of 'ill', l = 2"
    assert judged(SECOND) == [(text, None)]
    assert judged(SECOND, k=2) == [(text, None), ("k-anonymity, k = 2, in persons", False)]
    assert judged(SECOND, l=None, require="distinct(ill, l=2)") == [("distinct l-diversity of 'ill', l = 2", True)]
    equal = SECOND.set_column(SECOND.column_names.index("ill"), "ill", pa.array(["1"] * 4))
    assert judged(equal) == [(text, False)]


@pytest.mark.parametrize(
    "flags, says",
    [
        ({"sensitive": ["ill", "pay"], "require": ["frequency(pay, l=2)"], "l": None}, "one sensitive column"),
        ({"l": None, "k": 2}, "requirements on none"),
    ],
)
def test_what_two_tables_do_not_tell_is_refused(flags: dict[str, Any], says: str) -> None:
    asked = {**ASKED, **flags}
    if "pay" in asked["sensitive"]:
        asked["require"] = ["frequency(ill, l=2)", *asked["require"]]
    with pytest.raises(sfumato.UsageError, match=says):
        sfumato.audit((FIRST, SECOND), **asked)


@pytest.mark.parametrize("count", ["0", "-1", "1.5", "", SECRET, "1" * 19, "9" * 5000, "٣x"])
def test_what_is_no_count_is_an_error_without_its_text(count: str) -> None:
    second = SECOND.set_column(2, "count", pa.array(["1", "1", count, "1"]))
    with pytest.raises(sfumato.InputError, match="holds something that is no count") as error:
        sfumato.audit((FIRST, second), **ASKED)
    assert SECRET not in str(error.value)


def test_counts_beyond_any_table_are_an_error() -> None:
    second = SECOND.set_column(2, "count", pa.array([10**18 - 1] * 4))
    with pytest.raises(sfumato.InputError, match="more records than a table can have"):
        sfumato.audit((FIRST, second), **ASKED)


@pytest.mark.parametrize(
    "first, second, error, says",
    [
        (FIRST.drop_columns(["group"]), SECOND, sfumato.InputError, "has no column 'group'"),
        (FIRST.drop_columns(["age"]), SECOND, sfumato.UsageError, "'age'"),
        (FIRST, SECOND.drop_columns(["count"]), sfumato.InputError, "has no column 'count'"),
        (FIRST, SECOND.drop_columns(["ill"]), sfumato.InputError, "has no column 'ill'"),
    ],
)
def test_a_missing_column_is_named(first: pa.Table, second: pa.Table, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        sfumato.audit((first, second), **ASKED)


def test_one_frame_is_not_a_release_by_anatomy() -> None:
    with pytest.raises(sfumato.UsageError, match=r"Give both, as \(first, second\)"):
        sfumato.audit(FIRST, **ASKED)


# ---- whole or not at all ----


STEPS = {
    "write": (TargetOutput, "write"),
    "audit": (memory_audit, "audit_groups"),
    "measure": (memory_audit, "measure_release"),
    "certificate": (run_module, "certificate"),
    "sync": (os, "fsync"),
    "permissions": (os, "fchmod"),
}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def old_files(folder: Path, existing: bool) -> dict[str, bytes]:
    for name in ("out.csv", "out.sensitive.csv", "out.csv.sfumato.json") if existing else ():
        (folder / name).write_text(f"old {name}")
    return contents(folder)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("existing", [False, True])
def test_an_error_at_any_step_changes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, failure: BaseException, existing: bool
) -> None:
    release = anatomized(people(["flu", "cold"] * 4))
    before = old_files(tmp_path, existing)

    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(*STEPS[step], fail)
    with pytest.raises((OutputError, type(failure))):
        release.write(tmp_path / "out.csv", force=True)
    monkeypatch.undo()
    assert contents(tmp_path) == before


@pytest.mark.parametrize("fails_at", ["out.csv", "out.sensitive.csv", "out.csv.sfumato.json"])
@pytest.mark.parametrize("existing", [False, True])
def test_files_that_were_renamed_already_are_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: str, existing: bool
) -> None:
    release = anatomized(people(["flu", "cold"] * 4))
    before = old_files(tmp_path, existing)
    replace, broken = Path.replace, [fails_at]

    def some(self: Path, to: Path) -> Path:
        if to.name in broken:
            broken.remove(to.name)
            raise OSError(errno.EACCES, "no")
        return replace(self, to)

    monkeypatch.setattr(Path, "replace", some)
    with pytest.raises(OutputError, match="no permission to write"):
        release.write(tmp_path / "out.csv", force=True)
    assert broken == []
    assert contents(tmp_path) == before


def test_the_journal_comes_first_and_the_certificate_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed: list[str] = []
    replace = Path.replace

    def noted(self: Path, to: Path) -> Path:
        renamed.append(to.name)
        return replace(self, to)

    monkeypatch.setattr(Path, "replace", noted)
    anatomized(people(["flu", "cold"])).write(tmp_path / "out.csv")
    assert renamed == [".out.csv.sfumato-journal", "out.csv", "out.sensitive.csv", "out.csv.sfumato.json"]


def test_a_directory_in_the_place_of_the_second_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out.sensitive.csv").mkdir()
    with pytest.raises(sfumato.UsageError, match=r"out\.sensitive\.csv is a directory"):
        anatomized(people(["flu", "cold"])).write(tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["out.sensitive.csv"]


# ---- the command line ----


ROLES = ["--quasi-identifiers", "age,city", "--method", "anatomy"]
ALL_ROLES = [*ROLES, "--sensitive", "ill", "--other", "drop"]
BOTH = [*ROLES, "--sensitive", "ill,pay", "--other", "drop"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a table of 60 records in it."""
    monkeypatch.chdir(tmp_path)
    table = people(shuffled({"flu": 20, "cold": 20, "gout": 20}))
    rows = [{"pid": f"p{at}", **row, "pay": at % 7} for at, row in enumerate(table.to_pylist())]
    for row in rows:
        row["city"] = row["city"] and row["city"][:4]  # none has a comma
    pandas.DataFrame(rows).to_csv(tmp_path / "in.csv", index=False)
    return tmp_path


@pytest.fixture
def released(place: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The same with a release of it; what the command printed."""
    assert main(["anonymize", "in.csv", "-o", "out.csv", *ALL_ROLES, "-l", "3"]) == 0
    return capsys.readouterr().out


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_command_names_both_files_and_warns_that_identity_is_not_protected(released: str, place: Path) -> None:
    for name in ("out.csv", "out.sensitive.csv", "out.csv.sfumato.json"):
        assert name in released.split()
        assert (place / name).exists()
    assert "warning identity is not protected: the quasi-identifiers are released as they are" in flat(released)
    assert "60 records in 20 classes, the smallest of 3" in released
    assert "holds frequency l-diversity of 'ill', l = 3 (reached: 3)" in flat(released)
    two = checked(read_back(place / "out.csv"), read_back(place / "out.sensitive.csv"), KEY, "ill", 3)
    assert values_of(two) == {"flu": 20, "cold": 20, "gout": 20}


def test_json_and_certificate_say_that_there_was_no_seed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anonymize", "in.csv", "-o", "out.csv", *ALL_ROLES, "-l", "3", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    certificate = json.loads((place / "out.csv.sfumato.json").read_text())
    assert summary["seed"] is certificate["seed"] is None
    assert (summary["method"], summary["classes"], summary["released"], summary["gcp"]) == ("anatomy", 20, 60, 0)
    assert [file["name"] for file in certificate["files"]] == ["out.csv", "out.sensitive.csv"]
    assert any("identity is not protected" in text for text in summary["warnings"])
    assert main(["anonymize", "in.csv", "-o", "out.csv", *ALL_ROLES, "-l", "3", "--seed", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seed"] == 4


REFUSED: dict[str, tuple[list[str], str]] = {
    "k": ([*ALL_ROLES, "-l", "2", "-k", "2"], "k must be 1"),
    "person": ([*ALL_ROLES, "-l", "2", "--person", "pid"], "counts records, not persons"),
    "keep": ([*ROLES, "--sensitive", "ill", "-l", "2", "--other", "keep"], "the column 'pid' cannot be kept"),
    "kept column": (
        [*ROLES, "--sensitive", "ill", "-l", "2", "--identifiers", "pid", "--other", "pay"],
        "the column 'pay' cannot be kept",
    ),
    "another sensitive column": (
        [*BOTH, "--require", "frequency(ill, l=2)"],
        "the column 'pay' cannot be kept",
    ),
    "two requirements": (
        [*BOTH, "--require", "frequency(ill, l=2)", "--require", "frequency(pay, l=2)"],
        "exactly one sensitive column",
    ),
    "no requirement": ([*ALL_ROLES, "-k", "1"], "exactly one sensitive column"),
    "joint": (
        [*BOTH, "--joint", "--require", "frequency(ill, l=2)"],
        "not joint requirements",
    ),
    "keep order": ([*ALL_ROLES, "-l", "2", "--keep-order"], "keep_order does not go with anatomy"),
    "bounds": ([*ALL_ROLES, "-l", "2", "--form", "bounds"], "form does not go with anatomy"),
} | {
    kind: (
        [*ALL_ROLES, "--require", f"{kind}(ill, {', '.join(f'{key}={value}' for key, value in one.example.items())})"],
        f"supports only frequency l-diversity, not {kind}",
    )
    for kind, one in kinds().items()
    if kind != "frequency"
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_anatomy_cannot_do_is_refused_and_nothing_is_written(
    case: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags, says = REFUSED[case]
    assert main(["anonymize", "in.csv", "-o", "out.csv", *flags]) == 2
    assert says in flat(capsys.readouterr().err)
    assert [path.name for path in place.iterdir()] == ["in.csv"]


def test_every_other_kind_of_requirement_is_among_the_refused() -> None:
    assert {*kinds()} - {*REFUSED} == {"frequency"}


@pytest.mark.parametrize("name", ["group", "count"])
@pytest.mark.parametrize("role", ["--quasi-identifiers", "--sensitive"])
def test_a_column_with_the_name_of_one_that_is_added_is_refused(
    name: str, role: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = "age" if role == "--quasi-identifiers" else "ill"
    pandas.read_csv(place / "in.csv").rename(columns={old: name}).to_csv(place / "in.csv", index=False)
    flags = [flag.replace(old, name) if flag in ("age,city", "ill") else flag for flag in ALL_ROLES]
    assert main(["anonymize", "in.csv", "-o", "out.csv", *flags, "-l", "2"]) == 2
    assert f"the table has a column '{name}'. Rename it." in flat(capsys.readouterr().err)
    assert [path.name for path in place.iterdir()] == ["in.csv"]


def test_a_dropped_column_may_be_called_group(place: Path) -> None:
    pandas.read_csv(place / "in.csv").rename(columns={"pid": "group", "pay": "count"}).to_csv(
        place / "in.csv", index=False
    )
    assert main(["anonymize", "in.csv", "-o", "out.csv", *ALL_ROLES, "-l", "3"]) == 0
    checked(read_back(place / "out.csv"), read_back(place / "out.sensitive.csv"), KEY, "ill", 3)


def test_a_table_that_is_not_eligible_ends_with_3_and_nothing_is_written(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["anonymize", "in.csv", "-o", "out.csv", *ALL_ROLES, "-l", "4"]) == 3
    said = flat(capsys.readouterr().err)
    assert "'ill' with l = 4 allows the most frequent value 25.0% of the records, but it has 33.3%" in said
    assert "flu" not in said
    assert [path.name for path in place.iterdir()] == ["in.csv"]


def edited(path: Path, line: int, column: int, text: str) -> None:
    lines = [row.split(",") for row in path.read_text().splitlines()]
    lines[line][column] = text
    path.write_text("".join(",".join(row) + "\n" for row in lines))


def audited(capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, list[str]]:
    """The exit code, and the requirements that fail."""
    code = main(["audit", "out.csv", "--json", *flags])
    report = json.loads(capsys.readouterr().out)
    return code, [one["requirement"] for one in report["audit"] if not one["holds"]]


CERTIFIED = "the files are those that were certified"
SAME = "the two tables have the same groups of the same sizes"


@pytest.mark.usefixtures("released")
def test_the_audit_of_the_files_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert audited(capsys) == (0, [])
    assert main(["audit", "out.csv"]) == 0
    said = flat(capsys.readouterr().out)
    assert "remark identity is not protected" in said
    assert "the release holds" in said
    assert audited(capsys, "-l", "4") == (1, ["frequency l-diversity of 'ill', l = 4"])
    assert audited(capsys, "-k", "2") == (1, ["k-anonymity, k = 2"])


@pytest.mark.usefixtures("released")
@pytest.mark.parametrize(
    "file, line, column, text, fails",
    [
        ("out.sensitive.csv", 1, 2, "2", ["frequency l-diversity of 'ill', l = 3", SAME, CERTIFIED]),
        ("out.sensitive.csv", 1, 0, "99", ["frequency l-diversity of 'ill', l = 3", SAME, CERTIFIED]),
        ("out.sensitive.csv", 1, 1, "gout", ["frequency l-diversity of 'ill', l = 3", CERTIFIED]),
        ("out.sensitive.csv", 1, 1, "rash", [CERTIFIED]),
        ("out.sensitive.csv", 1, 1, "", ["frequency l-diversity of 'ill', l = 3", CERTIFIED]),
        ("out.csv", 1, 2, "99", [SAME, CERTIFIED]),
        ("out.csv", 1, 0, "91", [CERTIFIED]),
    ],
)
def test_one_edited_cell_of_either_file_fails_the_audit(
    place: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    line: int,
    column: int,
    text: str,
    fails: list[str],
) -> None:
    edited(place / file, line, column, text)
    assert audited(capsys) == (1, fails)


@pytest.mark.usefixtures("released")
def test_a_count_that_is_none_ends_with_4_and_is_not_repeated(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edited(place / "out.sensitive.csv", 1, 2, SECRET)
    assert main(["audit", "out.csv"]) == 4
    said = flat(capsys.readouterr().err)
    assert "the column 'count' of the table of sensitive values holds something that is no count" in said
    assert SECRET not in said


@pytest.mark.usefixtures("released")
@pytest.mark.parametrize("command", [["audit", "out.csv"], ["measure", "in.csv", "out.csv"]])
def test_a_missing_second_file_is_named(place: Path, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    (place / "out.sensitive.csv").unlink()
    assert main(command) == 4
    said = flat(capsys.readouterr().err)
    assert "out.sensitive.csv" in said
    assert "does not exist" in said


@pytest.mark.usefixtures("released")
def test_without_the_certificate_the_policy_says_what_to_check(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = Policy.from_dict(json.loads((place / "out.csv.sfumato.json").read_text())["policy"])
    policy.save(place / "policy.toml")
    (place / "out.csv.sfumato.json").unlink()
    assert main(["audit", "out.csv", "--policy", "policy.toml"]) == 0
    assert "there is no certificate beside the release" in flat(capsys.readouterr().out)
    assert main(["audit", "out.csv"]) == 2


def divergence(original: Rows, first: Rows, second: Rows, key: Sequence[str]) -> float:
    """P ln(P / Q) over the cells of one group-by: a record counts for every value of its group by the value's share."""
    sizes = Counter(row["group"] for row in first)
    share = {(row["group"], row["ill"]): Fraction(row["count"], sizes[row["group"]]) for row in second}
    estimated: dict[Any, Fraction] = defaultdict(Fraction)
    for row in first:
        for (group, value), part in share.items():
            if group == row["group"]:
                estimated[*(row[name] for name in key), value] += part
    counts = Counter((*(row[name] for name in key), row["ill"]) for row in original)
    return math.fsum(count / len(original) * math.log(count / estimated[cell]) for cell, count in counts.items())


@pytest.mark.usefixtures("released")
def test_queries_are_measured_from_the_two_files(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (place / "in.csv").open(newline="") as file:
        original = [{name: text or None for name, text in row.items()} for row in csv.DictReader(file)]
    tables = read_back(place / "out.csv"), read_back(place / "out.sensitive.csv")
    expected = divergence(original, *tables, KEY)
    assert main(["measure", "in.csv", "out.csv", "--queries", "2", "--range-queries", "50", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    (found,) = summary["queries"]
    assert found["kl"] == pytest.approx(expected)
    assert expected > 0.1
    assert (summary["gcp"], summary["suppressed"], summary["classes"], summary["method"]) == (0, 0, 20, "anatomy")
    assert main(["measure", "in.csv", "out.csv", "--queries", "2"]) == 0
    said = flat(capsys.readouterr().out)
    assert f"datacube level 2: KL divergence {expected:.4f}, the mean of 1 group-bys" in said


def test_with_l_of_one_every_query_is_answered_as_from_the_original(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["anonymize", "in.csv", "-o", "out.csv", *ALL_ROLES, "-l", "1"]) == 0
    capsys.readouterr()
    assert main(["measure", "in.csv", "out.csv", "--queries", "2", "--range-queries", "20", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["queries"]
    assert found["kl"] == 0
    assert found["ranges"]["mean"] == 0


@pytest.mark.usefixtures("released")
def test_a_target_is_refused_since_no_record_shows_its_class(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "in.csv", "out.csv", "--target", "ill"]) == 2
    assert "so it has no target" in flat(capsys.readouterr().err)


def test_a_dry_run_writes_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anonymize", "in.csv", "-o", "out.csv", *ALL_ROLES, "-l", "3", "--dry-run"]) == 0
    assert "nothing was written" in capsys.readouterr().out
    assert [path.name for path in place.iterdir()] == ["in.csv"]


# ---- both files, every draw, the original ----


def test_a_second_file_that_is_the_input_is_refused(place: Path) -> None:
    (place / "in.csv").rename(place / "out.sensitive.csv")
    before = contents(place)
    assert main(["anonymize", "out.sensitive.csv", "-o", "out.csv", *ALL_ROLES, "-l", "3"]) == 2
    assert contents(place) == before


@pytest.mark.usefixtures("released")
def test_another_draw_of_the_same_table_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anonymize", "in.csv", "-o", "again.csv", *ALL_ROLES, "-l", "3", "--json"]) == 0
    assert any("released 1 time before" in text for text in json.loads(capsys.readouterr().out)["warnings"])


@pytest.mark.usefixtures("released")
def test_an_audit_with_another_original_fails(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audited(capsys, "--original", "in.csv") == (0, [])
    edited(place / "in.csv", 1, 3, "rash")
    assert audited(capsys, "--original", "in.csv")[0] == 1


ORIGINAL = "the first table has the quasi-identifiers of the original"


def with_original(first: pa.Table, second: pa.Table, original: object, **settings: Any) -> dict[str, tuple[bool, Any]]:
    asked = {"quasi_identifiers": KEY, "sensitive": "ill", "l": 2, "method": "anatomy", **settings}
    report = sfumato.audit((first, second), original=original, **asked)
    return {verdict.requirement: (verdict.holds, verdict.value) for verdict in report.verdicts}


def test_quasi_identifiers_that_the_original_does_not_have_so_often_fail() -> None:
    table = people(shuffled({"flu": 30, "cold": 30, "gout": 30}))
    release = anatomized(table)
    first, second = release.data, release.sensitive
    assert with_original(first, second, table)[ORIGINAL] == (True, 0)
    ages = first["age"].to_pylist()
    other = next(age for age in ages if age != ages[0])
    for text, differing in ((other, 2), ("1000", 2), ("nothing", 2), (f"{ages[0]}.0", 0)):
        moved = first.set_column(0, "age", pa.array([text, *ages[1:]]))
        assert with_original(moved, second, table)[ORIGINAL] == (differing == 0, differing)


def test_records_that_the_first_table_lacks_fail_unless_they_may_be_left_out() -> None:
    table = people(shuffled({"flu": 45, "cold": 30, "gout": 10}))
    release = anatomized(table, max_suppressed=0.1)
    assert release.losses.suppressed == 5
    for most, expected in ((0.1, (True, 0)), (0.05, (False, 5)), (0.0, (False, 5))):
        assert with_original(release.data, release.sensitive, table, max_suppressed=most)[ORIGINAL] == expected


def test_quasi_identifiers_that_are_rounded_are_those_of_the_original() -> None:
    table = people(shuffled({"flu": 30, "cold": 30, "gout": 30}))
    asked: dict[str, Any] = {"round": {"age": 10}}
    release = anatomized(table, **asked)
    assert with_original(release.data, release.sensitive, table, **asked)[ORIGINAL] == (True, 0)
    assert with_original(release.data, release.sensitive, table)[ORIGINAL][0] is False


@pytest.mark.usefixtures("released")
def test_an_audit_of_files_compares_the_quasi_identifiers_with_the_original(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audited(capsys, "--original", "in.csv") == (0, [])
    edited(place / "in.csv", 1, 1, "99")
    assert audited(capsys, "--original", "in.csv") == (1, [ORIGINAL])


def test_classes_of_two_tables_are_their_groups() -> None:
    table = people(shuffled({"flu": 31, "cold": 30, "gout": 30}))
    release = anatomized(table)
    two = checked(*tables_of(release), KEY, "ill", 2)
    sizes = [len(members) for members in two.records.values()]
    expected = {
        "c_dm": sum(size * size for size in sizes),
        "c_avg": len(table) / len(sizes),
        "c_mdm": sum((size - 1) ** 2 for size in sizes),
    }
    assert {name: release.losses.values[name] for name in expected} == expected
    asked = merge_flags(None, quasi_identifiers=KEY, sensitive="ill", l=2, method="anatomy")
    measured = sfumato.measure(table, (release.data, release.sensitive), asked)
    assert {name: measured.values[name] for name in expected} == expected


def test_a_dry_run_says_that_there_is_no_seed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anonymize", "in.csv", *ALL_ROLES, "-l", "3", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seed"] is None
