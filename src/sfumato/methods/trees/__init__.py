"""Methods that divide the domain or the records recursively."""
