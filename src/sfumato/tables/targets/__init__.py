"""Where releases are written to."""
