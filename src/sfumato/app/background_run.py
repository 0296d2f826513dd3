"""A run in a process of its own, which goes on when the tab or the server ends, and is found again by its folder.

    runs/000003/
      request.json   what was asked for, with the policy
      lock           locked for as long as the process lives
      progress.json  how far it has come
      process.json   the number of its process
      stop           asks it to stop
      result.json    how it ended

The lock is handed to the process when it is started, so there is no moment in which a living run has none. A run
without a lock and without a result was killed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from sfumato.app.durable_files import private_directory, read_json, write_json, write_momentary_json
from sfumato.app.project import Project
from sfumato.errors import InputError, UsageError
from sfumato.tables.targets.file_operations import lock

NUMBER = re.compile(r"\d{6}")
RunState = Literal["running", "done", "failed", "stopped", "killed"]

_started: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class BackgroundRun:
    """A run of a project."""

    directory: Path

    @property
    def number(self) -> str:
        return self.directory.name

    @cached_property
    def request(self) -> dict[str, Any]:
        return read_json(self.directory / "request.json") or {}

    @property
    def kind(self) -> str:
        return str(self.request.get("kind", ""))

    @property
    def result(self) -> dict[str, Any] | None:
        """How it ended; None while it runs, and if it was killed."""
        found: dict[str, Any] | None = read_json(self.directory / "result.json")
        return found

    @property
    def progress(self) -> dict[str, Any]:
        return read_json(self.directory / "progress.json") or {}

    @property
    def state(self) -> RunState:
        if (self.directory / "result.json").exists():
            result = self.result or {}
            state: RunState = result.get("state", "failed")
            return state
        if self._is_alive():
            return "running"
        if self.result is not None:
            return "done"  # it ended between the two questions
        return "stopped" if self.is_stopping else "killed"

    @property
    def is_stopping(self) -> bool:
        """Whether somebody has asked the run to stop."""
        return (self.directory / "stop").exists()

    def stop(self) -> None:
        """Ask the run to stop. A search ends with what it has."""
        write_momentary_json(self.directory / "stop", {})

    def end(self) -> None:
        """End the process at once, whatever it does."""
        process = read_json(self.directory / "process.json")
        # For as long as the lock is held, the number is that of the run and of nobody else.
        if process is not None and self._is_alive():
            self.stop()
            with suppress(ProcessLookupError):  # it ended in this moment
                os.killpg(process["number"], signal.SIGKILL)

    def _is_alive(self) -> bool:
        for process in list(_started):
            if process.poll() is not None:  # takes leave of those that ended
                _started.remove(process)
        try:
            handle = os.open(self.directory / "lock", os.O_RDWR)
        except OSError:
            return False
        try:
            lock(handle)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False


def start_run(project: Project, kind: str, options: Mapping[str, Any] | None = None) -> BackgroundRun:
    """Start a run under the current policy of a project. Only one of a kind runs at a time."""
    if any(run.state == "running" for run in runs_of(project, kind)):
        raise UsageError("such a run is already going on. Wait for its end, or stop it.")
    state = project.state
    request = {
        "kind": kind,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "clock": time.time(),
        "folder": str(project.folder.root),
        "project": project.name,
        "table": state.table,
        "policy": project.policy_text,
        "step": state.current,
        "options": dict(options or {}),
    }
    directory = _new_directory(project)
    write_json(directory / "request.json", request)
    handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        lock(handle)
        process = subprocess.Popen(  # noqa: S603  (our own module, and no shell)
            [sys.executable, "-P", "-m", "sfumato.app.worker", str(directory)],
            cwd=project.folder.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(handle,),
            start_new_session=True,
        )
    finally:
        os.close(handle)
    _started.append(process)
    return BackgroundRun(directory)


def runs_of(project: Project, kind: str | None = None) -> list[BackgroundRun]:
    """The runs of a project, the last one first."""
    return [run for run in _all_runs(project) if kind is None or run.kind == kind]


def run_numbered(project: Project, number: str) -> BackgroundRun:
    run = BackgroundRun(project.directory / "runs" / number)
    if not NUMBER.fullmatch(number) or not run.request:
        raise InputError("there is no such run. Go back to the project.")
    return run


def last_run(project: Project, kind: str) -> BackgroundRun | None:
    return next((run for run in _all_runs(project) if run.kind == kind), None)


def _all_runs(project: Project) -> Iterator[BackgroundRun]:
    for path in sorted((project.directory / "runs").iterdir(), reverse=True):
        if NUMBER.fullmatch(path.name):
            yield BackgroundRun(path)


def _new_directory(project: Project) -> Path:
    runs = private_directory(project.directory / "runs")
    number = 1 + max((int(path.name) for path in runs.iterdir() if NUMBER.fullmatch(path.name)), default=0)
    while True:
        try:
            directory = runs / f"{number:06}"
            directory.mkdir(mode=0o700)
            return directory
        except FileExistsError:
            number += 1
