"""Methods that generalise by grids over the domain and by levels of taxonomies."""
