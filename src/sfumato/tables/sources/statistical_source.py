"""Read files of SPSS, Stata and SAS, with their value labels, missing values, dates and times.

The library gives a file in parts of rows. All parts are read once when the file is opened: only then is it known which
columns hold whole numbers, and which ones their labels describe.
"""

from __future__ import annotations

import codecs
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import InputError, ReadingWarning, UsageError
from sfumato.files.crash_probe import crashes
from sfumato.tables.coding.arrow_arrays import from_numpy, from_texts
from sfumato.tables.sources.source_batches import checked_names, normalize_batches
from sfumato.tables.sources.time_formats import NumberFacts, time_format
from sfumato.tables.sources.unchanged_files import UnchangedFiles
from sfumato.tables.sources.value_labels import LabelledColumn

# The program of a file by its suffix, and the library's function that reads it.
PROGRAMS = {
    ".sav": ("spss", "read_sav"),
    ".zsav": ("spss", "read_sav"),
    ".por": ("spss", "read_por"),
    ".dta": ("stata", "read_dta"),
    ".sas7bdat": ("sas", "read_sas7bdat"),
    ".xpt": ("sas", "read_xport"),
}
# The header of a damaged file may crash the library. Rows were never seen to.
PROBE = """
import sys, pyreadstat
path, function, *encoding = sys.argv[1:]
options = {"encoding": encoding[0]} if encoding else {}
getattr(pyreadstat, function)(path, metadataonly=True, output_format="dict", **options)
"""
CELLS = 1 << 20  # that are in memory at once as Python objects, approximately
SHOWN = 5  # columns that a warning names


