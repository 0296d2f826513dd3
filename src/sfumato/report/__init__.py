"""Results as one offline HTML file: no script, nothing from elsewhere, light or dark as the reader's system is."""
