"""Measure section by section, record the figures, and write them into the documentation.

python -m benchmarks [section ...] [--data DIR] [--peers PYTHON] [--missing] [--trial | --records N ...]
python -m benchmarks docs
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.markdown import show
from benchmarks.pages import fill
from benchmarks.process_usage import ROOT
from benchmarks.recording import NotRecordedError, path_of, record, worst_rows
from benchmarks.sections import SECTIONS
from benchmarks.tables import Options

DOCS = "docs"


def main() -> int:
    arguments = _arguments()
    not_recorded: list[str] = []
    if arguments.sections != [DOCS]:
        with tempfile.TemporaryDirectory(prefix="sfumato-benchmarks-") as temporary:
            work: Path = (arguments.work or Path(temporary)).resolve()
            work.mkdir(parents=True, exist_ok=True)
            data, peers = (path and path.absolute() for path in (arguments.data, arguments.peers))
            options = Options(work, data, peers, tuple(arguments.records), arguments.trial)
            wanted = [name for name in arguments.sections or SECTIONS if not (arguments.missing and _is_recorded(name))]
            not_recorded = [name for name in wanted if not _record(name, options)]
        if arguments.trial or arguments.records:
            print("\nNothing was recorded: only runs with the standard sizes are.")
    for path in fill():
        print(f"wrote {path.relative_to(ROOT)}")
    if not_recorded:
        print(f"error: not recorded: {', '.join(not_recorded)}", file=sys.stderr)
    return 1 if not_recorded else 0


def _is_recorded(name: str) -> bool:
    return path_of(name).exists()


def _record(name: str, options: Options) -> bool:
    """Measure a section and print its tables. Return whether it gave figures."""
    started = time.perf_counter()
    try:
        recording = record(name, SECTIONS[name], options)
    except NotRecordedError as reason:
        print(f"\nerror: {name}: {reason}", file=sys.stderr, flush=True)
        return False
    for table in recording["tables"].values():
        show(table["title"], worst_rows(table), table["notes"])
    shares = ", ".join(f"{share:.1%}" for share in recording.get("others", ()))
    taken = f", other processes took {shares} of the cores" if shares else ""
    print(f"\n{name}: {time.perf_counter() - started:,.0f} seconds{taken}.", flush=True)
    return True


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure speed, memory and loss of Sfumato, compare it with peers, and record the figures.",
    )
    parser.add_argument(
        "sections", nargs="*", metavar="section", help=f"{', '.join(SECTIONS)}; all by default; docs writes the pages"
    )
    parser.add_argument("--missing", action="store_true", help="only sections that are not recorded yet")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="real tables: a directory for each, with data.csv or data.csv.gz, schema.json and taxonomies/",
    )
    parser.add_argument("--peers", type=Path, metavar="PYTHON", help="the Python of the environment that has the peers")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument(
        "--records",
        type=int,
        nargs="+",
        default=[],
        metavar="N",
        help="other numbers of records; one run, printed and not recorded",
    )
    sizes.add_argument("--trial", action="store_true", help="tiny sizes; one run, printed and not recorded")
    parser.add_argument(
        "--work", type=Path, metavar="DIR", help="keep generated files here; by default they are removed"
    )
    arguments = parser.parse_args()
    if arguments.sections != [DOCS]:
        for section in arguments.sections:
            if section not in SECTIONS:
                parser.error(f"there is no section {section!r}; there are {', '.join(SECTIONS)}")
    if arguments.records and min(arguments.records) < 1:
        parser.error("--records must be at least 1")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
