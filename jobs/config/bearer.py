"""Bearer tokens of the ports for other programs: metrics for Prometheus, and metrics of clients."""

from __future__ import annotations

import hmac

from jobs.config.declared import secret
from jobs.config.errors import UserError

SHORTEST = 16


def bearer_token(subject: str, reference: str) -> str:
    """Return the token at `reference` (`env:NAME`, `file:PATH` or the token itself); empty for an empty reference.

    Raises:
        UserError: there is no token at that place, or it is too short. The sentence begins with `subject`.
    """
    token = secret(subject, reference).strip()
    if token and len(token) < SHORTEST:
        raise UserError(f"{subject} must have at least {SHORTEST} characters.")
    return token


def has_token(header: str, token: str) -> bool:
    """Return whether the header Authorization has the token. The time that this takes does not depend on the token."""
    kind, _, sent = header.partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(sent.strip().encode("utf-8", "replace"), token.encode())
