"""Opens the tables of a Databricks SQL warehouse, if the optional packages for it are installed."""

from __future__ import annotations

from importlib import import_module

from dashboards.lake.databricks_warehouse import Warehouse
from dashboards.lake.lake import LakeError, WarmLake


def lake(warehouse: Warehouse) -> WarmLake:
    """Return the tables of a warehouse.

    Raises:
        LakeError: the packages for it are not installed.
    """
    try:
        import_module("databricks.sql")
        from dashboards.lake.databricks_lake import DatabricksLake  # noqa: PLC0415 - the connector may not be installed
    except ImportError:
        raise LakeError(
            "Reading Databricks SQL requires databricks-sql-connector: install Regroup with its extra, "
            "regroup[databricks]."
        ) from None
    return DatabricksLake(warehouse)
