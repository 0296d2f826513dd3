"""The first rows of a table and how they are read. A file of any size is read from its beginning only."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.app.date_cells import without_midnight
from sfumato.errors import InputError
from sfumato.evaluation.linkability.column_facts import ColumnValues, TextSettings, find_text_settings, moment_of
from sfumato.evaluation.linkability.sentinels import Sentinel, suspected_sentinels
from sfumato.policy import InputSettings
from sfumato.policy.input_settings import InputOptions
from sfumato.proposal.text_format import find_text_format
from sfumato.tables.coding.unread_numbers import unread_numbers
from sfumato.tables.coding.value_order import text_of
from sfumato.tables.sources.excel_source import header_index
from sfumato.tables.sources.source import check_readable, is_text_file, kind_of_file, open_source
from sfumato.tables.sources.text_stream import open_bytes

SHOWN = 20  # records
BLOCK = 1 << 20  # bytes of text that are read
SAMPLED = 1000  # records from which marks and tokens are guessed
HEADER_AMONG = 12  # lines that can be chosen as the header
MOST_CELLS = 60  # columns that are shown; the others are counted
LONGEST_CELL = 131_072  # characters, as the reader of CSV allows
EXCEL = (".xlsx", ".xls", ".ods")


@dataclass(frozen=True)
class Preview:
    """What the beginning of a table looks like under the settings that the user chose; the others are guessed.

    kind: text, excel or typed. lines: rows as they stand in the file, from its first; empty for a typed table.
    header: the number of the line with the names, from 1. unread: places of cells that do not read as the numbers or
    dates that their column holds, as record and column. missing: places of cells that read as missing.
    """

    kind: str
    names: tuple[str, ...]
    records: tuple[tuple[str | None, ...], ...]
    lines: tuple[tuple[str | None, ...], ...] = ()
    header: int = 1
    settings: InputSettings = field(default_factory=InputSettings)
    sheets: tuple[str, ...] = ()
    unread: frozenset[tuple[int, int]] = frozenset()
    missing: frozenset[tuple[int, int]] = frozenset()
    sentinels: tuple[Sentinel, ...] = ()
    fault: str = ""
    """Why the rest cannot be read as a table; empty if it can."""


def preview(path: Path, chosen: Mapping[str, Any], column_nulls: Mapping[str, Sequence[str]] | None = None) -> Preview:
    """Read the beginning of a table. chosen: settings of ``[input]``; column_nulls: texts that mean missing."""
    check_readable(path)
    suffix, _ = kind_of_file(path)
    if is_text_file(path):
        return _marked(_text_preview(path, chosen), chosen, column_nulls or {})
    if suffix in EXCEL:
        return _marked(_excel_preview(path, chosen), chosen, column_nulls or {})
    return _typed_preview(path, chosen)


def _text_preview(path: Path, chosen: Mapping[str, Any]) -> Preview:
    suffix, compression = kind_of_file(path)
    header = int(chosen.get("header_row") or 1)
    found = find_text_format(path, chosen.get("encoding"), chosen.get("separator"), header, most_bytes=BLOCK)
    encoding = found.encoding or "utf-8"
    separator = found.separator or ("\t" if suffix == ".tsv" else ",")
    with open_bytes(path, compression) as content:
        try:
            block = content.read(BLOCK)
        except OSError:
            raise InputError("the file is damaged: its compressed text cannot be read. Get it again.") from None
    text = block.decode(encoding, errors="replace").removeprefix("\ufeff")
    if len(block) == BLOCK and "\n" in text:
        text = text[: text.rfind("\n") + 1]
    csv.field_size_limit(LONGEST_CELL)
    settings = _settings({**chosen, "encoding": encoding, "separator": separator})
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        rows = [tuple(cell for cell in row) for row in islice(reader, header + SAMPLED)]
    except csv.Error:
        return Preview("text", (), (), settings=settings, header=header, fault="a cell is longer than any reader takes")
    lines = tuple(rows[: max(header, HEADER_AMONG) + SHOWN])
    if header > len(rows) or not rows[header - 1]:
        return Preview("text", (), (), lines, header, settings, fault=f"line {header} has no names of columns")
    names = tuple(rows[header - 1])
    below = [row for row in rows[header:] if row]
    ragged = next((number for number, row in enumerate(below, start=1) if len(row) != len(names)), None)
    fault = _fault_of_names(names)
    if ragged is not None and not fault:
        fault = f"record {ragged} has {len(below[ragged - 1])} cells, and the header has {len(names)}"
    width = len(names)
    records = tuple((*row[:width], *[None] * (width - len(row))) for row in below)
    return Preview("text", names, records, lines, header, settings, fault=fault)


def _excel_preview(path: Path, chosen: Mapping[str, Any]) -> Preview:
    try:
        import fastexcel
    except ImportError:
        raise InputError(
            "the package that reads spreadsheets is missing. Install it with: pip install 'sfumato[excel]'"
        ) from None
    asked = chosen.get("header_row")
    try:
        workbook = fastexcel.read_excel(path)
        sheets = tuple(workbook.sheet_names)
        sheet = chosen.get("sheet") if chosen.get("sheet") in sheets else sheets[0] if sheets else None
        if sheet is None:
            raise InputError("the workbook has no sheets. Give a file with a table in it.")
        most = SAMPLED + int(asked or 1)
        top = workbook.load_sheet(sheet, header_row=None, skip_rows=0, n_rows=most, dtypes="string").to_arrow()
    except fastexcel.FastExcelError:
        raise InputError(
            "the file cannot be read as a spreadsheet: it is damaged, locked with a password, or not what its name "
            "says. Save it again."
        ) from None
    rows = [tuple(cell and without_midnight(cell) for cell in row.values()) for row in top.to_pylist()]
    header = int(asked) if asked else header_index([list(row) for row in rows]) + 1
    settings = _settings({**chosen, "sheet": chosen.get("sheet")})
    lines = tuple(rows[: max(header, HEADER_AMONG) + SHOWN])
    if header > len(rows):
        return Preview("excel", (), (), lines, header, settings, sheets, fault=f"the sheet has no row {header}")
    names = tuple(cell or "" for cell in rows[header - 1])
    records = tuple(row for row in rows[header:] if any(cell is not None for cell in row))
    return Preview("excel", names, records, lines, header, settings, sheets, fault=_fault_of_names(names))


def _typed_preview(path: Path, chosen: Mapping[str, Any]) -> Preview:
    settings = _settings(chosen)
    source = open_source(path, InputOptions(**{**settings.model_dump(), "layout": None}))
    batch = next(iter(source.batches(source.names)))
    head = pa.Table.from_batches([batch]).slice(0, SHOWN)
    columns = [[None if value is None else text_of(value) for value in column.to_pylist()] for column in head.columns]
    records = tuple(zip(*columns, strict=True)) if columns else ()
    return Preview("typed", tuple(source.names), records, settings=settings)


def _settings(chosen: Mapping[str, Any]) -> InputSettings:
    return InputSettings(**{key: value for key, value in chosen.items() if value is not None})


def _fault_of_names(names: Sequence[str]) -> str:
    empty = next((position for position, name in enumerate(names, start=1) if not name.strip()), None)
    if empty is not None:
        return f"column {empty} has no name"
    repeated = next((position for position, name in enumerate(names) if name in names[:position]), None)
    return "" if repeated is None else f"columns {names.index(names[repeated]) + 1} and {repeated + 1} have one name"


def _marked(seen: Preview, chosen: Mapping[str, Any], column_nulls: Mapping[str, Sequence[str]]) -> Preview:
    """Guess the marks and tokens that the user did not choose, and find the cells that do not read."""
    if not seen.names or len(set(seen.names)) < len(seen.names):
        return replace(seen, records=seen.records[:SHOWN])
    columns = [_values(name, index, seen, column_nulls.get(name, ())) for index, name in enumerate(seen.names)]
    preset = {key: value for key, value in chosen.items() if value is not None and value != ""}
    preset.setdefault("separator", seen.settings.separator)
    found = find_text_settings(columns, preset)
    guessed = {
        "decimal": found.decimal or ".",
        "thousands": found.thousands,
        "nulls": found.nulls,
        "date_format": found.date_format,
    }
    kept = {key: value for key, value in guessed.items() if value is not None}
    settings = InputSettings(**{**seen.settings.model_dump(), **kept})
    unread: set[tuple[int, int]] = set()
    missing: set[tuple[int, int]] = set()
    sentinels: list[Sentinel] = []
    for index, column in enumerate(columns):
        tokens = {*found.nulls, *column_nulls.get(column.name, ())}
        bad = _unread_texts(column, found)
        sentinels += suspected_sentinels(column, found)
        for row, record in enumerate(seen.records[:SHOWN]):
            cell = record[index]
            if cell is None or cell in tokens:
                missing.add((row, index))
            elif cell in bad:
                unread.add((row, index))
    return replace(
        seen,
        records=seen.records[:SHOWN],
        settings=settings,
        unread=frozenset(unread),
        missing=frozenset(missing),
        sentinels=tuple(sentinels),
    )


def _values(name: str, index: int, seen: Preview, nulls: Sequence[str]) -> ColumnValues:
    tokens = set(nulls)
    cells = [record[index] for record in seen.records if record[index] not in tokens]
    counts = Counter("" if cell is None else cell for cell in cells)
    values: list[object] = list(counts)
    numbers = np.fromiter(counts.values(), np.int64, len(counts))
    return ColumnValues(name, pa.string(), True, values, numbers, len(cells))


def _unread_texts(column: ColumnValues, settings: TextSettings) -> frozenset[str]:
    """Return the texts of a column of numbers or dates that are neither."""
    texts = [text for text in column.known(settings)[0] if isinstance(text, str)]
    if not texts or column.kind_of_text(settings) != "text":
        return frozenset()
    numbers = unread_numbers(texts, settings.numbers)
    if numbers is not None:
        return numbers.others
    dated = [text for text in texts if moment_of(text, settings.date_format) is not None]
    return frozenset(texts) - frozenset(dated) if 2 * len(dated) > len(texts) else frozenset()
