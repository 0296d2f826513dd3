"""Run the figures of the papers, record them, and write the page that shows them beside the papers' claims.

python -m reproduce [FIGURE or PAPER ...] [--profile quick|full|tenth] [--processes N]
python -m reproduce page
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from reproduce.data_files import DATA, changed_files
from reproduce.figure import PROFILES, RECORDED, Figure, Profile
from reproduce.figure_process import measure_figure
from reproduce.html_page import write_html
from reproduce.page import write_page
from reproduce.papers import FIGURES, PAPERS, chosen
from reproduce.recording import Recording, draw, recorded

PAGE_ONLY = "page"
PROCESSES = 2
# A figure has one core, so that CPU seconds do not depend on how many there are.
ONE_THREAD = ("SFUMATO_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main() -> int:
    arguments = _arguments()
    if arguments.figures == [PAGE_ONLY]:
        _redraw()
        _write_page()
        return 0
    if changed := changed_files():
        print(f"error: {DATA.name}/ differs from its checksums: {', '.join(changed)}. Restore it.", file=sys.stderr)
        return 1
    failed = _run(chosen(arguments.figures), arguments.profile, arguments.processes)
    if arguments.profile in RECORDED:
        _write_page()
    if failed:
        print(f"error: not measured: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _run(figures: list[Figure], profile: Profile, processes: int) -> list[str]:
    """Run the figures side by side, one in each process; return the names of those that failed."""
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    failed: list[str] = []
    started = time.perf_counter()
    with (
        tempfile.TemporaryDirectory(prefix="sfumato-reproduce-") as work,
        ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool,
    ):
        # Releases of these tables are no releases of the user's.
        os.environ["SFUMATO_STATE_DIR"] = str(Path(work) / "state")
        print(f"{len(figures)} figures, {profile} sizes, {processes} processes", flush=True)
        waiting = {
            pool.submit(measure_figure, figure.name, profile, work): figure for figure in _longest_first(figures)
        }
        for number, done in enumerate(as_completed(waiting), 1):
            figure = waiting[done]
            minutes, seconds = divmod(int(time.perf_counter() - started), 60)
            head = f"[{number}/{len(figures)}, {minutes}:{seconds:02}] {figure.name}"
            if (error := done.exception()) is not None:
                failed.append(figure.name)
                print(f"{head}: failed", file=sys.stderr)
                traceback.print_exception(error)
                continue
            recording = done.result()
            print(f"{head}: {recording.cpu_seconds:,.0f} CPU seconds", flush=True)
            _show_claims(figure, recording)
    return failed


def _longest_first(figures: list[Figure]) -> list[Figure]:
    """Order figures by the time that they took last, so that no process is left with a long one at the end."""
    last = {figure.name: recorded(figure, "quick") for figure in figures}
    known = {name: recording.cpu_seconds for name, recording in last.items() if recording is not None}
    return sorted(figures, key=lambda figure: -known.get(figure.name, 0.0))


def _show_claims(figure: Figure, recording: Recording) -> None:
    for claim in figure.claims:
        judgement = claim.judge(recording.result)
        print(f"    {judgement.verdict:7}  {claim.text} ({judgement.found})", flush=True)


def _redraw() -> None:
    for paper in PAPERS:
        for figure in paper.figures:
            for profile in RECORDED:
                if (recording := recorded(figure, profile)) is not None:
                    draw(figure, profile, recording.result)


def _write_page() -> None:
    page, html = (os.path.relpath(path) for path in (write_page(), write_html()))
    print(f"\nOpen {html} in a browser: every figure beside its claims. {page} is the same page.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reproduce", description="Reproduce the figures of the papers.")
    parser.add_argument(
        "figures",
        nargs="*",
        metavar="figure",
        help=f"{', '.join(FIGURES)}, or a paper; all by default; page draws anew",
    )
    parser.add_argument(
        "--profile", choices=PROFILES, default="quick", help="quick (default), full, or tenth, which records nothing"
    )
    parser.add_argument("--processes", type=int, default=PROCESSES, metavar="N", help="figures that run side by side")
    arguments = parser.parse_args()
    if arguments.processes < 1:
        parser.error("--processes must be at least 1")
    if arguments.figures != [PAGE_ONLY]:
        try:
            chosen(arguments.figures)
        except ValueError as error:
            parser.error(str(error))
    return arguments


if __name__ == "__main__":
    sys.exit(main())
