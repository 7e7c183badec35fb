"""The steps of `quality`: rows prepared for rules, the rules as suites of Great Expectations, and its pages.

The rules themselves are in `schemas.rules`.
"""
