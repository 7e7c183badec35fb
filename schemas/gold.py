"""Gold tables: health, diagnoses, deploys, patterns, advice, storms, marks and alerts. `schemas.tables` explains the notation."""

from __future__ import annotations

from schemas.tables import Table, columns

GROUP_HEALTH = Table(
    name="group_health",
    layer="gold",
    key=("cluster", "group_id", "hour_at"),
    cluster_by=("cluster", "group_id", "hour_at"),
    comment="Health of each group per hour, for hours in which it rebalanced, lost resource-time or saw a member join or leave.",
    columns=columns("""
        cluster                   | STRING    | Name of the Kafka cluster, chosen by the operator
        group_id                  | STRING    | Group
        hour_at                   | TIMESTAMP | Start of the hour
        rebalances                | INT NOT NULL | Rebalances that completed in the hour
        lost_resource_seconds_min | DOUBLE NOT NULL | Lower bound of resource-seconds lost in the hour
        lost_resource_seconds     | DOUBLE NOT NULL | Best estimate of resource-seconds lost in the hour
        lost_resource_seconds_max | DOUBLE NOT NULL | Upper bound of resource-seconds lost in the hour
        idle_resource_seconds     | DOUBLE NOT NULL | Resource-seconds during which the group was empty; not counted as lost
        owned_resource_seconds    | DOUBLE NOT NULL | Resource-seconds during which resources had, or should have had, an owner
        availability              | DOUBLE    | 1 - lost / owned; NULL if owned is 0
        unstable_ms               | BIGINT NOT NULL | Time within the hour during which a rebalance was in progress
        rebalance_ms_p50          | BIGINT    | Median length of these rebalances; NULL if no length is known
        rebalance_ms_p95          | BIGINT    | 95th percentile of these lengths
        rebalance_ms_max          | BIGINT    | Longest of these rebalances
        flapping_members          | INT NOT NULL | Instances that left at least three times in the hour
        lost_resource_seconds_low | DOUBLE    | Lower end of the 90 % interval of lost_resource_seconds; distances from the estimate of different hours and groups add up as squares; NULL = written by Regroup 0.1
        lost_resource_seconds_high | DOUBLE   | Upper end of that interval
    """),
)

ADVICE = Table(
    name="advice",
    layer="gold",
    key=("cluster", "group_id", "as_of", "action"),
    cluster_by=("cluster", "group_id", "as_of"),
    comment="What a group would lose under other settings, according to a replay of its own churn, and which change is worth making.",
    columns=columns("""
        cluster               | STRING    | Name of the Kafka cluster, chosen by the operator
        group_id              | STRING    | Group
        as_of                 | TIMESTAMP | End of the analyzed window, in record time
        action                | STRING    | schemas.states.AdviceAction
        is_recommended        | BOOLEAN NOT NULL | Whether even saving_low is worth having, and no condition is known to be missing
        rank                  | INT NOT NULL | 1 = first: recommended actions, then the others, each part by saving; a change already in force is last
        lost_now              | DOUBLE NOT NULL | Measured: resource-seconds lost in the window
        lost_predicted        | DOUBLE    | Modelled: resource-seconds that the same churn would cost under the action; NULL if it was not replayed
        lost_predicted_low    | DOUBLE    | Modelled: 97.5 % of the replays under the action lose at least this
        lost_predicted_high   | DOUBLE    | Modelled: 97.5 % of the replays under the action lose at most this
        saving                | DOUBLE    | Modelled: lost_replayed - lost_predicted, replay against replay
        saving_ratio          | DOUBLE    | Modelled: saving / lost_replayed (or lost_now, if nothing was replayed); NULL if that is 0
        rebalances_now        | INT NOT NULL | Measured: rebalances in the window
        rebalances_predicted  | INT       | Modelled: rebalances that the same churn would cause under the action
        settings              | MAP<STRING,STRING> NOT NULL | Configuration to paste, by client library or place
        preconditions         | ARRAY<STRING> NOT NULL | Conditions, each beginning with met, missing or unknown
        explanation           | STRING NOT NULL | Reasons and assumptions, in sentences
        window_start_at       | TIMESTAMP NOT NULL | Start of the analyzed window
        window_end_at         | TIMESTAMP NOT NULL | End of the analyzed window
        status                | STRING NOT NULL | schemas.states.AdviceStatus
        saving_measured       | DOUBLE    | Measured: resource-seconds saved since the change is in force; NULL before
        lost_replayed         | DOUBLE    | Modelled: resource-seconds that the same churn costs under the present settings; NULL if it was not replayed
        saving_low            | DOUBLE    | Modelled: 97.5 % of the pairs of replays, one under the present settings and one under the action, save at least this
        saving_high           | DOUBLE    | Modelled: 97.5 % of these pairs save at most this
    """),
)

