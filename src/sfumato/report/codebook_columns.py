"""The columns of a codebook: what the policy says about each, and in how many records it shows which levels and labels.

Everything is counted in the released rows; the original is never here. A group is explained by the values of its
taxonomy only if these are known without the original: from a taxonomy file, which belongs to the policy, or from a
ready-made taxonomy that has the same values for every table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.evaluation.audit.anatomy_audit import COUNT, GROUP, value_counts
from sfumato.evaluation.audit.audit import class_key
from sfumato.evaluation.audit.shown_levels import levels_of_labels
from sfumato.policy import ColumnSettings, Grouping, Policy
from sfumato.releases.certificate import file_name
from sfumato.report.audit_texts import audit_text
from sfumato.report.label_meanings import LabelMeanings, Meaning
from sfumato.report.release_facts import column_values
from sfumato.report.value_cells import ReleasedValuesOfColumn
from sfumato.tables.coding.released_labels import WHOLE
from sfumato.tables.coding.value_order import ascending
from sfumato.tables.decimal_commas import texts_with_exchanged_marks
from sfumato.tables.released_classes import ReleasedClasses, find_classes
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.ready import taxonomy_of_release
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.texts import ENGLISH, Texts

LAST = 1 << 20  # above the number of any level
MOST_LABELS = 100  # of a quasi-identifier that are listed; those with the most records
MOST_KEPT = 20  # values of a kept column that are listed
ROLES = {
    "quasi-identifier": "codebook.role.quasi_identifier",
    "sensitive": "codebook.role.sensitive",
    "other": "codebook.role.other",
    "pseudonym": "codebook.role.pseudonym",
    GROUP: "codebook.role.group",
    COUNT: "codebook.role.count",
}
ABOUT = {
    "quasi-identifier": "codebook.about_role.quasi_identifier",
    "separated": "codebook.about_role.separated",
    "sensitive": "codebook.about_role.sensitive",
    "other": "codebook.about_role.other",
    "pseudonym": "codebook.about_role.pseudonym",
    "min": "codebook.about_role.min",
    "max": "codebook.about_role.max",
    "mean": "codebook.about_role.mean",
    "median": "codebook.about_role.median",
    GROUP: "codebook.about_role.group",
    COUNT: "codebook.about_role.count",
}
TYPES = {
    "categorical": "codebook.type.categorical",
    "numeric": "codebook.type.numeric",
    "date": "codebook.type.date",
}


@dataclass(frozen=True)
class ShownLevel:
    """How many labels and records are on one level."""

    name: str
    labels: int
    records: int


@dataclass(frozen=True)
class ShownLabel:
    """A label, or None for null, with its meaning and its number of records."""

    label: str | None = field(repr=False)
    meaning: Meaning = field(repr=False)
    records: int


@dataclass(frozen=True)
class CodebookColumn:
    """One column of a release.

    recoded: whether it is a quasi-identifier. labels: those that are listed; ``further_labels`` more are not, and
    ``further_records`` have one of these. ends: the smallest and the largest value of a kept column of numbers or
    dates.
    """

    name: str
    recoded: bool
    role: str
    kind: str
    about: str
    settings: dict[str, str]
    levels: list[ShownLevel]
    labels: list[ShownLabel]
    different: int
    further_labels: int = 0
    further_records: int = 0
    ends: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def records(self) -> int:
        """The number of records of the release."""
        return sum(shown.records for shown in self.labels) + self.further_records

    def as_dict(self) -> dict[str, Any]:
        """The column as JSON values."""
        return {
            "name": self.name,
            "role": self.role,
            "type": self.kind,
            "about": self.about,
            "settings": self.settings,
            "levels": [
                {"level": level.name, "labels": level.labels, "records": level.records} for level in self.levels
            ],
            "different_labels": self.different,
            "labels": [_label(shown) for shown in self.labels],
            "further_labels": self.further_labels,
            "further_records": self.further_records,
            **({} if self.ends is None else {"smallest": self.ends[0], "largest": self.ends[1]}),
        }


def _label(shown: ShownLabel) -> dict[str, Any]:
    meaning = shown.meaning
    values = {"values": list(meaning.values), "further_values": meaning.further} if meaning.values else {}
    return {"label": shown.label, "meaning": meaning.text, **values, "records": shown.records}


def codebook_columns(
    source: Source,
    policy: Policy,
    taxonomies: Mapping[str, Taxonomy],
    commas: Collection[str],
    say: Texts,
    *,
    separated: bool,
) -> list[CodebookColumn]:
    """Describe the columns of a finished release, in their order.

    taxonomies: those that are files. commas: the columns whose numbers are written with a decimal comma. separated:
    whether sensitive values are in a second table.
    """
    recoded = say(ABOUT["separated" if separated else "quasi-identifier"])
    key = class_key(policy, source.names)
    classes = find_classes(source, key)
    added = {f"{name}_{kind}": (name, kind) for name in policy.quasi_identifiers for kind in policy.added(name)}
    columns = []
    for name in source.names:
        kept = classes if name in key else find_classes(source, [name])
        values = _values(kept, name, policy, taxonomies)
        if name in policy.quasi_identifiers:
            columns.append(_recoded(values, policy, taxonomies.get(name), recoded, say, commas=name in commas))
        elif name in key:
            of, kind = added[name]
            role, about = say("codebook.role.beside", column=of), say(ABOUT[kind], column=of)
            columns.append(_kept(values, role, about, say, commas=name in commas))
        elif name == GROUP and name not in policy.columns:
            columns.append(_kept_as(GROUP, values, say))
        else:
            columns.append(_kept_as(values.role, values, say, commas=name in commas))
    return columns


def separated_columns(second: Source, policy: Policy, commas: Collection[str], say: Texts) -> list[CodebookColumn]:
    """Describe the columns of the second table of a release, which has the sensitive values of each group."""
    columns = []
    for name in second.names:
        if name in (GROUP, COUNT):
            values = _values(find_classes(second, [name]), name, policy, {})
            columns.append(_kept_as(name, values, say))
        else:
            values = column_values(name, *value_counts(second, name), policy, {})
            columns.append(_kept_as(values.role, values, say, commas=name in commas))
    return columns


def _values(
    classes: ReleasedClasses, name: str, policy: Policy, taxonomies: Mapping[str, Taxonomy]
) -> ReleasedValuesOfColumn:
    records = np.zeros(len(classes.values[name]), np.int64)
    np.add.at(records, classes.shown[name], classes.sizes)
    return column_values(name, classes.values[name], records, policy, taxonomies)


def _recoded(
    values: ReleasedValuesOfColumn, policy: Policy, taxonomy: Taxonomy | None, about: str, say: Texts, *, commas: bool
) -> CodebookColumn:
    column = policy.columns[values.name]
    if column.taxonomy_file is None:  # values of any other taxonomy may come from the original
        labels = [text for text in values.texts if text is not None]
        taxonomy = taxonomy_of_release(column.ready_name, labels, values.name)
    kind = column.implied_type or values.kind
    meanings = LabelMeanings(column, kind, taxonomy, say)
    listed = _most_frequent(values, MOST_LABELS)
    if values.axis is not None:
        spans = values.axis.spans
        plain = values.plain
        listed.sort(key=lambda index: (not plain[index], values.texts[index] is None, *spans[index].tolist()))
    else:
        listed.sort(key=lambda index: meanings.place(values.texts[index]))
    return CodebookColumn(
        values.name,
        True,
        say(ROLES[values.role]),
        say(TYPES[kind]),
        about,
        _settings(column, say),
        _levels(values, column, taxonomy, say),
        [
            ShownLabel(label, meanings.of(label), _records(values, index))
            for index, label in zip(listed, _written(values, listed, commas=commas), strict=True)
        ],
        len(values.texts),
        *_further(values, listed),
    )


def _kept_as(what: str, values: ReleasedValuesOfColumn, say: Texts, *, commas: bool = False) -> CodebookColumn:
    return _kept(values, say(ROLES[what]), say(ABOUT[what]), say, commas=commas)


def _kept(values: ReleasedValuesOfColumn, role: str, about: str, say: Texts, *, commas: bool = False) -> CodebookColumn:
    texts = [text for text in values.texts if text is not None]
    missing, itself = "codebook.meaning.missing_kept", "codebook.meaning.itself"
    ends = None
    if values.axis is not None and texts:
        order, _ = ascending(texts)
        first, last = (values.texts.index(texts[int(order[place])]) for place in (0, -1))
        smallest, largest = _written(values, [first, last], commas=commas)
        ends = smallest or "", largest or ""
    listed = [] if values.role == "pseudonym" else _most_frequent(values, MOST_KEPT)
    if ends is not None and len(texts) > MOST_KEPT:
        listed = [index for index in listed if values.texts[index] is None]
    return CodebookColumn(
        values.name,
        False,
        role,
        say(TYPES[values.kind]),
        about,
        {},
        [],
        [
            ShownLabel(text, Meaning(say(missing if text is None else itself)), _records(values, index))
            for index, text in zip(listed, _written(values, listed, commas=commas), strict=True)
        ],
        len(values.texts),
        *_further(values, listed),
        ends,
    )


def _written(values: ReleasedValuesOfColumn, chosen: Sequence[int], *, commas: bool) -> list[str | None]:
    """The chosen values as the file of the release shows them."""
    texts = [values.texts[index] for index in chosen]
    return texts_with_exchanged_marks(texts) if commas else texts


def _records(values: ReleasedValuesOfColumn, index: int) -> int:
    return int(values.records[index])


def _most_frequent(values: ReleasedValuesOfColumn, most: int) -> list[int]:
    """The values with the most records; ties by name."""
    order = sorted(range(len(values.texts)), key=lambda index: (-_records(values, index), values.texts[index] or ""))
    return order[:most]


def _further(values: ReleasedValuesOfColumn, listed: Sequence[int]) -> tuple[int, int]:
    return len(values.texts) - len(listed), values.total - int(values.records[listed].sum() if listed else 0)


def _levels(
    values: ReleasedValuesOfColumn, column: ColumnSettings, taxonomy: Taxonomy | None, say: Texts
) -> list[ShownLevel]:
    """How many labels and records are on each level, from fine to coarse. Labels that fit several are on the finest."""
    found = levels_of_labels(values.texts, column, taxonomy)
    named: dict[tuple[int, str], list[int]] = {}
    is_range = values.is_range
    for index, text in enumerate(values.texts):
        level = None if found is None else found[index]
        if text is None:
            place = (LAST + 1, say("codebook.level.missing"))
        elif text == WHOLE:
            place = (LAST, say("codebook.level.nothing"))
        elif level is not None:
            place = (level[0], audit_text(column.level_words(level[0]), say))
        elif found is None:
            place = (1, say("codebook.level.ranges")) if is_range[index] else (0, say("codebook.level.single"))
        else:
            place = (LAST - 1, say("codebook.level.other"))
        named.setdefault(place, []).append(index)
    return [
        ShownLevel(name, len(indices), int(values.records[indices].sum()))
        for (_, name), indices in sorted(named.items())
    ]


def _settings(column: ColumnSettings, say: Texts) -> dict[str, str]:
    """What the policy says about a quasi-identifier, by key."""
    described: dict[str, str] = {}
    if column.taxonomy is not None:
        described["taxonomy"] = _taxonomy(column, say)
    if column.round is not None:
        described["round"] = say("codebook.setting.round", width=say.number(column.round, ".12g"))
    if column.bottom is not None:
        described["bottom"] = say("codebook.setting.bottom", bound=say.number(column.bottom, ".12g"))
    if column.top is not None:
        described["top"] = say("codebook.setting.top", bound=say.number(column.top, ".12g"))
    if column.finest is not None:
        described["finest"] = say("codebook.setting.finest", level=audit_text(column.level_words(column.finest), say))
    if column.coarsest is not None:
        level = audit_text(column.level_words(column.coarsest), say)
        described["coarsest"] = say("codebook.setting.coarsest", level=level)
    return described


def _taxonomy(column: ColumnSettings, say: Texts) -> str:
    rule = column.taxonomy
    if not isinstance(rule, Grouping):
        if column.taxonomy_file is None:
            return say("codebook.setting.flat")
        return say("codebook.setting.file", file=file_name(column.taxonomy_file))
    if rule.ready is not None:
        return say("codebook.setting.ready", name=rule.ready, levels=", ".join(_level_names(column.level_names, say)))
    if rule.prefix is not None:
        return say("codebook.setting.prefix", lengths=say.alternatives(rule.prefix))
    if rule.calendar is not None:
        return say("codebook.setting.calendar", units=say.alternatives(_level_names(rule.calendar, say)))
    widths = [say.number(width, ".12g") for width in rule.intervals or ()]
    return say("codebook.setting.intervals", widths=say.alternatives(widths))


def _level_names(names: Sequence[str], say: Texts) -> list[str]:
    """Names of levels in the language of the texts."""
    if say.language.code == ENGLISH.language.code:
        return list(names)
    return [audit_text(f"the {name}", say) for name in names]
