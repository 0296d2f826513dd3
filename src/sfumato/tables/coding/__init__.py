"""Tables in codes: domains, order, arrays."""
