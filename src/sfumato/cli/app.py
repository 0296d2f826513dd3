"""``sfumato app``: the local page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.output import TextConsole
from sfumato.errors import UsageError


def serve_page(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder with your tables. Nothing outside it is read.")
    ] = Path(),
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port. Default: one that is free.")
    ] = 0,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="The address to listen on. Any other than the default lets others on the network try to get in.",
        ),
    ] = "127.0.0.1",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser; print the address.")] = False,
    idle: Annotated[
        float, typer.Option("--idle", metavar="MINUTES", help="End when nobody has used the page for so long.")
    ] = 60.0,
) -> None:
    """Open a local page on which you go from a raw table to a release, step by step, and get a policy.

    Only the browser that opens the printed address gets in, and the page connects to nothing. What it does is in the
    policy, which `sfumato anonymize` repeats byte for byte.

    Example: sfumato app data
    """
    try:
        from sfumato.app.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise UsageError(
            "the page needs Starlette and uvicorn. Install them with: pip install 'sfumato[app]'"
        ) from None
    if idle <= 0:
        raise UsageError(f"--idle must be above 0, not {idle:g}. Give minutes, such as 60.")
    if host not in ("127.0.0.1", "localhost", "::1"):
        typer.echo(
            f"warning: {host} can be reached from other machines, and what is on the page travels unencrypted. Whoever "
            "reads the address below, or listens on the network, sees your data. Leave --host out unless you need it.",
            err=True,
        )
    serve(folder, port=port, host=host, browser=not no_browser, idle_minutes=idle, announce=_print)


def _print(address: str) -> None:
    TextConsole().print(address)
    sys.stdout.flush()
