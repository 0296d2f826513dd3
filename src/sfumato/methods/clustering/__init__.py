"""Methods that bring near records together."""
