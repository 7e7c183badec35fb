"""Checks of settings whose type is right but whose value is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from jobs.config.declared import REFERENCES
from jobs.config.errors import UserError
from pipelines.silver.client_hosts import HostPolicy


def refuse_blank(declared: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Raise `UserError` for an empty secret or access rule. Most often, a variable was not set."""
    for key in ("pages_token", "metrics_token", "client_host_key"):
        if key in declared and not str(declared[key]).strip():
            raise UserError(f"The setting {key} is empty: write env:NAME or file:PATH, or remove it.")
    for key in ("pages_token", "metrics_token", "client_host_key", "trusted_proxies", "identity_header"):
        name = f"REGROUP_{key.upper()}"
        if name in environment and not environment[name].strip():
            raise UserError(f"The environment variable {name} is empty: give it a value, or unset it.")


def refuse_impossible(values: Mapping[str, Any]) -> None:
    """Raise `UserError` for a value outside its range, or one that contradicts another setting."""
    if not 0 < values.get("availability_target", 0.5) < 1:
        raise UserError("The setting availability_target must lie between 0 and 1, such as 0.999 for 99.9 %.")
    policy, key = values.get("client_host", HostPolicy.KEEP), values.get("client_host_key", "")
    if policy not in set(HostPolicy):
        raise UserError(f"The setting client_host must be {', '.join(HostPolicy)}, but is {policy!r}.")
    if (key or policy == HostPolicy.HASH) and not key.startswith(REFERENCES):
        raise UserError(
            'The setting client_host_key must refer to the key for client_host = "hash": write env:NAME or file:PATH.'
        )
    for key in ("keep_commits_days", "keep_bronze_days", "keep_operations_days", "vacuum_days"):
        if values.get(key, 0) < 0:
            raise UserError(f"The setting {key} must be at least 0 days, but is {values[key]}.")
    for key in ("max_resources", "max_groups", "max_name_bytes"):
        if values.get(key, 1) < 1:
            raise UserError(f"The setting {key} must be a whole number of at least 1, but is {values[key]}.")
    for key in ("dashboard_url", "runbook_url"):
        if values.get(key) and not is_http_address(values[key]):
            raise UserError(
                f"The setting {key} must be an address with http:// or https:// and a host, but is {values[key]!r}."
            )


def is_http_address(value: str) -> bool:
    """Return whether a text is an address with http or https and a host, and with a valid port if it has one."""
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
