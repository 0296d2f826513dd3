"""Proven lower bounds on the loss: no release can do better."""
