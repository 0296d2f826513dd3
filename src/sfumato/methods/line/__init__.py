"""Methods that put records in a line and cut it."""