CHANGED_VALUES = "ARRAY<STRUCT<setting: STRING, before: STRING, after: STRING>>"
"""Type of a list of settings with their values before and after a change."""

ABSENCE_COSTS = "ARRAY<STRUCT<stopped_ms: BIGINT, lost_resource_seconds: DOUBLE>>"
"""Type of a list of absences with their costs."""

SETTING_CHANGES = Table(
    name="setting_changes",
    layer="gold",
    key=("cluster", "group_id", "as_of", "changed_at"),
    cluster_by=("cluster", "group_id", "as_of"),
    comment="Changes of a group's settings, each with the cost of the absences before and after it, and what was predicted.",
    columns=columns(f"""
        cluster               | STRING    | Name of the Kafka cluster, chosen by the operator
        group_id              | STRING    | Group
        as_of                 | TIMESTAMP | End of the analyzed window, in record time
        changed_at            | TIMESTAMP | When all members had the new settings
        rollout_at            | TIMESTAMP NOT NULL | When the first member had one of them
        settings              | {CHANGED_VALUES} NOT NULL | Settings that changed (schemas.states.GroupSetting), with their values
        evidence              | STRING NOT NULL | observed, or inferred if only inferred settings changed
        status                | STRING NOT NULL | schemas.states.AdviceStatus: tried, verified or refuted
        absences_before       | INT NOT NULL | Absences of instances that ended before the rollout, since the change before or the start of the window
        absences_after        | INT NOT NULL | Absences that ended since the change, until the next one
        lost_before           | DOUBLE NOT NULL | Measured: resource-seconds lost in the absences before
        lost_after            | DOUBLE NOT NULL | Measured: resource-seconds lost in the absences since
        rebalances_before     | INT NOT NULL | Measured: rebalances before
        rebalances_after      | INT NOT NULL | Measured: rebalances since
        saving_measured       | DOUBLE    | Measured: resource-seconds that the absences since cost less than as many before; NULL if there are fewer than three on a side
        saving_measured_low   | DOUBLE    | Lower end of the 90 % interval of saving_measured, for chance among the absences
        saving_measured_high  | DOUBLE    | Upper end of that interval
        saving_predicted      | DOUBLE    | Modelled: the same saving by replays of the history before the change; NULL if it was not replayed
        saving_predicted_low  | DOUBLE    | Modelled: 97.5 % of the pairs of replays save at least this
        saving_predicted_high | DOUBLE    | Modelled: 97.5 % of these pairs save at most this
        costs                 | {ABSENCE_COSTS} NOT NULL | Cost of each absence, up to 100 before and 100 after the change, in order of time; stopped_ms = when the instance stopped, in milliseconds since the epoch
    """),
)

