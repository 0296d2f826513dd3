"""Publish what is staged, all of it in one moment, and end what killed runs have begun to publish.

``journal.py`` explains the journal, which decides. A draft of it, locked by the run that publishes, keeps two runs from
publishing to one target at once. The journal is locked as long as its run is alive.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from sfumato.errors import InputError
from sfumato.tables.locations import ServerLocation
from sfumato.tables.targets.file_operations import (
    current_mask,
    exchange_atomically,
    is_still,
    lock,
    locked,
    remove,
    set_mode,
    sync_directory,
)
from sfumato.tables.targets.journal import (
    JOURNAL,
    Entry,
    Journal,
    certificate_digest,
    draft_path,
    journal_path,
    journal_text,
    main_of,
    read_journal,
    read_unlocked,
)

PATIENCE = 10.0  # seconds to wait for another run that is publishing
_PAUSE = 0.02


class Publication:
    """The right to publish to ``main``, the first target, and what was published so far.

    Inside ``with``, ``commit`` writes the journal and ``put_in_place`` renames what it lists. On an error, what was
    renamed is renamed back.
    """

    def __init__(self, main: Path) -> None:
        self._main = main
        self._journal, self._draft = journal_path(main), draft_path(main)
        self._lock = -1
        self._entries: Sequence[Entry] = ()
        self._undo = contextlib.ExitStack()
        self._tidy = True
        self.current = main
        """The target that is being worked on, for the message if that fails."""
        self.decided = False
        """Whether a transaction was committed, so that nothing can be taken back any more."""
        self.left_open = False
        """Whether an error left something that only the next command can end."""

    def __enter__(self) -> Self:
        self._lock = _exclusive(self._draft, self._main)
        try:
            settle(self._journal, self._main)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            if not self.decided:
                with contextlib.suppress(OSError):
                    self._undo.close()
            # What an interruption left renamed, or what cannot be renamed back, only the next command can end.
            begun = self.decided or any(entry.done for entry in self._entries)
            self.left_open = begun and is_still(self._journal, self._lock)
        if self.left_open:
            os.close(self._lock)
        else:
            self._close()

    def commit(self, journal: Journal) -> None:
        """Write the journal. Everything that it lists must be complete and synced."""
        self._entries = journal.entries
        with open(self._lock, "wb", closefd=False) as file:
            file.write(journal_text(journal, self._main).encode())
        os.fsync(self._lock)
        for folder in {entry.target.parent for entry in journal.entries}:
            sync_directory(folder)
        set_mode(self._draft, 0o666 & ~current_mask())  # others may see that they have to wait
        self._draft.replace(self._journal)
        sync_directory(self._journal.parent)

    def put_in_place(self) -> None:
        """Rename what the journal lists, and give it its permissions."""
        for entry in self._entries:
            self.current = entry.target
            _place(entry, self._undo)
            set_mode(entry.target, entry.mode)
        for folder in {entry.target.parent for entry in self._entries}:
            sync_directory(folder)
        self._undo.pop_all()
        try:
            for entry in self._entries:
                _remove_replaced(entry)
        except OSError:
            self._tidy = False  # the release is there; the next command removes what it replaced

    def _close(self) -> None:
        with contextlib.suppress(OSError):  # a journal of which everything is done harms nobody
            for path in (self._draft, self._journal) if self._tidy else ():
                if is_still(path, self._lock):
                    path.unlink()
            sync_directory(self._journal.parent)
        os.close(self._lock)


def settle(journal: Path, main: Path, server: ServerLocation | None = None) -> None:
    """End or undo the publication of a killed run. Wait for one that is under way.

    ``main`` is the target that the journal belongs to. ``server`` has the password that a journal does not have.
    """
    with _found(journal, main) as handle:
        if handle is None:
            return
        content = read_journal(journal, handle, server)
        if content is None:
            raise InputError(
                f"the journal {journal} beside {main} is damaged, or names other files than those that Sfumato has "
                "staged. Nothing was changed. Check who wrote it, and remove it."
            )
        if not _may_finish(handle):
            if content.transaction is None and all(entry.done for entry in content.entries):
                return
            raise _unfinished(main)
        try:
            if content.transaction is None or content.transaction.committed:
                for entry in content.entries:
                    _finish(entry)
            else:
                for entry in content.entries:
                    remove(entry.staged)
            for folder in {entry.target.parent for entry in content.entries}:
                sync_directory(folder)
            journal.unlink()
            sync_directory(journal.parent)
        except OSError:
            if content.transaction is None and all(entry.done for entry in content.entries):
                return  # the release is there; only what it replaced, or the journal, cannot be removed
            raise _unfinished(main) from None


def settle_beside(target: Path, server: ServerLocation | None = None) -> None:
    """End or undo every publication whose journal lists ``target``, whatever its first target is."""
    target = target.absolute()
    settle(journal_path(target), target, server)
    for journal in _journals_in(target.parent):
        content = read_unlocked(journal)
        if content is not None and any(entry.target == target for entry in content.entries):
            settle(journal, main_of(journal))


def remove_draft(main: Path) -> None:
    """Remove the draft of a run that was killed before it committed anything."""
    draft = draft_path(main)
    with contextlib.suppress(OSError), locked(draft):
        draft.unlink()


def lists_directory(path: Path) -> bool:
    """Return whether a journal says that a directory of this name is being published."""
    content = read_unlocked(journal_path(path))
    return content is not None and content.entries[0].certificate is not None


def _exclusive(draft: Path, main: Path) -> int:
    """Create and lock the draft of a journal, and wait for another run that holds it."""
    end = time.monotonic() + PATIENCE
    while True:
        remove_draft(main)
        with contextlib.suppress(FileExistsError):
            handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            lock(handle, wait=True)  # another run may hold it for the moment that it takes to remove it
            if is_still(draft, handle):
                return handle
            os.close(handle)
        _wait(main, end)


@contextlib.contextmanager
def _found(journal: Path, main: Path) -> Iterator[int | None]:
    """Lock a journal, and wait for the run that holds it; None if there is no journal, or none any more."""
    end = time.monotonic() + PATIENCE
    while os.path.lexists(journal):
        with contextlib.ExitStack() as opened:
            try:
                handle = opened.enter_context(locked(journal))
            except FileNotFoundError:
                continue
            except BlockingIOError:
                _wait(main, end)
                continue
            except PermissionError:  # of another user, who may be publishing at this moment
                if time.monotonic() > end:
                    raise _unfinished(main) from None
                time.sleep(_PAUSE)
                continue
            except OSError:  # a symbolic link
                raise InputError(
                    f"{journal} beside {main} is not a journal that Sfumato has written. Nothing was changed. Check "
                    "who wrote it, and remove it."
                ) from None
            yield handle
            return
    yield None


def _wait(main: Path, end: float) -> None:
    if time.monotonic() > end:
        raise InputError(f"another run is putting {main} in place. Run again when it is done.")
    time.sleep(_PAUSE)


def _unfinished(main: Path) -> InputError:
    return InputError(
        f"a run that published {main} was killed before it was done, and this user may not finish it. Ask the owner of "
        f"{main.absolute().parent} to run: sfumato audit {main}"
    )


def _may_finish(handle: int) -> bool:
    return os.name != "posix" or os.geteuid() in (0, os.fstat(handle).st_uid)


def _journals_in(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder) if name.endswith(JOURNAL)]
    except (OSError, ValueError):
        return []  # a directory that may not be listed


def _place(entry: Entry, undo: contextlib.ExitStack) -> None:
    """Rename what is staged to its target. Every step that was taken is undone by ``undo``."""
    staged, target, replaced = entry.staged, entry.target, entry.replaced
    if not os.path.lexists(target):
        staged.replace(target)
        undo.callback(target.replace, staged)
    elif entry.certificate is None:
        undo.callback(replaced.unlink, missing_ok=True)
        kept = _second_name(target, replaced)
        staged.replace(target)
        undo.callback(_put_back, entry, kept)
    elif target.is_symlink() or not target.is_dir():
        raise NotADirectoryError
    elif exchange_atomically(staged, target):
        undo.callback(_exchange_back, staged, target)
    else:
        target.rename(replaced)
        undo.callback(replaced.rename, target)
        staged.rename(target)
        undo.callback(target.rename, staged)


def _second_name(target: Path, name: Path) -> bool:
    """Give a file a second name, and return whether the file system can do that and this user may."""
    with contextlib.suppress(OSError, NotImplementedError):
        os.link(target, name, follow_symlinks=False)
        return True
    return False


def _put_back(entry: Entry, kept: bool) -> None:
    if not kept:
        raise FileExistsError  # the old file is gone: the next command ends what the journal began
    entry.target.replace(entry.staged)
    entry.replaced.replace(entry.target)


def _exchange_back(staged: Path, target: Path) -> None:
    if not exchange_atomically(staged, target):
        raise FileExistsError


def _finish(entry: Entry) -> None:
    """Do what is left to do of an entry of a committed journal."""
    if not entry.done:
        if entry.certificate is not None and certificate_digest(entry.staged) != entry.certificate:
            raise InputError(
                f"the release that was to become {entry.target} is neither there nor staged beside it. Make it again, "
                f"after removing {journal_path(entry.target)}."
            )
        _place(entry, contextlib.ExitStack())  # a step that fails is taken again by the next command
    if os.path.lexists(entry.target) and (
        entry.certificate is not None or os.lstat(entry.target).st_ino == entry.number
    ):
        set_mode(entry.target, entry.mode)
    _remove_replaced(entry)


def _remove_replaced(entry: Entry) -> None:
    """Remove what was at the target before: of a directory that was exchanged, it has the staged name."""
    for left in (entry.replaced, *([entry.staged] if entry.certificate is not None else [])):
        remove(left)
