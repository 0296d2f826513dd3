"""Tables: read them from files, frames and databases, encode them, sort them beyond memory, and write a release."""