DIAGNOSES = Table(
    name="diagnoses",
    layer="gold",
    key=("cluster", "group_id", "as_of", "cause"),
    cluster_by=("cluster", "group_id", "as_of"),
    comment="Causes of a group's repeated rebalances, each with its evidence.",
    columns=columns("""
        cluster               | STRING    | Name of the Kafka cluster, chosen by the operator
        group_id              | STRING    | Group
        as_of                 | TIMESTAMP | End of the analyzed window, in record time
        cause                 | STRING    | schemas.states.DiagnosisCause
        rank                  | INT NOT NULL | 1 = cost most resource-seconds, then caused most rebalances
        rebalances            | INT NOT NULL | Rebalances in the window with this cause; 0 = only static members returned without a rebalance
        share                 | DOUBLE NOT NULL | Part of all rebalances of the window
        lost_resource_seconds | DOUBLE NOT NULL | Resource-seconds lost in these rebalances and returns
        is_normal             | BOOLEAN NOT NULL | Whether it is expected in a healthy group: deploys, scaling, follow-ups, probing
        first_at              | TIMESTAMP NOT NULL | First of these rebalances and returns
        last_at               | TIMESTAMP NOT NULL | Last of these rebalances and returns
        instances             | ARRAY<STRING> NOT NULL | Instances involved: instance ids, client ids and hosts, most frequent first
        evidence              | STRING NOT NULL | observed, bounded or inferred
        explanation           | STRING NOT NULL | The cause and its evidence, in sentences
        window_start_at       | TIMESTAMP NOT NULL | Start of the analyzed window
        verdict               | STRING    | schemas.states.Verdict with most lost resource-seconds, then most rebalances, among these rebalances, or of the returns; NULL in rows of Regroup 0.1
    """),
)

POD_CHANGES = (
    "ARRAY<STRUCT<changed_ms: BIGINT, change: STRING, text: STRING, detail: STRING, instance: STRING, "
    "joined_by: STRING>>"
)
"""`changed_ms` counts from 1970, `change` is a value of schemas.states.PodChange, `joined_by` how the pod was found: address or name."""

VERDICTS = Table(
    name="verdicts",
    layer="gold",
    key=("cluster", "group_id", "incarnation", "generation_id"),
    cluster_by=("cluster", "group_id", "joined_at"),
    comment="What each completed rebalance is blamed on: the broker, the application, a deploy or the configuration.",
    columns=columns(f"""
        cluster                   | STRING    | Name of the Kafka cluster, chosen by the operator
        group_id                  | STRING    | Group
        incarnation               | INT       | Incarnation of the group id
        generation_id             | INT       | Generation, or group epoch, that the rebalance led to
        joined_at                 | TIMESTAMP NOT NULL | End of the join phase; KIP-848: when the epoch was incremented
        verdict                   | STRING NOT NULL | schemas.states.Verdict
        cause                     | STRING NOT NULL | schemas.states.DiagnosisCause: the cause to investigate
        set_off_by                | STRING NOT NULL | schemas.states.DiagnosisCause: the cause that started the rebalance
        evidence                  | STRING NOT NULL | How the verdict is known: observed, bounded or inferred
        instances                 | ARRAY<STRING> NOT NULL | Instances involved, named as in diagnoses
        hosts                     | ARRAY<STRING> NOT NULL | Hosts of these instances, as silver stores them
        lost_resource_seconds_min | DOUBLE NOT NULL | Lower bound of resource-seconds lost in the rebalance and in those that it overtook
        lost_resource_seconds     | DOUBLE NOT NULL | Best estimate of these resource-seconds
        lost_resource_seconds_max | DOUBLE NOT NULL | Upper bound of these resource-seconds
        reason                    | STRING NOT NULL | Why, in one sentence
        proof                     | ARRAY<STRING> NOT NULL | Records and events that show it, each with its place or time
        folded_count                | INT       | Number of rebalances of a loop that were folded into this row, as in generations; NULL = 1
        pod_changes               | {POD_CHANGES} | What happened to the members' pods shortly before the members were gone, in order of time; empty = nothing known, NULL = written before Regroup read Kubernetes
    """),
)

