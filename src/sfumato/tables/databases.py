"""What tables in databases have in common: names, what there is to choose from, what Sfumato keeps there itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sfumato.errors import InputError, OutputError, UsageError

STAGE = "sfumato_stage_"
CERTIFICATES = "sfumato_certificates"
MOST_LISTED = 20
FETCHED = 1 << 16  # rows that are taken at a time


class Relation(NamedTuple):
    """A table or view by its schema, which is empty where a database has none."""

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
    """An identifier of SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def find_relation(given: str | None, available: Iterable[Relation], usual: Sequence[str], where: str) -> Relation:
    """The table that is meant: by its whole name, or by its own where its schema is one of the usual."""
    tables = [one for one in available if not is_own(one.name)]
    if given is not None:
        # As it is written comes before what differs in case, which SQL mostly does not tell apart.
        for form in (str, str.casefold):
            for schema in usual:
                for one in tables:
                    if one.schema == schema and form(one.name) == form(given):
                        return one
            for one in tables:
                if one.schema and form(one.shown) == form(given):
                    return one
    listed = [one.name if one.schema in usual else one.shown for one in tables]
    more = f" and {len(listed) - MOST_LISTED:,} more" if len(listed) > MOST_LISTED else ""
    said = "has no tables" if not listed else f"has {', '.join(map(repr, listed[:MOST_LISTED]))}{more}"
    if given is None:
        example = listed[0] if listed else "patients"
        raise InputError(f"{where} is a database, which {said}. Name a table behind a #, such as '...#{example}'.")
    raise InputError(f"{where} has no table {given!r}; it {said}.")


def is_own(name: str) -> bool:
    """Whether a table is one that Sfumato keeps for itself."""
    return name.casefold() == CERTIFICATES or name.casefold().startswith(STAGE)


def check_table_name(table: str | None) -> str:
    """The name of a table to write, if it can be one."""
    if table is None:
        raise UsageError("the output is a database. Name the table to write behind a #, such as '...#release'.")
    if is_own(table) or "\0" in table:
        raise UsageError(f"the output cannot be named {table!r}, which Sfumato uses itself. Choose another name.")
    return table


def check_column_names(names: Sequence[str], *, most_bytes: int | None = None) -> None:
    """Refuse names that SQL would take for one, or cut off."""
    seen: dict[str, str] = {}
    for name in names:
        if most_bytes is not None:
            if len(name.encode()) > most_bytes:
                raise OutputError(
                    f"the name of the column {name!r} is longer than the {most_bytes} bytes that the database takes. "
                    "Rename it."
                )
        elif name.lower() in seen:
            raise OutputError(
                f"the columns {seen[name.lower()]!r} and {name!r} differ only in case, which the database does not "
                "tell apart. Rename one of them."
            )
        seen[name.lower()] = name


def missing_package(where: str, extra: str, error: type[InputError | OutputError]) -> InputError | OutputError:
    return error(f"{where} needs a package that is missing. Install it with: pip install 'sfumato[{extra}]'")
