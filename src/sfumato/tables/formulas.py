"""Cells of CSV that a spreadsheet takes for formulas: how many there are, and how they are disarmed.

Such a cell begins with =, +, -, @, a tab or a carriage return and is no number. A spreadsheet may run it when somebody
opens the file. Disarmed, it begins with an apostrophe, which spreadsheets show as text. A cell that begins with
apostrophes and then like a formula gets one more, so that no two values become the same, and reading a disarmed release
gives the values back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.errors import OutputError

APOSTROPHE = "'"
FORMULA = r"^[=+\-@\t\r]"
GUARDED = r"^'*[=+\-@\t\r]"  # a formula, or one behind apostrophes
NUMBER = r"^'*[+-]?([0-9]+([.,][0-9]+)*|[.,][0-9]+)([eE][+-]?[0-9]+)?$"


class FormulaCells:
    """Counts the cells of a release that a spreadsheet would take for formulas, and disarms them if that is wanted."""

    def __init__(self, *, disarm: bool) -> None:
        self._disarm = disarm
        self._counts: dict[str, int] = {}

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse to disarm a table whose header has a formula: another name would be another column."""
        formulas = [name for name in names if re.match(FORMULA, name) and not re.match(NUMBER, name)]
        if formulas and self._disarm:
            raise OutputError(
                f"the name of the column {formulas[0]!r} begins like a formula, and names are not disarmed. Rename the "
                "column, or write another format than CSV."
            )

    def passed(self, table: pa.Table) -> pa.Table:
        """Count the formulas among the texts of a table, and return the table as it is to be written."""
        for index, name in enumerate(table.column_names):
            column = table.column(index)
            if not _is_text(column.type):
                continue
            found = sum(_count(chunk, GUARDED if self._disarm else FORMULA) for chunk in column.chunks)
            if not found:
                continue
            self._counts[name] = self._counts.get(name, 0) + found
            if self._disarm:
                chunks = [_with_values(chunk, _disarmed) for chunk in column.chunks]
                table = table.set_column(index, name, pa.chunked_array(chunks, column.type))
        return table

    def warnings(self) -> list[str]:
        """Say in which columns there are how many formulas, and what was done or can be done about them."""
        if not self._counts:
            return []
        columns = ", ".join(f"{count:,} in {name!r}" for name, count in self._counts.items())
        if self._disarm:
            return [
                f"cells that a spreadsheet would take for formulas were written with an apostrophe first: {columns}"
            ]
        return [
            f"a spreadsheet would take cells of the CSV file for formulas and may run them: {columns}. Write them with "
            'an apostrophe first (formulas = "disarm" in the policy, or --formulas disarm), or write Parquet or Excel'
        ]


def rearmed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Give the texts of a batch of a disarmed release their values back."""
    columns = [_with_values(column, _rearmed) if _is_text(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _is_text(kind: pa.DataType) -> bool:
    return bool(types.is_string(kind.value_type if types.is_dictionary(kind) else kind))


def _begin(values: pa.Array, pattern: str) -> pa.Array:
    """Return for each value whether it begins like this and is no number."""
    return pc.and_not(pc.match_substring_regex(values, pattern), pc.match_substring_regex(values, NUMBER))


def _count(chunk: pa.Array, pattern: str) -> int:
    if not types.is_dictionary(chunk.type):
        return pc.sum(_begin(chunk, pattern)).as_py() or 0
    formulas = _begin(chunk.dictionary, pattern)
    if not pc.any(formulas).as_py():
        return 0  # the usual case, told by the distinct values alone
    return pc.sum(formulas.take(chunk.indices)).as_py() or 0


def _with_values(array: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    if types.is_dictionary(array.type):
        return pa.DictionaryArray.from_arrays(array.indices, change(array.dictionary), ordered=array.type.ordered)
    return change(array)


def _disarmed(values: pa.Array) -> pa.Array:
    # A join with the apostrophe would make a scalar of it, and PyArrow loads pandas for that.
    longer = pc.replace_substring_regex(values, r"\A", APOSTROPHE, max_replacements=1)
    return pc.if_else(_begin(values, GUARDED), longer, values)


def _rearmed(values: pa.Array) -> pa.Array:
    disarmed = pc.and_(_begin(values, GUARDED), pc.starts_with(values, APOSTROPHE))
    return pc.if_else(disarmed, pc.utf8_slice_codeunits(values, 1), values)
