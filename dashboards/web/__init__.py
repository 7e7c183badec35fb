"""The HTTP side: the server and its limits, who gets in, headers, compression, and endpoints beside the pages.

What the pages show is not decided here.
"""
