"""What a Databricks SQL warehouse is to settings and pages, apart from what connects to it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Warehouse:
    """A SQL warehouse, and where the tables are: `catalog.schema`, or the folder that the jobs write, such as
    `/Volumes/main/regroup/warehouse`. With `token`, or as the service principal `client_id`. In the settings a secret
    is a reference, such as `env:NAME`.
    """

    server_hostname: str
    http_path: str
    tables: str
    token: str = field(default="", repr=False)
    client_id: str = ""
    client_secret: str = field(default="", repr=False)

    @property
    def host(self) -> str:
        """Without what an address has around it."""
        return self.server_hostname.removeprefix("https://").rstrip("/")

    @property
    def place(self) -> str:
        return self.tables.rstrip("/")
