"""Paths of taxonomy files, which are relative to the policy file."""

from __future__ import annotations

import os
from pathlib import Path

FLAT = "flat"


def path_text(path: str | os.PathLike[str]) -> str:
    """Return a path as a policy holds it.

    A path object named ``flat`` is a file: only the word itself asks for a flat taxonomy.
    """
    return f"./{FLAT}" if not isinstance(path, str) and os.fspath(path) == FLAT else os.fspath(path)


def moved(path: str, source: Path, target: Path) -> str:
    """Rewrite a path that is relative to ``source`` so that it is relative to ``target``.

    The result is absolute if no relative path leads from ``target`` to the file.
    """
    if os.path.isabs(path) or os.path.realpath(source) == os.path.realpath(target):
        return path
    file = real_path(source / path)
    try:
        relative = Path(os.path.relpath(file, os.path.realpath(target))).as_posix()
    except ValueError:  # on another drive
        return file.as_posix()
    return f"./{FLAT}" if relative == FLAT else relative


def is_inside(file: Path, directory: Path) -> bool:
    """Whether a file lies in a directory or below it, wherever links lead."""
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(directory))


def real_path(file: Path) -> Path:
    """Resolve links in the directories of a path, since ``..`` after a link leads elsewhere; the file may be a link."""
    return Path(os.path.realpath(file.parent), file.name)
