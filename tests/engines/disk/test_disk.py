"""The disk engine: the same release as in memory, whatever the limit, and nothing left behind."""

from __future__ import annotations

import datetime
import gzip
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet
from small_disk import small_disk
from strategies import Case, Diverse, cases, diverse_cases, released_rows

import sfumato
from sfumato.engines.disk import diverse_cut_by_range, record_order
from sfumato.engines.disk import engine as engine_module
from sfumato.engines.disk import released_rows as released_rows_module
from sfumato.engines.disk.coded_table import encode_input, profile_input, run_starts
from sfumato.engines.disk.streaming_cut import cut_line
from sfumato.errors import OutputError, PolicyError, UsageError
from sfumato.methods import method_named
from sfumato.methods.line.optimal_cut import (
    OptimalOneDimensional,
    box_costs_of,
    extent_costs_of,
    extent_positions,
    optimal_cuts,
)
from sfumato.pipeline.engine_choice import plan_run
from sfumato.pipeline.prepare import open_job
from sfumato.pipeline.run import draft_release
from sfumato.pipeline.run import published as published_release
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.tables.coding.sorting import Field, sort_rows
from sfumato.tables.external import scratch as scratch_module
from sfumato.tables.external.external_sort import sorted_ranges
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.packed_records import PackedFile
from sfumato.tables.external.record_words import WordLayout
from sfumato.tables.external.scratch import MARK, Scratch
from sfumato.tables.sources.source import open_source
from sfumato.tables.targets import file_writers

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

