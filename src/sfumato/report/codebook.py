"""The codebook of a release: one offline page that says what every column and every label means.

It is made from the released rows, the policy, the files of its taxonomies, and how the files of the release are
written. So it may go wherever the release may go, and like the report it never receives the original.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.policy import Policy
from sfumato.report.codebook_columns import CodebookColumn, ShownLabel, codebook_columns, separated_columns
from sfumato.report.html import Markup, element, joined, name, name_list, section, table
from sfumato.report.page import PAGE, page
from sfumato.report.result_files import write_text
from sfumato.report.sentences import percent
from sfumato.report.style import RELEASE_STYLE
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.replacement import check_replaceable
from sfumato.tables.targets.staging import check_target
from sfumato.taxonomies.taxonomy import Taxonomy

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "spaces"}


class Codebook:
    """The codebook of a release. ``write`` saves it as a page, ``as_dict`` returns the same for programs."""

    def __init__(
        self,
        columns: Sequence[CodebookColumn],
        separated: Sequence[CodebookColumn],
        files: Sequence[Mapping[str, Any]],
        k: int,
    ) -> None:
        self._columns = columns
        self._separated = separated
        self._records = columns[0].records
        self._files = files
        self._k = k

    @property
    def title(self) -> str:
        """How much the codebook explains, in a few words."""
        return f"{self._records:,} records in {len(self._columns) + len(self._separated):,} columns"

    def as_dict(self) -> dict[str, Any]:
        """The codebook as JSON values: released values, counts of the release, and what the policy says."""
        separated = {"sensitive_columns": [column.as_dict() for column in self._separated]} if self._separated else {}
        return {
            "records": self._records,
            "k": self._k,
            "files": [{key: file[key] for key in ("name", "text") if key in file} for file in self._files],
            "columns": [column.as_dict() for column in self._columns],
            **separated,
        }

    def page(self) -> str:
        """The codebook as one offline HTML page."""
        tables = [("", self._columns), ("second-", self._separated)]
        named = [
            (f"{prefix}column-{number}", column)
            for prefix, columns in tables
            for number, column in enumerate(columns, start=1)
        ]
        files = [file["name"] for file in self._files]
        about = (
            "Every figure on this page is counted in the release itself. Whoever has the release and its policy can "
            "make the same page."
        )
        head = element(
            "header",
            element("p", joined(["Codebook of ", name_list(files, 3)]) if files else "Codebook", class_="eyebrow"),
            element("h1", self.title),
            element("p", about, class_="soft"),
        )
        skip = element("a", "To the columns", href="#columns", class_="skip")
        sections = [
            section("columns", "The columns", self._overview(named)),
            section("labels", "How to read labels", _legend(self._columns, 1 if self._separated else self._k)),
        ]
        if texts := [file for file in self._files if "text" in file]:
            sections.insert(1, section("files", "How the files are written", *map(_file, texts)))
        sections += [self._column(anchor, column) for anchor, column in named]
        return page("Codebook of a release", joined([skip, head, element("main", *sections)]), RELEASE_STYLE)

    def write(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the page, whole or not at all. With ``force`` it replaces any file."""
        target = Path(path)
        check_codebook(target, force=force)
        write_text(self.page(), target)
        return target

    def __repr__(self) -> str:
        return f"<Codebook of {len(self._columns) + len(self._separated):,} columns>"

    def _overview(self, named: Sequence[tuple[str, CodebookColumn]]) -> Markup:
        rows = [
            (element("a", name(column.name), href=f"#{anchor}"), column.role, column.kind, f"{column.different:,}")
            for anchor, column in named
        ]
        return table("All columns in their order", ("column", "role", "type", "different labels"), rows, text=(0, 1, 2))

    def _column(self, anchor: str, column: CodebookColumn) -> Markup:
        content: list[object] = [
            element("p", f"{column.role}, {column.kind}", class_="eyebrow"),
            element("p", column.about),
        ]
        if column.ends is not None:
            content.append(element("p", "From ", name(column.ends[0]), " to ", name(column.ends[1]), "."))
        if column.settings:
            settings = [(element("code", key), text) for key, text in column.settings.items()]
            content.append(table("What the policy says", ("key", "meaning"), settings, text=(0, 1)))
        if column.levels:
            levels = [
                (level.name, f"{level.labels:,}", f"{level.records:,}", percent(level.records / max(self._records, 1)))
                for level in column.levels
            ]
            content.append(table("Levels that records show", ("level", "labels", "records", "share"), levels))
        if column.labels:
            recoded = column.role == "quasi-identifier"
            heads = ("label", "meaning", "records") if recoded else ("value", "records")
            listed = [
                (name(shown.label), *([_meaning(shown)] if recoded else []), f"{shown.records:,}")
                for shown in column.labels
            ]
            caption = "Labels" if recoded else "Values"
            content.append(table(caption, heads, listed, text=(0, 1) if recoded else (0,)))
        if column.further_labels:
            what = "label" if column.role == "quasi-identifier" else "value"
            what += "s" if column.further_labels > 1 else ""
            more = " more" if column.labels else ""
            sentence = f"{column.further_labels:,}{more} {what} in {column.further_records:,} records."
            content.append(element("p", sentence, class_="soft"))
        return section(anchor, column.name, *content)


