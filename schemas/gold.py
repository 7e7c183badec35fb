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
        rebalances                | INT NOT NULL | Rebalances that completed in the hour
        lost_resource_seconds_min | DOUBLE NOT NULL | Lower bound of resource-seconds lost in the hour
        lost_resource_seconds     | DOUBLE NOT NULL | Best estimate of resource-seconds lost in the hour
        lost_resource_seconds_max | DOUBLE NOT NULL | Upper bound of resource-seconds lost in the hour
        idle_resource_seconds     | DOUBLE NOT NULL | Resource-seconds nobody was there to lose: the group was empty
        owned_resource_seconds    | DOUBLE NOT NULL | Resource-seconds for which somebody had, or should have had, the resource
        availability              | DOUBLE    | 1 - lost / owned; NULL where nothing was owned
        unstable_ms               | BIGINT NOT NULL | Time within the hour in which a rebalance was under way
        rebalance_ms_p50          | BIGINT    | Median length of these rebalances; NULL where none is known
        rebalance_ms_p95          | BIGINT    | 95th percentile of their lengths
        rebalance_ms_max          | BIGINT    | Longest of them
        flapping_members          | INT NOT NULL | Instances that went at least three times in the hour
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
        is_recommended        | BOOLEAN NOT NULL | The whole interval lies below what is lost now by what is worth having
        rank                  | INT NOT NULL | 1 = saves most among the actions of this window
        lost_now              | DOUBLE NOT NULL | Resource-seconds lost in the window, measured
        lost_predicted        | DOUBLE    | Resource-seconds the same churn would cost under the action
        lost_predicted_low    | DOUBLE    | 95 % of the replays lose at least so much
        lost_predicted_high   | DOUBLE    | 95 % of the replays lose at most so much
        saving                | DOUBLE    | lost_now - lost_predicted
        saving_ratio          | DOUBLE    | saving / lost_now; NULL where nothing was lost
        rebalances_now        | INT NOT NULL | Rebalances in the window
        rebalances_predicted  | INT       | Rebalances the same churn would cause under the action
        settings              | MAP<STRING,STRING> NOT NULL | What to paste, by client library or place
        preconditions         | ARRAY<STRING> NOT NULL | What must hold, each beginning with met, missing or unknown
        explanation           | STRING NOT NULL | Why, in sentences, with what was assumed
        window_start_at       | TIMESTAMP NOT NULL | Start of the analysed window
        window_end_at         | TIMESTAMP NOT NULL | End of the analysed window
        status                | STRING NOT NULL | schemas.states.AdviceStatus
        saving_measured       | DOUBLE    | Resource-seconds saved since it was tried; NULL before
    """),
)

DIAGNOSES = Table(
    name="diagnoses",
    layer="gold",
    key=("cluster", "group_id", "as_of", "cause"),
    cluster_by=("cluster", "group_id", "as_of"),
    comment="What stands behind a group's repeated rebalances, each cause with what speaks for it.",
    columns=columns("""
        cluster               | STRING    | Name the operator gave this Kafka cluster
        group_id              | STRING    | Group
        as_of                 | TIMESTAMP | End of the looked-at window, from the data's time
        cause                 | STRING    | schemas.states.DiagnosisCause
        rank                  | INT NOT NULL | 1 = cost most, else caused most rebalances
        rebalances            | INT NOT NULL | Rebalances in the window that it explains
        share                 | DOUBLE NOT NULL | These, of all rebalances of the window
        lost_resource_seconds | DOUBLE NOT NULL | Resource-seconds lost in them
        is_normal             | BOOLEAN NOT NULL | Expected in a healthy group: deploys, scaling, follow-ups, probing
        first_at              | TIMESTAMP NOT NULL | First of them
        last_at               | TIMESTAMP NOT NULL | Last of them
        instances             | ARRAY<STRING> NOT NULL | Whom it is about: instance ids, client ids and hosts, most often first
        evidence              | STRING NOT NULL | observed, bounded or inferred
        explanation           | STRING NOT NULL | The cause and what speaks for it, in sentences
        window_start_at       | TIMESTAMP NOT NULL | Start of the looked-at window
    """),
)

DIFFERENCES = "ARRAY<STRUCT<attribute: STRING, value: STRING, share: DOUBLE, baseline: DOUBLE, lift: DOUBLE>>"
"""`share` of those hit, `baseline` of the rest, `lift` = share / baseline."""

CAUSES = "ARRAY<STRUCT<cause: STRING, rebalances: INT, groups: INT>>"
"""`cause`: schemas.states.DiagnosisCause."""

BY_GROUP = (
    "ARRAY<STRUCT<group_id: STRING, rebalances: INT, lost_resource_seconds_min: DOUBLE, lost_resource_seconds: DOUBLE, "
    "lost_resource_seconds_max: DOUBLE>>"
)

STORMS = Table(
    name="storms",
    layer="gold",
    key=("cluster", "storm_id"),
    cluster_by=("cluster", "started_at"),
    comment="Rebalances beyond what deploys and scaling explain: of one group, or of groups that shake together.",
    columns=columns(f"""
        cluster                   | STRING    | Name the operator gave this Kafka cluster
        storm_id                  | STRING    | Hash of cluster, start and first group
        scope                     | STRING NOT NULL | schemas.states.StormScope
        started_at                | TIMESTAMP NOT NULL | First of the rebalances that nothing planned explains
        detected_at               | TIMESTAMP NOT NULL | Record time from which on the records show a storm
        ended_at                  | TIMESTAMP | Last of them; NULL while open
        is_open                   | BOOLEAN NOT NULL | The cluster's history ends before it had been calm for long enough
        groups                    | INT NOT NULL | Groups hit
        group_ids                 | ARRAY<STRING> NOT NULL | Which, hardest hit first: by what they lost
        rebalances                | INT NOT NULL | Rebalances of these groups in its span
        unexplained_rebalances    | INT NOT NULL | Those that no deploy, scaling or follow-up explains
        lost_resource_seconds_min | DOUBLE NOT NULL | Lower bound of resource-seconds lost in it
        lost_resource_seconds     | DOUBLE NOT NULL | Best estimate of resource-seconds lost in it
        lost_resource_seconds_max | DOUBLE NOT NULL | Upper bound of resource-seconds lost in it
        suspected_cause           | STRING    | schemas.states.DiagnosisCause; NULL = no rebalance of it has a diagnosis
        score                     | DOUBLE NOT NULL | 0 to 1: share of its unexplained rebalances (scope fleet: of its groups) that have this cause
        causes                    | {CAUSES} | How its unexplained rebalances spread over the causes of their diagnoses, most first; of many groups, those hardest hit
        by_group                  | {BY_GROUP} | What each group lost in it, hardest hit first; the sums are those of the storm
        differences               | {DIFFERENCES} NOT NULL | What those hit have in common and the rest have not, strongest first; empty = nothing stands out
        evidence                  | STRING NOT NULL | observed, bounded or inferred
        explanation               | STRING NOT NULL | What happened and why it counts as a storm, in sentences
    """),
)

MARKS = Table(
    name="marks",
    layer="gold",
    key=("cluster", "marked_at", "kind", "text"),
    cluster_by=("cluster", "marked_at"),
    comment="Deploys, maintenance and incidents that people or their CI announced.",
    columns=columns("""
        cluster   | STRING    | Name the operator gave this Kafka cluster
        marked_at | TIMESTAMP | When it happened, as announced
        kind      | STRING    | schemas.states.MarkKind
        text      | STRING    | What was announced
        group_id  | STRING    | Group it is about; NULL = the whole cluster, or several groups
        marked_by | STRING    | Who announced it, as they say; NULL where they do not
    """),
)

ALERTS = Table(
    name="alerts",
    layer="gold",
    key=("cluster", "alert_name", "subject", "started_at"),
    cluster_by=(),
    comment="What notify raised: what was sent, to whom, when last, when resolved.",
    columns=columns("""
        cluster       | STRING    | Name the operator gave this Kafka cluster
        alert_name    | STRING    | schemas.states.AlertName
        subject       | STRING    | Group, topic-partition or source it is about; '' = the whole cluster
        started_at    | TIMESTAMP | Since when the condition holds, from the data's time
        severity      | STRING NOT NULL | schemas.states.AlertSeverity: page or ticket; rises, but does not fall, while the alert holds
        summary       | STRING NOT NULL | One line with number and unit
        description   | STRING NOT NULL | What, since when, suspected cause, evidence
        evidence      | STRING NOT NULL | observed, bounded or inferred
        dashboard_url | STRING NOT NULL | Page that shows it
        raised_at     | TIMESTAMP NOT NULL | When notify saw it first
        last_sent_at  | TIMESTAMP | When a receiver took it last; NULL = none did yet
        sent_to       | ARRAY<STRING> NOT NULL | Receivers that took its last state, by their names in the settings
        resolved_at   | TIMESTAMP | When it stopped to hold; NULL while it does
        last_error    | STRING    | Why a receiver did not take it, last
    """),
)

GROUP_TABLES = (GROUP_HEALTH, ADVICE, DIAGNOSES)
"""Those that are made of each group's silver rows alone."""

GOLD = (*GROUP_TABLES, STORMS, MARKS, ALERTS)
