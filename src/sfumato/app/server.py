"""Start and stop the page: bind the address, print it with its token, and end when nobody has used it for long."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from sfumato.app.access import TOKEN, Access
from sfumato.app.application import make_application
from sfumato.app.background_run import runs_of
from sfumato.app.data_folder import DataFolder
from sfumato.app.project import ProjectStore
from sfumato.errors import InputError, UsageError

LOCAL = "127.0.0.1"
LOOK = 15.0  # seconds between two looks at whether anybody is still there


def serve(
    folder: Path, *, port: int, host: str, browser: bool, idle_minutes: float, announce: Callable[[str], None]
) -> None:
    """Serve the page until it is interrupted or nobody has used it for long. announce: gets the address."""
    if os.name != "posix":
        raise UsageError("the page needs Linux or macOS. On Windows, run it in the Windows Subsystem for Linux.")
    try:
        data = DataFolder(folder)
    except OSError:
        raise InputError(f"the folder {str(folder)!r} does not exist. Make it, or give another.") from None
    if not data.root.is_dir():
        raise InputError(f"{str(folder)!r} is not a folder. Give the folder with your tables.")
    bound = _bound(host, port)
    access = Access(_hosts(host), bound.getsockname()[1])
    store = ProjectStore(data)
    seen = Activity()
    application = make_application(store, access, seen)
    # The loop of the standard library, one process, no logs: they would hold names of tables.
    config = uvicorn.Config(
        application,
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
        lifespan="off",
        ws="none",
    )
    server = PageServer(config, store, seen, idle_minutes * 60)
    shown = LOCAL if host in ("0.0.0.0", "::") else host  # noqa: S104  (a comparison)
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{bound.getsockname()[1]}/?{TOKEN}={access.token}"
    gc.freeze()  # what is loaded stays: looking for garbage in it would make some pages slow
    announce(address)
    if browser and _has_display():
        webbrowser.open(address)
    try:
        server.run(sockets=[bound])
    finally:
        store.close()


class Activity:
    """When somebody last asked for something."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def now(self) -> None:
        self.last = time.monotonic()


class PageServer(uvicorn.Server):
    """A server that ends when nobody has used it for long and no run goes on."""

    def __init__(self, config: uvicorn.Config, store: ProjectStore, seen: Activity, idle_seconds: float) -> None:
        super().__init__(config)
        self._store = store
        self._seen = seen
        self._idle_seconds = idle_seconds

    async def main_loop(self) -> None:
        watching = asyncio.create_task(self._watch())
        try:
            await super().main_loop()
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        while not self.should_exit:
            await asyncio.sleep(min(LOOK, self._idle_seconds / 4))
            if time.monotonic() - self._seen.last > self._idle_seconds and not await asyncio.to_thread(self._is_busy):
                self.should_exit = True

    def _is_busy(self) -> bool:
        return any(run.state == "running" for project in self._store.projects() for run in runs_of(project))


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen()
    except (OSError, OverflowError):
        bound.close()
        raise UsageError(
            f"the address {host}:{port} cannot be used: another program has it, or it is not of this machine. Choose "
            "another --port, or leave it out."
        ) from None
    return bound


def _hosts(host: str) -> set[str]:
    """The names by which a browser may call this server."""
    names = {LOCAL, "localhost", "[::1]"}
    if host in ("0.0.0.0", "::"):  # noqa: S104  (a comparison)
        return names | {socket.gethostname(), socket.getfqdn()}
    return names | {f"[{host}]" if ":" in host else host}


def _has_display() -> bool:
    """Return whether there is a screen to open a browser on: one in a terminal would take the terminal away."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
