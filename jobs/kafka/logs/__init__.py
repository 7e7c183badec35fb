"""Lines of log files that grow, are rotated, and whose lines may be in parts."""
