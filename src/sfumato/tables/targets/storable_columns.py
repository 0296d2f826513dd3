"""Refuse, before any work is done, columns that a target would not give back unchanged.

What depends on the values, such as a number of more digits than a format holds, is refused when they are written.
"""

from __future__ import annotations

import pyarrow as pa

from sfumato.tables.locations import DirectoryLocation, FileLocation, Location, ServerLocation
from sfumato.tables.targets.file_writers import check_columns_of_file, refuse_durations


def check_storable(location: Location, schema: pa.Schema) -> None:
    """Refuse a column of a type that the target at ``location`` cannot hold; ``schema`` has the kept columns."""
    if isinstance(location, FileLocation):
        check_columns_of_file(location.path, schema)
    elif isinstance(location, DirectoryLocation):
        refuse_durations(schema, "Parquet")
    elif isinstance(location, ServerLocation):
        from sfumato.tables.targets.postgres_target import declared_columns as postgres_columns

        postgres_columns(schema)
    elif location.kind == "duckdb":
        from sfumato.tables.targets.duckdb_target import stored_columns

        stored_columns(schema)
    else:
        from sfumato.tables.targets.sqlite_target import declared_columns as sqlite_columns

        sqlite_columns(schema)