DEPLOYS = Table(
    name="deploys",
    layer="gold",
    key=("cluster", "group_id", "started_at"),
    cluster_by=("cluster", "group_id", "started_at"),
    comment="Deploys of each group, announced by a mark or recognized without one: what each cost, how long it took and who did not come back.",
    columns=columns("""
        cluster                    | STRING    | Name of the Kafka cluster, chosen by the operator
        group_id                   | STRING    | Group
        started_at                 | TIMESTAMP | Time of the mark; without a mark, the start of the first rebalance, or the end of its join phase if the start is not known
        text                       | STRING    | Text of the mark, of several marks at that time separated by semicolons; NULL = recognized without a mark
        evidence                   | STRING NOT NULL | observed if a mark announced it, inferred if only the rebalances show it
        ended_at                   | TIMESTAMP | When its last rebalance completed; NULL while one is in progress, or if none followed the mark
        stable_at                  | TIMESTAMP | When also every resource that it stopped had an owner again; NULL before that, or if nothing followed the mark
        stable_ms                  | BIGINT    | stable_at - started_at; NULL if stable_at is NULL
        rebalances                 | INT NOT NULL | Rebalances that completed from the first to the last of the deploy; 0 = none followed the mark within 30 minutes
        lost_resource_seconds_min  | DOUBLE NOT NULL | Lower bound of resource-seconds lost in these rebalances, and by static members that returned meanwhile without one
        lost_resource_seconds      | DOUBLE NOT NULL | Best estimate of these resource-seconds
        lost_resource_seconds_max  | DOUBLE NOT NULL | Upper bound of these resource-seconds
        lost_resource_seconds_low  | DOUBLE NOT NULL | Lower end of the 90 % interval of lost_resource_seconds
        lost_resource_seconds_high | DOUBLE NOT NULL | Upper end of that interval
        restarted                  | ARRAY<STRING> NOT NULL | Instances that left and came back within an hour, or that a new instance replaced; named as in diagnoses, sorted
        not_back                   | ARRAY<STRING> NOT NULL | Instances that left and did not come back within an hour, and that no new instance replaced; sorted
        not_back_hosts             | ARRAY<STRING> NOT NULL | The host of each of these instances, in the same order, as silver stores it; '' = unknown
        members_before             | INT       | Members of the generation before the deploy; NULL if none is known
        members_after              | INT       | Members of its last generation; NULL if no generation is known
        slowest                    | STRING    | Instance for which the others waited longest, according to the coordinator's log; NULL if the log does not show one
        slowest_host               | STRING    | Its host, as silver stores it
        slowest_waited_ms          | BIGINT    | How long the others waited for it
        window_start_at            | TIMESTAMP NOT NULL | Start of the analyzed window: rebalances before it do not change the row
        window_end_at              | TIMESTAMP NOT NULL | End of the analyzed window: rebalances from then on do not change the row
    """),
)

PATTERNS = Table(
    name="patterns",
    layer="gold",
    key=("cluster", "group_id", "as_of", "pattern", "subject"),
    cluster_by=("cluster", "group_id", "as_of"),
    comment="What goes wrong with a group besides single rebalances: patterns in its history, each with its evidence and what to do.",
    columns=columns("""
        cluster               | STRING    | Name of the Kafka cluster, chosen by the operator
        group_id              | STRING    | Group
        as_of                 | TIMESTAMP | End of the analyzed window, in record time
        pattern               | STRING    | schemas.states.Pattern
        subject               | STRING    | Topic, member or instance id that the pattern is about; '' = the group itself
        started_at            | TIMESTAMP NOT NULL | When the window first shows it
        last_at               | TIMESTAMP NOT NULL | When the window last shows it
        ended_at              | TIMESTAMP | When it was over; NULL while it lasts
        times                 | INT NOT NULL | How often the window shows it
        instances             | ARRAY<STRING> NOT NULL | Instances involved: instance ids, client ids and hosts, culprits first
        sources               | ARRAY<STRING> NOT NULL | Where the evidence is from: topic, log, poll
        evidence              | STRING NOT NULL | observed, bounded or inferred
        explanation           | STRING NOT NULL | What happened, with figures, in sentences
        action                | STRING NOT NULL | What to do next, in sentences
    """),
)

DIFFERENCES = "ARRAY<STRUCT<attribute: STRING, value: STRING, share: DOUBLE, baseline: DOUBLE, lift: DOUBLE>>"
"""`share`: part of the affected members with this value; `baseline`: part of the other members; `lift`: share /
baseline."""

CAUSES = "ARRAY<STRUCT<cause: STRING, rebalances: INT, groups: INT>>"
"""`cause` is a value of schemas.states.DiagnosisCause."""

VERDICT_SUMS = "ARRAY<STRUCT<verdict: STRING, rebalances: INT, lost_resource_seconds: DOUBLE>>"
"""`verdict` is a value of schemas.states.Verdict."""

