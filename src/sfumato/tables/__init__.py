"""Tables: reading them from files and frames, what their columns hold, the same table in codes, writing a release."""
