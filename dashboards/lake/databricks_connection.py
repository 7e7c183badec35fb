"""Connections to a Databricks SQL warehouse: their options, their pool, and their errors as sentences."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from threading import Lock
from time import monotonic
from typing import Any

import pyarrow as pa

from dashboards.lake.databricks_warehouse import Warehouse
from dashboards.lake.lake import LakeError
from dashboards.lake.service_principal import ServicePrincipal
from dashboards.lake.sql_names import ABSENT, NO_SCHEMA

LOG = logging.getLogger(__name__)
SESSION = {"TIMEZONE": "UTC", "ANSI_MODE": "true", "STATEMENT_TIMEOUT": "60"}
GIVE_UP_SECONDS = 30
"""Time limit for retries of a request. If a warehouse takes longer to start, the next page tries again."""
UNUSED_SECONDS = 300.0
"""A connection idle for this long is replaced, because the warehouse may have closed its session."""


def connect(warehouse: Warehouse) -> Any:
    """Return a connection of databricks-sql-connector; only one thread may use it at a time."""
    from databricks import sql  # noqa: PLC0415

    return sql.connect(**options(warehouse))


def options(warehouse: Warehouse) -> dict[str, Any]:
    """Return the options of `databricks.sql.connect`. They contain secrets: never print or store them."""
    credentials: dict[str, Any] = {"access_token": warehouse.token}
    if warehouse.client_id:
        credentials = {"credentials_provider": lambda: _principal(warehouse).headers}
    return credentials | {
        "server_hostname": warehouse.host,
        "http_path": warehouse.http_path,
        "session_configuration": SESSION,
        "user_agent_entry": "regroup",
        "enable_telemetry": False,
        "_retry_stop_after_attempts_duration": GIVE_UP_SECONDS,
    }


@cache
def _principal(warehouse: Warehouse) -> ServicePrincipal:
    """Return one service principal for all connections, which share its token."""
    url = f"https://{warehouse.host}/oidc/v1/token"
    return ServicePrincipal(url, warehouse.client_id, warehouse.client_secret)


class Connections:
    """A pool that grows to the number of concurrent statements. Thread-safe."""

    def __init__(self, warehouse: Warehouse, opened: Callable[[Warehouse], Any] = connect) -> None:
        self._warehouse = warehouse
        self._opened = opened
        self._lock = Lock()
        self._idle: list[tuple[float, Any]] = []

    def ask(self, text: str, parameters: Mapping[str, Any]) -> pa.Table:
        """Return the result of one statement.

        Raises:
            LakeError: with a sentence for readers of the pages; its cause is the connector's error.
        """
        connection = self._kept()
        try:
            if connection is not None:
                try:
                    return self._response(connection, text, parameters)
                except Exception as error:
                    if is_response(error):
                        raise
                    LOG.info("a connection to Databricks SQL had ended: %s", type(error).__name__)
            return self._response(self._opened(self._warehouse), text, parameters)
        except LakeError:
            raise
        except Exception as error:
            raise LakeError(sentence(error, self._warehouse)) from error

    def _kept(self) -> Any | None:
        with self._lock:
            newest = self._idle.pop() if self._idle else None
            if newest is None or monotonic() - newest[0] < UNUSED_SECONDS:
                return None if newest is None else newest[1]
            # No other idle connection was used later than this one.
            unused, self._idle = [newest, *self._idle], []
        for _, connection in unused:
            _close(connection)
        return None

    def _response(self, connection: Any, text: str, parameters: Mapping[str, Any]) -> pa.Table:
        try:
            with connection.cursor() as cursor:
                cursor.execute(text, parameters=dict(parameters) or None)
                response: pa.Table = cursor.fetchall_arrow()
        except Exception as error:
            if is_response(error):
                self._keep(connection)
            else:
                _close(connection)
            raise
        self._keep(connection)
        return response

    def _keep(self, connection: Any) -> None:
        with self._lock:
            self._idle.append((monotonic(), connection))


def is_absent(error: LakeError) -> bool:
    """Return whether the table does not exist. A missing permission does not count."""
    message = str(error.__cause__)
    return any(name in message for name in ABSENT)


def sentence(error: Exception, warehouse: Warehouse) -> str:
    """Return the failure and the next step. The connector's message is left out, because it quotes the statement."""
    message, code = str(error), str((getattr(error, "context", None) or {}).get("http-code"))
    if "INSUFFICIENT_PERMISSIONS" in message or "PERMISSION_DENIED" in message:
        return (
            f"Databricks does not let the pages read {warehouse.location}: they need USE CATALOG, USE SCHEMA and "
            "SELECT (of a volume READ VOLUME) there, and CAN USE of the SQL warehouse."
        )
    if any(name in message for name in NO_SCHEMA):
        return f"This workspace has no schema {warehouse.location}: check the setting for the tables."
    if is_response(error):
        return "Databricks SQL could not run a query of this page; the log has its error."
    if code in ("401", "403"):
        return f"Databricks rejects the credentials (HTTP {code}): check token, or client_id and client_secret."
    if code == "404":
        return f"{warehouse.host} has no SQL warehouse at {warehouse.http_path}: check http_path."
    return (
        f"The SQL warehouse at {warehouse.host} does not respond: it may be starting; else check server_hostname and "
        "http_path. The page retries every few seconds."
    )


def is_response(error: BaseException | None) -> bool:
    """Return whether the warehouse understood the statement and rejected it, so that a retry would fail again."""
    return any(kind.__name__ == "ServerOperationError" for kind in type(error).__mro__)


def _close(connection: Any) -> None:
    with suppress(Exception):
        connection.close()
