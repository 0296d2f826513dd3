"""Chunks between two jobs: files that Python reads hold the same as files that Spark reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark import require_spark, session

from sfumato.engines.spark import stored_chunks as module
from sfumato.engines.spark.buckets import BUCKET, COUNT
from sfumato.engines.spark.classes import SparkOptions
from sfumato.engines.spark.file_systems import TEMPORARY
from sfumato.engines.spark.row_chunks import CHUNK
from sfumato.engines.spark.session import in_our_words, number_of_task
from sfumato.engines.spark.stored_chunks import ChunkFiles, ChunkFrame, Tasks, as_they_are, stored_chunks
from sfumato.errors import SfumatoError
from sfumato.pipeline.run import draft_release, published
from sfumato.policy import merge_flags
from sfumato.progress import Progress

pytestmark = [pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning"), pytest.mark.compiled]

TASKS, BUCKETS, SAMPLE = 3, 4, "sample"
ROWS = sorted((bucket, f"{task}-{bucket}") for task in range(TASKS) for bucket in range(BUCKETS))


@pytest.fixture(scope="module")
def spark() -> Any:
    require_spark()
    found = session()
    found.sparkContext._jsc.hadoopConfiguration().set("fs.viewfs.mounttable.chunks.link./root", "file:///")
    return found


@pytest.fixture(params=["mounted", "remote"])
def chunks(spark: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    """A row for each task and bucket; the first of a task also has a sample. Later tasks write longer files."""
    from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

    kinds = {BUCKET: IntegerType(), COUNT: LongType(), CHUNK: BinaryType(), SAMPLE: BinaryType()}

    def work(batches: Any) -> Any:
        task = number_of_task()
        assert sum(batch.num_rows for batch in batches) == 1
        for bucket in range(BUCKETS):
            chunk = f"{task}-{bucket}{'.' * 9 * task}".encode()
            values = [(bucket, pa.int32()), (10 * task, pa.int64()), (chunk, pa.binary())]
            arrays = [pa.array([value], kind) for value, kind in values]
            sample = pa.array([None if bucket else f"s{task}".encode()], pa.binary())
            yield pa.RecordBatch.from_arrays([*arrays, sample], list(kinds))

    schema = StructType([StructField(name, kind, name == SAMPLE) for name, kind in kinds.items()])
    directory = f"{tmp_path}/chunks" if request.param == "mounted" else f"viewfs://chunks/root{tmp_path}/chunks"
    stored = stored_chunks(spark, Tasks(spark.range(0, TASKS, 1, TASKS), as_they_are), work, schema, directory)
    assert isinstance(stored, ChunkFiles if request.param == "mounted" else ChunkFrame)
    return stored


def rows_by_task(tasks: Tasks) -> list[list[tuple[int, str]]]:
    """The bucket of each row that a task gets, with its chunk."""

    def listed(batches: Any) -> Any:
        rows = [row for batch in batches for row in batch.select([BUCKET, CHUNK]).to_pylist()]
        texts = ["|".join(f"{row[BUCKET]}:{row[CHUNK].decode().rstrip('.')}" for row in rows)]
        yield pa.RecordBatch.from_arrays([pa.array([number_of_task()], pa.int32()), pa.array(texts)], ["task", "rows"])

    found = sorted(tasks.mapped(listed, "task int, rows string").collect())
    rows = [[each.split(":") for each in row["rows"].split("|") if each] for row in found]
    return [sorted((int(bucket), chunk) for bucket, chunk in task) for task in rows]


def rows_of(tasks: Tasks) -> list[tuple[int, str]]:
    return sorted(row for rows in rows_by_task(tasks) for row in rows)


def test_tasks_have_every_row_once(chunks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rows_of(chunks.tasks([BUCKET, CHUNK])) == ROWS
    monkeypatch.setattr(module, "TASK_BYTES", 20)
    assert rows_of(chunks.tasks([BUCKET, CHUNK])) == ROWS
    assert isinstance(chunks, ChunkFrame) or len(rows_by_task(chunks.tasks([BUCKET, CHUNK]))) > TASKS


def test_rows_of_joined_buckets_come_together(chunks: Any) -> None:
    number = np.array([1, 0, 1, 2])
    by_task = rows_by_task(chunks.together(BUCKET, number, [BUCKET, CHUNK]))
    assert [len({bucket for bucket, _ in rows}) for rows in by_task] == [1, 1, 1]
    texts = [[chunk for _, chunk in rows] for rows in by_task]
    assert [sorted(rows) for rows in texts] == [
        sorted(chunk for bucket, chunk in ROWS if number[bucket] == task) for task in range(3)
    ]


def test_rows_are_chosen_renumbered_and_joined_by_bucket(chunks: Any) -> None:
    renumbered = chunks.only(BUCKET, np.array([1, 3])).renumbered(BUCKET, np.array([9, 7, 9, 8]))
    joined = renumbered.joined(chunks.only(BUCKET, np.array([0])))
    expected = [({1: 7, 3: 8}.get(bucket, bucket), chunk) for bucket, chunk in ROWS if bucket != 2]
    assert rows_of(joined.tasks([BUCKET, CHUNK])) == sorted(expected)
    counts = joined.collected([BUCKET, COUNT])
    assert sorted(zip(*(counts[name].to_pylist() for name in (BUCKET, COUNT)), strict=True)) == sorted(
        (bucket, 10 * int(chunk[0])) for bucket, chunk in expected
    )


def test_the_driver_reads_small_columns_and_few_chunks_itself(chunks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(chunks.collected([SAMPLE])[SAMPLE].to_pylist()) == [b"s0", b"s1", b"s2"]
    few = chunks.few([SAMPLE])
    if isinstance(chunks, ChunkFrame):
        assert few is None
        return
    assert [batch.column(0).to_pylist() for batch in few] == [[b"s0"], [b"s1"], [b"s2"]]
    assert chunks.longest_files_first().tolist() == [8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3]
    monkeypatch.setattr(module, "FEW_BYTES", 5)
    assert chunks.few([SAMPLE]) is None


@pytest.mark.parametrize("chunks", ["mounted"], indirect=True)
def test_a_file_that_lost_its_end_is_an_error(chunks: Any) -> None:
    path = chunks.index.column("file")[0].as_py()
    Path(path).write_bytes(Path(path).read_bytes()[:-3])
    with pytest.raises(OSError, match="shorter than it was"):
        chunks.few([CHUNK])
    Path(path).unlink()
    with pytest.raises(OSError, match="No such file"):
        chunks.few([CHUNK])


def test_a_release_is_the_same_whether_python_or_spark_hands_rows_on(spark: Any, tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    table = pa.table(
        {
            "age": pa.array(draw.integers(0, 60, 3000)),
            "city": draw.choice(["Roma", "Pisa", "Lucca"], 3000),
            "ill": draw.choice(["flu", "cold", "none"], 3000),
            "ward": draw.choice(["a", "b"], 3000),
        }
    )
    asked = merge_flags(None, quasi_identifiers=["age", "city"], sensitive="ill", other="keep", k=5, l=2)
    policy = merge_flags(asked, engine="spark", method="hilbert")
    options = SparkOptions(bucket_records=700, file_records=800)
    files = []
    for name, temporary in (("python", ""), ("spark", f"viewfs://chunks/root{tmp_path}")):
        spark.conf.set(TEMPORARY, temporary)
        target = tmp_path / name
        try:
            frame = spark.createDataFrame(table).repartition(3)
            release = published(draft_release(frame, policy, Progress(), target=target, spark=options), target)
        finally:
            spark.conf.unset(TEMPORARY)
        assert release.summary()["buckets"] > 2
        files.append([pq.read_table(file).to_pylist() for file in sorted(target.glob("*.parquet"))])
    assert len(files[0]) > 2
    assert files[0] == files[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["python", "spark"]


@pytest.mark.parametrize("chunks", ["mounted"], indirect=True)
def test_errors_of_files_between_jobs_are_in_our_words(chunks: Any) -> None:
    tasks = chunks.tasks([BUCKET, CHUNK])
    Path(chunks.index.column("file")[0].as_py()).unlink()
    with pytest.raises(SfumatoError, match="could not read rows"), in_our_words("read rows"):
        rows_by_task(tasks)
