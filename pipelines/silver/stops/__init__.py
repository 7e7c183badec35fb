"""When members stopped working: bounds and the best estimate from commits, departures and log lines.

The owners of resources, and the stalls that follow from stops, are tracked in `pipelines.silver.stalls`.
"""
