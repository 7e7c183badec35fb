"""The HTTP side: server and limits, access control, headers, compression, and the endpoints that are not pages.

The content of the pages is not decided here.
"""
