"""Files that survive: each is written under another name, synced and renamed, so that it is old or new, never half."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from sfumato.errors import InputError, OutputError
from sfumato.tables.targets.file_operations import sync_directory


def write_durably(path: Path, content: bytes) -> None:
    """Replace a file by new content that only its owner may read."""
    try:
        _replace(path, content, lambda file: os.fsync(file.fileno()))
        sync_directory(path.parent)
    except OSError as error:
        raise _not_writable(error) from None


def _replace(path: Path, content: bytes, sync: Callable[[BinaryIO], None]) -> None:
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # 0600
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            sync(file)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _not_writable(error: OSError) -> OutputError:
    return OutputError(
        f"the project cannot be written: {os.strerror(error.errno or 0).lower()}. Make its folder writable."
    )


def write_json(path: Path, value: Any) -> None:
    write_durably(path, _json(value))


def write_momentary_json(path: Path, value: Any) -> None:
    """Replace a file that tells of a moment. It is whole for whoever reads it, and need not survive a crash."""
    try:
        _replace(path, _json(value), lambda _: None)
    except OSError as error:
        raise _not_writable(error) from None


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")


def read_json(path: Path) -> Any:
    """Read a file that ``write_json`` wrote; None if there is none."""
    try:
        return json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise InputError(f"the file {path.name!r} of the project cannot be read. Restore it from a copy.") from None


def private_directory(path: Path) -> Path:
    """Make a directory that only its owner may enter, unless it is there."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _not_writable(error) from None
    return path
