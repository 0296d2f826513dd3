"""What an output may replace: an earlier release, or a file that is recognisably Sfumato's own. The rest needs force.

A release is recognised by its certificate, which names its files or tables. A certificate whose release is gone may be
replaced too. A trial replaces trials alone: somebody may have the release, and nothing else would say what it was.
Other files are recognised by how they begin and end.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import UsageError
from sfumato.tables.locations import (
    DatabaseLocation,
    DirectoryLocation,
    FileLocation,
    Location,
    ServerLocation,
    certificate_path,
)
from sfumato.tables.targets.target import certificate_text, check_location

ENDS = 4096  # bytes that are read at either end of a file
ANYTHING = re.compile(b"")


@dataclass(frozen=True)
class Signature:
    """How a kind of file that Sfumato writes begins and ends."""

    begins: re.Pattern[bytes]
    ends: re.Pattern[bytes] = ANYTHING

    def fits(self, path: Path) -> bool:
        """Return whether a file begins and ends like this; false if it cannot be read or is no ordinary file."""
        try:
            if not path.is_file():
                return False
            with path.open("rb") as file:
                first = file.read(ENDS)
                file.seek(max(0, path.stat().st_size - ENDS))
                last = file.read(ENDS)
        except OSError:
            return False
        return bool(self.begins.match(first) and self.ends.search(last))


def check_replaceable(target: Path, what: str, signature: Signature | None = None, *, force: bool) -> None:
    """Refuse a file that exists, unless it fits the signature of what is written or the user forces it.

    what: the kind of file that is written, such as "page".
    """
    if not os.path.lexists(target):
        return
    _refuse_special(target)
    if force or (signature is not None and signature.fits(target)):
        return
    why = "" if signature is None else f", and is no {what} that Sfumato wrote"
    raise UsageError(f"{target} exists{why}. Name another file for the {what}, or add --force to replace this one.")


def replaced_by(
    location: Location,
    existing: Sequence[DatabaseLocation | ServerLocation],
    *,
    tables: int,
    force: bool,
    trial: bool = False,
) -> list[str]:
    """Say what a release of that many tables replaces at its location, or refuse it.

    existing: those of its tables in a database that are there already. trial: whether it is a trial.
    """
    if isinstance(location, FileLocation):
        return _replaced_files(location, tables, force=force, trial=trial)
    if isinstance(location, DirectoryLocation):
        there = location.path.is_dir() and any(location.path.iterdir())
        foreign = [location.shown] if there and _certified(location) is None else []
        return _replaced(location, there=there, foreign=foreign, force=force, trial=trial)
    names = _certified(location) or set()
    if tables == 1 and names & _names(location.sensitive.table or "") and check_location(location.sensitive):
        raise _left_behind(location)
    foreign = [table.shown for table in existing if not names & _names(table.table or "")]
    return _replaced(location, there=bool(existing), foreign=foreign, force=force, trial=trial)


def _replaced_files(location: FileLocation, tables: int, *, force: bool, trial: bool) -> list[str]:
    certificate = certificate_path(location.path)
    paths = [path for path in (location.path, location.sensitive.path)[:tables] if os.path.lexists(path)]
    names = _certified(location) if certificate.is_file() else None
    second = location.sensitive.path
    if tables == 1 and names is not None and second.name in names and os.path.lexists(second):
        raise _left_behind(location)
    if names is None and os.path.lexists(certificate):
        paths.append(certificate)  # or what has its name
    foreign = [path for path in paths if names is None or path.name not in names]
    for path in paths:
        _refuse_special(path)
    if names is not None and not paths:
        return [f"the certificate {certificate}, whose release was gone"]
    return _replaced(location, there=bool(paths), foreign=list(map(str, foreign)), force=force, trial=trial)


def _replaced(location: Location, *, there: bool, foreign: list[str], force: bool, trial: bool) -> list[str]:
    if not there:
        return []
    if not foreign:
        return [earlier_release(location.shown, certificate_text(location), force=force, trial=trial)]
    if not force:
        verb, what = ("exists", "it") if len(foreign) == 1 else ("exist", "them")
        raise UsageError(
            f"{' and '.join(foreign)} {verb}, and there is no certificate that makes {what} a release of Sfumato. Name "
            f"another output, or add --force to replace {what}."
        )
    return [f"{' and '.join(foreign)}, no release of Sfumato"]


def earlier_release(shown: str, certificate: str | None, *, force: bool, trial: bool) -> str:
    """Name the release that a new one replaces. Refuse a trial in the place of a release that is none.

    certificate: the text of the earlier one's.
    """
    if _is_trial(certificate):
        return f"the earlier trial {shown}"
    if trial and not force:
        raise UsageError(
            f"{shown} is a release, and a trial would replace it. Name another output for the trial, or add --force to "
            "replace the release."
        )
    return f"the earlier release {shown}"


def _is_trial(certificate: str | None) -> bool:
    try:
        content = json.loads(certificate or "null")
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("trial") is True


def _left_behind(location: FileLocation | DatabaseLocation | ServerLocation) -> UsageError:
    """Two tables cannot be replaced by one: the second would stay, without a certificate that names it."""
    return UsageError(
        f"the earlier release {location.shown} has a second table, {location.sensitive.shown}, which this one would "
        "leave behind. Remove both first, or name another output."
    )


def _certified(location: Location) -> set[str] | None:
    """Return the names of the files or tables in a certificate; None if there is none, or it is none."""
    try:
        content = json.loads(certificate_text(location) or "null")
        if not isinstance(content["policy"], dict):
            return None
        return {name for file in content["files"] for name in _names(file["name"])}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _names(table: str) -> set[str]:
    """Return the names by which a certificate may know a file or table: with its schema and without it."""
    return {table, table.casefold(), table.rpartition(".")[2].casefold()}


def _refuse_special(path: Path) -> None:
    if not path.is_symlink() and not path.is_file():
        what = "a directory" if path.is_dir() else "no ordinary file"
        raise UsageError(f"{path} is {what}, which is never replaced. Name another output.")
