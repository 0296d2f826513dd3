"""Names of columns that are cells of a record: the table has no header, or its header is looked for in a wrong line.

A proposal shows the names everywhere, so such a table is refused before anything is shown.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InputError, may_be_cells
from sfumato.evaluation.linkability.value_forms import is_identifier


def check_names(names: Iterable[str]) -> None:
    """Refuse names that have the form of an identifier."""
    if any(is_identifier(name) for name in names):
        raise _no_header("look like cells of a record, such as e-mail addresses or account numbers")


def check_names_beside_cells(table: pa.Table) -> None:
    """Refuse names some of which are numbers or dates, and some of which are cells of their own columns.

    A number alone is no sign, since a column may be called by a year.
    """
    if may_be_cells(table.column_names) and any(_is_cell(name, table.column(name)) for name in table.column_names):
        raise _no_header("are numbers, dates and values of their own columns, as the cells of a record are")


def _is_cell(name: str, column: pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([chunk.dictionary for chunk in column.chunks])
    return bool(pa.types.is_string(column.type) and pc.any(pc.equal(column, name)).as_py())


def _no_header(what: str) -> InputError:
    return InputError(
        f"the names of the columns {what}. Add a header to the table, or name the line or row that holds it with "
        "--header-row, or header_row in [input]."
    )
