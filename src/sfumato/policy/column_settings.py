"""The sections ``[columns.NAME]``: the role, type and taxonomy of each column."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Discriminator, Tag, model_validator
from pydantic_core import PydanticCustomError

from sfumato.parameters import is_positive, positive_number
from sfumato.policy.column_forms import ColumnForm
from sfumato.policy.error_text import FILE_TAG, GROUPING_TAG, instead, listed, wrong
from sfumato.policy.levels import DAY, READY_LEVELS, checked_levels, level_number, level_setting
from sfumato.policy.section import PolicySection, text_list
from sfumato.policy.taxonomy_paths import FLAT, path_text

Role = Literal["identifier", "drop", "pseudonym", "quasi-identifier", "sensitive", "other", "decide"]
ColumnType = Literal["numeric", "categorical", "date"]
CalendarUnit = Literal["week", "month", "quarter", "year", "decade"]
ReadyName = Literal["countries", "months", "weekdays", "icd-10"]

STATISTIC_ROUND, MEAN_ROUND = "statistic_round", "mean_round"  # the key, and its name before there were medians


def column_name(value: Any) -> str:
    """Refuse half of a surrogate pair: Python allows it in a string, but no file can hold it."""
    if not isinstance(value, str) or any("\ud800" <= character <= "\udfff" for character in value):
        raise wrong("must be text that UTF-8 can hold")
    return value


def _grid(value: Any) -> int | float:
    """Keep whole numbers whole: a grid of 5 is exact."""
    number = positive_number(value)
    return int(value) if isinstance(value, numbers.Integral) else number


def _number(value: Any) -> int | float:
    """Keep whole numbers whole."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise wrong("must be a finite number")
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def _is_ascending(items: Sequence[Any]) -> bool:
    return len(items) > 0 and all(low < high for low, high in pairwise(items))


def _interval_widths(value: Any) -> tuple[int | float, ...]:
    if not isinstance(value, list | tuple) or not all(map(is_positive, value)) or not _is_ascending(value):
        raise wrong("must be a list of finite numbers above 0, each larger than the one before")
    return tuple(map(_grid, value))


def _prefix_lengths(value: Any) -> tuple[int, ...]:
    is_list = isinstance(value, list | tuple)
    if not is_list or not all(isinstance(item, numbers.Integral) and is_positive(item) for item in value):
        raise wrong("must be a list of whole numbers of at least 1")
    if not _is_ascending(value):
        raise wrong("must be a list of whole numbers, each larger than the one before")
    return tuple(map(int, value))


def _calendar_units(value: Any) -> tuple[str, ...]:
    units = get_args(CalendarUnit)
    if (
        not isinstance(value, list | tuple)
        or not all(isinstance(item, str) and item in units for item in value)
        or not _is_ascending([units.index(item) for item in value])
    ):
        raise wrong(f"must be a list of units out of {listed(units)}, from fine to coarse")
    return tuple(value)


def _taxonomy_file(value: Any) -> str:
    path = path_text(value) if isinstance(value, str | os.PathLike) else ""
    if not path or "\0" in path:
        raise wrong('must be the path of a file, "flat" or a table')
    return path


def _taxonomy_form(value: Any) -> str:
    return GROUPING_TAG if isinstance(value, dict | Grouping) else FILE_TAG


class Grouping(PolicySection):
    """A taxonomy written as a rule. Exactly one of the keys is set."""

    intervals: Annotated[tuple[int | float, ...] | None, BeforeValidator(_interval_widths)] = None
    calendar: Annotated[tuple[CalendarUnit, ...] | None, BeforeValidator(_calendar_units)] = None
    prefix: Annotated[tuple[int, ...] | None, BeforeValidator(_prefix_lengths)] = None
    ready: ReadyName | None = None
    """The name of a taxonomy that needs no file."""

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise wrong("must have exactly one of the keys intervals, calendar, prefix and ready", show=False)
        return self


TaxonomySetting = Annotated[
    Annotated[str, BeforeValidator(_taxonomy_file), Tag(FILE_TAG)] | Annotated[Grouping, Tag(GROUPING_TAG)],
    Discriminator(_taxonomy_form),
]


