"""Readers of the pages: over HTTP and in a browser, one at a time and many at once."""