class StatisticalSource:
    """A file of SPSS, Stata or SAS.

    labels: whether columns are read by their value labels, or the names of those that are. encoding: that of text, if
    it is not the one that the file names.
    """

    text = False

    def __init__(self, path: Path, *, labels: bool | Sequence[str] = True, encoding: str | None = None) -> None:
        self.kind, function = PROGRAMS[path.suffix.lower()]
        self._path = path
        self._where = f"the file {str(path)!r}"
        self._unchanged = UnchangedFiles.of(path)
        self._read_rows = _reader(function, self._where)
        self._options: dict[str, Any] = {"output_format": "dict", "disable_datetime_conversion": True}
        if encoding is not None and function != "read_por":  # a portable file has its own character set
            self._options["encoding"] = codecs.lookup(encoding).name
        if crashes(PROBE, path, function, *([self._options["encoding"]] if "encoding" in self._options else [])):
            raise self._damaged()
        with self._reading():
            _, stored = self._read_rows(str(path), metadataonly=True, **self._options)
        self.names = checked_names([name or "" for name in stored.column_names], self._where)
        self.descriptions: dict[str, str] = {
            name: label for name, label in stored.column_names_to_labels.items() if label and label.strip()
        }
        self._numbers = {
            name: NumberFacts(kind, time_format(self.kind, stored.original_variable_types[name]))
            for name, kind in stored.readstat_variable_types.items()
            if not kind.startswith("string")
        }
        self._labelled = self._with_labels(stored.variable_value_labels, labels)
        self.rows: int | None = self._inspect()
        self.types = {name: self._type(name) for name in self.names}
        self._warn()

    @property
    def read_by_labels(self) -> tuple[str, ...]:
        """The columns whose values are labels."""
        return tuple(name for name in self.names if name in self._labelled and self._labelled[name].by_labels)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        typed = map(self._typed, self._unchanged.during(self._stored(columns)))
        return normalize_batches(typed, columns, self.types, self._where)

    def _with_labels(
        self, of_columns: Mapping[str, Mapping[float | str, str | None]], wanted: bool | Sequence[str]
    ) -> dict[str, LabelledColumn]:
        """Return the columns that may be read by their labels. Dates and times are not: labels name exceptions."""
        if wanted is False:
            return {}
        named = () if wanted is True else wanted
        for name in named:
            if name not in self.names:
                raise UsageError.unknown_column(name, "labels in [input]", self.names)
            if name not in of_columns or self._is_time(name):
                raise UsageError(
                    f"labels in [input] names the column {name!r}, whose values have no labels in {self._where}. "
                    "Remove it from the list."
                )
        return {
            name: LabelledColumn(of_columns[name], asked=wanted is not True)
            for name in self.names
            if name in of_columns and not self._is_time(name) and (wanted is True or name in named)
        }

    def _is_time(self, name: str) -> bool:
        return name in self._numbers and self._numbers[name].time is not None

    def _inspect(self) -> int:
        """Read all rows that decide the types of columns, and return how many rows there are."""
        inspected = list(dict.fromkeys([*self._numbers, *self._labelled])) or [self.names[0]]
        rows = 0
        for batch in self._unchanged.during(self._stored(inspected)):
            rows += batch.num_rows
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                if name in self._numbers:
                    self._numbers[name].see(column)
                if name in self._labelled:
                    self._labelled[name].see(column)
        return rows

    def _type(self, name: str) -> pa.DataType:
        if name not in self._numbers or (name in self._labelled and self._labelled[name].by_labels):
            return pa.string()
        return self._numbers[name].type

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name in self._labelled and self._labelled[name].by_labels:
                columns.append(self._labelled[name].texts(column))
            else:
                columns.append(self._numbers[name].typed(column) if name in self._numbers else column)
        return pa.RecordBatch.from_arrays(columns, batch.schema.names)

    def _stored(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns as the file stores them: numbers as doubles, and text. Missing values are null.

        Empty text is null too: Stata and SAS have no other missing text, and SPSS fills text with spaces.
        """
        most = max(CELLS // len(columns), 1)
        offset, rows = 0, most
        while rows == most:
            with self._reading():
                cells, _ = self._read_rows(
                    str(self._path), usecols=list(columns), row_offset=offset, row_limit=most, **self._options
                )
            rows = len(next(iter(cells.values())))
            offset += rows
            if rows:
                arrays = [self._array(name, cells[name]) for name in columns]
                yield pa.RecordBatch.from_arrays(arrays, list(columns))

    def _array(self, name: str, cells: list[Any]) -> pa.Array:
        if name not in self._numbers:
            return from_texts([cell or None for cell in cells])
        numbers = np.array(cells, np.float64)
        return from_numpy(numbers, np.isnan(numbers))

    def _warn(self) -> None:
        """Say once for all columns what reading by labels, or by dates, could not do."""
        labelled = self._labelled.items()
        asked = {name for name, column in labelled if column.by_labels}
        without = {name: column.unlabelled for name, column in labelled if name in asked and column.unlabelled}
        joined = {name: column.joined for name, column in labelled if name in asked and column.joined}
        numbers = {name: column.labelled for name, column in labelled if name not in asked and column.labelled}
        beyond = [name for name, facts in self._numbers.items() if facts.beyond_time and facts.time is not None]
        if without:
            self._say(f"has values without a label, which keep their codes as text, in {_counted(without)}")
        if joined:
            self._say(
                f"has values that share their label with another one, and become the same value, in {_counted(joined)}."
                " Set labels = false in [input], or --labels off, to keep all codes apart"
            )
        if numbers:
            self._say(
                f"has labels for fewer than half of the values of {_counted(numbers)}: the codes are read. If labelled "
                "codes mean that a value is missing, write them into nulls of the column; to read columns by their "
                "labels all the same, list all such columns in labels of [input]"
            )
        if beyond:
            self._say(
                f"has dates or times that no calendar or clock has, in {_listed(list(map(repr, beyond)))}: the stored "
                "numbers are read"
            )

    def _say(self, remark: str) -> None:
        warnings.warn(f"{self._where} {remark}.", ReadingWarning, stacklevel=2)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        import pyreadstat

        try:
            yield
        except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, UnicodeError) as error:
            if isinstance(error, UnicodeError) or "convert string" in str(error):
                raise InputError(
                    f"{self._where} has text that is not in the encoding that it names, or that was given. Set "
                    "--encoding, or encoding in [input], to that of the file, such as 'cp1252'."
                ) from None
            raise self._damaged() from None

    def _damaged(self) -> InputError:
        return InputError(
            f"{self._where} cannot be read as a file of {_NAMES[self.kind]}: it is damaged, encrypted, or not what its "
            "name says. Save it again."
        )


_NAMES = {"spss": "SPSS", "stata": "Stata", "sas": "SAS"}


def _reader(function: str, where: str) -> Callable[..., tuple[dict[str, list[Any]], Any]]:
    try:
        import pyreadstat
    except ImportError:
        raise InputError(
            f"{where} is a file of SPSS, Stata or SAS, and the package that reads such files is missing. Install it "
            "with: pip install 'sfumato[statistics]'"
        ) from None
    read: Callable[..., tuple[dict[str, list[Any]], Any]] = getattr(pyreadstat, function)
    return read


def _counted(columns: Mapping[str, int]) -> str:
    return _listed([f"{name!r} ({count:,})" for name, count in columns.items()])


def _listed(items: Sequence[str]) -> str:
    """List the first columns, and say how many others there are."""
    more = len(items) - SHOWN
    shown = ", ".join(items[:SHOWN])
    return f"{'column' if len(items) == 1 else 'columns'} {shown}" + (f" and {more:,} others" if more > 0 else "")
