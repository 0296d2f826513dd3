"""Columns that a policy derives from those of a table, before roles apply: ages, parts of dates, prefixes, groups.

They are made batch by batch wherever a table is read, so every engine and every study has them. Of a text file they are
text, like all its columns; of other tables they are whole numbers or text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from sfumato.errors import InputError, PolicyError
from sfumato.policy import Policy
from sfumato.tables.coding.arrow_arrays import from_numpy
from sfumato.tables.coding.column_texts import ColumnTexts, text_column
from sfumato.tables.coding.distinct_values import counted_noun
from sfumato.tables.sources.derivation_rules import (
    CellReader,
    DerivationRule,
    FirstCharacters,
    GroupOfCode,
    GroupOfReady,
    PartOfDate,
    TimeBetween,
)
from sfumato.tables.sources.source import Source, place_of
from sfumato.taxonomies.taxonomy_file import read_taxonomy


class DerivedSource:
    """A table whose own columns are followed by derived ones."""

    def __init__(self, source: Source, rules: dict[str, DerivationRule]) -> None:
        self._source, self._rules = source, rules
        self.names = (*source.names, *rules)
        derived = {name: self._type(rule) for name, rule in rules.items()}
        self.types: dict[str, pa.DataType] = {**source.types, **derived}
        self.kind, self.text = source.kind, source.text
        self.line_of = getattr(source, "line_of", None)
        self.descriptions: dict[str, str] = getattr(source, "descriptions", {})
        self.read_by_labels: tuple[str, ...] | None = getattr(source, "read_by_labels", None)

    @property
    def rows(self) -> int | None:
        return self._source.rows

    def _type(self, rule: DerivationRule) -> pa.DataType:
        return pa.int64() if rule.numeric and not self._source.text else pa.string()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        read = [name for name in columns if name not in self._rules]
        read += [column for name in columns if name in self._rules for column in self._rules[name].columns]
        return map(partial(self._with_derived, columns), self._source.batches(list(dict.fromkeys(read))))

    def _with_derived(self, columns: Sequence[str], batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [self._derived(name, batch) if name in self._rules else batch.column(name) for name in columns]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _derived(self, name: str, batch: pa.RecordBatch) -> pa.Array:
        rule = self._rules[name]
        derived, faults = rule.derive([batch.column(column) for column in rule.columns])
        if any(fault.rows.any() for fault in faults):
            raise self._refusal(name, rule)
        if isinstance(derived, ColumnTexts):
            return text_column(*derived)
        if not self._source.text:
            return from_numpy(derived.values, derived.missing)
        different, codes = np.unique(derived.values, return_inverse=True)
        return text_column(codes, [str(number) for number in different.tolist()], derived.missing)

    def _refusal(self, name: str, rule: DerivationRule) -> InputError:
        """Read the whole table again, and return the error for the first fault with the number of its records."""
        counts: dict[tuple[str, str], int] = {}
        first: dict[tuple[str, str], int] = {}
        start = 1
        for batch in self._source.batches(list(dict.fromkeys(rule.columns))):
            _, faults = rule.derive([batch.column(column) for column in rule.columns])
            for rows, *reason in faults:
                if rows.any():
                    key = (reason[0], reason[1])
                    counts[key] = counts.get(key, 0) + int(np.count_nonzero(rows))
                    first.setdefault(key, start + int(np.argmax(rows)))
            start += batch.num_rows
        what, advice = min(first, key=lambda key: first[key])
        records = counted_noun(counts[what, advice], "record")
        place = place_of(self._source, first[what, advice])
        return InputError(f"the derived column {name!r}: in {records}, {what}; the first is in {place}. {advice}")


def with_derived(source: Source, policy: Policy) -> Source:
    """Return a table with the columns that the policy derives. Refuses names that the table has, or lacks."""
    if not policy.derive:
        return source
    rules: dict[str, DerivationRule] = {}
    for name, settings in policy.derive.items():
        if name in source.names:
            raise PolicyError(
                policy.origin.say(
                    f"the derived column {name!r} is a column of the table already. Choose another name.",
                    ("derive", name),
                )
            )
        for key, column in zip(("from", "to"), settings.columns, strict=False):
            if column not in source.names:
                where = policy.origin.place(("derive", name, key)) or f"the derived column {name!r}"
                raise PolicyError.unknown_column(column, where, source.names)
        reader = CellReader.of(source, policy, name)
        if settings.unit is not None:
            rules[name] = TimeBetween(settings.columns, settings.unit, reader.of_dates(*settings.columns))
        elif settings.part is not None:
            rules[name] = PartOfDate(settings.columns, settings.part, reader.of_dates(*settings.columns))
        elif settings.first is not None:
            rules[name] = FirstCharacters(settings.columns, settings.first, reader)
        elif settings.ready is not None:
            rules[name] = GroupOfReady(settings.columns, settings.ready, settings.level_number, reader)
        else:
            path = policy.groups_path(name)
            taxonomy = read_taxonomy(path, name)
            if settings.level_number >= taxonomy.top_level:
                highest = taxonomy.top_level - 1
                have = f"only the levels 1 to {highest}" if highest else "no groups"
                raise PolicyError(
                    policy.origin.say(
                        f"level of the derived column {name!r} is {settings.level}, but the taxonomy has {have} below "
                        "'*'. Choose another level, or add groups to the taxonomy.",
                        ("derive", name, "level"),
                    )
                )
            rules[name] = GroupOfCode(settings.columns, taxonomy, settings.level_number, path.name, reader)
    return DerivedSource(source, rules)
