"""Traces of a group for viewers of the Trace Event Format, such as Perfetto."""