class ColumnSettings(PolicySection):
    """One column. All keys but role and nulls are for quasi-identifiers; a sensitive column may have a taxonomy too."""

    role: Role
    type: ColumnType | None = None
    round: Annotated[int | float, BeforeValidator(_grid)] | None = None
    taxonomy: TaxonomySetting | None = None
    nulls: Annotated[tuple[str, ...], BeforeValidator(text_list)] | None = None
    """Texts that mean a missing value in this column, beside those of the input. They are released as null."""
    weight: Annotated[float, BeforeValidator(positive_number)] = 1.0
    form: ColumnForm | None = None
    """What the release shows beside the label; None is what the release says for all columns."""
    statistic_round: Annotated[int | float, BeforeValidator(_grid)] | None = None
    """Released means and medians are multiples of this."""
    bottom: Annotated[int | float, BeforeValidator(_number)] | None = None
    """Numbers from here down are one value."""
    top: Annotated[int | float, BeforeValidator(_number)] | None = None
    """Numbers from here up are one value."""
    finest: Annotated[int | str, BeforeValidator(level_setting)] | None = None
    """Nothing more specific than this level of the taxonomy is ever shown."""
    coarsest: Annotated[int | str, BeforeValidator(level_setting)] | None = None
    """Nothing more general than this level of the taxonomy is ever shown."""

    @property
    def taxonomy_file(self) -> str | None:
        """The path of the taxonomy as the user wrote it, if the taxonomy is a file."""
        return self.taxonomy if isinstance(self.taxonomy, str) and self.taxonomy != FLAT else None

    @property
    def ready_name(self) -> ReadyName | None:
        """The name of the taxonomy, if it is a ready-made one."""
        return self.taxonomy.ready if isinstance(self.taxonomy, Grouping) else None

    @property
    def implied_type(self) -> ColumnType | None:
        """The type that the policy names or the taxonomy implies; None if the data decide."""
        if self.taxonomy is None:
            return "numeric" if self.type is None and (self.bottom is not None or self.top is not None) else self.type
        if isinstance(self.taxonomy, Grouping) and self.taxonomy.intervals is not None:
            return "numeric"
        if isinstance(self.taxonomy, Grouping) and self.taxonomy.calendar is not None:
            return "date"
        return "categorical"

    @model_validator(mode="before")
    @classmethod
    def _read_former_name(cls, data: Any) -> Any:
        if not isinstance(data, dict) or MEAN_ROUND not in data:
            return data
        if STATISTIC_ROUND in data:
            raise wrong(f"is the former name of {STATISTIC_ROUND}, which is there too. Remove it", MEAN_ROUND)
        value = data[MEAN_ROUND]
        try:
            value = None if value is None else _grid(value)
        except ValueError as error:  # said here, where the user's name of the key is known
            raise wrong(f"{error}{instead(value)}", MEAN_ROUND) from None
        return {**{key: other for key, other in data.items() if key != MEAN_ROUND}, STATISTIC_ROUND: value}

    @property
    def level_names(self) -> tuple[str, ...]:
        """The names of the levels below ``*``, where they have names."""
        if self.ready_name is not None:
            return READY_LEVELS[self.ready_name]
        units = self.taxonomy.calendar if isinstance(self.taxonomy, Grouping) else None
        return () if units is None else (DAY, *units)

    def level_words(self, level: int | str) -> str:
        """Return a level below ``*`` in words that continue "finer than" or "coarser than"."""
        number = level_number(level, self.level_names)
        if number == 0:
            return "single values"
        rule = self.taxonomy
        if not isinstance(rule, Grouping):
            return f"level {number} of its taxonomy"
        if rule.intervals is not None and number <= len(rule.intervals):
            return f"intervals of {rule.intervals[number - 1]:.12g}"
        if rule.prefix is not None and number <= len(rule.prefix):
            length = rule.prefix[-number]
            return f"{length} character{'s' if length > 1 else ''}"
        return f"the {self.level_names[number]}" if number < len(self.level_names) else "'*'"

    def levels(self, column: str, top_level: int) -> tuple[int, int]:
        """Return the numbers of the finest and the coarsest level that may be shown.

        top_level: the number of the level that is ``*``. Errors name the ``column``.
        """
        finest = 0 if self.finest is None else level_number(self.finest, self.level_names)
        coarsest = None if self.coarsest is None else level_number(self.coarsest, self.level_names)
        return checked_levels(column, finest, coarsest, top_level)

    @model_validator(mode="after")
    def _check_levels(self) -> Self:
        given = {key: level for key in ("finest", "coarsest") if (level := getattr(self, key)) is not None}
        for key, level in given.items():
            if self.taxonomy is None or self.taxonomy == FLAT:
                raise wrong(
                    "needs levels. Give the column a taxonomy: a file, intervals, a calendar, prefixes or a ready one",
                    key,
                )
            try:
                level_number(level, self.level_names)
            except PydanticCustomError as error:
                raise wrong(error.message(), key) from None
        numbers_of = [level_number(level, self.level_names) for level in given.values()]
        if numbers_of != sorted(numbers_of):
            raise wrong("is more specific than finest. Exchange the two", "coarsest")
        return self

    @model_validator(mode="after")
    def _check_keys_fit(self) -> Self:
        if self.role != "quasi-identifier":
            for key in type(self).model_fields:
                is_set = key in self.model_fields_set and getattr(self, key) is not None
                if key == "taxonomy" and is_set and self.role == "sensitive":
                    if self.taxonomy_file is None:
                        raise wrong("of a sensitive column must be a file", key)
                elif key == "nulls" and is_set:
                    if self.role == "identifier":
                        raise wrong("is not for identifiers, which are never released. Remove it", key)
                elif key != "role" and is_set:
                    raise wrong("is only for quasi-identifiers. Remove it, or change the role", key)
        if self.type is not None and self.type != self.implied_type:
            implied = self.implied_type
            raise wrong(f"is {self.type!r}, but the taxonomy makes the column {implied}. Remove one of the two", "type")
        if self.round is not None and self.taxonomy is not None:
            raise wrong("does not go with a taxonomy. Remove one of the two", "round")
        if self.round is not None and self.type not in {None, "numeric"}:
            raise wrong(f"is only for numbers, but the type is {self.type!r}. Remove one of the two", "round")
        for key in ("bottom", "top"):
            if getattr(self, key) is not None and self.implied_type not in {None, "numeric"}:
                raise wrong(f"is only for numbers, but the column is {self.implied_type}. Remove one of the two", key)
        if self.bottom is not None and self.top is not None and self.bottom >= self.top:
            raise wrong(f"is {self.top:g}, which is not above bottom. Write a larger number", "top")
        if self.implied_type == "categorical":
            only = "only for numbers and dates, and the column is categorical. Remove one of the two"
            if self.form not in {None, "labels"}:
                raise wrong(f"is {self.form!r}, which is {only}", "form")
            if self.statistic_round is not None:
                raise wrong(f"is {only}", STATISTIC_ROUND)
        return self
