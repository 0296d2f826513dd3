"""Sources: where tables are read from. One protocol, and one file for each kind of source."""
