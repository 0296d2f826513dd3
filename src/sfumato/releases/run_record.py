"""The run record: a private log of which releases were made from which table.

Two releases of one table with different classes can be intersected: a record is in one class of each, and the overlap
can be a single person. The same goes for two tables that share records. So every written release adds a line to a file
in the user's state directory (0600): the time, the input, the output, the policy, what was measured against the
original (the certificate has none of it), and the fingerprints of the table, keyed by a secret that never leaves that
directory.
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from platformdirs import user_state_path

from sfumato._version import __version__
from sfumato.files.regular_file import NotRegularError, open_regular, read_file
from sfumato.policy import Policy
from sfumato.releases.fingerprints import Fingerprints
from sfumato.releases.keyed_sample import KeyedSample, shared_part

SECRET_BYTES = 32
WRITTEN_KEYS = frozenset({"formulas", "separator", "encoding", "decimal", "codebook"})  # of [release]


def state_directory() -> Path:
    """The directory of the run record: SFUMATO_STATE_DIR, or the usual place of the operating system."""
    root = os.environ.get("SFUMATO_STATE_DIR")
    return Path(root) if root else user_state_path("sfumato")


@dataclass(frozen=True)
class EarlierReleases:
    """Earlier releases that can be intersected with the one that is made.

    same: how many are of the same table. overlapping: how many are of other tables that share records with this one.
    part: the largest part of the smaller table's records that one of them shares; None if only columns tell.
    """

    same: int = 0
    overlapping: int = 0
    part: float | None = None


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


def earlier_releases(
    table: Fingerprints,
    recipe: ClassRecipe,
    *,
    ordered: Callable[[], Mapping[str, str]] = dict,
) -> EarlierReleases:
    """Count the earlier releases that can be intersected with one of this table by this recipe.

    The same recipe and version give the same table the same classes, unless they are formed anew in each run. Rules
    that were learnt elsewhere are the same for every table. ``ordered`` makes the fingerprints of version 0.1, if the
    record has lines of that version.
    """
    current = recipe.digest
    same, parts = 0, []
    # Most runs of a record are of few tables, and a comparison with many random divisions takes long.
    shared_with: dict[bytes, float] = {}
    in_order: Mapping[str, str] | None = None
    for run in _runs():
        same_policy = run.policy == current
        if recipe.rules is not None and same_policy:
            continue
        if run.version is None:
            in_order = ordered() if in_order is None else in_order
            same += any(run.columns.get(name) == digest for name, digest in in_order.items())
            continue
        matches, everywhere = table.matching(run.columns)
        part = 0.0
        if run.sample is not None:
            content = run.sample.hashes.tobytes() + run.sample.counts.tobytes()
            if content not in shared_with:
                shared_with[content] = shared_part(run.sample, table.sample)
            part = shared_with[content]
        if not matches and not part:
            continue
        same_sample = run.sample is None or run.sample.same_as(table.sample)
        if not everywhere or (same_policy and not same_sample):
            parts.append(part)
        elif recipe.anew or run.anew or not same_policy or run.version != __version__:
            same += 1
    return EarlierReleases(same, len(parts), max(parts, default=0.0) or None)


def record_run(
    table: Fingerprints,
    recipe: ClassRecipe,
    source: str,
    target: str | Path,
    *,
    figures: Mapping[str, Any] | None = None,
) -> None:
    """Append a written release to the record. figures: what is known about the release and may not be published."""
    line = {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "input": source,
        "output": str(target),
        "policy": recipe.digest,
        "anew": recipe.anew,
        "columns": dict(table.columns),
        "version": __version__,
        "sample": table.sample.to_dict(),
        "private_figures": dict(figures or {}),
    }
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


@dataclass(frozen=True)
class _Run:
    """A line of the record. version: None for 0.1, which did not say. sample: None if it is missing or damaged."""

    policy: str
    anew: bool
    columns: Mapping[str, str]
    version: str | None
    sample: KeyedSample | None


def _runs() -> list[_Run]:
    try:
        with open_regular(state_directory() / "runs.jsonl") as file:
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return []
    runs = []
    for line in lines:
        with contextlib.suppress(ValueError):  # a run that was killed may have left half a line
            run = json.loads(line)
            if isinstance(run, dict) and isinstance(run.get("columns"), dict) and "policy" in run:
                sample = None
                with contextlib.suppress(ValueError):
                    sample = KeyedSample.from_dict(run.get("sample"))
                runs.append(_Run(run["policy"], run.get("anew", False), run["columns"], run.get("version"), sample))
    return runs


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
