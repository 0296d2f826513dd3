"""The kernel cache: a damaged file is compiled anew, and nobody else's files are ever run."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sfumato.errors import KernelCacheWarning
from sfumato.kernels import decorator
from sfumato.kernels.cache_directory import cache_directory
from sfumato.kernels.decorator import kernel, on_compilation

pytestmark = pytest.mark.compiled
NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def new_kernel() -> Callable[[int, int], int]:
    """The same kernel each time, without what an earlier call compiled."""

    def added(one, other):
        return one + other

    return kernel(added)


def compiles(patch: pytest.MonkeyPatch, directory: Path) -> bool:
    """Run a kernel, check its result, and return whether it had to be compiled."""
    patch.setattr(decorator, "cache_directory", lambda: directory)
    compiled: list[bool] = []
    with on_compilation(lambda: compiled.append(True)):
        assert new_kernel()(2, 3) == 5
    return bool(compiled)


def signed(machine_code: bytes) -> bytes:
    return hashlib.sha256(machine_code).digest() + machine_code


def damages() -> Iterator[tuple[str, Callable[[Path], object]]]:
    def cut(length: float) -> Callable[[Path], object]:
        return lambda path: path.write_bytes(path.read_bytes()[: int(length)])

    def replaced(content: Callable[[bytes], bytes]) -> Callable[[Path], object]:
        return lambda path: path.write_bytes(content(path.read_bytes()))

    def instead(make: Callable[[Path], object]) -> Callable[[Path], object]:
        return lambda path: (path.unlink(), make(path))

    for length in (0, 1, 31, 32, 33, 400):
        yield f"cut to {length} bytes", cut(length)
    yield "without its last byte", replaced(lambda content: content[:-1])
    yield "longer", replaced(lambda content: content + b"\0")
    yield "zeros", replaced(lambda content: bytes(len(content)))
    yield "random", replaced(lambda content: os.urandom(len(content)))
    yield "one other byte", replaced(lambda content: content[:2000] + bytes([content[2000] ^ 1]) + content[2001:])
    yield "no pickle", replaced(lambda _: signed(b"no pickle"))
    yield "a pickle of something else", replaced(lambda _: signed(pickle.dumps(3)))
    yield "a pickle of parts that are none", replaced(lambda _: signed(pickle.dumps((1, 2))))
    yield "a pickle of a class that is gone", replaced(lambda _: signed(b"csfumato.kernels\nGone\n."))
    yield "an older form", replaced(lambda content: content[32:])
    yield "a directory", instead(lambda path: (path.mkdir(), (path / "file").write_text("")))
    yield "a named pipe", instead(os.mkfifo)
    yield "a link to nothing", instead(lambda path: path.symlink_to("nothing"))
    yield "a link to a device", instead(lambda path: path.symlink_to("/dev/zero"))
    yield "writable by others", lambda path: path.chmod(0o666)


@pytest.mark.parametrize("damage", [pytest.param(damage, id=name) for name, damage in damages()])
def test_a_damaged_file_is_compiled_again_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], object]
) -> None:
    assert compiles(monkeypatch, tmp_path)
    assert not compiles(monkeypatch, tmp_path)
    (file,) = tmp_path.glob("*.kernel")
    damage(file)
    assert compiles(monkeypatch, tmp_path)
    assert not compiles(monkeypatch, tmp_path)
    assert len(file.read_bytes()) > 1000
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir], ids=["a named pipe", "a directory"])
def test_a_lock_that_is_no_file_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object]
) -> None:
    assert compiles(monkeypatch, tmp_path)
    (file,) = tmp_path.glob("*.kernel")
    (lock,) = tmp_path.glob("*.lock")
    for path in (file, lock):
        path.unlink()
    make(lock)
    assert compiles(monkeypatch, tmp_path)
    assert not compiles(monkeypatch, tmp_path)


@needs_root
def test_a_file_that_another_user_put_there_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiles(monkeypatch, tmp_path)
    (file,) = tmp_path.glob("*.kernel")
    told = tmp_path / "told"
    file.write_bytes(signed(pickle.dumps(_Code(told))))
    os.chown(file, NOBODY, NOBODY)
    assert compiles(monkeypatch, tmp_path)
    assert not told.exists()
    assert file.stat().st_uid == os.geteuid()


class _Code:
    """What an attacker would put there: a pickle that does something when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


