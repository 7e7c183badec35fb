"""Rows of `cluster_patterns`: what each finder finds in one cluster."""

from __future__ import annotations

from pipelines.gold.patterns.cluster_findings import ClusterFacts, ClusterFinder
from pipelines.gold.patterns.connect_configurations import connect_config_mismatches
from pipelines.gold.patterns.idle_owners import owners_not_working
from pipelines.gold.patterns.lost_coordinators import coordinators_not_found
from pipelines.gold.patterns.new_groups import new_groups_per_start
from pipelines.gold.patterns.offsets_partitions import offsets_partitions_down
from pipelines.gold.patterns.stuck_rebalances import stuck_rebalances
from schemas.rows import ClusterPatternRow

CLUSTER_FINDERS: tuple[ClusterFinder, ...] = (
    stuck_rebalances,
    offsets_partitions_down,
    connect_config_mismatches,
    coordinators_not_found,
    owners_not_working,
    new_groups_per_start,
)
"""Every finder, named after what it finds."""


def cluster_patterns(facts: ClusterFacts) -> list[ClusterPatternRow]:
    """Return the rows of one cluster, ordered by their key."""
    rows = [finding.row(facts.cluster) for find in CLUSTER_FINDERS for finding in find(facts)]
    return sorted(rows, key=lambda row: (row["pattern"], row["subject"], row["started_at"]))