STREAMED = ("hilbert", "hilbert-fast", "snake", "snake-hilbert", "mondrian")
TINY = MemoryBudget(1)  # sixteen records at a time
anywhere = settings(max_examples=examples(1 / 3), suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """So little memory that every way over the disk is taken, and a place for temporary files that is looked at."""
    monkeypatch.setattr(MemoryBudget, "of", staticmethod(lambda _: TINY))
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield
    assert not list(place.glob(f"{MARK}*"))


def both(data: object, **asked: Any) -> tuple[pa.Table, pa.Table]:
    """A release in memory and one on disk."""
    found = []
    for engine in ("memory", "disk"):
        release = sfumato.anonymize(data, engine=engine, **asked)
        assert release.summary()["engine"] == engine
        found.append(release.data)
        del release
    return found[0], found[1]


@pytest.mark.not_quick
@pytest.mark.parametrize("method", STREAMED)
@pytest.mark.parametrize("keep_order", [False, True])
@anywhere
@given(case=cases(rows=80))
def test_a_release_on_disk_is_the_release_in_memory(method: str, keep_order: bool, tmp_path: Path, case: Case) -> None:
    memory, disk = both(case.table, method=method, keep_order=keep_order, **case.settings(tmp_path))
    assert disk.equals(memory)
    assert disk.schema.equals(memory.schema)


@pytest.mark.parametrize("method", STREAMED)
@pytest.mark.parametrize("k", [1, 2, 7, 300, 2_000])
def test_runs_of_equal_records_are_cut_as_in_memory(method: str, k: int) -> None:
    generator = np.random.default_rng(k)
    age = np.repeat([20, 21, 60, 61], [700, 40, 1, 1_259])
    table = pa.table({"age": age, "zip": np.full(2_000, "1"), "visits": generator.integers(0, 5, 2_000)})
    memory, disk = both(table, quasi_identifiers=["age", "zip"], other="keep", k=k, method=method)
    assert disk.equals(memory)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_records_that_are_sorted_as_numbers_give_the_release_of_longer_ones(
    threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_THREADS", threads)
    draw = np.random.default_rng(3)
    table = pa.table(
        {
            "age": pa.array(draw.integers(20, 60, 1_500), mask=draw.random(1_500) < 0.1),
            "zip": draw.choice(["1", "2", "3"], 1_500),
            "ill": pa.array(draw.choice(["flu", "cold"], 1_500), mask=draw.random(1_500) < 0.1),
            "visits": pa.array(draw.integers(0, 9, 1_500), mask=draw.random(1_500) < 0.1),
        }
    )
    asked = {"quasi_identifiers": ["age", "zip"], "sensitive": "ill", "other": "keep", "k": 3, "method": "hilbert"}
    layouts = []

    def layout_of(*columns: Any) -> WordLayout | None:
        layouts.append(original(*columns))
        return layouts[-1]

    original = released_rows_module._layout
    monkeypatch.setattr(released_rows_module, "_layout", layout_of)
    short = sfumato.anonymize(table, engine="disk", **asked).data
    assert layouts[0] is not None
    monkeypatch.setattr(record_order, "MOST_COMBINATIONS", 0)
    monkeypatch.setattr(released_rows_module, "_layout", lambda *_: None)
    assert sfumato.anonymize(table, engine="disk", **asked).data.equals(short)


def test_runs_of_equal_codes_are_found_whatever_their_width() -> None:
    for kind, columns in ((np.uint8, 3), (np.uint8, 17), (np.uint16, 4), (np.uint32, 5)):
        codes = np.random.default_rng(columns).integers(0, 2, (300, columns)).astype(kind)
        codes = codes[np.lexsort(codes.T[::-1])]
        rows = codes.tolist()
        expected = [row for row in range(300) if row == 0 or rows[row] != rows[row - 1]]
        assert run_starts(codes).tolist() == [*expected, 300]


@pytest.mark.not_quick
@pytest.mark.parametrize("method", STREAMED)
def test_a_table_of_one_record_again_and_again_is_one_class(method: str) -> None:
    table = pa.table({"age": [40] * 3_000, "visits": list(range(3)) * 1_000})
    memory, disk = both(table, quasi_identifiers=["age"], other="keep", k=3, method=method)
    assert disk.equals(memory)
    assert disk.column("age").unique().to_pylist() == ["40"]


def every_type(rows: int) -> pa.Table:
    """Columns of every type that can ride along, with nulls and what is special in each."""
    chance = random.Random(rows)

    def some(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([chance.choice([*values, None]) for _ in range(rows)], kind)

    moment = datetime.datetime(2024, 2, 29, 12, 30, 1, 5)
    return pa.table(
        {
            "age": some(list(range(60)), pa.int16()),
            "town": some(["Pisa", "Roma", "Siena", ""], pa.string()),
            "text": some(["b", "a", "", 'ä,"x"'], pa.string()),
            "whole": some([-(2**62), 0, 2**62], pa.int64()),
            "small": some([-5, 127], pa.int8()),
            "unsigned": some([0, 2**64 - 2], pa.uint64()),
            "float": some([-0.0, 0.0, 1.5, -1e308, float("nan"), float("inf")], pa.float64()),
            "single": some([0.1, -7.25, float("nan")], pa.float32()),
            "truth": some([True, False], pa.bool_()),
            "day": some([moment.date(), datetime.date(1901, 1, 1)], pa.date32()),
            "moment": some([moment, datetime.datetime(1969, 1, 1)], pa.timestamp("us")),
            "clock": some([datetime.time(3), datetime.time(23, 59)], pa.time64("us")),
            "exact": some([Decimal("1.10"), Decimal("-3.00")], pa.decimal128(9, 2)),
            "nothing": pa.nulls(rows, pa.string()),
        }
    )


EVERY_TYPE: dict[str, Any] = {"quasi_identifiers": ["age", "town"], "other": "keep", "k": 4, "method": "hilbert"}


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "csv.gz"])
@pytest.mark.parametrize("form", ["labels", "bounds"])
def test_files_have_the_same_bytes(suffix: str, form: str, tmp_path: Path) -> None:
    table = every_type(900)
    accepted = [name for name in table.column_names if name not in ("age", "town")]
    parquet.write_table(table, tmp_path / "in.parquet", row_group_size=100)
    written = []
    for engine in ("memory", "disk"):
        release = sfumato.anonymize(
            tmp_path / "in.parquet", engine=engine, form=form, accept_linkable=accepted, **EVERY_TYPE
        )
        written.append(release.write(tmp_path / f"{engine}.{suffix}").read_bytes())
        del release
    assert written[0] == written[1]


def test_the_size_of_batches_leaves_no_trace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(released_rows_module, "BATCH", 64)
    table = every_type(500)
    accepted = [name for name in table.column_names if name not in ("age", "town")]
    memory, disk = both(table, accept_linkable=accepted, **EVERY_TYPE)
    assert repr(disk.to_pylist()) == repr(memory.to_pylist())  # NaN is not equal to itself


def test_every_kind_of_frame_comes_back_as_its_kind(frame_kind: Any) -> None:
    table = pa.table({"age": [30, 31, 52, 53, 54, 55] * 20, "sex": ["f", "m", "f", "m", "f", "f"] * 20})
    frame = frame_kind.make(table)
    release = sfumato.anonymize(frame, quasi_identifiers=["age", "sex"], k=5, engine="disk", method="hilbert")
    assert type(release.data) is type(frame)
    del release


def test_csv_is_read_as_in_memory(tmp_path: Path) -> None:
    lines = ["age;town;note"] + [f"{20 + i % 40};{'AB'[i % 2]};{'' if i % 7 else 'x,y'}" for i in range(400)]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n", "utf-8")
    asked = {"quasi_identifiers": ["age", "town"], "other": "keep", "k": 5, "method": "snake-hilbert"}
    memory, disk = both(tmp_path / "in.csv", input={"separator": ";"}, **asked)
    assert disk.equals(memory)


@pytest.mark.not_quick
@anywhere
@given(case=diverse_cases(rows=80))
def test_sensitive_requirements_hold_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Diverse) -> None:
    # Few records side by side need not be diverse, so that more are joined than this memory has room for.
    monkeypatch.setattr(diverse_cut_by_range, "MOST", 10**6)
    table, policy = case.case.table, sfumato.Policy.from_dict(case.policy)
    release = sfumato.anonymize(table, policy, method="hilbert", engine="disk", **case.case.settings(tmp_path))
    rows = released_rows(release.data)
    del release
    assert len(rows) == table.num_rows
    key = list(case.case.quasi)
    assert oracle.smallest_class(rows, key) >= case.case.k
    for asked in case.requirements:
        if asked["kind"] == "distinct":
            assert oracle.fewest_values(rows, key, asked["attribute"]) >= asked["l"]
        else:
            reached = oracle.reached_frequency(rows, key, asked["attribute"])
            assert reached is None or reached >= asked["l"]


