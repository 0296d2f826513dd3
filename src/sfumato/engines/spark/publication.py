"""The publication of staged files as a release: their names, their hashes, the certificate, and the last rename.

The certificate is inside the directory, under a name that readers of Parquet skip. A directory is renamed as a whole if
the file system can do that. Object stores cannot. There a manifest, written after all files, says which files belong to
the release, and the certificate comes last.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from sfumato.engines.spark.file_systems import HIDDEN, Files, LocalFiles, Workspace, files_of, is_remote
from sfumato.engines.spark.session import Session, in_our_words
from sfumato.errors import OutputError, UsageError
from sfumato.tables.locations import CERTIFICATE as SUFFIX
from sfumato.tables.targets.digests import file_digest
from sfumato.tables.targets.target import CertifiedTable

MANIFEST = "_sfumato_manifest.json"
CERTIFICATE = f"_certificate{SUFFIX}"
PARQUET = (".parquet", ".pq")
# What a directory of a release, or one that Spark wrote, holds: also marks of completeness and checksums.
OWN = re.compile(rf"part-.*\.parquet|_SUCCESS|{re.escape(CERTIFICATE)}|{re.escape(MANIFEST)}|\..*\.crc")
FEW_BYTES = 1 << 26


def check_directory(session: Session, target: str, *, force: bool) -> list[str]:
    """Refuse an output that cannot take a release, before any work is done, and return what the release replaces."""
    name = target.rpartition("/")[2]
    suffix = Path(name).suffix.lower()
    if suffix and suffix not in PARQUET:
        raise UsageError(
            f"the Spark engine writes a directory of Parquet files, so the output {name!r} should end in .parquet or "
            "have no suffix. Rename it."
        )
    files = files_of(session, target)
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
        return [f"the earlier release {target}"]
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


def put_in_place(
    session: Session, workspace: Workspace, staged: str, target: str, entries: Sequence[CertifiedTable], text: str
) -> None:
    """Rename the staged directory to its target, with its certificate, and replace what was there."""
    files = files_of(session, target)
    before = workspace.path("replaced")
    if not is_remote(target):
        files.write(f"{staged}/{CERTIFICATE}", text)
    with contextlib.ExitStack() as undo:
        if files.exists(target):
            files.rename(target, before)
            undo.callback(_back, files, before, target)
        files.rename(staged, target)
        undo.callback(files.remove, target)
        if is_remote(target):
            files.write(f"{target}/{MANIFEST}", json.dumps({"files": list(entries)}, indent=2) + "\n")
            files.write(f"{target}/{CERTIFICATE}", text)
        undo.pop_all()
    if isinstance(files, LocalFiles):
        handle = os.open(os.path.dirname(target) or "/", os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _back(files: Files, before: str, target: str) -> None:
    files.remove(target)
    files.rename(before, target)
