"""The risk that records are re-identified."""