# ---- The directory ----


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory that the user names for the cache, below one that it is created in."""
    root = tmp_path / "above" / "cache"
    monkeypatch.setenv("SFUMATO_CACHE_DIR", str(root))
    root.parent.mkdir(0o755)
    cache_directory.cache_clear()
    yield root
    cache_directory.cache_clear()


def test_directories_are_made_for_this_user_alone(asked: Path) -> None:
    before = os.umask(0)
    try:
        directory = cache_directory()
    finally:
        os.umask(before)
    assert directory is not None
    assert directory.is_relative_to(asked)
    for part in (asked, asked / "kernels", directory):
        assert stat.S_IMODE(part.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o1777])
def test_a_directory_that_others_can_write_to_is_refused(asked: Path, mode: int) -> None:
    directory = cache_directory()
    assert directory is not None
    directory.chmod(mode)
    cache_directory.cache_clear()
    with pytest.warns(KernelCacheWarning, match="can be written to by other users") as said:
        assert cache_directory() is None
    assert cache_directory() is None
    assert len(said) == 1
    assert str(directory) in str(said[0].message)
    assert "SFUMATO_CACHE_DIR" in str(said[0].message)


@pytest.mark.parametrize("mode, exists", [(0o775, True), (0o777, True), (0o777, False)])
def test_a_directory_that_others_can_replace_is_refused(asked: Path, mode: int, exists: bool) -> None:
    if exists:
        assert cache_directory() is not None
        cache_directory.cache_clear()
    asked.parent.chmod(mode)
    with pytest.warns(KernelCacheWarning, match="can be written to by other users"):
        assert cache_directory() is None
    assert asked.exists() == exists  # nothing was made there


def test_a_sticky_directory_above_is_as_good_as_a_private_one(asked: Path) -> None:
    asked.parent.chmod(0o1777)
    assert cache_directory() is not None


def test_a_link_leads_to_where_it_is_checked(asked: Path, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    asked.symlink_to(tmp_path / "open" / "cache")
    with pytest.warns(KernelCacheWarning, match="can be written to by other users"):
        assert cache_directory() is None


@needs_root
@pytest.mark.parametrize("part", ["the directory", "one above"])
def test_a_directory_of_another_user_is_refused(asked: Path, part: str) -> None:
    directory = cache_directory()
    assert directory is not None
    cache_directory.cache_clear()
    os.chown(directory if part == "the directory" else asked.parent, NOBODY, NOBODY)
    with pytest.warns(KernelCacheWarning, match="belongs to another user"):
        assert cache_directory() is None


# Root may read everything, so it becomes somebody else.
UNREADABLE = """
import os, sys
from pathlib import Path
sys.path[:0] = PATHS
import numba
from test_cache import compiles
import pytest
numba.njit(lambda number: number + 1)(1)
if os.getuid() == 0:
    os.setuid(65534)
directory = Path(sys.argv[1])
patch = pytest.MonkeyPatch()
first = compiles(patch, directory)
for path in directory.glob("*.kernel"):
    path.chmod(0)
print(first, compiles(patch, directory), compiles(patch, directory))
"""


@pytest.mark.not_quick
def test_a_file_that_may_not_be_read_is_compiled_again() -> None:
    directory = Path(tempfile.mkdtemp())
    try:
        if os.geteuid() == 0:
            os.chown(directory, NOBODY, NOBODY)
        script = UNREADABLE.replace("PATHS", repr([str(Path(__file__).parent)]))
        done = subprocess.run(
            [sys.executable, "-c", script, directory], capture_output=True, text=True, check=False, cwd="/"
        )
        assert done.stdout == "True True False\n", done.stderr
    finally:
        shutil.rmtree(directory)


@pytest.mark.not_quick
def test_the_command_line_says_once_that_kernels_are_not_kept(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    environment = {**os.environ, "SFUMATO_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "sfumato", "methods"], capture_output=True, text=True, check=True, env=environment
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: compiled kernels are not kept")
    assert "mondrian" in done.stdout
