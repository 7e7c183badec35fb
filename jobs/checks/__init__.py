"""The steps of `quality`: preparing rows for the rules, the rules as Great Expectations suites, and its HTML pages.

The rules themselves are in `schemas.rules`.
"""
