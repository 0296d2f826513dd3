"""Kept columns that would undo a release."""
