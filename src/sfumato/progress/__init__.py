"""The progress of a run: its phases, and how long they will still take."""

from sfumato.progress.phases import Progress

__all__ = ["Progress"]
