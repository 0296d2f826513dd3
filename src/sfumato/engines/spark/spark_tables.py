"""The input of the Spark engine: any frame, Parquet and CSV files and directories, tables of the catalogue.

Columns are named by their number from here on (``c0``, ``c1``), since a name may contain characters that mean something
to Spark.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import types

from sfumato.engines.spark.file_systems import files_of, is_remote, location
from sfumato.engines.spark.publication import recover_directory
from sfumato.engines.spark.session import Frame, Session, in_our_words, is_spark_frame
from sfumato.errors import InputError, UsageError
from sfumato.policy import InputOptions
from sfumato.tables.sources.source import is_text_file, kind_of_file
from sfumato.tables.sources.source_batches import checked_names, normalized_types

PARQUET = (".parquet", ".pq", "")


@dataclass(frozen=True)
class SparkTable:
    """A frame, and what profiles need to know about its columns. files: the frame reads Parquet files."""

    frame: Frame
    names: tuple[str, ...]
    types: dict[str, pa.DataType]
    text: bool
    files: bool
    kind = "spark"

    def selected(self, names: Sequence[str]) -> Frame:
        """Return the named columns, numbered in this order."""
        from pyspark.sql import functions as sql

        numbers = {name: number for number, name in enumerate(self.names)}
        renamed = self.frame.toDF(*columns(len(self.names)))
        return renamed.select(*(sql.col(f"c{numbers[name]}") for name in names)).toDF(*columns(len(names)))

    def check(self, names: Sequence[str]) -> None:
        """Refuse columns that do not have a single value for each record."""
        for name in names:
            kind = self.types[name]
            if types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
                spark_type = self.frame.schema[name].dataType.simpleString()
                raise InputError(
                    f"column {name!r} of the Spark table has the type {spark_type}, which is not a single value per "
                    "record. Drop the column, or turn it into numbers, dates or text."
                )


def columns(count: int) -> list[str]:
    """Return the names of numbered columns."""
    return [f"c{number}" for number in range(count)]


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def open_table(session: Session, data: object, options: InputOptions) -> SparkTable:
    """Open the table of a frame, of files, or of the catalogue."""
    if is_spark_frame(data):
        return _table(data)
    if not isinstance(data, str | os.PathLike):
        raise UsageError(
            f"Spark cannot read an object of type {type(data).__module__}.{type(data).__qualname__}. Pass a Spark "
            "DataFrame, the path of Parquet or CSV files, or the name of a table."
        )
    path = location(data)
    name = Path(path.rpartition("/")[2])
    suffix, _ = kind_of_file(name)
    recover_directory(session, path)
    if not is_remote(path) and not files_of(session, path).exists(path):
        return _of_catalogue(session, os.fspath(data))
    with in_our_words("open the input"):
        if is_text_file(name):
            separator = "\t" if suffix == ".tsv" and options.separator == "," else options.separator
            frame = session.read.csv(
                path,
                header=True,
                sep=separator,
                encoding=options.encoding,
                quote='"',
                escape='"',
                mode="FAILFAST",
                multiLine=True,
                enforceSchema=False,
            )
            return _table(frame, text=True)
        if suffix in PARQUET:
            return _table(session.read.parquet(path), files=True)
    raise InputError(
        f"the name {os.fspath(data)!r} does not say what kind of table it is. The Spark engine reads Parquet and CSV "
        "files and directories, tables of its catalogue, and any frame in Python. Rename the file, or convert it."
    )


def _of_catalogue(session: Session, name: str) -> SparkTable:
    with in_our_words("look for the table"):
        exists = _is_table(session, name)
    if not exists:
        raise InputError(f"there is no file, directory or table {name!r}. Check the path.")
    return _table(session.table(name))


def _is_table(session: Session, name: str) -> bool:
    from pyspark.errors import AnalysisException, ParseException

    try:
        return bool(session.catalog.tableExists(name))
    except (AnalysisException, ParseException):
        return False


def _table(frame: Frame, *, text: bool = False, files: bool = False) -> SparkTable:
    from pyspark.errors import PySparkException

    where = "the Spark table"
    names = checked_names(list(frame.columns), where)
    # SQL does not distinguish names that differ only in case.
    checked_names([name.lower() for name in names], where)
    fields = []
    for field in frame.schema.fields:
        try:
            fields.append(pa.field(field.name, arrow_type(field.dataType)))
        except PySparkException:
            raise InputError(
                f"column {field.name!r} of {where} has a type that is not supported. Turn it into numbers, dates or "
                "text, or drop the column."
            ) from None
    return SparkTable(frame, names, normalized_types(pa.schema(fields)), text, files)


def arrow_type(kind: Any) -> pa.DataType:
    """Return the Arrow type of a Spark type.

    Spark converts a timestamp only with a time zone, which a keyword gives that differs between its versions. Its
    timestamps are moments, so UTC is right for any session. The contents of a nested type are never read.
    """
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import ArrayType, MapType, StructType, TimestampType

    if isinstance(kind, TimestampType):
        return pa.timestamp("us", "UTC")
    if isinstance(kind, ArrayType | MapType | StructType):
        return pa.struct([])
    return to_arrow_type(kind)
