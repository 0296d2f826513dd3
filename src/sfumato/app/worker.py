"""The process of one background run: ``python -m sfumato.app.worker FOLDER_OF_THE_RUN``.

It holds the lock of the run by an inherited handle, writes how far it has come, and ends with a result. Its messages
are those of the commands, which hold no cell value.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
import tomllib
import warnings
from collections.abc import Mapping
from pathlib import Path
from traceback import extract_tb
from types import FrameType
from typing import Any

from sfumato.app.background_run import BackgroundRun
from sfumato.app.data_folder import DataFolder
from sfumato.app.durable_files import write_json, write_momentary_json
from sfumato.app.project import Project, ProjectStore, checked_policy
from sfumato.errors import InfeasibleError, ReadingWarning, SfumatoError
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.progress.time_left import TimeLeft

PAUSE = 0.25  # seconds between two looks at the wish to stop, and between two reports
SEARCH = "improve"  # the phase that can end early with the best classes so far


class RunStopped(BaseException):
    """Somebody asked the run to stop."""


class ReportedProgress(Progress):
    """Progress that is written to a file, and a run that ends when somebody asks for it."""

    def __init__(self, run: BackgroundRun) -> None:
        super().__init__()
        self._run = run
        self._current: dict[str, Any] = {}
        self._estimate: TimeLeft | None = None
        self._several: dict[str, Any] | None = None
        self._begun = time.time()
        self._ended = threading.Event()
        self._dirty = True
        self._has_searched = False  # from then on there are classes, and a stop lets the run end with them
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def began(self, name: str, total: int | None) -> None:
        self._estimate = TimeLeft(time.monotonic())
        self._current = {"phase": name, "steps": 0, "total": None if total is None else int(total)}
        self._has_searched |= name == SEARCH
        self._dirty = True

    def expect(self, steps: int) -> None:
        self._current = {**self._current, "total": int(steps)}
        self._dirty = True

    def advance(self, steps: int) -> None:
        # Methods count in numbers of NumPy too, which JSON cannot hold.
        self._current = {**self._current, "steps": int(self._current.get("steps", 0) + steps)}
        self._dirty = True

    def next_run(self, name: str, number: int, total: int) -> None:
        self._several = {"name": name, "number": number, "total": total}
        self._dirty = True

    def compiling(self) -> None:
        self._current = {**self._current, "compiling": True}
        self._dirty = True

    def end(self) -> None:
        """Listen no longer to the wish to stop."""
        self._ended.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._ended.wait(PAUSE):
            if (self._run.directory / "stop").exists() and not self.stopped:
                self.stopped = True
                if not self._has_searched:
                    _interrupt()
            if self._dirty:
                self._dirty = False
                write_momentary_json(self._run.directory / "progress.json", self._report())

    def _report(self) -> dict[str, Any]:
        current = dict(self._current)
        left = None
        if self._estimate is not None:
            left = self._estimate.seconds(time.monotonic(), current.get("steps", 0), current.get("total"))
        return {
            **current,
            "left": left,
            "several": self._several,
            "begun": self._begun,
            "phases": {name: round(seconds, 2) for name, seconds in list(self.seconds.items())},
        }


class RunContext:
    """What a kind of run gets: the project as it was when the run was started."""

    def __init__(self, run: BackgroundRun, progress: ReportedProgress) -> None:
        request = run.request
        self.run = run
        self.progress = progress
        self.directory = run.directory
        self.options: dict[str, Any] = request["options"]
        folder = DataFolder(Path(request["folder"]))
        self.project: Project = ProjectStore(folder).project(request["project"])
        self.table = folder.path(request["table"])
        self._policy_text: str = request["policy"]

    @property
    def policy(self) -> Policy:
        return checked_policy(self.project, tomllib.loads(self._policy_text))


def main(directory: Path) -> int:
    """Do the run, which a signal may stop. Returns the exit code."""
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    write_momentary_json(directory / "process.json", {"number": os.getpid()})
    return 0 if do_run(directory) == "done" else 1


def do_run(directory: Path) -> str:
    """Do the run and write its result. Returns the state in which it ended."""
    run = BackgroundRun(directory)
    progress = ReportedProgress(run)
    remarks: list[str] = []

    def noted(message: Warning | str, *_: object, **__: object) -> None:
        if isinstance(message, ReadingWarning) and str(message) not in remarks:
            remarks.append(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of libraries may hold cells
        warnings.simplefilter("always", ReadingWarning)
        warnings.showwarning = noted
        result = _result(run, progress)
    progress.end()
    seconds = {name: round(value, 3) for name, value in progress.seconds.items()}
    write_json(directory / "result.json", {**result, "seconds": seconds, "reading": remarks, "ended": time.time()})
    return str(result["state"])


def _result(run: BackgroundRun, progress: ReportedProgress) -> dict[str, Any]:
    try:
        from sfumato.app.run_kinds import RUN_KINDS

        found = RUN_KINDS[run.kind](RunContext(run, progress))
        progress.end()  # from here on nobody can stop it
        return {"state": "done", "found": as_json(found), "cut_short": progress.stopped}
    except RunStopped:
        return {"state": "stopped"}
    except SfumatoError as error:
        return {"state": "failed", "message": str(error), "infeasible": isinstance(error, InfeasibleError)}
    except MemoryError:
        return {"state": "failed", "message": "not enough memory. Release fewer columns, or set memory in [engine]."}
    except Exception as error:  # noqa: BLE001  (its text may hold cells, so only its type and place are told)
        frames = extract_tb(error.__traceback__)
        place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else "an unknown place"
        return {
            "state": "failed",
            "message": f"unexpected {type(error).__name__} in {place}. This is a fault in Sfumato: please report this "
            "line, without any of your data.",
        }


def as_json(value: Any) -> Any:
    """Return a value that JSON can hold: there is no infinity in it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return value


def _interrupt() -> None:
    """Wake the main thread, also from a wait, by the signal that ends the run."""
    if hasattr(signal, "pthread_kill") and (ident := threading.main_thread().ident) is not None:
        signal.pthread_kill(ident, signal.SIGTERM)
    else:
        signal.raise_signal(signal.SIGTERM)


def _stop(_: int, __: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second wish must not disturb the cleaning up
    raise RunStopped


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
