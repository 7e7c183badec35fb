"""The pages as a Databricks App: `python -m dashboards.databricks_app`, set up by the platform's environment.

The platform's proxy, through which alone an App is reached, signs readers in and says who they are; the App reads the
tables as its own service principal.
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
from dashboards.web.access import ANY_HOST, Access
from schemas.visible import visible_stream

EVERYWHERE = "0.0.0.0"  # noqa: S104 - where the platform's proxy asks
ANY_NETWORK = "0.0.0.0/0, ::/0"
IDENTITY = "X-Forwarded-Email"
EVERYBODY = "everybody"
NO_GROUPS = ""
"""The platform tells no groups of its readers, and whatever header says so is the reader's own."""
NO_TOKEN = ""
BEHIND_TLS = "https://"
"""The platform's proxy ends TLS. It alone knows the App's name, and leads nobody here by another one."""


def warehouse(environment: Mapping[str, str]) -> Warehouse:
    """Raises `LakeError` where the environment lacks something, which it names."""
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
            f"The App's environment has no {', '.join(missing)}: deploy it as dashboards/regroup.app.yml says."
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
    """Whom the platform lets through: `REGROUP_READERS` is a TOML file with `[readers]`, by e-mail address, or
    `everybody`.

    Raises:
        ValueError, OSError: it is no such file.
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


def main() -> int:
    """Serve until the platform ends the App; 2, and why on stderr, where it cannot start."""
    sys.stdout, sys.stderr = visible_stream(sys.stdout), visible_stream(sys.stderr)
    try:
        port = int(os.environ.get("DATABRICKS_APP_PORT", "8000"))
        return serve(lake(warehouse(os.environ)), host=EVERYWHERE, port=port, access=access(os.environ))
    except (LakeError, ValueError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
