"""Sort and partition tables that do not fit into memory."""
