"""Machine code is kept between processes, and never outlives the source of any kernel it was made from."""

from __future__ import annotations

import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import sfumato
from sfumato.kernels.fingerprint import fingerprint
from sfumato.kernels.threads import even_parts, slices

PACKAGE = Path(sfumato.__file__).parent

CALLEE = """
from sfumato.kernels.decorator import KIND

@KIND
def enough(size, k):
    return size >= k
"""
CALLER = """
import numpy as np
from sfumato.kernels.decorator import kernel
from sfumato.losses.callee import enough

@kernel
def all_enough(sizes, k):
    for size in sizes:
        if not enough(size, k):
            return False
    return True
"""
ASK_CALLER = """
import numpy as np
from sfumato.kernels.decorator import on_compilation
from sfumato.methods.caller import all_enough
compiled = []
with on_compilation(lambda: compiled.append(1)):
    print(all_enough(np.array([3, 4]), 3), bool(compiled))
"""
PARTS = """
import numpy as np
from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel

@inlined_kernel
def doubled(number):
    return number + number

@inner_kernel
def added(one, other):
    return one + other

@kernel
def both(number):
    return added(number, NONE) * added(doubled(number), np.int64(0))
"""
ASK_PARTS = """
import gc
from sfumato.kernels.decorator import on_compilation
from sfumato.methods.parts import added, both, doubled
compiled = []
with on_compilation(lambda: compiled.append(1)):
    print(both(5), len(compiled), len(added.signatures), len(doubled.signatures), gc.isenabled())
"""
# Each waits until both are about to compile.
TOGETHER = """
import os, time
from pathlib import Path
from sfumato.kernels.decorator import on_compilation
from sfumato.methods.parts import both
meeting = Path(os.environ["SFUMATO_CACHE_DIR"]) / "meeting"
meeting.mkdir(parents=True, exist_ok=True)
(meeting / str(os.getpid())).touch()
while len(list(meeting.iterdir())) < PROCESSES:
    time.sleep(0.001)
compiled = []
with on_compilation(lambda: (compiled.append(1), time.sleep(0.5))):
    print(both(5), bool(compiled))
"""
DIES = """
import os
from sfumato.kernels.decorator import on_compilation
from sfumato.methods.parts import both
with on_compilation(lambda: os._exit(0)):
    both(5)
"""
FAILS = """
from numba.core.errors import TypingError
from sfumato.kernels import cache
from sfumato.methods.parts import both
locks = []
class Counted(cache._FileLock):
    def __init__(self, path):
        super().__init__(path)
        locks.append(self)
    def release(self):
        super().release()
        locks.remove(self)
made = []
cache._FileLock = lambda path: made.append(Counted(path)) or made[-1]
try:
    both(None)
except TypingError as error:
    print(type(error).__name__, len(made), len(locks))
"""
NO_LOCKS = """
from sfumato.kernels import cache
from sfumato.kernels.decorator import on_compilation
from sfumato.methods.parts import both
def refused(file):
    raise OSError("no locks here")
cache._try_lock = refused
compiled = []
with on_compilation(lambda: compiled.append(1)):
    print(both(5), bool(compiled))
"""
NUMBERS = """
LIMIT = 3
"""
OF_NUMBERS = """
from typing import NamedTuple
from numba.extending import overload
from sfumato.kernels.decorator import kernel
from sfumato.requirements.numbers import LIMIT

TWICE = 2 * LIMIT

class Bounds(NamedTuple):
    low: int
    high: int

def chosen(bounds):
    raise NotImplementedError

@overload(chosen)
def _chosen(bounds):
    return lambda bounds: bounds.high

@kernel
def within(bounds):
    \"\"\"Whether it is.\"\"\"
    return chosen(bounds) <= TWICE
"""
ASK_NUMBERS = """
from sfumato.kernels.decorator import on_compilation
from sfumato.methods.of_numbers import Bounds, within
compiled = []
with on_compilation(lambda: compiled.append(1)):
    print(within(Bounds(5, 7)), bool(compiled))
"""
ASK_REQUIREMENT = """
import numpy as np
from sfumato.kernels.cache_directory import cache_directory
from sfumato.kernels.decorator import on_compilation
from sfumato.requirements import KAnonymity, Requirements
from sfumato.requirements.conjunction import class_holds, conjunction
compiled = []
with on_compilation(lambda: compiled.append(1)):
    tests, none = conjunction(Requirements((KAnonymity(3),)), [], []), np.empty(0, np.int64)
    held = [size for size in (3, 2) if class_holds(tests, size, none.reshape(0, 0), none, none, none)]
print(held, bool(compiled), cache_directory() is None)
"""
# Root may write everywhere, so it becomes somebody else. What only root may read is loaded before.
BECOME_NOBODY = """
import os
import numba
import sfumato.errors
import sfumato.kernels.decorator
numba.njit(lambda number: number + 1)(1)
if os.getuid() == 0:
    os.setuid(65534)
"""
ANONYMIZE = """
import sfumato
from sfumato.kernels.cache_directory import cache_directory
from sfumato.kernels.decorator import on_compilation
import pyarrow as pa
compiled = []
with on_compilation(lambda: compiled.append(1)):
    release = sfumato.anonymize(pa.table({"age": [1, 2, 8, 9]}), quasi_identifiers=["age"], k=2)
print(release.data["age"].to_pylist(), bool(compiled), cache_directory() is None)
"""


