"""The certificate that accompanies a release: its policy, audit and public figures, and the hash of every file.

Every figure can be computed from the release and the policy alone, except how many records were left out
(``evaluation/public_figures.py``). The certificate holds no hash or path of the input (a hash of the input would let a
reader test guesses), no time (the same release has the same bytes), and no cell value except names in taxonomies and
released bounds.
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
        content = json.loads(text)
        if content["format"] not in READABLE or not isinstance(content["policy"], dict):
            raise ValueError
        if not all(isinstance(file[key], str) for file in content["files"] for key in ("name", "sha256")):
            raise ValueError
    except PermissionError:
        raise InputError(f"no permission to read the certificate {_where(location)}. Ask its owner for it.") from None
    except (OSError, ValueError, KeyError, TypeError):
        where = _where(location)
        raise InputError(f"the certificate {where} cannot be read. Restore it, or audit with --policy.") from None
    assert isinstance(content, dict)
    return content


def _where(location: Location) -> str:
    return str(certificate_path(location.path)) if isinstance(location, FileLocation) else f"of {location.shown}"


def shareable_policy(policy: Policy) -> dict[str, Any]:
    """The policy with the names of taxonomy files only: a path would reveal something about the machine."""
    content = policy.to_dict()
    for name, column in policy.columns.items():
        if column.taxonomy_file is not None:
            # Remove directories with either separator: a policy may come from another system.
            content["columns"][name]["taxonomy"] = PureWindowsPath(PurePath(column.taxonomy_file).name).name
    return content
