"""The distinct values of each column, which an examination leaves beside its result, and when they are removed.

They are original data. They are kept for as long as the screens of hierarchies and requirements need them: not after
another examination, nor once the table has changed or the project is published.
"""

from __future__ import annotations

from pathlib import Path

from sfumato.app.background_run import BackgroundRun
from sfumato.app.project import Project
from sfumato.errors import InputError

PATTERN = "values-*.parquet"


def values_path(run: Path, index: int) -> Path:
    """The file with the values of a column. run: the folder of the examination."""
    return run / f"values-{index}.parquet"


def table_mark(table: Path) -> list[int] | None:
    """What tells one state of a file from another: its size and time. None if it is no file of its own."""
    try:
        found = table.stat()
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns]


def table_has_changed(project: Project) -> bool:
    """Whether the table is another one than the adopted examination has read."""
    examined = project.state.notes.get("examined_table")
    try:
        return examined is not None and table_mark(project.table) not in (None, examined)
    except InputError:
        return False  # it is gone, which the screens say themselves


def has_values(project: Project) -> bool:
    """Whether the values of the adopted examination are still there."""
    run = project.directory / "runs" / str(project.state.notes.get("examined"))
    return any(run.glob(PATTERN))


def remove_stale_values(project: Project) -> None:
    """Remove the values that no screen shows any more."""
    adopted = project.state.notes.get("examined", "")
    gone = project.locked or table_has_changed(project)
    for run in map(BackgroundRun, {path.parent for path in (project.directory / "runs").glob(f"*/{PATTERN}")}):
        is_coming = run.number > adopted and run.state in ("running", "done")  # it is adopted at the next look
        if project.locked or not (is_coming or (run.number == adopted and not gone)):
            for path in run.directory.glob(PATTERN):
                path.unlink(missing_ok=True)
