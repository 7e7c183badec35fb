"""Pure functions from rows to figures. Untrusted text must pass through `dashboards.text.figure_text`."""
