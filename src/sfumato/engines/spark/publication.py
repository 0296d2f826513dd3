"""The publication of staged files as a release: their names, their hashes, the certificate, and the last rename.

The certificate is inside the directory, under a name that readers of Parquet skip. On this machine a directory is
published as those of other engines are (``tables/targets/staging.py``). Elsewhere a manifest says which files belong to
the release, and a journal beside the target says that it was committed: object stores cannot rename a directory in one
step, and there are no locks.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from sfumato.engines.spark.file_systems import HIDDEN, Files, LocalFiles, files_of, is_remote
from sfumato.engines.spark.session import Session, in_our_words
from sfumato.errors import InputError, OutputError, UsageError
from sfumato.tables.locations import CERTIFICATE as SUFFIX
from sfumato.tables.locations import DirectoryLocation
from sfumato.tables.targets.digests import file_digest
from sfumato.tables.targets.journal import JOURNAL, MARK, REPLACED, TOKEN, new_token
from sfumato.tables.targets.replacement import earlier_release
from sfumato.tables.targets.staging import Stage, recover
from sfumato.tables.targets.target import CertifiedTable, ReleasePage, stage_pages

MANIFEST = "_sfumato_manifest.json"
CERTIFICATE = f"_certificate{SUFFIX}"
PARQUET = (".parquet", ".pq")
# What a directory of a release, or one that Spark wrote, holds: also marks of completeness and checksums.
OWN = re.compile(rf"part-.*\.parquet|_SUCCESS|{re.escape(CERTIFICATE)}|{re.escape(MANIFEST)}|\..*\.crc")
FEW_BYTES = 1 << 26


def check_directory(session: Session, target: str, *, force: bool, trial: bool = False) -> list[str]:
    """Refuse an output that cannot take a release, before any work is done, and return what the release replaces."""
    name = target.rpartition("/")[2]
    suffix = Path(name).suffix.lower()
    if suffix and suffix not in PARQUET:
        raise UsageError(
            f"the Spark engine writes a directory of Parquet files, so the output {name!r} should end in .parquet or "
            "have no suffix. Rename it."
        )
    files = files_of(session, target)
    recover_directory(session, target)
    if not is_remote(target):
        parent = os.path.dirname(target) or "/"
        if not os.path.isdir(parent):
            raise OutputError(f"the directory {parent} of the output does not exist. Create it first.")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise OutputError(f"no permission to write to the directory {parent}. Choose another output.")
    if not files.exists(target):
        return []
    if not is_remote(target) and not os.path.isdir(target):
        raise UsageError(
            f"the output {target} is a file, and the Spark engine writes a directory. Name another output."
        )
    names = files.names(target)
    if any(not OWN.fullmatch(name) for name in names):
        raise UsageError(
            f"the output {target} holds other things than a release. Name another output: it is never replaced."
        )
    if CERTIFICATE in names:
        certificate = None
        with contextlib.suppress(OSError, ValueError):  # one that cannot be read says of nothing that it is a trial
            certificate = files.read(f"{target}/{CERTIFICATE}")
        return [earlier_release(target, certificate, force=force, trial=trial)]
    if names and not force:
        raise UsageError(
            f"the output {target} exists, and has no certificate in it that would make it a release. Name another "
            "output, or add --force to replace it."
        )
    return [f"{target}, no release of Sfumato"] if names else []


def tidied(session: Session, directory: str) -> list[str]:
    """Rename the files that Spark wrote, so that names are the same in every run, and return the names."""
    files = files_of(session, directory)
    written = []
    for name in files.names(directory):
        if name.startswith(HIDDEN):
            files.remove(f"{directory}/{name}")
        else:
            written.append(name)
    names = [f"part-{number:05}.parquet" for number in range(len(written))]
    for old, new in zip(written, names, strict=True):
        files.rename(f"{directory}/{old}", f"{directory}/{new}")
    return names


def digests(session: Session, directory: str) -> list[CertifiedTable]:
    """Return the name, size and hash of every file. Spark computes them if the files are large or remote."""
    from pyspark.sql import functions as sql

    if not is_remote(directory):
        paths = sorted(Path(directory).glob("*.parquet"))
        if sum(path.stat().st_size for path in paths) <= FEW_BYTES:
            return [{"name": path.name, "bytes": path.stat().st_size, "sha256": file_digest(path)} for path in paths]
    with in_our_words("compute the hashes of the files"):
        read = session.read.format("binaryFile").option("pathGlobFilter", "*.parquet").load(directory)
        rows = read.select("path", "length", sql.sha2("content", 256).alias("sha256")).collect()
    entries: list[CertifiedTable] = [
        {"name": row["path"].rpartition("/")[2], "bytes": int(row["length"]), "sha256": row["sha256"]} for row in rows
    ]
    return sorted(entries, key=lambda entry: str(entry["name"]))


def publish_locally(staged: Path, target: Path, certificate: str, pages: Sequence[ReleasePage]) -> None:
    """Publish a staged directory of this machine as other directories are published."""
    with Stage() as stage:
        directory = DirectoryLocation(stage.adopt(staged, target))
        LocalFiles().write(str(directory.certificate), certificate)
        stage_pages(stage, pages)
        stage.publish()


def publish_remotely(
    files: Files, staged: str, target: str, entries: Sequence[CertifiedTable], certificate: str
) -> None:
    """Publish a staged directory of a file system without locks, and perhaps without a rename in one step.

    The complete directory is put beside its target, and a journal says that it replaces what is there. That is the
    commit point: the next run to the same target ends what a killed run began.
    """
    token = new_token()
    ready, _, journal = _names_beside(target, token)
    files.write(f"{staged}/{MANIFEST}", json.dumps({"files": list(entries)}, indent=2) + "\n")
    files.write(f"{staged}/{CERTIFICATE}", certificate)
    names = [*(entry["name"] for entry in entries), MANIFEST, CERTIFICATE]
    with contextlib.ExitStack() as undo:
        undo.callback(files.remove, ready)
        files.rename(staged, ready)
        files.write(f"{journal}-draft", json.dumps({"token": token, "files": names}) + "\n")
        files.rename(f"{journal}-draft", journal)
        undo.pop_all()
    recover_remotely(files, target)


def recover_remotely(files: Files, target: str) -> None:
    """End what a journal beside the target says has begun. Every step can be repeated, wherever a run was killed."""
    journal = _names_beside(target, "")[2]
    if not files.exists(journal):
        return
    token, names = _journal_content(files.read(journal), journal)
    ready, replaced, _ = _names_beside(target, token)
    if files.exists(ready):
        left = files.names(ready)
        if files.exists(target) and set(names) <= set(left):
            files.remove(replaced)
            files.rename(target, replaced)
        if not files.exists(target):
            files.rename(ready, target)
        else:  # a store that renames file by file was interrupted: what is no longer staged has arrived
            for name in files.names(target):
                if name in left or name not in names:
                    files.remove(f"{target}/{name}")
            for name in sorted(left, key=names.index):  # the certificate last
                files.rename(f"{ready}/{name}", f"{target}/{name}")
            files.remove(ready)
    files.remove(replaced)
    files.remove(journal)


def recover_directory(session: Session, target: str) -> None:
    """End or remove what killed runs have left at a location that is written to or read."""
    if not is_remote(target):
        recover(Path(target))
    elif getattr(session, "sparkContext", None) is not None:  # a session of Spark Connect has no access to files
        recover_remotely(files_of(session, target), target)


def _names_beside(target: str, token: str) -> tuple[str, str, str]:
    """Return where a release waits, where the one that it replaces goes, and the journal."""
    folder, _, name = target.rpartition("/")
    return (f"{folder}/.{token}{MARK}{name}", f"{folder}/.{token}{REPLACED}{name}", f"{folder}/.{name}{JOURNAL}")


def _journal_content(text: str, journal: str) -> tuple[str, list[str]]:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        content = json.loads(text)
        token, names = content["token"], content["files"]
        plain = all(isinstance(name, str) and name and "/" not in name and name not in (".", "..") for name in names)
        if TOKEN.fullmatch(token) and plain and isinstance(names, list) and names[-1:] == [CERTIFICATE]:
            return token, names
    raise InputError(
        f"the journal {journal} is damaged, or Sfumato has not written it. Nothing was changed. Check who wrote it, "
        "and remove it."
    )
