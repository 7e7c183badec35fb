"""Two ranges of time side by side."""
