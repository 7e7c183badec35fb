"""Preparation of a checkout: packages, Java and jars, and the documents that are written from the source.

`environment` and `java` run before any package is installed, so they use the standard library only.
Nothing here runs while a job works.
"""
