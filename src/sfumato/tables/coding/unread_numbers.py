"""Columns of numbers that would be taken for text: by another decimal mark, or by a few texts that are no numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sfumato.tables.coding.number_text import LEADING_ZERO, NUMBER, NumberForm

FEWEST = 5  # numbers that a column needs to be taken for one of numbers
FEW = 3  # texts that are no numbers, in a column of any size
SHARE = 0.1  # of the distinct values, in a large column
TRIED_FIRST = 200  # texts, before all are read
FORMS = (NumberForm(","), NumberForm(",", "."), NumberForm(".", ","), NumberForm(".", "'"), NumberForm(",", " "))


@dataclass(frozen=True)
class UnreadNumbers:
    """What keeps the values of a column from being read as numbers.

    form: in which they are numbers. others: texts that are numbers in no form. numbers: how many values are.
    """

    form: NumberForm
    numbers: int
    others: frozenset[str] = field(repr=False)

    def sentence(self, name: str, read: NumberForm, place: str | None = None, *, typed: bool = False) -> str:
        """Say how to read the column as numbers.

        read: the form in which it was read. place: where the first text is that is no number. typed: the table has
        types, and the column is text.
        """
        flags = self.flags(read)
        if typed and not self.others:
            marks = f", and add {flags}" if flags else ""
            return (
                f"column {name!r} holds numbers as text. Set its type to numeric{marks}; if they are codes, set it to "
                "categorical."
            )
        if not self.others:
            return (
                f"column {name!r} holds numbers in another form and is read as text. Add {flags}, or the same to "
                "[input]; if they are codes, set the type of the column to categorical."
            )
        what = "1 is not" if len(self.others) == 1 else f"{len(self.others):,} are not"
        first = "" if place is None else f"; the first that is not is in {place}"
        also = f"Add {flags}. " if flags else ""
        return (
            f"column {name!r} is read as text: {self.numbers:,} of its distinct values are numbers, and {what}{first}. "
            f"{also}If such a text means 'missing', add it to the nulls of the column; if all are codes, set the type "
            "of the column to categorical."
        )

    def flags(self, read: NumberForm) -> str:
        """Return the flags by which numbers of this form are read; empty if it is the form ``read``."""
        marks = (("decimal", self.form.decimal, read.decimal), ("thousands", self.form.thousands, read.thousands))
        return " ".join(f'--{key} "{mark}"' for key, mark, before in marks if mark is not None and mark != before)


def unread_numbers(texts: Sequence[str], read: NumberForm, *, typed: bool = False) -> UnreadNumbers | None:
    """Return what keeps texts from being read as numbers in the form ``read``, or None if they are, or are words.

    typed: they are text in a table with types, in which no text is read as numbers unless the policy says so.
    """
    if all(2 * _found(texts[:TRIED_FIRST], form).numbers < len(texts[:TRIED_FIRST]) for form in (read, *FORMS)):
        return None  # words
    if any(LEADING_ZERO.match(text.strip()) for text in texts):
        return None  # codes
    best = _found(texts, read)
    if best.others:
        others = (_found(texts, form) for form in FORMS)
        best = max((best, *others), key=lambda found: found.numbers)  # the first of equals
    elif not typed:
        return None
    few = len(best.others) <= max(FEW, SHARE * len(texts))
    enough = best.numbers >= FEWEST and best.numbers > len(best.others)
    return best if few and enough else None


def _found(texts: Collection[str], form: NumberForm) -> UnreadNumbers:
    others = frozenset(text for text in texts if not NUMBER.fullmatch(form.plain(text)))
    return UnreadNumbers(form, len(texts) - len(others), others)
