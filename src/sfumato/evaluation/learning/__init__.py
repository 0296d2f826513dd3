"""Learn from releases: how much a model loses if trained on a release instead of the original (LeFevre 2008, 4)."""
