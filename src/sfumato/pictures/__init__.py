"""Pictures as SVG, drawn from Vega-Lite specifications or mark by mark, in one theme."""
