"""Preparation of a checkout: packages, Java and jars, and the documents that are generated from the source.

`environment` and `java` run before any package is installed, so they use only the standard library. Nothing here runs
during a job.
"""
