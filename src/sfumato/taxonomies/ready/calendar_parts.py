"""Months in quarters and half-years, and weekdays in working days and the weekend; by English name or by number."""

from __future__ import annotations

from sfumato.taxonomies.ready.ready_taxonomy import FixedTaxonomy, Writing

# Not from the module `calendar`, whose names are those of the machine's language.
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SHORT = 3  # letters of an abbreviation
QUARTER, HALF_YEAR = 3, 6  # months
WORKING_DAYS = 5


def months() -> FixedTaxonomy:
    """Return the taxonomy of months: Q1 to Q4, then H1 and H2."""
    return FixedTaxonomy(
        source="the calendar year",
        writings=_writings(MONTHS),
        levels=(
            tuple(f"Q{month // QUARTER + 1}" for month in range(len(MONTHS))),
            tuple(f"H{month // HALF_YEAR + 1}" for month in range(len(MONTHS))),
        ),
    )


def weekdays() -> FixedTaxonomy:
    """Return the taxonomy of weekdays. Numbers are those of ISO 8601, where Monday is 1."""
    days = ("working day" if day < WORKING_DAYS else "weekend" for day in range(len(WEEKDAYS)))
    return FixedTaxonomy(
        source="ISO 8601, with Saturday and Sunday as the weekend", writings=_writings(WEEKDAYS), levels=(tuple(days),)
    )


def _writings(names: tuple[str, ...]) -> tuple[Writing, ...]:
    return (
        Writing.of("English names", [[name] for name in names], str.casefold),
        Writing.of("English abbreviations", [[name[:SHORT]] for name in names], _without_point),
        Writing.of("numbers", [[str(number)] for number in range(1, len(names) + 1)], _without_zero),
    )


def _without_point(text: str) -> str:
    return text.casefold().removesuffix(".")


def _without_zero(text: str) -> str:
    """Return a number without the zero in front, as in 01."""
    return text.removeprefix("0") if text.isdecimal() else text
