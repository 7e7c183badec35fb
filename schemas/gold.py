"""Gold: what to do about it. See `schemas.tables` for the notation."""

from __future__ import annotations

from schemas.tables import Table, columns

GROUP_HEALTH = Table(
    name="group_health",
    layer="gold",
    key=("cluster", "group_id", "hour_at"),
    cluster_by=("cluster", "group_id", "hour_at"),
    comment="How each group fared in every hour in which it rebalanced, lost something or saw a member come or go.",
    columns=columns("""
        cluster                   | STRING    | Name the operator gave this Kafka cluster
        group_id                  | STRING    | Group
        hour_at                   | TIMESTAMP | Start of the hour
        rebalances                | INT       | Rebalances that completed in the hour
        lost_resource_seconds_min | DOUBLE    | Lower bound of resource-seconds lost in the hour
        lost_resource_seconds     | DOUBLE    | Best estimate of resource-seconds lost in the hour
        lost_resource_seconds_max | DOUBLE    | Upper bound of resource-seconds lost in the hour
        idle_resource_seconds     | DOUBLE    | Resource-seconds nobody was there to lose: the group was empty
        owned_resource_seconds    | DOUBLE    | Resource-seconds for which somebody had, or should have had, the resource
        availability              | DOUBLE    | 1 - lost / owned; NULL where nothing was owned
        unstable_ms               | BIGINT    | Time within the hour in which a rebalance was under way
        rebalance_ms_p50          | BIGINT    | Median length of these rebalances; NULL where none is known
        rebalance_ms_p95          | BIGINT    | 95th percentile of their lengths
        rebalance_ms_max          | BIGINT    | Longest of them
        flapping_members          | INT       | Instances that went at least three times in the hour
    """),
)

ADVICE = Table(
    name="advice",
    layer="gold",
    key=("cluster", "group_id", "as_of", "action"),
    cluster_by=("cluster", "group_id", "as_of"),
    comment="What a group would lose under other settings, replayed from its own churn, and what is worth changing.",
    columns=columns("""
        cluster               | STRING    | Name the operator gave this Kafka cluster
        group_id              | STRING    | Group
        as_of                 | TIMESTAMP | End of the analysed window, from the data's time
        action                | STRING    | schemas.states.AdviceAction
        is_recommended        | BOOLEAN   | The whole interval lies below what is lost now by what is worth having
        rank                  | INT       | 1 = saves most among the actions of this window
        lost_now              | DOUBLE    | Resource-seconds lost in the window, measured
        lost_predicted        | DOUBLE    | Resource-seconds the same churn would cost under the action
        lost_predicted_low    | DOUBLE    | 95 % of the replays lose at least so much
        lost_predicted_high   | DOUBLE    | 95 % of the replays lose at most so much
        saving                | DOUBLE    | lost_now - lost_predicted
        saving_ratio          | DOUBLE    | saving / lost_now; NULL where nothing was lost
        rebalances_now        | INT       | Rebalances in the window
        rebalances_predicted  | INT       | Rebalances the same churn would cause under the action
        settings              | MAP<STRING,STRING> | What to paste, by client library or place
        preconditions         | ARRAY<STRING> | What must hold, each beginning with met, missing or unknown
        explanation           | STRING    | Why, in sentences, with what was assumed
        window_start_at       | TIMESTAMP | Start of the analysed window
        window_end_at         | TIMESTAMP | End of the analysed window
        status                | STRING    | schemas.states.AdviceStatus
        saving_measured       | DOUBLE    | Resource-seconds saved since it was tried; NULL before
    """),
)

GROUP_TABLES = (GROUP_HEALTH, ADVICE)
"""Those that are made of each group's silver rows alone."""

GOLD = (*GROUP_TABLES,)