def _meaning(shown: ShownLabel) -> Markup:
    meaning = shown.meaning
    if not meaning.values:
        return joined([meaning.text])
    values = [*meaning.values, *([""] * meaning.further)]
    return joined([meaning.text, ": ", name_list(values, len(meaning.values))])


def _file(file: Mapping[str, Any]) -> Markup:
    text = file["text"]
    marked = codecs.lookup(text["encoding"]).name == "utf-8-sig"
    encoding = "UTF-8 with a byte order mark" if marked else text["encoding"]
    separator = SEPARATORS.get(text["separator"], f"the character {text['separator']}")
    decimal = "a comma" if text["decimal"] == "," else "a point"
    return element(
        "p",
        name(file["name"]),
        f" is text in the encoding {encoding}. Its cells are separated by {separator}. Its numbers have {decimal} "
        "before their decimal places. An empty cell is a missing value.",
    )


def _legend(columns: Sequence[CodebookColumn], k: int) -> Markup:
    """What the marks in labels mean, as far as they occur."""
    labels = [shown.label for column in columns if column.role == "quasi-identifier" for shown in column.labels]
    texts = [label for label in labels if label is not None]
    entries: dict[str, str] = {}
    if any(text[:1] == "[" for text in texts):
        entries["[a..b]"] = "any value from a to b; a and b are included"
    if "*" in texts:
        entries["*"] = (
            "any value of the column: the label says nothing. In a class with it, a value may also be missing"
        )
    if None in labels:
        entries["null"] = "the record has no value, and had none in the original. In a text file the cell is empty"
    at_least = f" At least {k:,} records show the same in all quasi-identifiers together." if k > 1 else ""
    text = f"A label stands for all values that it holds; the value of a record is one of them.{at_least}"
    listed = [
        joined([element("dt", element("code", mark)), element("dd", meaning)]) for mark, meaning in entries.items()
    ]
    return joined([element("p", text), element("dl", *listed) if listed else ""])


def codebook_of(
    source: Source,
    second: Source | None,
    policy: Policy,
    taxonomies: Mapping[str, Taxonomy],
    files: Sequence[Mapping[str, Any]] = (),
) -> Codebook:
    """Make the codebook of a finished release.

    second: the table of sensitive values, if there is one. files: the entries of the certificate.
    """
    commas = [frozenset(file.get("text", {}).get("numbers", ())) for file in files]
    first, other = (commas[number] if number < len(commas) else frozenset() for number in range(2))
    columns = codebook_columns(source, policy, taxonomies, first, separated=second is not None)
    return Codebook(columns, [] if second is None else separated_columns(second, policy, other), files, policy.k)


def check_codebook(target: Path, *, force: bool = False) -> None:
    """Refuse a target that cannot hold a codebook, before any work is done."""
    check_target(target)
    check_replaceable(target, "page", PAGE, force=force)
