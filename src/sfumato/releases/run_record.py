"""The run record: a private log of which releases were made from which table.

Two releases of one table with different classes can be intersected: a record is in one class of each, and the overlap
can be a single person. The same goes for two tables that share records. So every written release adds a line to a file
in the user's state directory (0600): the time, the input, the output, the policy, what was measured against the
original (the certificate has none of it), and the fingerprints of the table, keyed by a secret that never leaves that
directory. What the user says of a release later, that it was never published or was withdrawn, is a further line.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from platformdirs import user_state_path

from sfumato._version import __version__
from sfumato.errors import InputError, OutputError, UsageError
from sfumato.files.regular_file import NotRegularError, open_regular, read_file
from sfumato.policy import Policy
from sfumato.releases.fingerprints import Fingerprints
from sfumato.releases.keyed_sample import KeyedSample

SECRET_BYTES = 32
WRITTEN_KEYS = frozenset({"formulas", "separator", "encoding", "decimal", "codebook"})  # of [release]
Value = TypeVar("Value")
Mark = Literal["never-published", "withdrawn"]
"""What the user says of a recorded release. Nobody has one that was never published; of one that was withdrawn,
somebody may still have a copy."""


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A release of the run record. What its line does not say, as in earlier versions, is None or empty.

    requirements: in words, without names of columns. mark: what the user said of it afterwards. digest: of its line.
    policy, anew, columns, sample: what its table and its classes are recognised by.
    """

    number: int
    time: datetime.datetime | None
    input: str | None
    output: str | None
    requirements: tuple[str, ...]
    records: int | None
    released: int | None
    method: str | None
    engine: str | None
    version: str | None
    mark: Mark | None
    digest: str = field(repr=False)
    policy: str = field(repr=False)
    anew: bool = field(repr=False)
    columns: Mapping[str, str] = field(repr=False)
    sample: KeyedSample | None = field(repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """The entries that ``sfumato runs --json`` prints: nothing that a table could be recognised by."""
        content = {name: getattr(self, name) for name in SHOWN}
        return content | {
            "time": None if self.time is None else self.time.isoformat(),
            "requirements": list(self.requirements),
        }


SHOWN = (
    *("number", "time", "input", "output", "requirements", "records", "released", "method", "engine", "version"),
    "mark",
)


def state_directory() -> Path:
    """The directory of the run record: SFUMATO_STATE_DIR, or the usual place of the operating system."""
    root = os.environ.get("SFUMATO_STATE_DIR")
    return Path(root) if root else user_state_path("sfumato")


def record_secret() -> bytes:
    """The key of all fingerprints. Raises OSError if no record can be kept."""
    secret = _secret()
    os.close(_open_record())
    return secret


@dataclass(frozen=True)
class ClassRecipe:
    """What decides the classes of a table: two releases of one table by the same recipe have the same classes.

    circumstances: what decides beside the policy, such as the engine. rules: a digest of the rules that decide the
    classes, if they were learnt on another table. anew: the classes may differ in each run all the same.
    """

    policy: Policy
    circumstances: Mapping[str, Any] = field(default_factory=dict)
    rules: str | None = None
    anew: bool = False

    def in_circumstances(self, further: Mapping[str, Any]) -> ClassRecipe:
        """Return the recipe with further circumstances."""
        return replace(self, circumstances={**self.circumstances, **further})

    @property
    def digest(self) -> str:
        """A digest of all that, with the contents of taxonomies, but without how files are read and written."""
        if self.rules is not None:
            return self.rules
        content = self.policy.to_dict()
        content.pop("about", None)
        content.pop("input", None)
        content.pop("engine", None)
        content.get("privacy", {}).pop("pseudonym_key", None)
        # How cells are written decides no class.
        release = {key: value for key, value in content.pop("release", {}).items() if key not in WRITTEN_KEYS}
        content |= {"release": release} if release else {}
        for section, name, key in self.policy.taxonomy_files:
            with contextlib.suppress(OSError):
                path = self.policy.taxonomy_path(name) if section == "columns" else self.policy.groups_path(name)
                content[section][name][key] = hashlib.sha256(read_file(path)).hexdigest()
        content["circumstances"] = dict(self.circumstances)
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def record_run(
    table: Fingerprints,
    recipe: ClassRecipe,
    source: str,
    target: str | Path,
    *,
    run: Mapping[str, Any] | None = None,
    figures: Mapping[str, Any] | None = None,
) -> None:
    """Append a written release to the record.

    run: further entries about it, such as its engine. figures: what is known about it and may not be published.
    """
    about = {} if run is None else run
    _append(
        {
            "time": _now(),
            "input": source,
            "output": str(target),
            "policy": recipe.digest,
            "anew": recipe.anew,
            "requirements": _in_words(recipe.policy),
            **about,
            "columns": dict(table.columns),
            "version": __version__,
            "sample": table.sample.to_dict(),
            "private_figures": dict(figures or {}),
        }
    )


def mark_run(number: int, mark: Mark | None) -> None:
    """Say of a recorded release that it was never published or was withdrawn; None takes such a mark back.

    ``number`` is that of ``sfumato.runs``. Later releases are not warned of one that was never published.
    """
    mark_runs({number: mark})


def mark_runs(marks: Mapping[int, Mark | None]) -> None:
    """Mark several runs, or none if one of them is not there.

    The record only grows: a mark is a line that names the line of its run by a digest.
    """
    known = {run.number: run for run in runs()}
    for number, mark in marks.items():
        if mark is not None and mark not in get_args(Mark):
            raise UsageError(f"a run is marked as {' or '.join(map(repr, get_args(Mark)))}, or as None. Choose one.")
        if number not in known:
            has = f"the runs 1 to {len(known):,}" if known else "no runs"
            raise UsageError(f"the run record has no run {number}: it has {has}. 'sfumato runs' lists them.")
    try:
        for number, mark in marks.items():
            _append({"time": _now(), "run": known[number].digest, "mark": mark, "version": __version__})
    except OSError:
        raise OutputError(
            f"the mark was not written: the run record in {state_directory()} cannot be written. Ask its owner for "
            "permission, or free some space."
        ) from None


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _in_words(policy: Policy) -> list[str]:
    """Say what a policy requires, without the names of columns, which the record does not have."""
    what = "records" if policy.privacy.person is None else "persons"
    words = [f"k = {policy.k} {what}"] if policy.k > 1 else []
    for settings in policy.privacy.sensitive:
        values = [f"{name} = {value}" for name, value in settings.parameters().items()]
        words.append(", ".join([settings.kind, *values]))
    return words


def _append(line: Mapping[str, Any]) -> None:
    content = json.dumps(line).encode() + b"\n"
    handle = _open_record()
    try:
        if os.fstat(handle).st_size:
            os.lseek(handle, -1, os.SEEK_END)
            if os.read(handle, 1) != b"\n":
                content = b"\n" + content  # the previous run could not finish its line
        # One write, so that simultaneous runs do not mix their lines.
        if os.write(handle, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(handle)


def _open_record() -> int:
    handle = os.open(state_directory() / "runs.jsonl", os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600)
    if not stat.S_ISREG(os.fstat(handle).st_mode):  # a pipe would swallow the line
        os.close(handle)
        raise NotRegularError
    return handle


def runs() -> list[RecordedRun]:
    """Return what was released on this machine by this user, the first release first. Trials are not among them."""
    try:
        return recorded_runs()
    except OSError:
        raise InputError(
            f"the run record in {state_directory()} cannot be read. Ask its owner for permission."
        ) from None


def recorded_runs() -> list[RecordedRun]:
    """Return all recorded releases, the first one first. Raises OSError if the record cannot be read."""
    try:
        with open_regular(state_directory() / "runs.jsonl") as file:
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return []
    found: list[RecordedRun] = []
    marks: dict[object, Mark | None] = {}
    for line in lines:
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):  # a run that was killed may have left half a line
            continue
        if not isinstance(content, dict):
            continue
        if isinstance(content.get("columns"), dict) and isinstance(content.get("policy"), str):
            found.append(_run(len(found) + 1, content, hashlib.sha256(line).hexdigest()))
        elif isinstance(content.get("run"), str) and content.get("mark") in (None, *get_args(Mark)):
            marks[content["run"]] = content["mark"]
    return [replace(run, mark=marks.get(run.digest)) for run in found]


def _run(number: int, content: Mapping[str, Any], digest: str) -> RecordedRun:
    """Read a line of the record. A value that is missing, as in lines of earlier versions, or damaged is None."""

    def typed(key: str, kind: type[Value]) -> Value | None:
        value = content.get(key)
        return value if isinstance(value, kind) and not (kind is int and isinstance(value, bool)) else None

    sample = time = None
    with contextlib.suppress(ValueError):
        sample = KeyedSample.from_dict(content.get("sample"))
    with contextlib.suppress(ValueError):
        time = datetime.datetime.fromisoformat(typed("time", str) or "")
    return RecordedRun(
        number=number,
        time=time,
        input=typed("input", str),
        output=typed("output", str),
        requirements=tuple(map(str, typed("requirements", list) or ())),
        records=typed("records", int),
        released=typed("released", int),
        method=typed("method", str),
        engine=typed("engine", str),
        version=typed("version", str),
        mark=None,
        digest=digest,
        policy=content["policy"],
        anew=bool(content.get("anew", False)),
        columns=content["columns"],
        sample=sample,
    )


def _secret() -> bytes:
    directory = state_directory()
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = directory / "secret"
    if not path.exists():
        _make_secret(path)
    with open_regular(path) as file:
        secret = file.read(SECRET_BYTES + 1)
    if len(secret) != SECRET_BYTES:
        raise OSError(errno.EIO, "the secret of the run record is damaged")
    return secret


def _make_secret(path: Path) -> None:
    """Write the secret under another name and link it: if several runs do so at once, the first one's stays."""
    fresh = path.with_name(f"secret-{secrets.token_hex(4)}")
    with os.fdopen(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(secrets.token_bytes(SECRET_BYTES))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
