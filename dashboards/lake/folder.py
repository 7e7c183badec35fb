"""Check that a warehouse is a folder: an address such as `s3a://bucket/x` would become a local folder of that name."""

from __future__ import annotations

import re

ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""`Path` has already replaced the two slashes by one."""


def not_a_folder(warehouse: object) -> str | None:
    """Return a sentence if the warehouse is an address with a scheme, else None."""
    found = ADDRESS.match(str(warehouse))
    if found is None:
        return None
    return (
        f"The warehouse {warehouse} is an address of {found[1]}: name a folder for checkpoints and states with "
        "--warehouse, and give the address of the tables with --tables."
    )