BY_GROUP = (
    "ARRAY<STRUCT<group_id: STRING, rebalances: INT, lost_resource_seconds_min: DOUBLE, lost_resource_seconds: DOUBLE, "
    "lost_resource_seconds_max: DOUBLE, lost_resource_seconds_low: DOUBLE, lost_resource_seconds_high: DOUBLE>>"
)
"""`lost_resource_seconds_min` and `_max` are hard bounds, `_low` and `_high` the ends of a 90 % interval."""

STORMS = Table(
    name="storms",
    layer="gold",
    key=("cluster", "storm_id"),
    cluster_by=("cluster", "started_at"),
    comment="Rebalances that deploys and scaling do not explain, of one group or of several groups at the same time.",
    columns=columns(f"""
        cluster                   | STRING    | Name of the Kafka cluster, chosen by the operator
        storm_id                  | STRING    | Hash of cluster, start and first group
        scope                     | STRING NOT NULL | schemas.states.StormScope
        started_at                | TIMESTAMP NOT NULL | First of the unexplained rebalances
        detected_at               | TIMESTAMP NOT NULL | Record time from which the records show a storm
        ended_at                  | TIMESTAMP | Last of the unexplained rebalances; NULL while open
        is_open                   | BOOLEAN NOT NULL | Whether the cluster's history ends before it was calm for long enough
        groups                    | INT NOT NULL | Number of affected groups
        group_ids                 | ARRAY<STRING> NOT NULL | Affected groups, greatest loss first
        rebalances                | INT NOT NULL | Rebalances of the affected groups during the storm
        unexplained_rebalances    | INT NOT NULL | Number of these that no deploy, scaling or follow-up explains
        lost_resource_seconds_min | DOUBLE NOT NULL | Lower bound of resource-seconds lost in it
        lost_resource_seconds     | DOUBLE NOT NULL | Best estimate of resource-seconds lost in it
        lost_resource_seconds_max | DOUBLE NOT NULL | Upper bound of resource-seconds lost in it
        suspected_cause           | STRING    | schemas.states.DiagnosisCause; NULL = none of its rebalances has a diagnosis
        score                     | DOUBLE NOT NULL | 0 to 1: share of its unexplained rebalances (scope fleet: of its groups) that have this cause
        causes                    | {CAUSES} | Number of its unexplained rebalances per diagnosed cause, most first; if many groups are affected, only those with the greatest loss
        by_group                  | {BY_GROUP} | Loss of each affected group, greatest first; the sums are those of the storm
        differences               | {DIFFERENCES} NOT NULL | Attributes that affected members share and the others do not, strongest first; empty = no attribute differs clearly
        evidence                  | STRING NOT NULL | observed, bounded or inferred
        explanation               | STRING NOT NULL | What happened and why it counts as a storm, in sentences
        lost_resource_seconds_low | DOUBLE    | Lower end of the 90 % interval of lost_resource_seconds; NULL = written by Regroup 0.1
        lost_resource_seconds_high | DOUBLE   | Upper end of that interval
        verdict                   | STRING    | schemas.states.Verdict with most lost resource-seconds, then most rebalances; NULL = none of its rebalances has one, or written by Regroup 0.1
        verdicts                  | {VERDICT_SUMS} | Its completed rebalances and their loss per verdict, greatest loss first; if many groups are affected, only of those with the greatest loss
    """),
)

CLUSTER_PATTERNS = Table(
    name="cluster_patterns",
    layer="gold",
    key=("cluster", "pattern", "subject", "started_at"),
    cluster_by=("cluster", "started_at"),
    comment="What goes wrong with several groups of a cluster at once, or shows only in log lines or polls: the patterns of the last seven days, each with its evidence and what to do.",
    columns=columns("""
        cluster     | STRING    | Name of the Kafka cluster, chosen by the operator
        pattern     | STRING    | schemas.states.Pattern
        subject     | STRING    | Group, partition of __consumer_offsets or prefix of group ids that the pattern is about
        started_at  | TIMESTAMP | When it began; if that was before the last seven days, when these first show it
        last_at     | TIMESTAMP NOT NULL | When the data last shows it
        ended_at    | TIMESTAMP | When it was over; NULL while it lasts
        times       | INT NOT NULL | How often the data shows it
        groups      | INT NOT NULL | Number of affected groups
        group_ids   | ARRAY<STRING> NOT NULL | Affected groups, sorted
        instances   | ARRAY<STRING> NOT NULL | Instances involved: client ids, instance ids, hosts, brokers; culprits first
        sources     | ARRAY<STRING> NOT NULL | Where the evidence is from: topic, log, poll
        evidence    | STRING NOT NULL | observed, bounded or inferred
        explanation | STRING NOT NULL | What happened, with figures, in sentences
        action      | STRING NOT NULL | What to do next, in sentences
    """),
)

