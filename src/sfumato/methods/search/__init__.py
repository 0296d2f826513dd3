"""Search for classes with less loss."""
