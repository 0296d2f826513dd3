"""Losses: how much information a release has lost."""
