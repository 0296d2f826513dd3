"""Pictures: Vega-Lite specifications drawn as SVG, in one theme."""
