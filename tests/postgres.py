"""A real PostgreSQL server of its own: a fresh directory, a socket inside it, no port, gone when the tests are.

PostgreSQL refuses to run as root, so for root it runs as the user that Debian's package makes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

SECONDS = 60.0


@contextlib.contextmanager
def postgresql() -> Iterator[Any]:
    """A connection to a fresh server, where PostgreSQL is installed; ``make test`` installs it where it may."""
    import psycopg

    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL here; on Debian: apt-get install postgresql")
    user = "postgres" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="sfumato-postgresql-"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        data = folder / "data"
        _run([programs / "initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"], user)
        settings = ["listen_addresses=", f"unix_socket_directories={folder}", "fsync=off"]
        flags = [part for setting in settings for part in ("-c", setting)]
        log = (folder / "log").open("wb")
        server = subprocess.Popen([programs / "postgres", "-D", data, *flags], user=user, stdout=log, stderr=log)
        try:
            with _connected(psycopg, folder, server) as connection:
                yield connection
        finally:
            server.send_signal(signal.SIGINT)  # ends connections that are still open, where SIGTERM waits for them
            server.wait(SECONDS)
            log.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _connected(psycopg: Any, folder: Path, server: subprocess.Popen[bytes]) -> Any:
    until = time.monotonic() + SECONDS
    while True:
        try:
            return psycopg.connect(host=str(folder), user="tester", dbname="postgres", autocommit=True)
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > until:
                raise AssertionError((folder / "log").read_text(errors="replace")) from None
            time.sleep(0.05)


def _run(command: Sequence[str | Path], user: str | None) -> None:
    done = subprocess.run(command, user=user, capture_output=True, text=True, cwd="/", check=False)
    assert done.returncode == 0, done.stderr


def _programs() -> Path | None:
    """Where the server's programs are: Debian keeps them by version, out of the way."""
    found = shutil.which("postgres")
    if found is not None:
        return Path(found).parent
    versions = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    return max(versions, key=lambda path: int(path.parent.name), default=None)
