"""Many dimensions to one: orderings under which near records have near keys."""
