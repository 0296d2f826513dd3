"""The sections ``[derive.NAME]``: columns that are made from columns of the table before roles apply."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from sfumato.parameters import whole_number
from sfumato.policy.column_settings import ReadyName
from sfumato.policy.error_text import listed, wrong
from sfumato.policy.levels import READY_LEVELS, level_number, level_setting
from sfumato.policy.section import PolicySection, given_name, optional_name, optional_path

TimeUnit = Literal["years", "months", "days"]
DatePart = Literal["year", "quarter", "month", "weekday", "year-quarter", "year-month"]

_FORMS = ("unit", "first", "part", "groups", "ready")


class DerivedColumn(PolicySection):
    """How one column is made. Exactly one of ``unit``, ``first``, ``part``, ``groups`` and ``ready`` is set."""

    source: Annotated[str, BeforeValidator(given_name)] = Field(alias="from")
    """The column that it is made from; for a time between two dates, the one that it begins with."""
    to: Annotated[str | None, BeforeValidator(optional_name)] = None
    """The column with the dates that the time ends with."""
    unit: TimeUnit | None = None
    """Full years, months or days between two dates, as people count ages."""
    first: Annotated[int, BeforeValidator(whole_number(1))] | None = None
    """So many characters from the beginning."""
    part: DatePart | None = None
    """A part of a date."""
    groups: Annotated[str | None, BeforeValidator(optional_path)] = None
    """A taxonomy file, whose group stands for a value."""
    ready: ReadyName | None = None
    """A ready-made taxonomy, whose group stands for a value."""
    level: Annotated[int | str, BeforeValidator(level_setting)] = 1
    """The level of the group; 1 is the first above the values. Levels of ready-made taxonomies have names too."""

    @property
    def level_number(self) -> int:
        return level_number(self.level, () if self.ready is None else READY_LEVELS[self.ready])

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that it is made from."""
        return (self.source,) if self.to is None else (self.source, self.to)

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        given = [key for key in _FORMS if getattr(self, key) is not None]
        if len(given) > 1:
            raise wrong(f"does not go with {given[0]}. Remove one of the two", given[1])
        if self.unit is not None and self.to is None:
            raise wrong("is missing: a time needs a second column of dates", "to")
        if self.to is not None and self.unit is None:
            raise wrong("is missing: choose one of 'years', 'months', 'days'", "unit")
        if not given:
            raise wrong(f"must have one of the keys {', '.join(_FORMS[:-1])} and {_FORMS[-1]}", show=False)
        if "level" in self.model_fields_set and self.groups is None and self.ready is None:
            raise wrong("is only for groups. Remove it", "level")
        try:
            number = self.level_number
        except PydanticCustomError as error:
            raise wrong(error.message(), "level") from None
        if number < 1 or (self.ready is not None and number >= len(READY_LEVELS[self.ready])):
            levels = listed(READY_LEVELS[self.ready][1:]) if self.ready is not None else "those from 1 on"
            raise wrong(f"is {self.level!r}, which has no groups. The levels with groups are {levels}", "level")
        return self
