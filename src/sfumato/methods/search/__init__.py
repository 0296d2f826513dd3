"""Searches that lower the loss of given classes."""
