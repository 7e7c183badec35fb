"""The pages as a Databricks App: `python -m dashboards.databricks_app`, configured by the platform's environment.

An App is reachable only through the platform's proxy, which signs readers in and sends their identity. The App reads
the tables as its own service principal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from dashboards.app import serve
from dashboards.lake.databricks_tables import lake
from dashboards.lake.databricks_warehouse import Warehouse
from dashboards.lake.lake import LakeError
from dashboards.lake.readers import readers_table
from dashboards.teams import Teams, teams_table
from dashboards.web.access import ANY_HOST, Access
from schemas.visible import visible_stream

EVERYWHERE = "0.0.0.0"  # noqa: S104 - the platform's proxy connects here
ANY_NETWORK = "0.0.0.0/0, ::/0"
IDENTITY = "X-Forwarded-Email"
EVERYBODY = "everybody"
NO_GROUPS = ""
"""No header with groups is trusted: the platform sends none, so such a header comes from the reader."""
NO_TOKEN = ""
BEHIND_TLS = "https://"
"""The platform's proxy terminates TLS. Only the proxy knows the App's host name, so no host name is checked here."""


def warehouse(environment: Mapping[str, str]) -> Warehouse:
    """Return the warehouse that the environment describes. Raises `LakeError` with the names of missing variables."""
    needed = (
        "DATABRICKS_HOST",
        "DATABRICKS_WAREHOUSE_ID",
        "DATABRICKS_CLIENT_ID",
        "DATABRICKS_CLIENT_SECRET",
        "REGROUP_TABLES",
        "REGROUP_READERS",
    )
    if missing := [name for name in needed if not environment.get(name, "").strip()]:
        raise LakeError(
            f"The App's environment has no {', '.join(missing)}: deploy it with dashboards/regroup.app.yml."
        )
    host, warehouse_id, client_id, client_secret, tables, _ = (environment[name] for name in needed)
    return Warehouse(
        server_hostname=host,
        http_path=f"/sql/1.0/warehouses/{warehouse_id}",
        tables=tables,
        client_id=client_id,
        client_secret=client_secret,
    )


def access(environment: Mapping[str, str]) -> Access:
    """Return the access rules. `REGROUP_READERS` is `everybody` or a TOML file with `[readers]` by e-mail address.

    Raises:
        ValueError, OSError: the file is missing or not of that form.
    """
    file = environment.get("REGROUP_READERS", "")
    return Access.of(
        token=NO_TOKEN,
        proxies=ANY_NETWORK,
        header=IDENTITY,
        groups_header=NO_GROUPS,
        readers={} if file == EVERYBODY else readers_table(Path(file)),
        hosts=ANY_HOST,
        address=BEHIND_TLS,
    )


def teams(environment: Mapping[str, str]) -> Teams:
    """Return the teams. `REGROUP_TEAMS` is a TOML file with `[teams]`; without it there are none.

    Raises:
        ValueError, OSError: the file is missing or not of that form.
    """
    file = environment.get("REGROUP_TEAMS", "").strip()
    return teams_table(Path(file)) if file else Teams()


def main() -> int:
    """Serve until the platform stops the App. If it cannot start, write the reason to stderr and return 2."""
    sys.stdout, sys.stderr = visible_stream(sys.stdout), visible_stream(sys.stderr)
    try:
        port = int(os.environ.get("DATABRICKS_APP_PORT", "8000"))
        of = warehouse(os.environ)
        guarded, known = access(os.environ), teams(os.environ)
        return serve(lake(of), host=EVERYWHERE, port=port, access=guarded, teams=known)
    except (LakeError, ValueError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