@pytest.mark.not_quick
@pytest.mark.parametrize("require", [(), "frequency(ill, l=2)", "entropy(ill, l=2)"])
@pytest.mark.parametrize("sampled", [False, True])
def test_mondrian_on_disk_meets_the_requirements(require: Any, sampled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryBudget, "of", staticmethod(lambda _: MemoryBudget(400_000)))
    generator = np.random.default_rng(9)
    table = pa.table(
        {
            "age": generator.integers(18, 60, 5_000),
            "zip": generator.integers(0, 20, 5_000),
            "ill": generator.choice(list("abcdef"), 5_000),
        }
    )
    asked = {"quasi_identifiers": ["age", "zip"], "sensitive": "ill", "k": 6, "require": require}
    release = sfumato.anonymize(table, method="mondrian", engine="disk", sampled=sampled, **asked)
    told = release.summary()["divided"]
    assert told["by"] == ("samples" if sampled else "counts")
    assert told["repartitions"] > 0
    assert oracle.smallest_class(released_rows(release.data), ["age", "zip"]) >= 6
    if not sampled:
        assert release.data.equals(sfumato.anonymize(table, method="mondrian", **asked).data)
    del release


@pytest.mark.not_quick
def test_a_workload_on_disk_is_served_as_in_memory() -> None:
    generator = np.random.default_rng(11)
    age = generator.integers(18, 60, 1_500)
    table = pa.table(
        {
            "age": age,
            "zip": generator.integers(0, 20, 1_500),
            "rich": np.where(age + generator.integers(0, 20, 1_500) > 50, "yes", "no"),
        }
    )
    memory, disk = both(table, quasi_identifiers=["age", "zip"], target="rich", k=10)
    assert disk.equals(memory)


