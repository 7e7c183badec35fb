"""The folder that `testing.ageing.processes` puts into `PYTHONPATH`: Python imports its `sitecustomize` at start."""
