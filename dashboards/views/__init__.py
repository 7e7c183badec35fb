"""Parts that several pages share: components, time controls, sentences, colours, and rows prepared for drawing.

Whole pages are in `dashboards.pages`, figures in `dashboards.figures`.
"""
