"""Parts that several pages share: components, controls of time, sentences, colours, and rows ready to draw.

Whole pages are in `dashboards.pages`, figures in `dashboards.figures`.
"""
