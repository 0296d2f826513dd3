"""What no release can do better than: proven lower bounds on the loss."""
