"""One sentence for a row that a CHECK constraint refuses (`checks`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.config.errors import UserError

VIOLATED = re.compile(
    r"\[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES\] CHECK constraint (\w+)_bounds .*violated by row with values:"
    r"((?:\s+- \w+ : .+)*)"
)
VALUE = re.compile(r"- (\w+) : (.+)")


@contextmanager
def violation_named() -> Iterator[None]:
    """Raise a `UserError` if Delta refused a row in the block because of a constraint."""
    try:
        yield
    except Exception as error:
        if (found := VIOLATED.search(str(error))) is None:
            raise
        values = ", ".join(f"{column} = {value}" for column, value in VALUE.findall(found[2]) if value != "null")
        raise UserError(
            f"A new row of {found[1]} has an estimate outside its own bounds ({values}), so it was not written: this "
            "is a defect of Regroup, so please report it with these values."
        ) from None
