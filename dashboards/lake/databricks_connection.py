"""Connections to a Databricks SQL warehouse: what they need, how they are shared, and their errors as sentences."""

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

LOG = logging.getLogger(__name__)
SESSION = {"TIMEZONE": "UTC", "ANSI_MODE": "true", "STATEMENT_TIMEOUT": "60"}
GIVE_UP_SECONDS = 30
"""For a request that is tried again; a warehouse that takes longer to start is asked for again by the next page."""
ABSENT = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "PATH_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_PATH_DOES_NOT_EXIST",
    "DELTA_TABLE_ONLY_OPERATION",
)
"""Conditions that a table or a folder without one may raise."""
UNUSED_SECONDS = 300.0
"""A connection that was not used for so long is opened anew: the warehouse may have ended its session."""


def connect(warehouse: Warehouse) -> Any:
    """A connection of databricks-sql-connector; only one thread may use it at a time."""
    from databricks import sql  # noqa: PLC0415

    return sql.connect(**options(warehouse))


def options(warehouse: Warehouse) -> dict[str, Any]:
    """For `databricks.sql.connect`. Never print or store what this returns."""
    who: dict[str, Any] = {"access_token": warehouse.token}
    if warehouse.client_id:
        who = {"credentials_provider": lambda: _principal(warehouse).headers}
    return who | {
        "server_hostname": warehouse.host,
        "http_path": warehouse.http_path,
        "session_configuration": SESSION,
        "user_agent_entry": "regroup",
        "enable_telemetry": False,
        "_retry_stop_after_attempts_duration": GIVE_UP_SECONDS,
    }


@cache
def _principal(warehouse: Warehouse) -> ServicePrincipal:
    """One for all connections: they share its token."""
    url = f"https://{warehouse.host}/oidc/v1/token"
    return ServicePrincipal(url, warehouse.client_id, warehouse.client_secret)


class Connections:
    """As many as are needed at once, each used again. Safe for threads."""

    def __init__(self, warehouse: Warehouse, opened: Callable[[Warehouse], Any] = connect) -> None:
        self._warehouse = warehouse
        self._opened = opened
        self._lock = Lock()
        self._idle: list[tuple[float, Any]] = []

    def ask(self, text: str, parameters: Mapping[str, Any]) -> pa.Table:
        """The answer to one statement.

        Raises:
            LakeError: with a sentence for who reads the pages, and the connector's error as its cause.
        """
        connection = self._kept()
        try:
            if connection is not None:
                try:
                    return self._answer(connection, text, parameters)
                except Exception as error:
                    if is_answer(error):
                        raise
                    LOG.info("a connection to Databricks SQL had ended: %s", type(error).__name__)
            return self._answer(self._opened(self._warehouse), text, parameters)
        except LakeError:
            raise
        except Exception as error:
            raise LakeError(sentence(error, self._warehouse)) from error

    def _kept(self) -> Any | None:
        with self._lock:
            newest = self._idle.pop() if self._idle else None
            if newest is None or monotonic() - newest[0] < UNUSED_SECONDS:
                return None if newest is None else newest[1]
            # None was used later than the newest.
            unused, self._idle = [newest, *self._idle], []
        for _, connection in unused:
            _close(connection)
        return None

    def _answer(self, connection: Any, text: str, parameters: Mapping[str, Any]) -> pa.Table:
        try:
            with connection.cursor() as cursor:
                cursor.execute(text, parameters=dict(parameters) or None)
                answer: pa.Table = cursor.fetchall_arrow()
        except Exception as error:
            if is_answer(error):
                self._keep(connection)
            else:
                _close(connection)
            raise
        self._keep(connection)
        return answer

    def _keep(self, connection: Any) -> None:
        with self._lock:
            self._idle.append((monotonic(), connection))


def is_absent(error: LakeError) -> bool:
    """What was asked for is not there; no word of whether one may look."""
    told = str(error.__cause__)
    return any(name in told for name in ABSENT)


def sentence(error: Exception, warehouse: Warehouse) -> str:
    """What went wrong with a statement, and the next step; without the connector's own words, which quote it."""
    told, code = str(error), str((getattr(error, "context", None) or {}).get("http-code"))
    if "INSUFFICIENT_PERMISSIONS" in told or "PERMISSION_DENIED" in told:
        return (
            f"Databricks does not let the pages read {warehouse.place}: they need USE CATALOG, USE SCHEMA and SELECT "
            "(of a volume READ VOLUME) there, and CAN USE of the SQL warehouse."
        )
    if any(name in told for name in ("SCHEMA_NOT_FOUND", "NO_SUCH_CATALOG", "NO_SUCH_NAMESPACE", "CATALOG_NOT_FOUND")):
        return f"This workspace has no schema {warehouse.place}: check where the tables are said to be."
    if is_answer(error):
        return "Databricks SQL could not answer this page; the log has what it said."
    if code in ("401", "403"):
        return f"Databricks refuses who asks (HTTP {code}): check token, or client_id and client_secret."
    if code == "404":
        return f"{warehouse.host} has no SQL warehouse at {warehouse.http_path}: check http_path."
    return (
        f"The SQL warehouse at {warehouse.host} does not answer: it may be starting; else check server_hostname and "
        "http_path. It is asked again every few seconds."
    )


def is_answer(error: BaseException | None) -> bool:
    """The warehouse understood the statement and refused it: it would say the same again."""
    return any(kind.__name__ == "ServerOperationError" for kind in type(error).__mro__)


def _close(connection: Any) -> None:
    with suppress(Exception):
        connection.close()
