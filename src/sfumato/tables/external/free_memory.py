"""The memory that this process can still get: of the machine, and of every control group that it is in.

A container or a service may be limited at any level above its own control group, so all levels up to the root are read,
in version 2 of control groups and in version 1. Pages of files that a group has in the cache do not count as used,
since the system drops them first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

UNKNOWN = 4 * 10**9  # bytes that are assumed where the system does not tell
# By version: the files that hold a limit, the memory in use, and the name of cached pages in memory.stat.
GROUP_FILES = {
    2: (("memory.max", "memory.high"), "memory.current", "inactive_file"),
    1: (("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file"),
}


def free_memory(root: Path = Path("/")) -> int:
    """Return the bytes that this process can still get. root: where /proc and the mounted file systems are."""
    free = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")] if hasattr(os, "sysconf") else [UNKNOWN]
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            free.append(int(line.split()[1]) * 1024)
    for version, directory in _control_groups(root):
        free += _left_in(version, directory)
    return max(min(free), 0)


def _control_groups(root: Path) -> Iterator[tuple[int, Path]]:
    """Yield the directories of the control groups that limit this process, from its own up to the root of each tree."""
    mounts = {version: (point, top) for version, point, top in _mounts(root)}
    for line in _lines(root / "proc/self/cgroup"):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        version = 2 if number == "0" and not controllers else 1
        if version not in mounts or (version == 1 and "memory" not in controllers.split(",")):
            continue
        point, top = mounts[version]
        # In a container, the directory of its own group may be mounted in place of the root.
        inside = path.removeprefix(top) if top != "/" and path.startswith(top) else path
        directory = root / point.lstrip("/")
        parts = [part for part in inside.split("/") if part and part != ".."]
        for depth in range(len(parts), -1, -1):
            yield version, directory.joinpath(*parts[:depth])


def _mounts(root: Path) -> Iterator[tuple[int, str, str]]:
    """Yield where the control groups of each version are mounted, and which of their directories is."""
    for line in _lines(root / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            yield 2, fields[4], fields[3]
        elif kind[0] == "cgroup" and "memory" in kind[2].split(","):
            yield 1, fields[4], fields[3]


def _left_in(version: int, directory: Path) -> list[int]:
    """Return what the limits of a control group leave; nothing if it has none."""
    limits, usage, cached = GROUP_FILES[version]
    used = _number(directory / usage) or 0
    for line in _lines(directory / "memory.stat"):
        words = line.split()
        if len(words) == 2 and words[0] == cached and words[1].isdecimal():
            used -= int(words[1])
    found = [_number(directory / name) for name in limits]
    return [limit - max(used, 0) for limit in found if limit is not None]


def _number(path: Path) -> int | None:
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].strip().isdecimal() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
