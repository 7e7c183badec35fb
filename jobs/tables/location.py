"""Where the tables of a warehouse are: in its folder, or elsewhere by name.

Tables elsewhere are in a schema of a catalog, such as Unity Catalog, or below the address of an object store. Only
Spark reads and writes those. The folder then keeps everything else: checkpoints, locks and states.
"""

from __future__ import annotations

import re
from pathlib import Path

from jobs.config.errors import UserError
from jobs.tables.disk.durability import write_whole

SCHEMA = re.compile(r"[^`.:/\s]+(\.[^`.:/\s]+)?")
ADDRESS = re.compile(r"[a-z][a-z0-9+]*://\S+[^/\s]|/\S*[^/\s]")


def valid_location(text: str) -> str:
    """Return the text if it is `schema`, `catalog.schema`, the address of a folder in an object store, or a path.

    Raises:
        UserError: it is something else.
    """
    text = text.rstrip("/")
    if not SCHEMA.fullmatch(text) and not is_address(text):
        raise UserError(
            f"The setting tables must be a schema, such as main.regroup, or an address, such as s3a://bucket/regroup, "
            f"but is {text!r}."
        )
    return text


def is_address(text: str) -> bool:
    """Return whether a location is an address or a path, and no schema."""
    return ADDRESS.fullmatch(text) is not None and "`" not in text


def location(warehouse: str | Path) -> str | None:
    """Return the schema or the address that has the warehouse's tables; None if its folder has them.

    Raises:
        UserError: this user may not read the warehouse, or it is a file.
    """
    try:
        return _note(warehouse).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise UserError(
            f"The warehouse {warehouse} cannot be a folder, because a file has its name or that of a folder above it: "
            "name another with --warehouse."
        ) from None
    except PermissionError as error:
        raise UserError(
            f"The warehouse {warehouse} cannot be read ({error.strerror}): let this user read it, run the command as "
            "the user who wrote it, or name another with --warehouse."
        ) from None


def is_elsewhere(warehouse: str | Path) -> bool:
    """Return whether the tables are elsewhere, so that only Spark reads and writes them."""
    return location(warehouse) is not None


def shown(warehouse: Path) -> str:
    """Return where the tables are, for a sentence: the schema, the address or the folder."""
    return location(warehouse) or str(warehouse)


def bind(warehouse: Path, wanted: str) -> None:
    """Bind the warehouse permanently to tables elsewhere.

    Raises:
        UserError: it is bound to others, or its folder has tables.
    """
    known = location(warehouse)
    if known is None:
        if any(warehouse.glob("*/_delta_log")):
            raise UserError(
                f"The warehouse {warehouse} has its tables in the folder, but the setting tables says {wanted}: give "
                "another --warehouse for checkpoints and states, or leave the setting out."
            )
        write_whole(_note(warehouse), wanted)
    elif known != wanted:
        raise UserError(
            f"The warehouse {warehouse} belongs to the tables in {known}, but the setting tables says {wanted}: give "
            "another --warehouse, or correct the setting."
        )


def _note(warehouse: str | Path) -> Path:
    return Path(warehouse, "_tables")
