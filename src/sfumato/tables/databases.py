"""What all databases share: finding a table by its name, valid names, and the tables that Sfumato itself keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sfumato.errors import InputError, OutputError, UsageError

STAGE = "sfumato_stage_"
CERTIFICATES = "sfumato_certificates"
MOST_LISTED = 20
FETCHED = 1 << 16  # rows fetched at a time


class Relation(NamedTuple):
    """A table or view in its schema. The schema is empty in a database without schemas."""

    schema: str
    name: str
    view: bool = False

    @property
    def sql(self) -> str:
        return ".".join(quoted(part) for part in (self.schema, self.name) if part)

    @property
    def shown(self) -> str:
        return self.name if not self.schema else f"{self.schema}.{self.name}"


def quoted(name: str) -> str:
    """Quote a name as an SQL identifier, whatever its characters."""
    return '"' + name.replace('"', '""') + '"'


def find_relation(
    wanted: str | None, available: Iterable[Relation], default_schemas: Sequence[str], where: str
) -> Relation:
    """Find a table by its name with the schema, or without it if the schema is one of ``default_schemas``."""
    tables = [relation for relation in available if not is_own(relation.name)]
    if wanted is not None:
        # An exact match comes before one that differs in case, which SQL mostly ignores.
        for normalize in (str, str.casefold):
            for schema in default_schemas:
                for relation in tables:
                    if relation.schema == schema and normalize(relation.name) == normalize(wanted):
                        return relation
            for relation in tables:
                if relation.schema and normalize(relation.shown) == normalize(wanted):
                    return relation
    listed = [relation.name if relation.schema in default_schemas else relation.shown for relation in tables]
    more = f" and {len(listed) - MOST_LISTED:,} more" if len(listed) > MOST_LISTED else ""
    contents = "has no tables" if not listed else f"has {', '.join(map(repr, listed[:MOST_LISTED]))}{more}"
    if wanted is None:
        example = listed[0] if listed else "patients"
        raise InputError(f"{where} is a database, which {contents}. Name a table after a #, such as '...#{example}'.")
    raise InputError(f"{where} has no table {wanted!r}; it {contents}. Name one of its tables after the #.")


def is_own(name: str) -> bool:
    """Return whether Sfumato keeps a table of this name for itself."""
    return name.casefold() == CERTIFICATES or name.casefold().startswith(STAGE)


def check_table_name(table: str | None) -> str:
    """Return the name of the table to write, or refuse a name that cannot be used."""
    if table is None:
        raise UsageError("the output is a database. Name the table to write after a #, such as '...#release'.")
    if is_own(table) or "\0" in table:
        raise UsageError(f"the output cannot be named {table!r}, a name that Sfumato uses itself. Choose another name.")
    return table


def check_column_names(names: Sequence[str], *, most_bytes: int | None = None) -> None:
    """Refuse names that SQL would treat as the same name, or would cut off."""
    seen: dict[str, str] = {}
    for name in names:
        if most_bytes is not None:
            if len(name.encode()) > most_bytes:
                raise OutputError(
                    f"the name of the column {name!r} is longer than the {most_bytes} bytes that the database allows. "
                    "Rename the column."
                )
        elif name.lower() in seen:
            raise OutputError(
                f"the columns {seen[name.lower()]!r} and {name!r} differ only in case, which the database ignores. "
                "Rename one of them."
            )
        seen[name.lower()] = name


def missing_package(where: str, extra: str, error: type[InputError | OutputError]) -> InputError | OutputError:
    return error(f"{where} needs a package that is missing. Install it with: pip install 'sfumato[{extra}]'")
