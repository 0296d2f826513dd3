"""File systems for Spark: directories of this machine, or of any file system that the cluster can reach.

Paths are strings. A path with a scheme other than ``file`` is reached through Hadoop, all others through the system.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from sfumato.engines.spark.session import Session, in_our_words
from sfumato.errors import OutputError, UsageError
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.targets.staging import cannot_write

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")
TEMPORARY = "spark.sfumato.temporary"
HIDDEN = (".", "_")  # Spark ignores files whose names begin with these


def location(path: str | os.PathLike[str]) -> str:
    """Return a path in the form that Spark takes.

    A path object has lost one slash of ``s3a://``; it is put back. ``file:`` is this machine.
    """
    text = os.fspath(path)
    scheme = SCHEME.match(text)
    if scheme is None:
        return os.path.abspath(text)
    rest = text[scheme.end() :]
    if scheme[1].lower() == "file":
        return os.path.abspath("/" + rest)
    slashes = scheme[0].count("/")
    return f"{scheme[1]}://{'/' if slashes > 2 else ''}{rest}".rstrip("/")


def is_remote(path: str) -> bool:
    """Return whether a location is reached through Hadoop."""
    return SCHEME.match(path) is not None


class Files(Protocol):
    """Operations on files beside reading and writing tables."""

    def exists(self, path: str) -> bool: ...

    def make_private(self, path: str) -> None:
        """Make a directory that only its owner can open."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with its contents, if it exists."""
        ...

    def rename(self, path: str, target: str) -> None: ...

    def copy(self, path: str, target: str) -> None: ...

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a directory."""
        ...

    def read(self, path: str) -> str: ...

    def write(self, path: str, text: str) -> None: ...


class LocalFiles:
    """The files of this machine, or of a file system that every node has mounted."""

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def make_private(self, path: str) -> None:
        with _writing(path):
            os.mkdir(path, 0o700)

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)

    def rename(self, path: str, target: str) -> None:
        with _writing(target):
            os.replace(path, target)

    def copy(self, path: str, target: str) -> None:
        with _writing(target):
            shutil.copyfile(path, target)

    def names(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def read(self, path: str) -> str:
        return Path(path).read_text("utf-8")

    def write(self, path: str, text: str) -> None:
        with _writing(path), open(path, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


class HadoopFiles:
    """The files of HDFS, of object stores, and of any other file system of the cluster."""

    def __init__(self, session: Session, path: str) -> None:
        if getattr(session, "sparkContext", None) is None:
            raise UsageError(
                f"{path} cannot be reached from a session of Spark Connect, which has no access to files. Use a "
                "directory that this machine and the executors share."
            )
        self._java = session.sparkContext._jvm
        with in_our_words("reach the file system of the output"):
            self._system = self._path(path).getFileSystem(session.sparkContext._jsc.hadoopConfiguration())

    def _path(self, path: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(path)

    def exists(self, path: str) -> bool:
        with in_our_words("look for a file"):
            return bool(self._system.exists(self._path(path)))

    def make_private(self, path: str) -> None:
        permission = self._java.org.apache.hadoop.fs.permission.FsPermission
        with in_our_words("make a directory"):
            self._system.mkdirs(self._path(path), permission("700"))

    def remove(self, path: str) -> None:
        with in_our_words("remove a directory"):
            self._system.delete(self._path(path), True)

    def rename(self, path: str, target: str) -> None:
        with in_our_words("rename a file"):
            renamed = self._system.rename(self._path(path), self._path(target))
        if not renamed:
            raise OutputError(f"{target} could not be put in place. Check whether it exists already, and who owns it.")

    def copy(self, path: str, target: str) -> None:
        copy = self._java.org.apache.hadoop.fs.FileUtil.copy
        with in_our_words("copy a file"):
            source_system = self._path(path).getFileSystem(self._system.getConf())
            copy(source_system, self._path(path), self._system, self._path(target), False, self._system.getConf())

    def names(self, path: str) -> list[str]:
        with in_our_words("list a directory"):
            return sorted(status.getPath().getName() for status in self._system.listStatus(self._path(path)))

    def read(self, path: str) -> str:
        with in_our_words("read a file"):
            stream = self._system.open(self._path(path))
            try:
                return bytes(self._java.org.apache.commons.io.IOUtils.toByteArray(stream)).decode("utf-8", "replace")
            finally:
                stream.close()

    def write(self, path: str, text: str) -> None:
        with in_our_words("write a file"):
            stream = self._system.create(self._path(path), True)
            stream.write(bytearray(text.encode()))
            stream.close()


def files_of(session: Session, path: str) -> Files:
    """Return the file system of a location."""
    return HadoopFiles(session, path) if is_remote(path) else LocalFiles()


class Workspace:
    """A private directory for the files that jobs of one run hand to each other. It is removed after the run."""

    def __init__(self, session: Session, parent: str) -> None:
        self._scratch = None if is_remote(parent) else Scratch(Path(parent))
        self._files = files_of(session, parent)
        self._directory = f"{parent}/.sfumato-scratch-{secrets.token_hex(8)}"

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        if self._scratch is None:
            self._files.make_private(self._directory)
        else:
            self._scratch.__enter__()
            self._directory = str(self._scratch.directory)

    def path(self, name: str) -> str:
        return f"{self._directory}/{name}"

    def remove(self, name: str) -> None:
        """Remove files that no later job reads."""
        self._files.remove(self.path(name))

    def close(self) -> None:
        if self._scratch is None:
            self._files.remove(self._directory)
        else:
            self._scratch.close()


def temporary_for(session: Session, target: str | None) -> str:
    """Return the directory for files that executors share: the configured one, or else the one of the output."""
    configured = session.conf.get(TEMPORARY, "")
    if configured:
        return location(configured)
    if target is not None:
        return target.rpartition("/")[0] or "/"
    context = getattr(session, "sparkContext", None)
    if context is not None and not context.master.startswith("local"):
        directory = getattr(context, "getCheckpointDir", lambda: None)()
        if directory is None:
            raise UsageError(
                "no directory is configured in which executors can share files. Set the checkpoint directory of the "
                f"session, or {TEMPORARY}, to a directory that all nodes can reach."
            )
        return location(directory)
    return tempfile.gettempdir()


@contextlib.contextmanager
def _writing(path: str) -> Any:
    try:
        yield
    except OSError as error:
        raise cannot_write(Path(path), error) from None