def run(code: str, cache: Path | str, path: Path = PACKAGE.parent) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": str(path),
        "SFUMATO_CACHE_DIR": str(cache),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment.pop("NUMBA_DISABLE_JIT", None)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def package_copy(tmp_path: Path) -> Path:
    shutil.copytree(PACKAGE, tmp_path / "copy" / "sfumato", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "copy"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can come to, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.not_quick
@pytest.mark.parametrize("kind", ["kernel", "inner_kernel", "inlined_kernel"])
def test_edited_callee_in_another_file_takes_effect(package_copy: Path, tmp_path: Path, kind: str) -> None:
    source, callee = CALLEE.replace("KIND", kind), package_copy / "sfumato" / "losses" / "callee.py"
    callee.write_text(source)
    (package_copy / "sfumato" / "methods" / "caller.py").write_text(CALLER)
    cache = tmp_path / "cache"
    assert run(ASK_CALLER, cache, package_copy) == "True True"
    assert run(ASK_CALLER, cache, package_copy) == "True False"
    times = callee.stat()
    callee.write_text(source.replace("size >= k", "size >  k"))
    os.utime(callee, ns=(times.st_atime_ns, times.st_mtime_ns))  # neither time nor length tells of the edit
    assert run(ASK_CALLER, cache, package_copy) == "False True"


@pytest.mark.not_quick
def test_an_edit_compiles_a_kernel_where_it_changes_what_the_kernel_does(package_copy: Path, tmp_path: Path) -> None:
    texts = {"requirements/numbers.py": NUMBERS, "methods/of_numbers.py": OF_NUMBERS}
    for name, text in texts.items():
        (package_copy / "sfumato" / name).write_text(text)
    assert run(ASK_NUMBERS, tmp_path / "cache", package_copy) == "False True"
    assert run(ASK_NUMBERS, tmp_path / "cache", package_copy) == "False False"
    for file, old, new, expected in (
        ("requirements/numbers.py", "LIMIT = 3", "LIMIT = 4", "True True"),  # a constant of another file
        ("methods/of_numbers.py", "2 * LIMIT", "4 * LIMIT", "True True"),
        ("methods/of_numbers.py", "bounds.high", "bounds.low", "True True"),  # in what numba calls for a function
        ("methods/of_numbers.py", "low: int\n    high: int", "high: int\n    low: int", "True True"),
        ("methods/of_numbers.py", "<= TWICE", "< TWICE + 2", "True True"),
        ("methods/of_numbers.py", "Whether it is", "# A text of two\n    lines", "False False"),
        ("methods/of_numbers.py", "\nTWICE", "\n# A comment\nTWICE", "False False"),
    ):
        path = package_copy / "sfumato" / file
        assert old in texts[file]
        path.write_text(texts[file].replace(old, new))
        assert run(ASK_NUMBERS, tmp_path / "cache", package_copy) == expected, new
        path.write_text(texts[file])


@pytest.mark.not_quick
def test_edits_outside_kernels_compile_nothing(package_copy: Path, tmp_path: Path) -> None:
    assert run(ASK_REQUIREMENT, tmp_path / "cache", package_copy) == "[3] True False"
    for folder in ("cli", "report", "pipeline", "policy"):
        for path in (package_copy / "sfumato" / folder).rglob("*.py"):
            path.write_text(path.read_text() + "\nEDITED = 1\n")
    assert run(ASK_REQUIREMENT, tmp_path / "cache", package_copy) == "[3] False False"


@pytest.mark.compiled
def test_every_kernel_can_be_kept() -> None:
    """A kernel that refers to something without a fingerprint would be compiled in every process."""
    found = 0
    for module in pkgutil.walk_packages(sfumato.__path__, "sfumato."):
        if not module.name.endswith("__main__"):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, Dispatcher):
                    assert len(fingerprint(value.py_func, ())) == 64
                    found += 1
    assert found > 150


