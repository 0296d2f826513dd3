"""Kill a run before each of its operations on files: a child process counts them, and dies before the one asked for.

Operations are those that change a directory or a file: what Python reports to audit hooks (opening for writing,
renaming, linking, removing, making directories, changing permissions), syncs, exchanges of directories, and every
statement that a database is given. The child is forked from a process that has everything loaded, so a kill is cheap.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import stat
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.tables.targets import duckdb_target, file_publication, journal, postgres_target, sqlite_target

RENAMES = ("os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate", "os.symlink")
OPENED = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
DONE, FAILED, VISIBLE, CRASHED = 0, 1, 2, 3
AT_MOST = 2000


class Operations:
    """Counts operations below ``folder``. Before the ``last`` one it ends the process, or fails as on a full disk.

    Until there is a journal, it looks before each operation whether others could read anything new.
    """

    def __init__(self, folder: Path, last: int, failure: OSError | None, *, private: bool) -> None:
        self._folder, self._last, self._failure = folder.resolve(), last, failure
        self._before = contents(self._folder)
        self._private = private
        self._count = 0

    def happens(self, what: str | int | None = None) -> None:
        if what is not None and not self._is_inside(what):
            return
        self._count += 1
        if self._private:
            self._check_nothing_is_visible()
        if self._count == self._last:
            if self._failure is None:
                os.kill(os.getpid(), signal.SIGKILL)
            elif what is not None:  # databases have errors of their own
                raise self._failure

    def _check_nothing_is_visible(self) -> None:
        now = contents(self._folder)
        if any(path.name.endswith(journal.JOURNAL) for path in now):
            self._private = False
            return
        for path, content in now.items():
            seen = content != self._before.get(path) and is_visible(path, self._folder)
            if seen and not path.name.endswith(journal.DRAFT):  # a draft holds names, not rows
                print(f"others can read {path} before it is published", file=sys.stderr, flush=True)
                os._exit(VISIBLE)

    def _is_inside(self, what: str | int) -> bool:
        path = os.readlink(f"/proc/self/fd/{what}") if isinstance(what, int) else os.path.abspath(what)
        return Path(path).is_relative_to(self._folder)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, str | bytes | os.PathLike) and flags & OPENED:
                self.happens(os.fsdecode(path))
        elif event in RENAMES:
            what = arguments[0]
            self.happens(what if isinstance(what, int) else os.fsdecode(what))


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file below a folder, with what is in it."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size}


def is_visible(path: Path, folder: Path) -> bool:
    """Whether others than the owner can read a file below ``folder``, as far as permissions below it go."""
    parents = [parent for parent in path.parents if parent != folder and parent.is_relative_to(folder)]
    open_way = all(parent.stat().st_mode & 0o011 for parent in parents)
    return open_way and bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))


def run_to(
    action: Callable[[], object], folder: Path, last: int, failure: OSError | None = None, *, private: bool = True
) -> int:
    """Run an action in a child up to one of its operations, and return how it ended.

    It ends with DONE if it has fewer operations, with FAILED if it raised an error, and with -SIGKILL if it was killed.
    private: nobody else may see anything until there is a journal.
    """
    child = os.fork()
    if child == 0:
        status = CRASHED
        try:
            operations = Operations(folder, last, failure, private=private)
            with counted(operations):
                try:
                    action()
                    status = DONE
                except SfumatoError:
                    status = FAILED
        finally:
            if status == CRASHED:
                traceback.print_exc()
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(ended)
    assert code in (DONE, FAILED, -signal.SIGKILL), {VISIBLE: "something was visible", CRASHED: "it crashed"}[code]
    return code


def killed_after_commit(action: Callable[[], object]) -> None:
    """Run an action in a child that is killed as soon as its journal is written."""
    child = os.fork()
    if child == 0:
        file_publication.Publication.put_in_place = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        try:
            action()
        finally:
            traceback.print_exc()
            os._exit(CRASHED)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@contextlib.contextmanager
def counted(operations: Operations) -> Iterator[None]:
    """Count everything that happens from here on. It is never undone: the process ends after it."""
    sync, exchange = os.fsync, file_publication.exchange_atomically

    def fsync(handle: int) -> None:
        operations.happens(handle)
        sync(handle)

    def exchanged(staged: Path, target: Path) -> bool:
        operations.happens(str(target))
        return exchange(staged, target)

    os.fsync, file_publication.exchange_atomically = fsync, exchanged
    sqlite_target.open_sqlite = _counted_sqlite(operations)
    duckdb_target.open_duckdb = _counted_duckdb(operations, duckdb_target.open_duckdb)
    postgres_target.open_postgres = _counted_postgres(operations, postgres_target.open_postgres)
    sys.addaudithook(operations.hear)
    yield
    operations.happens = lambda what=None: None  # type: ignore[method-assign]


def _counted_sqlite(operations: Operations) -> Callable[..., Any]:
    from sfumato.tables.sources.sqlite_source import SECONDS

    class Counted(sqlite3.Connection):
        def execute(self, *arguments: Any) -> Any:
            operations.happens()
            return super().execute(*arguments)

        def executemany(self, *arguments: Any) -> Any:
            operations.happens()
            return super().executemany(*arguments)

    def opened(path: Path, mode: str) -> Any:
        return sqlite3.connect(
            f"file:{path.absolute()}?mode={mode}", uri=True, timeout=SECONDS, isolation_level=None, factory=Counted
        )

    return opened


class _Statements:
    """A connection whose statements are counted."""

    def __init__(self, connection: Any, operations: Operations) -> None:
        self._connection, self._operations = connection, operations

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._connection, name)
        if name not in ("execute", "commit", "close"):
            return found

        def counted(*arguments: Any) -> Any:
            self._operations.happens()
            return found(*arguments)

        return counted


def _counted_duckdb(operations: Operations, open_duckdb: Callable[..., Any]) -> Callable[..., Any]:
    @contextlib.contextmanager
    def opened(*arguments: Any, **options: Any) -> Iterator[Any]:
        operations.happens()
        with open_duckdb(*arguments, **options) as connection:
            yield _Statements(connection, operations)

    return opened


def _counted_postgres(operations: Operations, open_postgres: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: _Statements(open_postgres(*arguments), operations)
