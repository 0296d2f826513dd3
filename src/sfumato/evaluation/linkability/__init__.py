"""Find kept columns that would undo the anonymization."""
