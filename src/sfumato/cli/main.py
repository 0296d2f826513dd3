"""Run a command. Every error becomes one line on standard error and an exit code.

| exit | when |
|---|---|
| 0 | done |
| 1 | ``audit``, ``report``, ``apply``, ``linked``: the policy does not hold |
| 2, 3, 4 | the errors of ``sfumato.errors`` |
| 5 | ``audit``, ``report``: nothing fails, but something could not be checked (with ``--accept-unchecked``: 0) |
| 70 | anything unexpected |
| 130, 143 | interrupted, terminated |

What cannot be printed changes the code of a command that only prints from 0 to 4. It changes no other code.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from types import FrameType, TracebackType
from typing import Self

import typer

from sfumato._version import __version__
from sfumato.cli.commands import app
from sfumato.cli.output import forget_standard_output, standard_output
from sfumato.errors import NO_SPACE, KernelCacheWarning, OutputError, ReadingWarning, SfumatoError
from sfumato.kernels.numba_import import this_process_runs_the_command

UNEXPECTED = 70
# New objects between two searches for cycles of garbage: more than the imports of a command make, which all stay.
NEW_OBJECTS = 300_000
PACKAGE = Path(__file__).parents[1]

# Depending on its version, Typer brings its own copy of click or uses the installed one. This is the base class of all
# its errors about arguments in either case.
WRONG_USE = typer.BadParameter.__bases__[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in ``arguments`` (default: those of the process) and return its exit code."""
    standard_output.begin()
    this_process_runs_the_command()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name with characters that the terminal cannot show must not end a run.
            stream.reconfigure(errors="backslashreplace")
    with _rare_garbage_collection(), warnings.catch_warnings(), ExitStatus() as status, _stopped_by_signals():
        # Warnings of libraries may contain cell values.
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", KernelCacheWarning)
        warnings.simplefilter("always", ReadingWarning)
        warnings.showwarning = _WarningOnce()
        words = None if arguments is None else list(arguments)
        status.code = app(words, prog_name="sfumato", standalone_mode=False) or 0
    return _after_printing(status.code)


def _after_printing(code: int) -> int:
    """Say what could not be printed, and return the exit code."""
    try:
        sys.stdout.flush()
    except OSError as error:
        standard_output.failed(error)
    failure = standard_output.failure
    if failure is None:
        return code
    reason = "no space left" if failure.errno in NO_SPACE else os.strerror(failure.errno or errno.EIO).lower()
    text = f"{reason} for standard output, so what the command prints is not complete."
    if standard_output.files:
        _complain(f"warning: {text} These are complete: {', '.join(standard_output.files)}.")
        return code
    _complain(f"error: {text} Print it to another place.")
    return code or OutputError.exit_code


@contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """Search for cycles of garbage less often: imports make many objects and hardly any garbage."""
    usual = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


class Stopped(BaseException):
    """A signal asked the process to end. Unfinished files are removed while the exception propagates."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class ExitStatus:
    """Turns how a run ended into an exit code. No error propagates further: its text may contain cell values."""

    def __init__(self) -> None:
        self.code = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or isinstance(error, SystemExit):
            return False
        stopped = _stopped_by(error)
        if stopped is not None:
            self.code = 128 + stopped.number
            _complain("interrupted" if stopped.number == signal.SIGINT else "terminated")
        elif isinstance(error, SfumatoError):
            self.code = error.exit_code
            _complain(f"error: {error}")
        elif isinstance(error, WRONG_USE):
            self.code = 2
            _complain(f"error: {_usage(error)}")
        elif isinstance(error, BrokenPipeError):
            standard_output.failed(error)
        elif isinstance(error, OSError) and error.errno in NO_SPACE:
            self.code = OutputError.exit_code
            forget_standard_output()
            _complain("error: no space left on a disk that the command writes to. Free some space and run it again.")
        elif isinstance(error, MemoryError):
            self.code = UNEXPECTED
            _complain("error: not enough memory. Release fewer columns, or use a machine with more memory.")
        else:
            self.code = UNEXPECTED
            _complain(
                f"error: unexpected {type(error).__name__} {_where(trace)}, Sfumato {__version__}. This is a fault in "
                "Sfumato: please report this line and the command, without any of your data."
            )
        return True


def _stopped_by(error: BaseException) -> Stopped | None:
    """Return the signal that ended the run. Cleaning up after it may have raised an error of its own."""
    each: BaseException | None = error
    while each is not None and not isinstance(each, Stopped):
        each = each.__context__
    return each


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Turn the signals that ask a process to end into an exception, so that it cleans up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)

    def stop(number: int, _: FrameType | None) -> None:
        for each in numbers:  # a second signal must not disturb the cleaning up
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(number)

    # A process that was started in the background may have to ignore interruptions.
    handlers = {number: signal.getsignal(number) for number in numbers}
    for number, handler in handlers.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _complain(text: str) -> None:
    """Print one line on standard error, even if names in the text contain line breaks."""
    try:
        print(" ".join(text.splitlines()), file=sys.stderr, flush=True)
    except OSError:  # nobody reads it; the exit code remains
        return


class _WarningOnce:
    """Prints each warning once, since a command may read a table several times."""

    def __init__(self) -> None:
        self._printed: set[str] = set()

    def __call__(self, message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in self._printed:
            self._printed.add(str(message))
            _complain(f"warning: {message}")
            if isinstance(message, ReadingWarning):
                standard_output.reading_warnings.append(str(message))


def _usage(error: BaseException) -> str:
    message = str(error.format_message()) if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "sfumato"
    return f"{message.rstrip('.')}. See '{path} --help'."


def _where(trace: TracebackType | None) -> str:
    """Name the file and line of the error, and the line of this package that led to it."""
    frames = [(Path(frame.filename), frame.lineno) for frame in extract_tb(trace)]
    ours = [frame for frame in frames if frame[0].is_relative_to(PACKAGE)]
    shown = list(dict.fromkeys([*frames[-1:], *ours[-1:]]))
    return "in " + ", called from ".join(f"{_short(file)}, line {line}" for file, line in shown)


def _short(file: Path) -> str:
    root = PACKAGE.parent
    return os.fspath(file.relative_to(root) if file.is_relative_to(root) else Path(*file.parts[-3:]))
