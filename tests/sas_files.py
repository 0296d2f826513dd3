"""Files of SAS, written by the C library inside pyreadstat, which offers this to C alone."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

TEXT, NUMBER = 0, 5  # types of the library
WIDTH = 16  # bytes of a text


def write_sas7bdat(path: Path, formats: Mapping[str, str | None], rows: Sequence[Iterable[Any]]) -> Path:
    """Write a table. formats: by column, such as DATE9; None for plain numbers, and "$" for text."""
    library = _library()
    written = bytearray()

    @ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    def take(content: int, size: int, _: int) -> int:
        written.extend(ctypes.string_at(content, size))
        return size

    pointer = ctypes.c_void_p
    library.readstat_writer_init.restype = library.readstat_add_variable.restype = pointer
    writer = pointer(library.readstat_writer_init())
    library.readstat_set_data_writer(writer, take)
    variables = []
    for name, kind in formats.items():
        stored = (TEXT, WIDTH) if kind == "$" else (NUMBER, 8)
        variable = pointer(library.readstat_add_variable(writer, name.encode(), stored[0], ctypes.c_size_t(stored[1])))
        if kind not in (None, "$"):
            library.readstat_variable_set_format(variable, kind.encode())
        variables.append(variable)
    errors = [library.readstat_begin_writing_sas7bdat(writer, None, ctypes.c_long(len(rows)))]
    for row in rows:
        errors.append(library.readstat_begin_row(writer))
        for variable, cell in zip(variables, row, strict=True):
            if cell is None:
                errors.append(library.readstat_insert_missing_value(writer, variable))
            elif isinstance(cell, str):
                errors.append(library.readstat_insert_string_value(writer, variable, cell.encode()))
            else:
                errors.append(library.readstat_insert_double_value(writer, variable, ctypes.c_double(cell)))
        errors.append(library.readstat_end_row(writer))
    errors.append(library.readstat_end_writing(writer))
    library.readstat_writer_free(writer)
    assert set(errors) == {0}
    path.write_bytes(written)
    return path


def _library() -> Any:
    from pyreadstat import _readstat_writer

    library = ctypes.CDLL(_readstat_writer.__file__)
    if not hasattr(library, "readstat_begin_writing_sas7bdat"):
        pytest.skip("this build of pyreadstat keeps its C functions to itself")
    return library