@pytest.mark.not_quick
def test_with_memory_for_the_table_diverse_classes_are_those_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryBudget, "of", staticmethod(lambda _: MemoryBudget(10**8)))
    generator = np.random.default_rng(5)
    table = pa.table(
        {
            "age": generator.integers(18, 90, 3_000),
            "zip": generator.integers(0, 50, 3_000),
            "ill": generator.choice(list("abcdef"), 3_000),
        }
    )
    for require in ("frequency(ill, l=3)", "distinct(ill, l=3)", "entropy(ill, l=2)", "t-closeness(ill, t=0.4)"):
        asked = {"quasi_identifiers": ["age", "zip"], "sensitive": "ill", "k": 4, "require": require}
        memory, disk = both(table, method="hilbert", **asked)
        assert disk.equals(memory), require


@pytest.mark.not_quick
def test_auto_takes_the_curve_that_loses_less_on_a_sample() -> None:
    generator = np.random.default_rng(1)
    table = pa.table({name: generator.choice(list("abcdefgh"), 2_000) for name in "pqrst"})
    release = sfumato.anonymize(table, quasi_identifiers=list("pqrst"), k=5, engine="disk")
    told = release.summary()
    assert told["chosen"] == told["choice"]["start"] == min(told["choice"]["tried"], key=told["choice"]["tried"].get)
    assert release.data.equals(
        sfumato.anonymize(table, quasi_identifiers=list("pqrst"), k=5, method=told["chosen"]).data
    )
    del release


@pytest.mark.not_quick
@pytest.mark.parametrize("require", [(), "frequency(ill, l=2)"])
def test_search_within_ranges_loses_less_and_holds(require: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryBudget, "of", staticmethod(lambda _: MemoryBudget(500_000)))
    generator = np.random.default_rng(3)
    table = pa.table(
        {name: generator.choice(list("abcdef"), 4_000) for name in "pqrs"}
        | {"ill": generator.choice(list("uvwxyz"), 4_000)}
    )
    asked = {"quasi_identifiers": list("pqrs"), "sensitive": "ill", "k": 5, "require": require, "engine": "disk"}
    efforts = ("fast", "normal", "balanced")
    fast, normal, balanced = (sfumato.anonymize(table, effort=effort, **asked) for effort in efforts)
    assert normal.losses.gcp == fast.losses.gcp  # not searched on disk
    assert balanced.losses.gcp < 0.97 * fast.losses.gcp
    rows = released_rows(balanced.data)
    assert oracle.smallest_class(rows, list("pqrs")) >= 5
    assert sorted(row["ill"] for row in rows) == sorted(table.column("ill").to_pylist())
    del fast, normal, balanced


