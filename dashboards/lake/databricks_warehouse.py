"""The settings of a Databricks SQL warehouse, without the code that connects to it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Warehouse:
    """A SQL warehouse and the location of the tables.

    The location is `catalog.schema`, or the folder that the jobs write, such as `/Volumes/main/regroup/warehouse`.
    Sign in with `token`, or as the service principal `client_id`. In the settings, a secret is a reference such as
    `env:NAME`.
    """

    server_hostname: str
    http_path: str
    tables: str
    token: str = field(default="", repr=False)
    client_id: str = ""
    client_secret: str = field(default="", repr=False)

    @property
    def host(self) -> str:
        """Return the host name, without scheme and trailing slash."""
        return self.server_hostname.removeprefix("https://").rstrip("/")

    @property
    def location(self) -> str:
        return self.tables.rstrip("/")
