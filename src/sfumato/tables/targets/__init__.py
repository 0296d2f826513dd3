"""Targets: where releases are written to. One protocol, and one file for each kind of target."""