@pytest.mark.parametrize(
    "column",
    [
        pa.array(range(2_000)),
        pa.array([float(i) if i % 3 else float("nan") for i in range(2_000)]),
        pa.array([str(i) for i in range(2_000)]),
        pa.array([i // 3 if i % 5 else None for i in range(2_000)]),
        pa.array([-0.0 if i % 2 else 0.0 for i in range(2_000)]),
        pa.array([i % 40 + 0.5 for i in range(2_000)]),
        pa.array([i % 3 for i in range(2_000)]),
    ],
    ids=["unique", "floats", "texts", "threes", "zeros", "told", "harmless"],
)
@pytest.mark.parametrize("few", [0, 10**6])
def test_columns_that_would_undo_the_release_are_refused_as_in_memory(
    column: pa.Array, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.engines.disk.passthrough_columns.FEW", few)
    monkeypatch.setattr("sfumato.engines.disk.passthrough_columns.WAITING", 10)
    monkeypatch.setattr("sfumato.engines.disk.linkability.DENSE", 0 if few == 0 else 1 << 20)
    table = pa.table({"age": [i % 40 for i in range(2_000)], "column": column})
    asked = {"quasi_identifiers": ["age"], "other": "keep", "k": 5, "method": "hilbert"}

    def outcome(engine: str) -> object:
        try:
            return sfumato.anonymize(table, engine=engine, **asked).data
        except PolicyError as error:
            return str(error)

    memory, disk = outcome("memory"), outcome("disk")
    assert disk.equals(memory) if isinstance(disk, pa.Table) else disk == memory


@anywhere
@given(
    words=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**40)), min_size=1, max_size=400),
    most=st.integers(1, 40),
    repeated=st.integers(0, 300),
)
def test_ranges_bring_records_into_order(
    words: list[tuple[int, int]], most: int, repeated: int, tmp_path: Path
) -> None:
    kind = np.dtype([("first", np.uint64), ("second", np.uint64), ("place", np.uint32)])
    pairs = [*words, *([words[0]] * repeated)]
    rows = np.array([(first << 60, second, place) for place, (first, second) in enumerate(pairs)], kind)

    def fields_of(some: Any) -> list[Field]:
        return [Field(some["first"], 62), Field(some["second"], 41)]

    with Scratch(tmp_path) as scratch:
        file = PackedFile(scratch.path("rows"), kind)
        file.append(rows)
        found = []
        for part in sorted_ranges(file, fields_of, most, scratch):
            assert len(part) <= most
            found += np.take(part, sort_rows(fields_of(part), len(part)).rows).tolist()
    assert found == sorted(rows.tolist())


@pytest.mark.parametrize(
    "asked, what",
    [
        ({"method": "mondrian-relaxed"}, "does not support the method 'mondrian-relaxed'"),
        ({"method": "idistance"}, "does not support the method 'idistance'"),
        ({"form": "statistics"}, 'does not support form = "statistics"'),
        ({"person": "who"}, "does not support person"),
        ({"max_suppressed": 0.1}, "does not support max_suppressed"),
    ],
)
def test_what_disk_cannot_do_is_refused_before_any_work(asked: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError, match=f"the disk engine {what}"):
        sfumato.anonymize("nowhere.csv", quasi_identifiers=["age"], k=2, engine="disk", **asked)


def test_auto_chooses_by_the_size_of_the_file(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"age": np.arange(200_000) % 90}), tmp_path / "in.parquet")
    asked = {"quasi_identifiers": ["age"], "k": 5}
    small, large = merge_flags(None, memory="300MB", **asked), merge_flags(None, memory="2GB", **asked)
    assert plan_run(tmp_path / "in.parquet", small)[0].engine == "disk"
    assert plan_run(tmp_path / "in.parquet", large)[0].engine == "memory"
    assert plan_run(pa.table({"age": [1]}), small)[0].engine == "memory"
    unable, _ = plan_run(tmp_path / "in.parquet", merge_flags(small, method="topdown"))
    assert unable.engine == "memory"
    assert "the disk engine does not support the method 'topdown'" in unable.reason


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_wide_text_counts_when_the_engine_is_chosen(suffix: str, tmp_path: Path) -> None:
    """Ten thousand records of ten kilobytes each: hardly compressible, a little compressed, or stored as text."""
    texts = np.random.default_rng(1).integers(97, 123, (2_000, 10_000), np.uint8).tobytes().decode()
    notes = [texts[first : first + 10_000] for first in range(0, len(texts), 10_000)]
    table = pa.table({"age": np.arange(2_000) % 90, "note": notes})
    path = tmp_path / f"in.{suffix}"
    if suffix == "parquet":
        parquet.write_table(table, path)
    else:
        with pa.output_stream(str(path), compression="gzip" if suffix.endswith("gz") else None) as sink:
            csv.write_csv(table, sink)
    asked = {"quasi_identifiers": ["age"], "other": "keep", "k": 5}
    assert plan_run(path, merge_flags(None, memory="350MB", **asked))[0].engine == "disk"
    assert plan_run(path, merge_flags(None, memory="350MB", **asked | {"other": "drop"}))[0].engine == "memory"
    assert plan_run(path, merge_flags(None, memory="2GB", **asked))[0].engine == "memory"


