"""How a finished CSV release is read: as its certificate says, or as its own bytes and the policy tell.

A release is written as its policy says, and its certificate records how. Without a certificate, or if the file is no
longer the certified one, the file is looked at: a byte order mark names its encoding, text that is UTF-8 is read as
UTF-8, and otherwise the policy decides. The separator is the one by which the header has the quasi-identifiers.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.policy import InputOptions, Policy
from sfumato.tables.decimal_commas import shows_commas
from sfumato.tables.locations import FileLocation, Location
from sfumato.tables.sources.csv_source import SEPARATORS
from sfumato.tables.sources.source import check_readable, is_text_file, kind_of_file, open_location
from sfumato.tables.sources.text_stream import is_text_in, open_bytes, open_text

LONGEST_HEADER = 1 << 20
NOT_UTF_8 = b"\0\x1b"  # text of other encodings, UTF-16 and those of seven bits, may be ASCII with these characters
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def release_options(
    location: Location,
    policy: Policy,
    certificate: Mapping[str, Any] | None,
    *,
    given: Mapping[str, Any] | None = None,
    table: int = 0,
) -> InputOptions:
    """Return how a table of a finished release is read.

    given: what the caller says about reading, beside the policy that the release is judged by. table: 1 for the second
    of two.
    """
    given = given or {}
    if certificate is None:
        return _looked_at(location, policy.foreign_release_options, policy, given)
    options = InputOptions(
        separator=given.get("separator") or _section(certificate, "input").get("separator", ","),
        max_expansion=policy.input.max_expansion,
        disarmed=_section(certificate, "release").get("formulas") == "disarm",
    )
    files = certificate["files"]
    entry = files[table] if table < len(files) else {}
    if "text" not in entry or not isinstance(location, FileLocation):
        return options  # another kind of table, or of a version that wrote CSV in UTF-8 alone
    text = entry["text"]
    options = replace(
        options,
        separator=text["separator"],
        encoding=text["encoding"],
        comma_columns=frozenset(text.get("numbers", ())),
    )
    return options if _has_size(location.path, entry["bytes"]) else _looked_at(location, options, policy, given)


def _section(certificate: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = certificate["policy"].get(name, {})
    return section if isinstance(section, Mapping) else {}


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return True  # the reader says what is wrong with the file


def _looked_at(location: Location, options: InputOptions, policy: Policy, given: Mapping[str, Any]) -> InputOptions:
    """Return how a file is read that no certificate describes. options: how it would be read without looking."""
    if not isinstance(location, FileLocation) or not is_text_file(location.path):
        return options
    check_readable(location.path)
    suffix, compression = kind_of_file(location.path)
    named = policy.written_text(tabs=suffix == ".tsv")
    written = policy.release.encoding if "encoding" in policy.release.model_fields_set else None
    encodings = (given.get("encoding"), written, options.encoding)
    try:
        options = replace(
            options, encoding=_encoding(location.path, compression, options, list(filter(None, encodings)))
        )
        separators = filter(None, (given.get("separator"), named.separator, options.separator, *SEPARATORS))
        options = replace(options, separator=_separator(location.path, compression, options, policy, separators))
    except (OSError, InputError):
        return options  # the reader says what is wrong with the file
    if "," not in (policy.release.decimal, policy.input.decimal) and not options.comma_columns:
        return options
    return replace(options, comma_columns=_comma_columns(location, options, policy))


def _encoding(path: Path, compression: str | None, options: InputOptions, named: list[str]) -> str:
    """Return the encoding of a file. named: what the policy gives, for text that neither says nor shows it."""
    with open_bytes(path, compression) as content:
        beginning = content.read(len(codecs.BOM_UTF32_LE))
    for mark, encoding in _MARKS:
        if beginning.startswith(mark):
            return encoding
    if is_text_in(path, "utf-8", compression, options.max_expansion, without=NOT_UTF_8):
        return "utf-8"
    fitting = (name for name in named if is_text_in(path, name, compression, options.max_expansion))
    return next(fitting, named[-1])


def _separator(
    path: Path, compression: str | None, options: InputOptions, policy: Policy, separators: Iterable[str]
) -> str:
    """Return the first separator by which the header of a file has all quasi-identifiers; else that of the options."""
    with open_text(path, options.encoding, compression, options.max_expansion) as stream:
        header = stream.read(LONGEST_HEADER).decode("utf-8", "replace")
    wanted = set(policy.quasi_identifiers)
    for separator in dict.fromkeys(separators):
        try:
            names = next(csv.reader(io.StringIO(header, newline=""), delimiter=separator), [])
        except csv.Error:
            continue
        if wanted <= set(names):
            return separator
    return options.separator


def _comma_columns(location: FileLocation, options: InputOptions, policy: Policy) -> frozenset[str]:
    """Return the columns that show numbers with commas, among those that are read as numbers.

    These are quasi-identifiers, their bounds, means and medians, and columns of which a requirement needs numbers.
    Other columns keep their text, as in the original that they may be compared with.
    """
    source = open_location(location, replace(options, comma_columns=frozenset()))
    numeric = [name for name in policy.quasi_identifiers if policy.columns[name].implied_type != "categorical"]
    shown = [one for name in numeric for one in (name, *(f"{name}_{added}" for added in policy.added(name)))]
    counted = [
        entry.attribute
        for entry in policy.privacy.sensitive
        if entry.kind == "variance" or entry.parameters().get("distance") == "ordered"
    ]
    certified = sorted(options.comma_columns)
    columns = [name for name in dict.fromkeys([*shown, *counted, *certified]) if name in source.names]
    if not columns:
        return frozenset()
    batch = next(source.batches(columns))
    return frozenset(name for name in columns if shows_commas(batch.column(name)))