MARKS = Table(
    name="marks",
    layer="gold",
    key=("cluster", "marked_at", "kind", "text"),
    cluster_by=("cluster", "marked_at"),
    comment="Deploys, maintenance and incidents announced by people or their CI, and changes of pods from Kubernetes.",
    columns=columns("""
        cluster   | STRING    | Name of the Kafka cluster, chosen by the operator
        marked_at | TIMESTAMP | When it happened, as announced
        kind      | STRING    | schemas.states.MarkKind
        text      | STRING    | Text of the announcement
        group_id  | STRING    | Group that the mark is about; NULL = the whole cluster, or several groups: see group_ids
        group_ids | ARRAY<STRING> | Groups that the mark is about, sorted; empty = the whole cluster. NULL = not known: a change of a pod, or written by Regroup 0.1
        marked_by | STRING    | Who announced it, according to the announcement; NULL if not given
        change    | STRING    | schemas.states.PodChange; NULL = announced by people or CI, as are the columns below
        namespace | STRING    | Namespace of the pod
        pod       | STRING    | Name of the pod; NULL = the change is the node's
        pod_uid   | STRING    | Unique id of the pod; NULL if not reported
        addresses | ARRAY<STRING> | Addresses of the pod in this report, sorted; empty if it has none
        node      | STRING    | Node of the pod, or the node itself
        container | STRING    | Container that ended; NULL if the whole pod or node changed
        workload  | STRING    | Controller that owns the pod, such as ReplicaSet/billing-7f9c; NULL if not reported
        is_host_network | BOOLEAN | Whether the pod shares the address of its node; NULL if not reported
        detail    | STRING    | Exit code or reason, as reported
    """),
)

ALERTS = Table(
    name="alerts",
    layer="gold",
    key=("cluster", "alert_name", "subject", "started_at"),
    cluster_by=(),
    comment="Alerts raised by notify: when they were sent, to which receivers, and when they were resolved.",
    columns=columns("""
        cluster       | STRING    | Name of the Kafka cluster, chosen by the operator
        alert_name    | STRING    | schemas.states.AlertName
        subject       | STRING    | Group, topic-partition or source that the alert is about; '' = the whole cluster
        started_at    | TIMESTAMP | Time since which the condition holds, in record time
        severity      | STRING NOT NULL | schemas.states.AlertSeverity: page or ticket; may rise, but never falls, while the alert holds
        summary       | STRING NOT NULL | One line with number and unit
        description   | STRING NOT NULL | Details: what, since when, suspected cause, evidence
        evidence      | STRING NOT NULL | observed, bounded or inferred
        dashboard_url | STRING NOT NULL | Link to the page that shows it
        raised_at     | TIMESTAMP NOT NULL | When notify first saw the condition
        last_sent_at  | TIMESTAMP | When a receiver last accepted the alert; NULL = none did yet
        sent_to       | ARRAY<STRING> NOT NULL | Receivers that accepted its current state, by their names in the settings
        resolved_at   | TIMESTAMP | When the condition stopped holding; NULL while it holds
        last_error    | STRING    | Last error of a receiver that did not accept it
    """),
)

GROUP_TABLES = (GROUP_HEALTH, ADVICE, SETTING_CHANGES, DIAGNOSES, VERDICTS, DEPLOYS, PATTERNS)
"""Tables made from the silver rows of one group at a time."""

GOLD = (*GROUP_TABLES, CLUSTER_PATTERNS, STORMS, MARKS, ALERTS)
