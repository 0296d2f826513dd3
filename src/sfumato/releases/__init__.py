"""From classes to released columns, and what travels with them."""
