"""Importing the package and asking for help load no large library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ["numba", "duckdb", "polars", "pandas", "pyarrow", "sklearn", "scipy", "pyspark", "numpy"]
OF_NUMBA = "scipy"  # which looks for it when it is loaded itself


def loaded_after(code: str) -> set[str]:
    """The large libraries that a fresh process has loaded after running ``code``."""
    ending = f"\nimport sys; print('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code + ending], capture_output=True, text=True, check=True)
    *_, last = done.stdout.splitlines()
    assert last.startswith("loaded:")
    return set(last.removeprefix("loaded:").split())


def help_of(*arguments: str) -> str:
    return (
        f"import sys; sys.argv = ['sfumato', *{list(arguments)!r}]\n"
        "from sfumato.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
    )


@pytest.mark.parametrize(
    "code",
    [
        "import sfumato",
        "import sfumato; dir(sfumato); sfumato.__version__; sfumato.SfumatoError",
        "from sfumato import Policy; Policy.from_dict({'privacy': {'k': 3}})",
        "import sfumato.cli",
        help_of("--help"),
        help_of("anonymize", "--help"),
        help_of("tradeoff", "--help"),
        help_of("--version"),
    ],
    ids=["import", "names", "policy", "cli", "help", "help of a command", "help of a trade-off", "version"],
)
def test_no_large_library_is_loaded(code: str) -> None:
    assert loaded_after(code) == set()


@pytest.mark.not_quick
def test_a_run_from_arrow_to_arrow_loads_no_further_library() -> None:
    code = (
        "import pyarrow, sfumato\n"
        "table = pyarrow.table({'age': [1, 2, 3, 4]})\n"
        "assert sfumato.anonymize(table, quasi_identifiers=['age'], k=2).data.num_rows == 4\n"
    )
    # PyArrow looks for pandas whenever it makes an array, as the first line here does.
    assert loaded_after(code) - {"pandas", OF_NUMBA} == {"numba", "numpy", "pyarrow"}


@pytest.mark.not_quick
def test_a_run_from_file_to_file_loads_no_library_of_frames(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("age,born,city,note\n" + "".join(f"{20 + n % 5},200{n % 3}-01-01,=c{n % 2},\n" for n in range(40)))
    flags = ["--quasi-identifiers", "age,born,city", "--other", "keep", "-k", "3"]
    for output in ("release.parquet", "release.csv.gz", "release.arrow"):
        arguments = ["anonymize", str(table), "-o", str(tmp_path / output), "--formulas", "disarm", *flags]
        code = f"from sfumato.cli import main\nassert main({arguments!r}) == 0"
        assert loaded_after(code) - {OF_NUMBA} == {"numba", "numpy", "pyarrow"}
