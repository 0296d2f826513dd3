"""A release by a session of Spark Connect: a program of its own, since a process has one kind of session."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

import pyarrow.parquet as pq
from spark import SETTINGS
from spark_kills import OPTIONS, POLICY, people

import sfumato
from sfumato.pipeline.run import draft_release, kept
from sfumato.progress import Progress


def main(folder: Path) -> None:
    from pyspark.sql import SparkSession

    warnings.simplefilter("ignore")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.remote("local[2]")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    frame = session.createDataFrame(people())
    release = kept(draft_release(frame, POLICY, Progress(), spark=OPTIONS))
    release.write(folder / "release")
    pq.write_table(people(), folder / "people.parquet")
    sfumato.anonymize(folder / "people.parquet", POLICY, engine="spark").write(folder / "by_path")
    told = {"session": type(session).__module__, "buckets": release.summary()["buckets"], "rows": release.data.count()}
    told["risk"] = sfumato.risk(frame, quasi_identifiers=["age", "city"]).as_dict()["records"]
    try:
        release.write("hdfs://nowhere/release")
    except sfumato.UsageError as error:
        told["refused"] = str(error)
    print(json.dumps(told))
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
