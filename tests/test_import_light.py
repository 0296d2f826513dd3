"""Importing the package and asking for help load no large library."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ["numba", "duckdb", "polars", "pandas", "pyarrow", "sklearn", "scipy", "pyspark", "numpy"]


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
        help_of("--version"),
    ],
    ids=["import", "names", "policy", "cli", "help", "help of a command", "version"],
)
def test_no_large_library_is_loaded(code: str) -> None:
    assert loaded_after(code) == set()


def test_a_run_from_arrow_to_arrow_loads_no_further_library() -> None:
    code = (
        "import pyarrow, sfumato\n"
        "table = pyarrow.table({'age': [1, 2, 3, 4]})\n"
        "assert sfumato.anonymize(table, quasi_identifiers=['age'], k=2).data.num_rows == 4\n"
    )
    # PyArrow itself looks for pandas whenever it makes an array.
    assert loaded_after(code) - {"pandas"} == {"numba", "numpy", "pyarrow"}
