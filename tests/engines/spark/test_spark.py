"""The Spark engine on a real session: what it releases, with an oracle that knows nothing of it."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark import require_spark, session

import sfumato
from sfumato.engines.disk import classes as disk_classes
from sfumato.engines.spark import buckets, column_profiles, file_systems
from sfumato.engines.spark import classes as spark_classes
from sfumato.engines.spark.classes import SparkOptions
from sfumato.engines.spark.mounted_parquet import parts_of
from sfumato.engines.spark.partition_numbers import partition_numbers
from sfumato.engines.spark.publication import check_directory
from sfumato.errors import InfeasibleError
from sfumato.pipeline.release import Release
from sfumato.pipeline.run import draft_release, kept, published
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress

pytestmark = [pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning"), pytest.mark.compiled]


@pytest.fixture(scope="module")
def spark() -> Any:
    require_spark()
    return session()


def mixed_table(count: int, seed: int = 0) -> pa.Table:
    """Numbers, fractions, dates and categories, with null, and a number for every row."""
    draw = np.random.default_rng(seed)

    def some(values: list[Any], share: float = 0.05) -> list[Any]:
        return [None if draw.random() < share else value for value in values]

    day = datetime.date(2020, 1, 1)
    return pa.table(
        {
            "age": pa.array(some(draw.integers(0, 40, count).tolist()), pa.int64()),
            "weight": pa.array(some(np.round(draw.normal(70, 9, count), 1).tolist()), pa.float64()),
            "born": pa.array(some([day + datetime.timedelta(int(days)) for days in draw.integers(0, 300, count)])),
            "city": pa.array(some(draw.choice(["Roma", "Pisa", "Lucca", "Siena"], count).tolist()), pa.string()),
            "row": pa.array(range(count), pa.int64()),
            "ill": pa.array(draw.choice(["flu", "cough", "cold", "none"], count).tolist(), pa.string()),
        }
    )


QUASI = ["age", "weight", "born", "city"]
ASKS: dict[str, Any] = {"quasi_identifiers": QUASI, "sensitive": "ill", "other": "keep", "accept_linkable": ["row"]}


def release_of(data: Any, bucket_records: int = 1 << 18, file_records: int = 1 << 20, **asked: Any) -> Any:
    options = SparkOptions(bucket_records=bucket_records, file_records=file_records)
    return anonymize_with_spark(data, merge_flags(None, **{**ASKS, **asked}), options)


def anonymize_with_spark(data: Any, policy: Policy, options: SparkOptions | None = None) -> Release:
    return kept(draft_release(data, merge_flags(policy, engine="spark"), Progress(), spark=options))


def anonymize_to_directory(data: Any, policy: Policy, target: str | Path) -> Release:
    return published(draft_release(data, merge_flags(policy, engine="spark"), Progress(), target=target), target)


def rows_in_order(release: Any) -> list[dict[str, Any]]:
    """The rows of the files, file after file."""
    return [row for file in files_of(release._draft.rows.directory) for row in pq.read_table(file).to_pylist()]


def files_of(path: str) -> list[Path]:
    return sorted(Path(path).glob("*.parquet"))


def check_by_oracle(table: pa.Table, rows: list[dict[str, Any]], k: int) -> None:
    """Every record once, its values covered, in classes of k, in canonical order."""
    before = {row["row"]: row for row in table.to_pylist()}
    assert sorted(row["row"] for row in rows) == sorted(before)
    columns = {name: oracle.NumberColumn(table[name].to_pylist()) for name in ("age", "weight", "born")}
    cities = [value for value in table["city"].to_pylist() if value is not None]
    for row in rows:
        original = before[row["row"]]
        assert row["ill"] == original["ill"]
        for name, column in columns.items():
            assert column.covers(row[name], original[name])
        assert row["city"] == "*" or row["city"] == original["city"]
        assert row["city"] in {"*", None, *cities}
    assert oracle.smallest_class(rows, QUASI) >= k
    assert rows == oracle.canonical_order(rows, QUASI, ["row", "ill"])


def test_a_release_in_one_bucket_is_that_of_the_memory_engine(spark: Any) -> None:
    table = mixed_table(400)
    expected = sfumato.anonymize(table, k=4, method="hilbert", **ASKS)
    release = release_of(spark.createDataFrame(table), k=4, method="hilbert")
    assert rows_in_order(release) == expected.data.to_pylist()
    summary, known = release.summary(), expected.summary()
    differing = ("engine", "seconds", "warnings", "choice", "private_figures", "groups", "c_dm_groups")
    assert {key: summary[key] for key in known if key not in differing} == {
        key: known[key] for key in known if key not in differing
    }
    assert summary["engine"] == "spark"
    assert release.data.count() == 400
    assert [field.metadata for field in release.data.schema] == [{}] * 6


@pytest.mark.parametrize("more", [{"cells": True}, {"max_suppressed": 0.2, "l": 2}], ids=["cells", "left out"])
def test_levels_are_those_of_the_memory_engine_whatever_the_buckets(spark: Any, more: dict[str, Any]) -> None:
    table = mixed_table(600, 4)
    taxonomy = {"age": {"intervals": [5, 20]}, "born": {"calendar": ["month"]}, "weight": {"intervals": [10, 30]}}
    asked = {"k": 4, "method": "global", "taxonomy": taxonomy, **more}
    expected = sfumato.anonymize(table, **ASKS, **asked)
    release = release_of(spark.createDataFrame(table), bucket_records=200, file_records=250, **asked)
    assert rows_in_order(release) == expected.data.to_pylist()
    assert release.summary()["levels"] == expected.summary()["levels"]
    assert release.summary()["suppressed"] == expected.summary()["suppressed"]
    assert release.summary()["buckets"] > 1
    assert release.losses.gcp == expected.losses.gcp


def test_more_records_than_the_driver_counts_are_refused(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.engines.spark.level_search.MOST_RECORDS", 100)
    with pytest.raises(
        sfumato.UsageError, match=r"more than 100 different records, .* Set finest for columns with many values"
    ):
        release_of(spark.createDataFrame(mixed_table(300)), k=4, method="global")


@pytest.fixture(scope="module")
def table_in_buckets(spark: Any) -> tuple[pa.Table, Any, list[Any]]:
    """A release whose classes were formed in several buckets, and the splitters between them."""
    table = mixed_table(700, 3)
    used: list[Any] = []

    def seen(does: Any) -> Any:
        def do(*arguments: Any) -> Any:
            used.append(arguments)
            return does(*arguments)

        return do

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_classes, "write_coded", seen(spark_classes.write_coded))
        patch.setattr(spark_classes, "write_classes", seen(spark_classes.write_classes))
        release = release_of(spark.createDataFrame(table).repartition(3), 150, 200, k=5, method="snake-hilbert")
    return table, release, used


def test_a_release_in_several_buckets_holds_by_the_oracle(table_in_buckets: Any) -> None:
    table, release, _ = table_in_buckets
    assert release.summary()["buckets"] > 2
    check_by_oracle(table, rows_in_order(release), 5)


def test_classes_are_those_of_the_memory_engine_on_every_bucket(table_in_buckets: Any) -> None:
    table, release, ((*_, assign, _), (_, _, work, joined, _)) = table_in_buckets
    encoded = sfumato.pipeline.prepare.prepare(table, merge_flags(None, k=5, **ASKS), Progress()).encoded
    places = work.line_encoder.places(np.ascontiguousarray(encoded.codes.astype(work.line_encoder.dtype)))
    nothing = np.full(len(places), np.iinfo(np.int64).max)
    bucket = joined[assign(places, nothing, nothing)]
    buckets = release.summary()["buckets"]
    assert len(np.unique(bucket)) == buckets
    shown = {row["row"]: tuple(row[name] for name in QUASI) for row in rows_in_order(release)}
    whole = {name: table[name].to_pylist() for name in QUASI}
    for number in range(buckets):
        here = np.flatnonzero(bucket == number)
        records = work.records(np.ascontiguousarray(encoded.codes[here]), {})
        found = [
            frozenset(encoded.input_rows[here[batch.rows[start:end]]].tolist())
            for batch in sfumato.methods.method_named("snake-hilbert").classes(records, work.requirements, Progress())
            for start, end in zip(batch.starts, batch.starts[1:], strict=False)
        ]
        # Classes that show the same are one to whoever reads the release; no class has rows of two buckets else.
        for members in found:
            assert len({shown[row] for row in members}) == 1
            for place, name in enumerate(("age",)):
                label, values = shown[min(members)][place], [whole[name][row] for row in members]
                assert oracle.NumberColumn(whole[name]).is_tight(label, values) or None in values


@pytest.mark.parametrize("method", ["hilbert", "hilbert-fast", "snake-hilbert"])
def test_with_the_same_splitters_the_classes_are_those_of_the_disk_engine(
    spark: Any, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = mixed_table(900, 17)
    asked: dict[str, Any] = {"k": 4, "method": method, **ASKS}
    seen: list[Any] = []

    def joined(holds: Any, sizes: Any, join: Any = spark_classes.joined) -> Any:
        seen.append(np.bincount(join(holds, sizes), weights=sizes))
        return join(holds, sizes)

    monkeypatch.setattr(spark_classes, "joined", joined)
    policy, options = merge_flags(None, **asked), SparkOptions(bucket_records=200)
    release = anonymize_with_spark(spark.createDataFrame(table), policy, options)
    splits = np.cumsum(seen[0]).astype(np.int64)[:-1].tolist()
    assert len(splits) > 1
    assert rows_in_order(release) != sfumato.anonymize(table, engine="disk", **asked).data.to_pylist()
    monkeypatch.setattr(disk_classes, "cut_line", partial(disk_classes.cut_line, splits=splits))
    assert rows_in_order(release) == sfumato.anonymize(table, engine="disk", **asked).data.to_pylist()


def test_partitions_of_the_input_leave_no_trace(spark: Any, table_in_buckets: Any) -> None:
    table, release, _ = table_in_buckets
    shuffled = table.take(np.random.default_rng(5).permutation(table.num_rows))
    again = release_of(spark.createDataFrame(shuffled).coalesce(1), 150, 200, k=5, method="snake-hilbert")
    assert len(files_of(again._draft.rows.directory)) == len(files_of(release._draft.rows.directory)) > 2
    assert rows_in_order(again) == rows_in_order(release)


def test_diverse_classes_in_buckets_hold_by_the_oracle(spark: Any) -> None:
    table = mixed_table(500, 7)
    release = release_of(spark.createDataFrame(table), 120, k=4, l=2, method="hilbert")
    rows = rows_in_order(release)
    assert release.summary()["buckets"] > 1
    check_by_oracle(table, rows, 4)
    assert oracle.reached_frequency(rows, QUASI, "ill") >= 2
    assert [verdict.holds for verdict in release.audit.verdicts] == [True, True]


@pytest.mark.parametrize("asked", [{"method": "mondrian"}, {"target": "ill"}, {"method": "gain-tree", "l": 2}])
def test_regions_of_a_tree_on_a_sample_are_finished_by_executors(spark: Any, asked: dict[str, Any]) -> None:
    table = mixed_table(900, 5)
    release = release_of(spark.createDataFrame(table), 200, k=4, **asked)
    rows, summary = rows_in_order(release), release.summary()
    assert summary["buckets"] > 1
    assert summary["chosen"] == asked.get("method", "mondrian:information-gain")
    check_by_oracle(table, rows, 4)
    if "l" in asked:
        assert oracle.reached_frequency(rows, QUASI, "ill") >= 2


def test_search_inside_buckets_loses_less_and_holds(spark: Any) -> None:
    table = mixed_table(300, 9)
    frame = spark.createDataFrame(table)
    quick = release_of(frame, 100, k=5)
    searched = release_of(frame, 100, k=5, effort="balanced")
    check_by_oracle(table, rows_in_order(searched), 5)
    assert searched.losses.gcp < quick.losses.gcp
    assert searched.summary()["method"] == "auto"
    assert set(searched.summary()["choice"]["tried"]) == {"hilbert", "snake-hilbert"}


def test_equal_rows_by_the_thousand_are_split_inside_equal_keys(spark: Any) -> None:
    table = pa.table({"age": [7] * 3000 + [8] * 5, "city": ["Pisa"] * 3005})
    policy = merge_flags(None, quasi_identifiers=["age", "city"], k=3, method="hilbert")
    release = anonymize_with_spark(spark.createDataFrame(table), policy, SparkOptions(bucket_records=400))
    assert release.summary()["buckets"] >= 4
    shown = Counter(tuple(row.values()) for row in rows_in_order(release))
    assert sum(shown.values()) == 3005
    assert min(shown.values()) >= 3
    assert set(shown) <= {("7", "Pisa"), ("8", "Pisa"), ("*", "Pisa")}


def test_bounds_have_types_and_rows_are_in_canonical_order_in_several_files(spark: Any) -> None:
    table = mixed_table(400, 11)
    expected = sfumato.anonymize(table, k=4, method="hilbert", form="bounds", **ASKS).data
    release = release_of(spark.createDataFrame(table), file_records=100, k=4, method="hilbert", form="bounds")
    assert len(files_of(release._draft.rows.directory)) > 2
    assert rows_in_order(release) == expected.to_pylist()


def test_written_release_has_certificate_and_is_replaced_only_by_another(
    spark: Any, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other tests may have released the same table: here the run record starts anew.
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path_factory.mktemp("state")))
    table, target = mixed_table(120), tmp_path / "release.parquet"
    source = tmp_path / "input.parquet"
    pq.write_table(table, source)
    policy = merge_flags(None, k=4, method="hilbert", **ASKS)
    release = anonymize_to_directory(source, policy, target)
    certified = json.loads((target / "_certificate.sfumato.json").read_text())
    assert [file["name"] for file in certified["files"]] == [file.name for file in files_of(str(target))]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input.parquet", "release.parquet"]
    assert sorted(path.name for path in target.iterdir()) == ["_certificate.sfumato.json", "part-00000.parquet"]
    first = pq.read_table(files_of(str(target))[0])
    audited = sfumato.audit(target)
    assert audited.holds
    assert audited.verdicts[-1].requirement == "the file is the one that was certified"
    other = anonymize_to_directory(source, merge_flags(policy, k=9), target)
    assert other.audit.smallest_class >= 9
    assert any("released 1 time before" in text for text in other.warnings)
    copied = release_of(spark.createDataFrame(table), k=4, method="hilbert")
    copied.write(tmp_path / "copy")
    assert pq.read_table(files_of(str(tmp_path / "copy"))[0]).equals(first)
    assert release.losses.gcp == copied.losses.gcp
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "work.txt").write_text("mine")
    for force in (False, True):
        with pytest.raises(sfumato.UsageError, match="holds other things than a release"):
            copied.write(mine, force=force)
    assert (mine / "work.txt").read_text() == "mine"
    (mine / "work.txt").rename(mine / "work.parquet")
    with pytest.raises(sfumato.UsageError, match="is a file"):
        copied.write(mine / "work.parquet")
    parts = tmp_path / "parts"
    parts.mkdir()
    pq.write_table(table, parts / "part-00000.parquet")
    with pytest.raises(sfumato.UsageError, match="has no certificate in it"):
        copied.write(parts)
    copied.write(parts, force=True)
    assert copied.replaced == (f"{parts}, no release of Sfumato",)
    copied.write(parts)
    assert copied.replaced == (f"the earlier release {parts}",)


def test_the_run_record_recognises_a_table_whatever_the_engine(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr("sfumato.releases.keyed_sample.MOST", 50)
    table = mixed_table(300, 5)
    policy = merge_flags(None, k=4, method="hilbert", **ASKS)
    frame = spark.createDataFrame(table.take(np.random.default_rng(1).permutation(300))).repartition(3)
    release = anonymize_with_spark(frame, policy, SparkOptions())
    release.write(tmp_path / "release.parquet")
    with pytest.warns(sfumato.SfumatoWarning, match="this table was released 1 time before under another policy"):
        sfumato.anonymize(table, policy=merge_flags(policy, k=5)).write(tmp_path / "release.csv")
    lines = [json.loads(line) for line in (tmp_path / "state" / "runs.jsonl").read_text().splitlines()]
    assert len(lines[0]["sample"]["counts"]) == 50
    assert [lines[0][mark] for mark in ("columns", "sample")] == [lines[1][mark] for mark in ("columns", "sample")]


def test_an_output_with_a_scheme_has_a_manifest(spark: Any, tmp_path: Path) -> None:
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set("fs.viewfs.mounttable.sfumato.link./store", tmp_path.as_uri())
    table = mixed_table(100)
    policy = merge_flags(None, k=4, method="hilbert", **ASKS)
    anonymize_to_directory(spark.createDataFrame(table), policy, "viewfs://sfumato/store/out")
    manifest = json.loads((tmp_path / "out" / "_sfumato_manifest.json").read_text())
    certified = json.loads((tmp_path / "out" / "_certificate.sfumato.json").read_text())
    assert manifest["files"] == certified["files"]
    assert [file["name"] for file in manifest["files"]] == [file.name for file in files_of(str(tmp_path / "out"))]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert pq.read_table(files_of(str(tmp_path / "out"))[0]).num_rows == 100


def test_text_files_are_read_as_text_and_names_may_hold_anything(spark: Any, tmp_path: Path) -> None:
    source = tmp_path / "people.csv"
    lines = [f'{20 + row % 30},"{"a,b" if row % 2 else "c.d"}",{row % 5}' for row in range(60)]
    source.write_text("\n".join(["age.years,`city`,note", *lines]) + "\n")
    asked: dict[str, Any] = {"quasi_identifiers": ["age.years", "`city`"], "other": "keep", "k": 5}
    policy = merge_flags(None, engine="spark", method="hilbert", **asked)
    release = anonymize_with_spark(source, policy)
    expected = sfumato.anonymize(source, method="hilbert", **asked)
    assert release.data.columns == ["age.years", "`city`", "note"]
    assert [tuple(row.values())[:2] for row in rows_in_order(release)] == [
        tuple(row.values())[:2] for row in expected.data.to_pylist()
    ]


def test_tables_of_the_catalogue_and_frames_come_by_anonymize(spark: Any) -> None:
    frame = spark.createDataFrame(mixed_table(90))
    frame.createOrReplaceTempView("people")
    by_name = sfumato.anonymize("people", k=4, method="hilbert", engine="spark", **ASKS)
    by_frame = sfumato.anonymize(frame, k=4, method="hilbert", **ASKS)
    assert isinstance(by_frame, sfumato.Release)
    assert rows_in_order(by_name) == rows_in_order(by_frame)
    with pytest.raises(sfumato.UsageError, match="the memory engine cannot read a DataFrame of Spark"):
        sfumato.anonymize(frame, k=4, engine="memory", **ASKS)


def by_python(spark: Any, path: Path) -> bool:
    """Whether executors read such files without Java."""
    frame = spark.read.parquet(str(path))
    return parts_of(spark, frame, {name: name for name in frame.columns}) is not None


FEW_RECORDS = SparkOptions(bucket_records=90, file_records=70)


@pytest.fixture(scope="module")
def read_by_java(spark: Any) -> list[bytes]:
    """The files of a release of a frame, which Java hands to the executors."""
    policy = merge_flags(None, k=4, method="hilbert", **ASKS)
    release = anonymize_with_spark(spark.createDataFrame(mixed_table(200, 19)), policy, FEW_RECORDS)
    return [file.read_bytes() for file in files_of(release._draft.rows.directory)]


@pytest.mark.parametrize("kind", ["plain", "dictionary", "narrow", "unsigned", "differing"])
def test_files_that_python_reads_give_what_java_reads(
    spark: Any, tmp_path: Path, kind: str, read_by_java: list[bytes]
) -> None:
    table, folder = mixed_table(200, 19), tmp_path / "with space & more.parquet"
    if kind == "dictionary":
        table = table.set_column(3, "city", table["city"].dictionary_encode())
    elif kind != "plain":
        table = table.set_column(0, "age", table["age"].cast(pa.uint8() if kind == "unsigned" else pa.int16()))
    folder.mkdir()
    for number in range(2):
        part = table.slice(100 * number, 100)
        if kind == "differing" and number:
            part = part.set_column(0, "age", part["age"].cast(pa.int32()))
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=30)
    assert by_python(spark, folder) == (kind not in ("unsigned", "differing"))
    release = anonymize_with_spark(folder, merge_flags(None, k=4, method="hilbert", **ASKS), FEW_RECORDS)
    check_by_oracle(table, rows_in_order(release), 4)
    assert [file.read_bytes() for file in files_of(release._draft.rows.directory)] == read_by_java
    assert len(read_by_java) > 1


def test_columns_in_names_of_directories_are_left_to_java(spark: Any, tmp_path: Path) -> None:
    for place in ("Roma", "Pisa"):
        folder = tmp_path / "in" / f"city={place}"
        folder.mkdir(parents=True)
        pq.write_table(mixed_table(30), folder / "0.parquet")  # with a column of that name, which does not count
    assert not by_python(spark, tmp_path / "in")
    policy = merge_flags(None, k=4, method="hilbert", **ASKS)
    release = anonymize_with_spark(tmp_path / "in", policy)
    assert {row["city"] for row in rows_in_order(release)} <= {"Roma", "Pisa", "*"}


def test_values_of_every_type_are_those_that_java_reads(spark: Any, tmp_path: Path) -> None:
    moment = datetime.datetime(2020, 1, 1, 12)
    columns = {
        "seen": pa.array([moment + datetime.timedelta(hours=row % 50) for row in range(80)], pa.timestamp("us", "UTC")),
        "local": pa.array([moment + datetime.timedelta(hours=row % 40) for row in range(80)], pa.timestamp("us")),
        "weight": pa.array([None if row % 9 == 0 else row % 7 / 4 - 0.75 for row in range(80)], pa.float32()),
        "cost": pa.array([Decimal(row % 20) / 4 for row in range(80)], pa.decimal128(9, 2)),
        "good": pa.array([row % 3 == 0 for row in range(80)]),
        "raw": pa.array([bytes([row % 5]) for row in range(80)]),
        "small": pa.array([row % 11 for row in range(80)], pa.int8()),
    }
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table(columns), source)
    assert by_python(spark, source)
    asked: dict[str, Any] = {"quasi_identifiers": ["seen", "weight", "small"], "other": "keep", "k": 4}
    policy = merge_flags(None, method="hilbert", accept_linkable=["local", "cost", "good", "raw"], **asked)
    options = SparkOptions(bucket_records=30, file_records=30)
    read = anonymize_with_spark(source, policy, options)
    computed = anonymize_with_spark(spark.read.parquet(str(source)), policy, options)
    assert rows_in_order(read) == rows_in_order(computed)
    assert read.data.schema == computed.data.schema


def test_decimals_and_moments_with_a_zone_are_released_as_in_memory(spark: Any, tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    moment = datetime.datetime(2020, 1, 1, 12)

    def cents(low: int, high: int) -> pa.Array:
        return pa.array([Decimal(int(each)).scaleb(-2) for each in draw.integers(low, high, 200)], pa.decimal128(9, 2))

    late = [moment + datetime.timedelta(minutes=int(minutes)) for minutes in draw.integers(0, 90, 200)]
    seen = pa.array(late, pa.timestamp("us", "UTC"))
    table = pa.table({"price": cents(-900, 900), "fee": cents(0, 500), "seen": seen})
    source = tmp_path / "in.parquet"
    pq.write_table(table, source)
    flags: dict[str, Any] = {"quasi_identifiers": ["price", "fee", "seen"], "k": 4, "method": "hilbert"}
    policy = merge_flags(None, round={"fee": 0.25}, form="bounds", **flags)
    expected = sfumato.anonymize(table, policy=policy).data
    release = anonymize_with_spark(source, policy)
    assert rows_in_order(release) == expected.to_pylist()
    [file] = files_of(release._draft.rows.directory)
    assert pq.read_schema(file).equals(expected.schema)


def test_a_file_that_no_finished_task_wrote_is_no_part_of_the_release(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(mixed_table(60), tmp_path / "late")
    make = file_systems.LocalFiles.make_private

    def make_private(self: Any, path: str) -> None:
        make(self, path)
        if path.endswith("-written"):
            (Path(path) / "late.parquet").write_bytes((tmp_path / "late").read_bytes())

    monkeypatch.setattr(file_systems.LocalFiles, "make_private", make_private)
    policy = merge_flags(None, k=4, method="hilbert", **ASKS)
    release = anonymize_to_directory(spark.createDataFrame(mixed_table(60)), policy, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "_certificate.sfumato.json",
        "part-00000.parquet",
    ]
    assert release.audit.records == 60
    assert sorted(path.name for path in tmp_path.iterdir()) == ["late", "out"]


def test_the_command_line_runs_spark(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sfumato.cli import main

    source, target = tmp_path / "input.parquet", tmp_path / "out.parquet"
    pq.write_table(mixed_table(90), source)
    flags = [
        "--quasi-identifiers",
        ",".join(QUASI),
        "--sensitive",
        "ill",
        "--other",
        "keep",
        "--accept-linkable",
        "row",
    ]
    command = ["anonymize", str(source), "-o", str(target), *flags, "-k", "4", "--engine", "spark", "--json"]
    assert main([*command, "--method", "hilbert"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["engine"], told["records"], told["smallest_class"]) == ("spark", 90, 4)
    assert main([*command, "--dry-run"]) == 2


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"method": "topdown"}, "does not support the method"),
        ({"keep_order": True}, "keep_order"),
        ({"max_suppressed": 0.1}, "max_suppressed"),
        ({"form": "statistics"}, "statistics"),
        ({"person": "row"}, "person"),
        ({"effort": "best", "seconds": 3.0}, "seconds"),
    ],
)
def test_what_spark_does_not_do_is_refused_before_any_work(spark: Any, asked: dict[str, Any], told: str) -> None:
    with pytest.raises(sfumato.UsageError, match=told):
        release_of(spark.createDataFrame(mixed_table(20)), k=4, **asked)


def test_the_risk_of_a_frame_is_that_of_the_same_table_in_memory(spark: Any) -> None:
    table = mixed_table(200, 13).select(QUASI)
    asked: dict[str, Any] = {"quasi_identifiers": QUASI, "sampling_fraction": 0.1, "largest_set": 2}
    found = sfumato.risk(spark.createDataFrame(table), **asked).as_dict()
    expected = sfumato.risk(table, **asked).as_dict()
    assert {name: found[name] for name in found if name not in ("journalist", "prosecutor", "marketer")} == {
        name: expected[name] for name in expected if name not in ("journalist", "prosecutor", "marketer")
    }
    assert found["marketer"] == pytest.approx(expected["marketer"])
    assert found["journalist"] == pytest.approx(expected["journalist"])
    assert found["prosecutor"] == pytest.approx(expected["prosecutor"])
    with pytest.raises(sfumato.UsageError, match="cannot be compared with a population table"):
        sfumato.risk(spark.createDataFrame(table), quasi_identifiers=QUASI, population=table)


def test_too_many_categories_are_refused_with_advice(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_profiles, "MOST_CATEGORIES", 3)
    with pytest.raises(sfumato.InputError, match=r"'city' has more than 3 distinct values.*a prefix"):
        release_of(spark.createDataFrame(mixed_table(50)), k=4)


def test_what_cannot_be_released_is_an_error_without_a_cell(spark: Any, tmp_path: Path) -> None:
    table = mixed_table(50)
    with pytest.raises(sfumato.InfeasibleError):
        release_of(spark.createDataFrame(table), k=51)
    with pytest.raises(sfumato.PolicyError, match=r"'row'.*alone with it"):
        release_of(spark.createDataFrame(table), k=3, accept_linkable=[])
    named = table.append_column("surname", pa.array([f"Name{'abcdefghijkl'[row * 5 % 12]}" for row in range(50)]))
    with pytest.raises(sfumato.PolicyError, match=r"'surname': its name suggests the name of a person") as refused:
        release_of(spark.createDataFrame(named), k=3)
    assert "Namea" not in str(refused.value)
    mailed = table.append_column("contact", pa.array([f"{'abcdef'[row * 5 % 6]}@x.org" for row in range(50)]))
    with pytest.raises(sfumato.PolicyError, match=r"'contact': its values look like e-mail addresses"):
        release_of(spark.createDataFrame(mailed), k=3)
    release_of(spark.createDataFrame(mailed), k=3, accept_linkable=["row", "contact"])
    with pytest.raises(sfumato.InputError, match="has no records"):
        release_of(spark.createDataFrame(table).limit(0), k=3)
    nested = spark.createDataFrame(table).selectExpr("*", "map(row, row) as places")
    with pytest.raises(sfumato.InputError, match="type map"):
        release_of(nested, k=3)
    bad = spark.createDataFrame(pa.table({"age": ["1", "SECRET"], "city": ["a", "b"]}))
    with pytest.raises(sfumato.InputError) as error:
        anonymize_with_spark(bad, merge_flags(None, quasi_identifiers=["age", "city"], k=2, type={"age": "numeric"}))
    assert "SECRET" not in str(error.value)
    assert "record" not in str(error.value).partition(".")[0]
    with pytest.raises(sfumato.UsageError, match=r"should end in \.parquet"):
        anonymize_to_directory(spark.createDataFrame(table), merge_flags(None, k=3, **ASKS), tmp_path / "out.csv")
    ansi = spark.createDataFrame(pa.table({"text": ["SECRET"] * 9})).selectExpr("cast(text as int) as age")
    with pytest.raises(sfumato.DataError) as failed:
        anonymize_with_spark(ansi, merge_flags(None, quasi_identifiers=["age"], k=2))
    assert "SECRET" not in str(failed.value)
    assert failed.value.__cause__ is None
    assert buckets.BUCKET_RECORDS >= 1 << 16


def test_numbers_of_slots_are_where_spark_puts_them(spark: Any) -> None:
    from pyspark.sql import functions as sql

    for count in (3, 8):
        frame = spark.createDataFrame([(number,) for number in partition_numbers(count)], "slot int")
        placed = frame.repartition(count, "slot").select("slot", sql.spark_partition_id().alias("partition")).collect()
        assert {row["slot"]: row["partition"] for row in placed} == {
            number: partition for partition, number in enumerate(partition_numbers(count))
        }


@pytest.mark.parametrize(
    ("method", "asked"), [("hilbert", {"l": 2}), ("mondrian", {}), ("auto", {"effort": "balanced"})]
)
def test_no_class_reaches_beyond_the_coarsest_level(spark: Any, method: str, asked: dict[str, Any]) -> None:
    table = mixed_table(3_000, 4).select(["age", "born", "row", "ill"])
    flags: dict[str, Any] = {
        "quasi_identifiers": ["age", "born"],
        "taxonomy": {"age": {"intervals": [5, 20]}, "born": {"calendar": ["month", "quarter"]}},
        "finest": {"age": 1, "born": "month"},
        "coarsest": {"age": 2, "born": "quarter"},
        "other": "keep",
        "accept_linkable": ["row"],
        "k": 3,
        **asked,
    }
    frame = spark.createDataFrame(table)
    policy = merge_flags(None, method=method, sensitive="ill", **flags)
    release = anonymize_with_spark(frame, policy, SparkOptions(bucket_records=400))
    rows = rows_in_order(release)
    assert len(rows) == table.num_rows
    original = {row["row"]: row for row in table.to_pylist()}
    for row in rows:
        age, born = original[row["row"]]["age"], original[row["row"]]["born"]
        if row["age"] is None or age is None:
            assert row["age"] is age is None
        else:
            low, high = map(int, row["age"].strip("[]").split(".."))
            assert low <= age <= high
            assert (low // 20, low % 5, high % 5) == (high // 20, 0, 4)
        shown = None if born is None else {f"{born:%Y-%m}", f"{born.year}-Q{(born.month + 2) // 3}"}
        assert row["born"] is None if shown is None else row["born"] in shown
    classes: dict[tuple[Any, ...], Counter[str]] = {}
    for row in rows:
        classes.setdefault((row["age"], row["born"]), Counter())[row["ill"]] += 1
    assert min(group.total() for group in classes.values()) >= 3
    if "l" in asked:
        assert all(2 * max(group.values()) <= group.total() for group in classes.values())
    with pytest.raises(InfeasibleError, match="cannot meet the requirements by themselves"):
        anonymize_with_spark(frame, merge_flags(policy, k=500), SparkOptions(bucket_records=400))


def test_a_trial_replaces_a_trial_and_no_release(spark: Any, tmp_path: Path) -> None:
    for certified, says in (({"trial": True}, "the earlier trial"), ({}, "the earlier release")):
        target = tmp_path / says.split()[-1]
        target.mkdir()
        (target / "_certificate.sfumato.json").write_text(json.dumps(certified))
        assert check_directory(spark, str(target), force=True, trial=True) == [f"{says} {target}"]
    assert check_directory(spark, str(tmp_path / "trial"), force=False, trial=True)
    with pytest.raises(sfumato.UsageError, match="is a release, and a trial would replace it"):
        check_directory(spark, str(tmp_path / "release"), force=False, trial=True)
    (tmp_path / "release" / "_certificate.sfumato.json").write_bytes(b"\xff")
    assert check_directory(spark, str(tmp_path / "release"), force=False)
