"""The codebook of a release: one offline page that says what every column and every label means.

It is made from the released rows, the policy, the files of its taxonomies, and how the files of the release are
written. So it may go wherever the release may go, and like the report it never receives the original.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.policy import Policy
from sfumato.report.codebook_columns import CodebookColumn, ShownLabel, codebook_columns, separated_columns
from sfumato.report.html import Markup, element, joined, name, name_list, table
from sfumato.report.page import PAGE, page, with_contents
from sfumato.report.result_files import write_text
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.replacement import check_replaceable
from sfumato.tables.targets.staging import check_target
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.texts import ENGLISH, Texts, texts_in

SEPARATORS = {
    ",": "codebook.file.commas",
    ";": "codebook.file.semicolons",
    "\t": "codebook.file.tabs",
    "|": "codebook.file.bars",
    " ": "codebook.file.spaces",
}


@dataclass(frozen=True)
class DescribedColumns:
    """The columns of a release in the words of one language; ``separated`` are those of its second table."""

    columns: Sequence[CodebookColumn]
    separated: Sequence[CodebookColumn]

    def __len__(self) -> int:
        return len(self.columns) + len(self.separated)


class Codebook:
    """The codebook of a release. ``write`` saves it as a page, ``as_dict`` returns the same for programs."""

    def __init__(
        self,
        described: DescribedColumns,
        english: DescribedColumns,
        files: Sequence[Mapping[str, Any]],
        policy: Policy,
    ) -> None:
        self._described = described
        self._english = english
        self._records = described.columns[0].records
        self._files = files
        self._policy = policy
        self._say = texts_in(policy.about.language)

    @property
    def title(self) -> str:
        """How much the codebook explains, in a few English words."""
        return self._title_in(ENGLISH)

    def as_dict(self) -> dict[str, Any]:
        """The codebook as JSON values: released values, counts of the release, and what the policy says."""
        columns, other = self._english.columns, self._english.separated
        separated = {"sensitive_columns": [column.as_dict() for column in other]} if other else {}
        return {
            "records": self._records,
            "k": self._policy.k,
            "files": [{key: file[key] for key in ("name", "text") if key in file} for file in self._files],
            "columns": [column.as_dict() for column in columns],
            **separated,
        }

    def page(self) -> str:
        """The codebook as one offline HTML page."""
        say = self._say
        tables = [("", self._described.columns), ("second-", self._described.separated)]
        named = [
            (f"{prefix}column-{number}", column)
            for prefix, columns in tables
            for number, column in enumerate(columns, start=1)
        ]
        files = [file["name"] for file in self._files]
        eyebrow = say.parts("codebook.of", files=name_list(files, say, 3)) if files else [say("codebook.alone")]
        about, title = self._policy.about, self._title_in(say)
        head = element(
            "header",
            element("p", *eyebrow, class_="eyebrow"),
            element("h1", about.title or title),
            element("p", title, class_="purpose") if about.title else "",
            element("p", say("codebook.about"), class_="soft"),
        )
        skip = element("a", say("codebook.skip"), href="#columns", class_="skip")
        sections = [("columns", say("codebook.section.columns"), self._overview(named))]
        if texts := [file for file in self._files if "text" in file]:
            written = joined([_file(file, say) for file in texts])
            sections.append(("files", say("codebook.section.files"), written))
        k = 1 if self._described.separated else self._policy.k
        sections.append(("labels", say("codebook.section.labels"), _legend(self._described.columns, k, say)))
        sections += [(anchor, column.name, self._column(column)) for anchor, column in named]
        return page(say("codebook.page_title"), joined([skip, head, with_contents(sections, say)]), say)

    def write(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the page, whole or not at all. With ``force`` it replaces any file."""
        target = Path(path)
        check_codebook(target, force=force)
        write_text(self.page(), target)
        return target

    def __repr__(self) -> str:
        return f"<Codebook of {len(self._described):,} columns>"

    def _title_in(self, say: Texts) -> str:
        return say(
            "codebook.title",
            records=say("codebook.records", count=self._records),
            columns=say("codebook.columns", count=len(self._described)),
        )

    def _overview(self, named: Sequence[tuple[str, CodebookColumn]]) -> Markup:
        say = self._say
        rows = [
            (element("a", name(column.name), href=f"#{anchor}"), column.role, column.kind, say.number(column.different))
            for anchor, column in named
        ]
        heads = ("codebook.overview.column", "codebook.overview.role", "codebook.overview.type")
        shown = [*map(say, heads), say("codebook.overview.different")]
        return table(say("codebook.overview.caption"), shown, rows, text=(0, 1, 2))

    def _column(self, column: CodebookColumn) -> Markup:
        say = self._say
        records = say("codebook.column.records")
        content: list[object] = [
            element("p", say("codebook.column.role_and_type", role=column.role, type=column.kind), class_="eyebrow"),
            element("p", column.about),
        ]
        if column.ends is not None:
            low, high = map(name, column.ends)
            content.append(element("p", *say.parts("codebook.column.ends", low=low, high=high)))
        if column.settings:
            settings = [(element("code", key), text) for key, text in column.settings.items()]
            heads = (say("codebook.column.key"), say("codebook.column.meaning"))
            content.append(table(say("codebook.column.settings"), heads, settings, text=(0, 1)))
        if column.levels:
            levels = [
                (
                    level.name,
                    say.number(level.labels),
                    say.number(level.records),
                    say.percent(level.records / max(self._records, 1)),
                )
                for level in column.levels
            ]
            share = say("codebook.column.share")
            level_heads = (say("codebook.column.level"), say("codebook.column.labels_of_level"), records, share)
            content.append(table(say("codebook.column.levels"), level_heads, levels))
        if column.labels:
            content.append(self._labels(column, records))
        if column.further_labels:
            content.append(element("p", self._further(column), class_="soft"))
        return joined(content)

    def _labels(self, column: CodebookColumn, records: str) -> Markup:
        """The listed labels, with their meanings where they have any but themselves."""
        say, null = self._say, self._say("report.null")
        if not column.recoded:
            values = [(name(shown.label, null), say.number(shown.records)) for shown in column.labels]
            return table(say("codebook.column.values"), (say("codebook.column.value"), records), values)
        heads = (say("codebook.column.label"), say("codebook.column.meaning"), records)
        listed = [(name(shown.label, null), _meaning(shown, say), say.number(shown.records)) for shown in column.labels]
        return table(say("codebook.column.labels"), heads, listed, text=(0, 1))

    def _further(self, column: CodebookColumn) -> str:
        if column.recoded:
            key = "codebook.column.more_labels" if column.labels else "codebook.column.further_labels"
        else:
            key = "codebook.column.more_values" if column.labels else "codebook.column.further_values"
        return self._say(key, count=column.further_labels, records=column.further_records)


