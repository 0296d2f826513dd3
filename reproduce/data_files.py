"""The real tables in ``data/``, and whether they are the files that the figures were recorded with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

DATA = Path(__file__).resolve().parent / "data"
CHECKSUMS = DATA / "SHA256SUMS"


def checksums() -> Mapping[str, str]:
    """Return the SHA-256 of every file by its name in ``data/``."""
    lines = CHECKSUMS.read_text("utf-8").splitlines()
    return {name: digest for digest, name in (line.split(maxsplit=1) for line in lines)}


def changed_files() -> list[str]:
    """Return the names of the files that are missing or differ from their checksum."""
    return [name for name, digest in checksums().items() if _sha256(DATA / name) != digest]


def _sha256(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None
