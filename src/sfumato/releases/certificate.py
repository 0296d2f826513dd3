"""The certificate that accompanies a release: its policy, audit and public figures, and the hash of every file.

Every figure can be computed from the release and the policy alone, except how many records were left out
(``evaluation/public_figures.py``). The certificate holds no hash or path of the input (a hash of the input would let a
reader test guesses), no time (the same release has the same bytes), and no cell value except names in taxonomies and
released bounds. That of a trial has ``trial``, which is true; one without it belongs to a release.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import PurePath, PureWindowsPath
from typing import Any

from sfumato.errors import InputError
from sfumato.policy import Policy
from sfumato.policy.input_settings import separator_character
from sfumato.policy.written_text import written_encoding
from sfumato.tables.locations import FileLocation, Location, certificate_path, location_of
from sfumato.tables.targets.target import CertifiedTable, certificate_text, recover_location

FORMAT = 2
READABLE = (1, FORMAT)  # format 1, of version 0.1, also had figures that were measured against the original
LIBRARIES = ("numba", "numpy", "pyarrow")  # libraries that influence the bytes of a release


def certificate(summary: Mapping[str, Any], policy: Policy, files: Sequence[CertifiedTable]) -> str:
    """The text of the certificate.

    ``summary`` is the public summary of a release, ``files`` are the finished files or tables under their final names.
    """
    content = {
        "format": FORMAT,
        **summary,
        "libraries": {name: version(name) for name in LIBRARIES},
        "policy": shareable_policy(policy),
        "files": list(files),
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def read_certificate(release: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The certificate that lies beside the file or table of a release, or None."""
    location = location_of(release)
    recover_location(location)
    try:
        text = certificate_text(location)
        if text is None:
            return None
        content: dict[str, Any] = json.loads(text)
        _check(content)
    except PermissionError:
        raise InputError(f"no permission to read the certificate {_where(location)}. Ask its owner for it.") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        where = _where(location)
        raise InputError(f"the certificate {where} cannot be read. Restore it, or audit with --policy.") from None
    return content


def _where(location: Location) -> str:
    return str(certificate_path(location.path)) if isinstance(location, FileLocation) else f"of {location.shown}"


def _check(content: Any) -> None:
    """Raise ValueError, KeyError or TypeError if a certificate has not the form in which ours are written."""
    _check_types(content, dict)
    if type(content["format"]) is not int or content["format"] not in READABLE:
        raise ValueError
    _check_types(content["policy"], dict)
    _check_types(content["files"], list)
    for file in content["files"]:
        _check_types(file, dict)
        _check_types(file["name"], str)
        _check_types(file["sha256"], str)
        _check_types(file["bytes"], int)
        if "text" in file:
            _check_text(file["text"])
    _check_types(content.get("audit", []), list)
    for line in content.get("audit", []):
        _check_types(line, dict)
        _check_types(line["requirement"], str)
        _check_types(line["holds"], bool, type(None))
    _check_types(content.get("trial", False), bool)
    for key in ("method", "engine", "version"):
        _check_types(content.get(key, ""), str)
    _check_types(content.get("seed"), int, type(None))
    for name, value in _table(content, "libraries").items():
        _check_types(name, str)
        _check_types(value, str)
    linked = _table(content, "linked")
    for name in (*_table(linked, "files").values(), *linked.get("remarks", [])):
        _check_types(name, str)
    for grid in _table(content, "statistics").values():
        _check_types(grid, dict)
        _check_types(grid["grid"], int, float)


def _check_text(text: Any) -> None:
    """Check how a CSV file was written, with the checks of the policy. These raise ValueError."""
    _check_types(text, dict)
    separator_character(text["separator"])
    written_encoding(text["encoding"])
    _check_types(text.get("numbers", []), list)
    for name in text.get("numbers", []):
        _check_types(name, str)


def _table(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    table = content.get(key, {})
    _check_types(table, dict)
    assert isinstance(table, dict)
    return table


def _check_types(value: Any, *types: type) -> None:
    if not isinstance(value, types):
        raise TypeError


def file_name(path: str) -> str:
    """The name of a file without its directories, with either separator: a policy may come from another system."""
    return PureWindowsPath(PurePath(path).name).name


def shareable_policy(policy: Policy) -> dict[str, Any]:
    """The policy with the names of taxonomy files only, and without its key: a path would tell about the machine."""
    content = policy.with_files(file_name)
    if content.get("privacy", {}).pop("pseudonym_key", None) is not None and not content["privacy"]:
        del content["privacy"]  # where a key lies is nobody's business, not even the name of its file
    return content