def _meaning(shown: ShownLabel, say: Texts) -> Markup:
    meaning = shown.meaning
    if not meaning.values:
        return joined([meaning.text])
    values = name_list([*meaning.values, *([""] * meaning.further)], say, len(meaning.values))
    return joined(say.parts("codebook.meaning.listed", text=meaning.text, values=values))


def _file(file: Mapping[str, Any], say: Texts) -> Markup:
    text = file["text"]
    marked = codecs.lookup(text["encoding"]).name == "utf-8-sig"
    separator = text["separator"]
    named = SEPARATORS.get(separator)
    return element(
        "p",
        *say.parts(
            "codebook.file.text",
            file=name(file["name"]),
            encoding=say("codebook.file.marked") if marked else text["encoding"],
            separator=say("codebook.file.character", character=separator) if named is None else say(named),
            decimal=say("codebook.file.comma" if text["decimal"] == "," else "codebook.file.point"),
        ),
    )


def _legend(columns: Sequence[CodebookColumn], k: int, say: Texts) -> Markup:
    """What the marks in labels mean, as far as they occur."""
    labels = [shown.label for column in columns if column.recoded for shown in column.labels]
    texts = [label for label in labels if label is not None]
    entries: dict[str, str] = {}
    if any(text[:1] == "[" for text in texts):
        entries["[a..b]"] = say("codebook.legend.range")
    if "*" in texts:
        entries["*"] = say("codebook.legend.whole")
    if None in labels:
        entries[say("report.null")] = say("codebook.legend.null")
    at_least = [say("codebook.legend.at_least", k=k)] if k > 1 else []
    text = " ".join([say("codebook.legend.about"), *at_least])
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

    def described(say: Texts) -> DescribedColumns:
        columns = codebook_columns(source, policy, taxonomies, first, say, separated=second is not None)
        return DescribedColumns(columns, [] if second is None else separated_columns(second, policy, other, say))

    english = described(ENGLISH)
    own = texts_in(policy.about.language)
    return Codebook(english if own is ENGLISH else described(own), english, files, policy)


def check_codebook(target: Path, *, force: bool = False) -> None:
    """Refuse a target that cannot hold a codebook, before any work is done."""
    check_target(target)
    check_replaceable(target, "page", PAGE, force=force)
