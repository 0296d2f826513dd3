"""Methods on grids of the domain and levels of taxonomies."""
