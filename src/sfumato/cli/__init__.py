"""The command line: a thin layer over the functions that Python users call."""

from __future__ import annotations

from sfumato.cli.main import main

__all__ = ["main"]
