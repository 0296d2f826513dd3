"""Boxes around a record: the one that leaves least for its price, beside the prices of the others."""