@pytest.mark.not_quick
def test_two_processes_compile_a_kernel_once(package_copy: Path, tmp_path: Path) -> None:
    (package_copy / "sfumato" / "methods" / "parts.py").write_text(PARTS)
    code, cache = TOGETHER.replace("PROCESSES", "2"), tmp_path / "cache"
    with ThreadPoolExecutor(2) as pool:
        processes = [pool.submit(run, code, cache, package_copy) for _ in range(2)]
        assert sorted(process.result() for process in processes) == ["40 False", "40 True"]


@pytest.mark.not_quick
def test_a_process_that_dies_while_it_compiles_keeps_nobody_waiting(package_copy: Path, tmp_path: Path) -> None:
    (package_copy / "sfumato" / "methods" / "parts.py").write_text(PARTS)
    assert run(DIES, tmp_path / "cache", package_copy) == ""
    assert run(TOGETHER.replace("PROCESSES", "1"), tmp_path / "cache", package_copy) == "40 True"


@pytest.mark.not_quick
def test_a_compilation_that_fails_releases_its_lock(package_copy: Path, tmp_path: Path) -> None:
    (package_copy / "sfumato" / "methods" / "parts.py").write_text(PARTS)
    assert run(FAILS, tmp_path / "cache", package_copy) == "TypingError 1 0"


@pytest.mark.not_quick
def test_where_nothing_can_be_locked_a_kernel_is_compiled_all_the_same(package_copy: Path, tmp_path: Path) -> None:
    (package_copy / "sfumato" / "methods" / "parts.py").write_text(PARTS)
    assert run(NO_LOCKS, tmp_path / "cache", package_copy) == "40 True"


@pytest.mark.not_quick
def test_an_inner_kernel_is_compiled_once_with_its_caller_and_an_inlined_one_never(
    package_copy: Path, tmp_path: Path
) -> None:
    (package_copy / "sfumato" / "methods" / "parts.py").write_text(PARTS)
    assert run(ASK_PARTS, tmp_path / "cache", package_copy) == "40 2 1 0 True"
    assert run(ASK_PARTS, tmp_path / "cache", package_copy) == "40 0 0 0 True"


@pytest.mark.not_quick
def test_edited_requirement_is_enforced_by_the_next_process(package_copy: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert run(ASK_REQUIREMENT, cache, package_copy) == "[3] True False"
    source = package_copy / "sfumato" / "requirements" / "conjunction.py"
    edited = source.read_text().replace("if size < whole:", "if size <= whole:")
    assert edited != source.read_text()
    source.write_text(edited)
    assert run(ASK_REQUIREMENT, cache, package_copy) == "[] True False"


@pytest.mark.not_quick
def test_second_process_compiles_nothing(tmp_path: Path) -> None:
    assert run(ANONYMIZE, tmp_path) == "['[1..2]', '[1..2]', '[8..9]', '[8..9]'] True False"
    assert run(ANONYMIZE, tmp_path) == "['[1..2]', '[1..2]', '[8..9]', '[8..9]'] False False"
    assert list((tmp_path / "kernels").rglob("*.kernel"))


@pytest.mark.not_quick
def test_place_where_no_cache_can_be_made_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    assert run(ASK_REQUIREMENT, tmp_path / "file") == "[3] True True"


@pytest.mark.not_quick
def test_cache_of_another_user_is_left_alone(open_folder: Path) -> None:
    assert run(ASK_REQUIREMENT, open_folder) == "[3] True False"
    files = {path: path.stat().st_mtime_ns for path in open_folder.rglob("*")}
    for path in files:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert run(BECOME_NOBODY + ASK_REQUIREMENT, open_folder) == "[3] True True"
    finally:
        for path in files:
            if path.is_dir():
                path.chmod(0o755)
    assert {path: path.stat().st_mtime_ns for path in open_folder.rglob("*")} == files


def test_every_kernel_has_the_common_decorator() -> None:
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text("utf-8")
        if path.name != "decorator.py":
            assert "njit" not in source, path
            assert "numba.jit" not in source, path


def test_slices_cover_everything_once() -> None:
    assert slices(7, 3) == [(0, 3), (3, 6), (6, 7)]
    assert slices(6, 3) == [(0, 3), (3, 6)]
    assert slices(0, 3) == []


def test_even_parts_have_about_as_many_members_each(monkeypatch: pytest.MonkeyPatch) -> None:
    assert even_parts(np.arange(11)) == [(0, 10)]  # too few to be divided
    monkeypatch.setattr("sfumato.kernels.threads.LEAST_OF_PART", 2)
    assert even_parts(np.arange(9)) == [(0, 2), (2, 4), (4, 6), (6, 8)]
    assert even_parts(np.array([0, 6, 7, 8])) == [(0, 1), (1, 3)]  # a group is never divided
    assert even_parts(np.array([0])) == []
