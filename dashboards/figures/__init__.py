"""Pure functions from rows to figures. Foreign text passes `dashboards.text.figure_text` on its way in."""