def test_text_that_repeats_counts_once_when_the_engine_is_chosen(tmp_path: Path) -> None:
    table = pa.table({"age": np.arange(2_000) % 90, "note": ["a" * 10_000, "b" * 10_000] * 1_000})
    csv.write_csv(table, tmp_path / "in.csv")
    policy = merge_flags(None, quasi_identifiers=["age"], other="keep", k=5, memory="350MB")
    plan, _ = plan_run(tmp_path / "in.csv", policy)
    assert plan.engine == "memory"


def test_what_comes_out_of_a_compressed_file_counts_when_the_engine_is_chosen(tmp_path: Path) -> None:
    (tmp_path / "in.csv.gz").write_bytes(gzip.compress(b"age,sex\n" + b"41,f\n" * 6_000_000))
    policy = merge_flags(None, quasi_identifiers=["age", "sex"], k=5, memory="600MB")
    plan, _ = plan_run(tmp_path / "in.csv.gz", policy)
    assert plan.records is not None
    assert abs(plan.records - 6_000_000) < 60_000
    assert plan.engine == "disk"


def test_the_records_of_a_text_file_are_estimated(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("age,sex\n" + "41,f\n" * 100_000, "utf-8")
    plan, _ = plan_run(tmp_path / "in.csv", merge_flags(None, quasi_identifiers=["age", "sex"], k=5))
    assert plan.records is not None
    assert abs(plan.records - 100_000) < 1_000


class Disturbing(Progress):
    """Does something as soon as a phase begins."""

    def __init__(self, phase: str, disturb: Any) -> None:
        super().__init__()
        self._phase, self._disturb = phase, disturb

    def began(self, name: str, total: int | None) -> None:
        if name == self._phase:
            self._disturb()


def published(data: Path, target: Path, progress: Progress) -> None:
    policy = merge_flags(None, quasi_identifiers=["age", "zip"], k=5, method="hilbert", engine="disk", memory="1GB")
    published_release(draft_release(data, policy, progress), target)


def write_people(path: Path, records: int) -> Path:
    generator = np.random.default_rng(2)
    table = {"age": generator.integers(18, 90, records), "zip": generator.integers(0, 99, records)}
    parquet.write_table(pa.table(table), path, row_group_size=records // 4)
    return path


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return write_people(tmp_path / "people.parquet", 4_000)


@pytest.fixture
def few_people(tmp_path: Path) -> Path:
    """As many as it takes to spill, for tests of many runs."""
    return write_people(tmp_path / "people.parquet", 200)


@pytest.mark.not_quick
@pytest.mark.parametrize("phase", ["partition", "recode", "write"])
def test_a_temporary_directory_that_vanishes_is_an_error_and_nothing_is_written(
    phase: str, few_people: Path, tmp_path: Path
) -> None:
    def vanish() -> None:
        for left in (tmp_path / "temporary").glob(f"{MARK}*"):
            shutil.rmtree(left)

    with pytest.raises(OutputError, match="temporary files"):
        published(few_people, tmp_path / "out.parquet", Disturbing(phase, vanish))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.parquet", "temporary"]


def test_a_full_disk_is_an_error_and_nothing_is_written(people: Path, tmp_path: Path) -> None:
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with ExitStack() as filled:
            full = Disturbing("partition", lambda: filled.enter_context(small_disk(100)))
            with pytest.raises(OutputError, match="no space left"):
                published(people, tmp_path / "out.parquet", full)
    finally:
        signal.signal(signal.SIGXFSZ, ignored)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.parquet", "temporary"]


@pytest.mark.not_quick
@pytest.mark.parametrize("method", ["hilbert", "hilbert-fast"])
def test_classes_do_not_cross_splits(method: str, people: Path) -> None:
    k, splits = 5, [16, 21, 700, 2_500]
    policy = merge_flags(None, quasi_identifiers=["age", "zip"], k=k, method=method)
    job = open_job(people, open_source(people, policy.input_options), policy, Progress())
    with Scratch() as scratch:
        table = encode_input(job, profile_input(job), TINY, scratch)
        one = method_named(method)
        assert isinstance(one, OptimalOneDimensional)
        classed = cut_line(table, one, k, TINY, scratch, Progress(), splits=splits)
        codes, cuts = table.codes_of(classed.rows.read()), np.append(0, np.cumsum(classed.sizes.read())).tolist()
    keys = one.ordering.fitted(codes[:0], np.empty(0, np.int64), table.domains, 0)(codes)
    position = extent_positions(keys, len(codes))
    for begin, end in pairwise([0, *splits, len(codes)]):
        costs = extent_costs_of(position[begin:end])
        if method == "hilbert":
            costs = box_costs_of(codes[begin:end], np.arange(end - begin, dtype=np.uint32), table.costs)
        expected = begin + optimal_cuts(end - begin, k, costs, Progress())
        assert [cut for cut in cuts if begin <= cut <= end] == expected.tolist()


def phases_of(people: Path, target: Path) -> list[str]:
    """The phases of a run that publishes a release."""
    progress = Progress()
    published(people, target, progress)
    assert {"partition", "recode", "write"} < set(progress.seconds)
    return list(progress.seconds)


def test_a_run_that_is_interrupted_in_any_phase_leaves_nothing_behind(few_people: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "out.parquet"
    target.parent.mkdir()
    phases = phases_of(few_people, target)
    shutil.rmtree(target.parent)
    target.parent.mkdir()
    for phase in phases:
        with pytest.raises(KeyboardInterrupt):
            published(few_people, target, Disturbing(phase, lambda: signal.raise_signal(signal.SIGINT)))
        assert list(target.parent.iterdir()) == []
        assert not list((tmp_path / "temporary").glob(f"{MARK}*"))


def test_an_interruption_while_the_scratch_directory_is_made_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch_module.fcntl, "flock", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), Scratch(tmp_path):
        pass
    assert not list(tmp_path.glob(f"{MARK}*"))


@pytest.mark.not_quick
def test_an_interrupted_command_leaves_nothing_behind(people: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sfumato", "anonymize", people, "-o", tmp_path / "out.parquet", "-k", "5"]
    command += ["--quasi-identifiers", "age,zip", "--engine", "disk", "--temporary", tmp_path / "temporary"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list((tmp_path / "temporary").glob(f"{MARK}*")):
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.parquet", "temporary"]
    assert not list((tmp_path / "temporary").glob(f"{MARK}*"))


@pytest.mark.not_quick
def test_a_run_that_is_killed_in_any_phase_leaves_the_old_release_and_the_next_run_cleans_up(
    few_people: Path, tmp_path: Path
) -> None:
    target, place = tmp_path / "out" / "out.parquet", tmp_path / "temporary"
    target.parent.mkdir()
    left_behind = 0
    phases = phases_of(few_people, target)
    whole = target.read_bytes()
    for phase in phases:
        child = os.fork()
        if child == 0:
            try:
                published(few_people, target, Disturbing(phase, lambda: os.kill(os.getpid(), signal.SIGKILL)))
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert target.read_bytes() == whole
        scratch = list(place.glob(f"{MARK}*"))
        assert len(scratch) <= 1  # that of the run that was killed, and of none before
        left_behind += len(scratch)
    assert left_behind > len(phases) // 2
    published(few_people, target, Progress())
    assert sorted(path.name for path in target.parent.iterdir()) == ["out.parquet", "out.parquet.sfumato.json"]
    assert not list(place.glob(f"{MARK}*"))


def test_more_different_values_than_fit_are_an_error_that_names_the_column(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "VALUE_BYTES", 10**7)
    monkeypatch.setattr(MemoryBudget, "of", staticmethod(lambda _: MemoryBudget(7 * 10**8)))
    said = r"column 'zip' has 99 different values, .* a limit of 1.0 GB leaves 525 MB for them. Allow 3.0 GB"
    with pytest.raises(UsageError, match=said):
        sfumato.anonymize(people, quasi_identifiers=["age", "zip"], k=5, engine="disk", memory="1GB", method="hilbert")


def test_counted_values_that_do_not_fit_are_an_error_that_names_the_column(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "COUNTED_BYTES", 10**9)
    asked = {"quasi_identifiers": ["age"], "sensitive": "zip", "require": "distinct(zip, l=2)", "other": "drop", "k": 5}
    with pytest.raises(UsageError, match=r"column 'zip' has 99 different values.*with --memory"):
        sfumato.anonymize(people, engine="disk", memory="1GB", method="hilbert", **asked)


@pytest.mark.not_quick
def test_values_of_classes_that_do_not_fit_are_an_error_that_names_the_column(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.engines.disk.released_rows.LABEL_BYTES", 10**10)
    said = r"the classes show [\d,]+ different values of the quasi-identifier '(age|zip)'.*allowed. Allow .* larger k"
    with pytest.raises(UsageError, match=said):
        sfumato.anonymize(people, quasi_identifiers=["age", "zip"], k=5, engine="disk", memory="1GB", method="hilbert")


def test_a_machine_without_free_memory_is_refused_at_once(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.pipeline.engine_choice.free_memory", lambda: 10**8)
    with pytest.raises(UsageError, match="70 MB of memory are too few for any run"):
        sfumato.anonymize(people, quasi_identifiers=["age", "zip"], k=5, engine="disk")


@pytest.mark.not_quick
@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_texts_that_are_more_than_a_group_of_rows_are_written_as_in_memory(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are so wide that they are written in small groups, each with the texts of its own rows."""
    monkeypatch.setattr(file_writers, "GROUP_BYTES", 1 << 13)
    monkeypatch.setattr(file_writers, "LEAST_ROWS", 50)
    monkeypatch.setattr(file_writers, "FEW_VALUES", 20)
    table = pa.table({"age": np.arange(2_000) % 70, "note": [f"{number:0100}" for number in range(2_000)]})
    asked = {"quasi_identifiers": ["age"], "other": "keep", "accept_linkable": ["note"], "k": 5, "method": "hilbert"}
    for engine in ("memory", "disk"):
        sfumato.anonymize(table, engine=engine, **asked).write(tmp_path / f"{engine}.{suffix}")
    assert (tmp_path / f"disk.{suffix}").read_bytes() == (tmp_path / f"memory.{suffix}").read_bytes()
    if suffix == "parquet":
        with parquet.ParquetFile(tmp_path / "disk.parquet") as file:
            assert file.num_row_groups > 10
            assert sorted(file.read().column("note").to_pylist()) == table.column("note").to_pylist()


def test_two_runs_at_once_leave_each_others_files_alone(tmp_path: Path) -> None:
    with Scratch(tmp_path) as one, Scratch(tmp_path) as other:
        assert one.directory.exists()
        assert other.directory.exists()
        assert one.directory.stat().st_mode & 0o077 == 0


@pytest.mark.not_quick
def test_smallest_classes_are_counted_by_the_oracle_too(people: Path) -> None:
    release = sfumato.anonymize(people, quasi_identifiers=["age", "zip"], k=9, engine="disk", method="hilbert")
    assert oracle.smallest_class(released_rows(release.data), ["age", "zip"]) >= 9
    del release
