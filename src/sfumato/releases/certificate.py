"""The certificate that travels with a release: what was asked, what holds, what it cost, and the hash of every file.

It holds no hash or path of the input (with a hash of the input one could test guesses), no time (same release, same
bytes), and no cell value but names in taxonomies and released bounds.
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
from sfumato.tables.locations import FileLocation, certificate_path, location_of
from sfumato.tables.targets.target import Certified, certificate_text

FORMAT = 1
LIBRARIES = ("numba", "numpy", "pyarrow")  # those that have a say in the bytes of a release
COUNTS = ("selected", "imprecision")  # of a selection, which the original was asked for


def certificate(summary: Mapping[str, Any], policy: Policy, files: Sequence[Certified]) -> str:
    """The text of the certificate. ``files`` are the finished files or tables by the name they will have."""
    kept = {key: value for key, value in summary.items() if key not in ("seconds", "warnings")}
    content = {
        "format": FORMAT,
        **without_counts(kept),
        "libraries": {name: version(name) for name in LIBRARIES},
        "policy": shareable_policy(policy),
        "files": list(files),
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def without_counts(summary: Mapping[str, Any]) -> dict[str, Any]:
    """A summary without counts of the original: how many records a selection should return can single somebody out."""
    if "workload" not in summary:
        return dict(summary)
    tasks = [{key: value for key, value in task.items() if key not in COUNTS} for task in summary["workload"]]
    return {**summary, "workload": tasks}


def read_certificate(release: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The certificate of a release, beside its file or table, none when there is none."""
    place = location_of(release)
    try:
        text = certificate_text(place)
        if text is None:
            return None
        content = json.loads(text)
        if content["format"] != FORMAT or not isinstance(content["policy"], dict):
            raise ValueError
        if not all(isinstance(file[key], str) for file in content["files"] for key in ("name", "sha256")):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError):
        where = str(certificate_path(place.path)) if isinstance(place, FileLocation) else f"of {place.shown}"
        raise InputError(f"the certificate {where} cannot be read. Restore it, or audit with --policy.") from None
    assert isinstance(content, dict)
    return content


def shareable_policy(policy: Policy) -> dict[str, Any]:
    """The policy with taxonomy files by name only: a path tells about the machine."""
    content = policy.to_dict()
    for name, column in policy.columns.items():
        if column.taxonomy_file is not None:
            # Both kinds of separators: a policy may come from another system.
            content["columns"][name]["taxonomy"] = PureWindowsPath(PurePath(column.taxonomy_file).name).name
    return content
