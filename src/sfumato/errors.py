"""All errors that users can see, and the exit code of each on the command line; and warnings.

    SfumatoError
    ├── UsageError            2   flags, arguments or policy are wrong
    │   └── PolicyError       2   the policy file or object is wrong; names the line if there is one
    ├── InfeasibleError       3   no release of this table can meet the policy
    │   └── UnmetError        1   rules learnt on another table do not meet the policy on this one, or releases that
    │                             are made together undo each other
    ├── DataError             4   input, taxonomy or output cannot be read or written
    │   ├── InputError        4   the table
    │   ├── TaxonomyError     4   a taxonomy file, or a value outside it
    │   └── OutputError       4   the location of the release
    └── AuditError           70   a release failed its own audit and was withheld: a bug in Sfumato

Exit code 5 is no error: ``audit`` or ``report`` found nothing that fails, but could not check everything.

A message says what is wrong, where, and what to do next. It never holds the value of a cell: the data are secret, and
messages end up in logs. Errors of libraries may hold cells, so they are re-raised ``from None`` with our own text.
"""

from __future__ import annotations

import errno
import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # the numbers of the system for a full disk
WITHOUT_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})


class SfumatoError(Exception):
    """The root of all errors that Sfumato raises on purpose."""

    exit_code = 70


class UsageError(SfumatoError):
    """A flag or an argument is wrong."""

    exit_code = 2

    @classmethod
    def unknown_column(cls, name: str, where: str, available: Iterable[str]) -> UsageError:
        return cls(f"{where} names the column {name!r}, which the table does not have. {_columns(name, available)}")

    @classmethod
    def unknown_choice(cls, what: str, value: object, available: Iterable[str]) -> UsageError:
        return cls(f"unknown {what} {value!r}. {_choices(str(value), available)}")

    @classmethod
    def column_without_mean(cls, name: str) -> UsageError:
        return cls(
            f"column {name!r} holds categories or has a taxonomy, and sums of squares need plain numbers. Give it "
            'another role, remove its taxonomy, or choose loss = "ncp" and another method.'
        )


class PolicyError(UsageError):
    """The policy is wrong."""


class InfeasibleError(SfumatoError):
    """The table cannot be released under this policy, whatever the method."""

    exit_code = 3


class UnmetError(InfeasibleError):
    """The policy allows a release, and this one does not meet it.

    Rules that were learnt on another table would leave out more of this one than the policy allows, or releases of
    linked tables tell too much together.
    """

    exit_code = 1


class DataError(SfumatoError):
    """Something outside the program cannot be read or written."""

    exit_code = 4


class InputError(DataError):
    """The table cannot be read, or is not a table."""


class TaxonomyError(DataError):
    """A taxonomy is not a tree, or lacks a value of its column."""


class OutputError(DataError):
    """The release cannot be written."""


class AuditError(SfumatoError):
    """A finished release did not pass its audit. It was not returned, and nothing was written."""


class SfumatoWarning(UserWarning):
    """Something that a data steward should know about a release."""


class ReadingWarning(SfumatoWarning):
    """A table may not have been read as its author meant it."""


class KernelCacheWarning(SfumatoWarning):
    """Compiled kernels are not kept, since other users could exchange them."""


def may_be_cells(names: Iterable[str]) -> bool:
    """Return whether a name has digits and no letter. The first line of a file without a header is a record."""
    return any(re.search(r"\d", name) and not re.search(r"[^\W\d_]", name) for name in names)


def _columns(name: str, available: Iterable[str]) -> str:
    """List the columns of a table as ``_choices`` does, unless they may be cells of a record."""
    names = list(available)
    if may_be_cells(names):
        return "Its columns are not listed, as some names are numbers or dates. Add the header if it is missing."
    return _choices(name, names)


def _choices(name: str, available: Iterable[str]) -> str:
    """List the available names, after the closest match if ``name`` looks like a typing error."""
    names = list(available)
    spelled = {_in_plain_letters(each): each for each in reversed(names)}
    closest = [spelled[each] for each in get_close_matches(_in_plain_letters(name), spelled, n=1, cutoff=0.7)]
    listed = ", ".join(map(repr, names[:20])) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return (f"Did you mean {closest[0]!r}? " if closest else "") + f"Available: {listed}."


def _in_plain_letters(name: str) -> str:
    """Return a name as somebody writes it who has no accents at hand: Groesse for Größe, cafe for café."""
    replaced = name.translate(WITHOUT_UMLAUTS)
    return "".join(letter for letter in unicodedata.normalize("NFKD", replaced) if not unicodedata.combining(letter))
