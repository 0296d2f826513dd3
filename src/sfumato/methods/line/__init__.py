"""Methods that order the records along a line and cut the line into classes."""
