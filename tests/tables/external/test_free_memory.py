"""What the process can still get is what the narrowest control group above it leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.tables.external.free_memory import free_memory

MB = 10**6


def machine(root: Path, *, groups: str, mounts: str, files: dict[str, str], available: int = 900 * MB) -> Path:
    """Write the files of a machine below ``root``."""
    contents = {
        "proc/meminfo": f"MemTotal: 9999999 kB\nMemAvailable: {available // 1024} kB\n",
        "proc/self/cgroup": groups,
        "proc/self/mountinfo": mounts,
        **files,
    }
    for name, text in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return root


VERSION_2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
VERSION_1 = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "35 31 0:32 {top} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)


@pytest.mark.parametrize("limited", ["a/b", "a", ""])
def test_a_limit_counts_at_every_level(tmp_path: Path, limited: str) -> None:
    group = f"sys/fs/cgroup/{limited}/".replace("//", "/")
    files = {
        "sys/fs/cgroup/a/b/memory.max": "max\n",
        "sys/fs/cgroup/a/memory.max": "max\n",
        "sys/fs/cgroup/a/other/memory.max": "1\n",
        f"{group}memory.max": f"{500 * MB}\n",
        f"{group}memory.current": f"{300 * MB}\n",
        f"{group}memory.stat": f"anon 7\ninactive_file {50 * MB}\n",
    }
    root = machine(tmp_path, groups="0::/a/b\n", mounts=VERSION_2, files=files)
    assert free_memory(root) == 250 * MB  # pages of files that can be dropped are not in use


def test_a_soft_limit_counts_too(tmp_path: Path) -> None:
    files = {"sys/fs/cgroup/memory.max": f"{800 * MB}\n", "sys/fs/cgroup/memory.high": f"{600 * MB}\n"}
    assert free_memory(machine(tmp_path, groups="0::/\n", mounts=VERSION_2, files=files)) == 600 * MB


@pytest.mark.parametrize("top, path", [("/", "/docker/x"), ("/docker/x", "/docker/x"), ("/docker/x", "/docker/x/y")])
def test_groups_of_version_1_are_found_where_they_are_mounted(tmp_path: Path, top: str, path: str) -> None:
    group = f"sys/fs/cgroup/memory{path if top == '/' else path.removeprefix(top)}/"
    files = {
        f"{group}memory.limit_in_bytes": f"{400 * MB}\n",
        f"{group}memory.usage_in_bytes": f"{100 * MB}\n",
        f"{group}memory.stat": f"inactive_file 5\ntotal_inactive_file {20 * MB}\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n" if top == "/" else f"{400 * MB}\n",
    }
    groups = f"4:memory:{path}\n1:cpu:/\n0::/\n"
    root = machine(tmp_path, groups=groups, mounts=VERSION_1.format(top=top), files=files)
    assert free_memory(root) == 320 * MB


def test_without_limits_the_machine_decides(tmp_path: Path) -> None:
    assert free_memory(machine(tmp_path, groups="0::/\n", mounts=VERSION_2, files={})) == 900 * MB // 1024 * 1024


def test_a_group_that_is_full_leaves_nothing(tmp_path: Path) -> None:
    files = {"sys/fs/cgroup/memory.max": "1000\n", "sys/fs/cgroup/memory.current": "2000\n"}
    assert free_memory(machine(tmp_path, groups="0::/\n", mounts=VERSION_2, files=files)) == 0
