"""The HTML document of all pages, as Dash's `index_string`: scripts and style sheets that are loaded first."""

from __future__ import annotations

INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
{%metas%}
<title>{%title%}</title>
{%favicon%}
{%css%}
<script src="/assets/theme.js"></script>
<link rel="preload" as="script" href="/assets/plotly/plotly-cartesian.min.js">
<script async src="/_dash-component-suites/dash/dcc/async-graph.js"></script>
</head>
<body>
{%app_entry%}
<footer>{%config%}{%scripts%}{%renderer%}</footer>
</body>
</html>"""
