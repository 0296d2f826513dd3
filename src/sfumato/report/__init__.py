"""Results as one offline HTML file: no scripts, no external resources, light or dark like the reader's system."""
