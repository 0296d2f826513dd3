"""How quickly does the local page answer while a run goes on, and how long is it to the first trial?

A table of 100,000 records with 20 columns is opened, examined and tried on the page, by the requests that a browser
sends. While the trial runs, all screens are asked for in turn.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from benchmarks.section import Section, Table
from benchmarks.tables import Options

RECORDS = 100_000
COLUMNS = 20
VALUES = (5, 20, 100, 1_000, 50_000)
K = 10
SCREENS = ("open", "columns", "hierarchies", "requirements", "risk", "try", "check", "publish")
BAR = 0.2  # seconds


class PageVisit:
    """A browser without a screen at the page of a folder."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "sfumato", "app", str(folder), "--no-browser"]
        self._server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._server.stdout is not None
        address = self._server.stdout.readline().strip()
        self._origin = address.partition("/?")[0]
        self._browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        self.text = self._browser.open(address).read().decode()
        self._sign = self._found(r'name="sfumato-sign" content="(\w+)"')

    def get(self, path: str) -> float:
        """Ask for a page. Returns the seconds that it took."""
        started = time.perf_counter()
        self.text = self._browser.open(f"{self._origin}{path}").read().decode()
        return time.perf_counter() - started

    def post(self, path: str, **fields: object) -> None:
        """Send a form of the page that was asked for last."""
        version = {} if path.startswith("/projects") else {"version": self._found(r'name="version" value="(\d+)"')}
        body = urllib.parse.urlencode({"sign": self._sign, **version, **fields}).encode()
        self.text = self._browser.open(f"{self._origin}{path}", body).read().decode()

    def until(self, path: str, sign: str) -> None:
        """Ask for a page until it shows something."""
        self.get(path)
        while sign not in self.text:
            time.sleep(0.1)
            self.get(path)

    def close(self) -> None:
        self._server.terminate()
        self._server.communicate()

    def _found(self, pattern: str) -> str:
        found = re.search(pattern, self.text)
        assert found, pattern
        return found[1]


def run(options: Options) -> Mapping[str, Table]:
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        folder = Path(name)
        answers = _answers(folder, options.sizes(RECORDS)[0])
        first = _first_trial(folder)
    rows = [
        {
            "screen": screen,
            "answers": len(seconds),
            "median ms": _ms(float(np.median(seconds))),
            "worst ms": _ms(max(seconds)),
            "worst / 200 ms": max(seconds) / BAR,
        }
        for screen, seconds in answers.items()
    ]
    note = f"{RECORDS:,} records, {COLUMNS} columns, CSV; a trial with k = {K} and effort balanced goes on meanwhile."
    trial = [{"step": "printed address to first trial", "seconds": first, "seconds / 60": first / 60}]
    return {
        "answers": Table("The local page while a run goes on", rows, [note], worst="worst / 200 ms"),
        "first": Table("A first trial of the invented table", trial, ["Warm kernels."], worst="seconds / 60"),
    }


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)


def _answers(folder: Path, records: int) -> dict[str, list[float]]:
    """The seconds of every answer while a trial goes on, by screen."""
    draw = np.random.default_rng(0)
    columns = {f"c{index:02}": draw.integers(0, VALUES[index % len(VALUES)], records) for index in range(COLUMNS)}
    pyarrow.csv.write_csv(pa.table(columns), folder / "table.csv")
    visit = PageVisit(folder)
    try:
        visit.post("/projects/create", table="table.csv")
        visit.post("/p/table/open/examine")
        visit.until("/p/table/columns", "columns-cards")
        visit.post("/p/table/columns/rest")
        for position in range(5):
            visit.get("/p/table/columns")
            visit.post("/p/table/columns/role", column=position, role="quasi-identifier")
        visit.get("/p/table/try")
        visit.post("/p/table/try/start", k=K, suppressed=0, effort="balanced", method="auto", name="trial")
        seconds: dict[str, list[float]] = {screen: [] for screen in SCREENS}
        running = True
        while running:
            for screen in SCREENS:
                seconds[screen].append(visit.get(f"/p/table/{screen}"))
                running = running and not (screen == "try" and 'class="pair"' in visit.text)
        return seconds
    finally:
        visit.close()


def _first_trial(folder: Path) -> float:
    """The seconds from the printed address to a finished trial of the invented table, without a person who reads."""
    visit = PageVisit(folder)
    try:
        started = time.perf_counter()
        visit.post("/projects/demo")
        visit.post("/p/sfumato-demo/open/examine")
        visit.until("/p/sfumato-demo/columns", "columns-cards")
        visit.get("/p/sfumato-demo/try")
        visit.post("/p/sfumato-demo/try/start", k=K, suppressed=0, effort="fast", method="auto", name="trial")
        visit.until("/p/sfumato-demo/try", 'class="pair"')
        return time.perf_counter() - started
    finally:
        visit.close()


SECTION = Section(run, timed=True, parameters={"records": RECORDS, "columns": COLUMNS, "k": K})
