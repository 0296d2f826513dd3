"""Learning from releases: what a model loses that is trained on a release instead of the original (LeFevre 2008, 4)."""
