"""Folders and addresses that the user names."""

from __future__ import annotations

from pathlib import Path

from dashboards.lake.address import ObjectStore, address
from jobs.config.errors import UserError


def place_of(text: str | Path, of: str = "warehouse") -> Path | ObjectStore:
    """Return the folder or the place in an object store that the text names; `of` is what is there.

    Raises:
        UserError: the address is not valid, or Regroup cannot read it.
    """
    try:
        return address(text, of)
    except ValueError as error:
        raise UserError(str(error)) from None
