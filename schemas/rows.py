"""The rows of the tables as Python holds them.

Made by `python -m jobs.setup.reference` from the tables' definitions.
A row is a dict with every column of its table; timestamps are milliseconds since the epoch. `…OfGroup` is a row without
`cluster` and `group_id`, for functions that see one group only.
"""

from __future__ import annotations

from typing import TypedDict


class ResourceRow(TypedDict):
    """A topic's partition, a subtopology's task, or a connector's task."""

    name: str
    index: int


class DifferenceRow(TypedDict):
    """What members hit by a storm have in common."""

    attribute: str
    value: str
    share: float
    baseline: float
    lift: float


class CauseRow(TypedDict):
    """How many rebalances and groups of a storm have a cause."""

    cause: str
    rebalances: int
    groups: int


class GroupLossRow(TypedDict):
    """What a group lost in a storm."""

    group_id: str
    rebalances: int
    lost_resource_seconds_min: float
    lost_resource_seconds: float
    lost_resource_seconds_max: float


class CoordinatorRecordRow(TypedDict):
    """A row of `coordinator_records`."""

    cluster: str
    log_epoch: int
    source_partition: int
    source_offset: int
    group_id: str | None
    record_at: int | None
    record_kind: str | None
    key_version: int | None
    value_version: int | None
    member_id: str | None
    is_tombstone: bool | None
    body: str | None
    raw_key: bytes | None
    raw_value: bytes | None


class OffsetCommitRow(TypedDict):
    """A row of `offset_commits`."""

    cluster: str
    log_epoch: int
    source_partition: int
    first_offset: int
    group_id: str
    topic: str
    partition: int
    is_tombstone: bool | None
    third_last_offset: int | None
    before_last_offset: int | None
    last_offset: int | None
    first_commit_at: int | None
    third_last_commit_at: int | None
    before_last_commit_at: int | None
    last_commit_at: int | None
    first_committed_offset: int | None
    third_last_committed_offset: int | None
    before_last_committed_offset: int | None
    last_committed_offset: int | None
    leader_epoch: int | None
    topic_id: str | None
    commits: int | None


class CoordinatorEventRow(TypedDict):
    """A row of `coordinator_events`."""

    cluster: str
    source_id: str
    line_no: int
    event_at: int | None
    event_precision_ms: int | None
    event_kind: str | None
    broker_id: int | None
    source_partition: int | None
    group_id: str | None
    generation_id: int | None
    member_id: str | None
    client_id: str | None
    group_instance_id: str | None
    replaced_member_id: str | None
    leader_member_id: str | None
    member_ids: list[str] | None
    member_count: int | None
    static_member_count: int | None
    trigger: str | None
    reason: str | None
    client_reason: str | None
    duration_ms: int | None
    topic: str | None
    partition: int | None
    topic_id: str | None
    partition_epoch: int | None
    replicas: list[int] | None
    replicas_before: list[int] | None
    adding: list[int] | None
    removing: list[int] | None
    isr: list[int] | None
    leader: int | None
    raw: str | None
    source_binding: str | None


class AdminObservationRow(TypedDict):
    """A row of `admin_observations`."""

    cluster: str
    observed_at: int
    source: str
    kind: str
    subject: str
    body: str | None


class QuarantineRow(TypedDict):
    """A row of `quarantine`."""

    cluster: str
    source: str
    log_epoch: int
    source_partition: int
    source_offset: int
    record_at: int | None
    reason: str | None
    detail: str | None
    raw_key: bytes | None
    raw_value: bytes | None


class CoverageRow(TypedDict):
    """A row of `coverage`."""

    cluster: str
    source: str
    source_partition: int
    log_epoch: int
    from_offset: int
    to_offset: int | None
    is_gap: bool | None
    gap_reason: str | None
    from_at: int | None
    to_at: int | None
    records: int | None
    skipped: int | None
    quarantined: int | None


class GenerationOfGroup(TypedDict):
    """A row of `generations` without cluster and group."""

    incarnation: int
    generation_id: int
    joined_at: int
    outcome: str
    group_type: str
    group_protocol: str
    protocol_type: str
    assignor: str | None
    rebalance_mode: str
    leader_member_id: str | None
    coordinator_id: int | None
    member_count: int
    static_member_count: int
    prepared_at: int | None
    prepared_at_earliest: int
    prepared_at_latest: int
    synced_at: int | None
    completed_at: int | None
    join_ms: int | None
    sync_ms: int | None
    rebalance_ms: int | None
    rebalance_ms_min: int | None
    rebalance_ms_max: int | None
    trigger: str
    trigger_evidence: str
    trigger_member_id: str | None
    trigger_reason: str | None
    client_reason: str | None
    slowest_member_id: str | None
    slowest_waited_ms: int | None
    joined_member_ids: list[str] | None
    left_member_ids: list[str] | None
    resources_assigned: int | None
    resources_moved: int | None
    not_costed: str | None
    resources_not_costed: int | None
    missing_partitions: list[ResourceRow] | None
    skipped_generations: int | None
    is_empty: bool
    evidence: str
    log_epoch: int
    source_partition: int
    source_offset: int


class GenerationRow(GenerationOfGroup):
    """A row of `generations`."""

    cluster: str
    group_id: str


class GenerationMemberOfGroup(TypedDict):
    """A row of `generation_members` without cluster and group."""

    incarnation: int
    generation_id: int
    member_id: str
    valid_from_at: int
    valid_to_at: int | None
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None
    session_timeout_ms: int | None
    rebalance_timeout_ms: int | None
    is_leader: bool
    previous_generation_id: int | None
    subscribed_topics: list[str]
    owned: list[ResourceRow] | None
    assigned: list[ResourceRow] | None
    standby: list[ResourceRow] | None
    warmup: list[ResourceRow] | None
    connect_delay_ms: int | None
    rejoined_at_earliest: int | None
    rejoined_at_latest: int | None
    reconciled_at: int | None


class GenerationMemberRow(GenerationMemberOfGroup):
    """A row of `generation_members`."""

    cluster: str
    group_id: str


class StallOfGroup(TypedDict):
    """A row of `stalls` without cluster and group."""

    incarnation: int
    stopped_by_offset: int
    name: str
    index: int
    stopped_at_earliest: int
    stopped_at_latest: int
    resumed_at_earliest: int | None
    resumed_at_latest: int | None
    generation_id: int
    resumed_generation_id: int | None
    from_member_id: str
    to_member_id: str | None
    stopped_ms_min: int | None
    stopped_ms: int | None
    stopped_ms_max: int | None
    last_commit_at: int | None
    last_committed_offset: int | None
    first_commit_at: int | None
    first_committed_offset: int | None
    cause: str
    evidence: str
    log_epoch: int


class StallRow(StallOfGroup):
    """A row of `stalls`."""

    cluster: str
    group_id: str


class GroupEventOfGroup(TypedDict):
    """A row of `group_events` without cluster and group."""

    event_at: int
    kind: str
    member_id: str
    incarnation: int
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None
    generation_id: int | None
    detail: str | None
    evidence: str


class GroupEventRow(GroupEventOfGroup):
    """A row of `group_events`."""

    cluster: str
    group_id: str


class GroupOfGroup(TypedDict):
    """A row of `groups` without cluster and group."""

    incarnation: int
    group_type: str
    group_protocol: str | None
    assignor: str | None
    state: str
    state_since_at: int | None
    generation_id: int | None
    member_count: int | None
    open_rebalance_since_at: int | None
    first_seen_at: int | None
    last_record_at: int | None
    is_deleted: bool
    evidence: str


class GroupRow(GroupOfGroup):
    """A row of `groups`."""

    cluster: str
    group_id: str


class RebalanceOfGroup(TypedDict):
    """A row of `rebalances` without cluster and group."""

    incarnation: int
    first_generation_id: int
    started_at_latest: int
    last_generation_id: int
    started_at_earliest: int
    ended_at: int | None
    generations: int
    triggers: list[str]
    lost_resource_seconds_min: float
    lost_resource_seconds: float
    lost_resource_seconds_max: float
    idle_resource_seconds: float
    evidence: str
    log_epoch: int
    source_offset: int
    settled_at: int | None
    base_log_epoch: int | None
    base_offset: int | None
    base_at: int | None
    base_rebalance_mode: str | None
    base_state: str | None


class RebalanceRow(RebalanceOfGroup):
    """A row of `rebalances`."""

    cluster: str
    group_id: str


class ReassignmentRow(TypedDict):
    """A row of `reassignments`."""

    cluster: str
    topic: str
    partition: int
    started_at: int
    started_at_earliest: int | None
    original_replicas: list[int] | None
    target_replicas: list[int] | None
    replicas: list[int] | None
    adding: list[int] | None
    removing: list[int] | None
    leader: int | None
    isr: list[int] | None
    state: str | None
    phase: str | None
    bytes_total: int | None
    bytes_done: int | None
    progress: float | None
    bytes_per_second: float | None
    eta_at: int | None
    stalled_since_at: int | None
    last_observed_at: int
    completed_at: int | None
    completed_at_earliest: int | None
    sources: list[str]
    evidence: str


class ReassignmentSampleRow(TypedDict):
    """A row of `reassignment_samples`."""

    cluster: str
    topic: str
    partition: int
    observed_at: int
    bytes_done: int | None
    bytes_total: int | None
    progress: float | None
    bytes_per_second: float | None
    isr: list[int] | None
    leader: int | None


class GroupHealthOfGroup(TypedDict):
    """A row of `group_health` without cluster and group."""

    hour_at: int
    rebalances: int
    lost_resource_seconds_min: float
    lost_resource_seconds: float
    lost_resource_seconds_max: float
    idle_resource_seconds: float
    owned_resource_seconds: float
    availability: float | None
    unstable_ms: int
    rebalance_ms_p50: int | None
    rebalance_ms_p95: int | None
    rebalance_ms_max: int | None
    flapping_members: int


class GroupHealthRow(GroupHealthOfGroup):
    """A row of `group_health`."""

    cluster: str
    group_id: str


class AdviceOfGroup(TypedDict):
    """A row of `advice` without cluster and group."""

    as_of: int
    action: str
    is_recommended: bool
    rank: int
    lost_now: float
    lost_predicted: float | None
    lost_predicted_low: float | None
    lost_predicted_high: float | None
    saving: float | None
    saving_ratio: float | None
    rebalances_now: int
    rebalances_predicted: int | None
    settings: dict[str, str]
    preconditions: list[str]
    explanation: str
    window_start_at: int
    window_end_at: int
    status: str
    saving_measured: float | None


class AdviceRow(AdviceOfGroup):
    """A row of `advice`."""

    cluster: str
    group_id: str


class DiagnosisOfGroup(TypedDict):
    """A row of `diagnoses` without cluster and group."""

    as_of: int
    cause: str
    rank: int
    rebalances: int
    share: float
    lost_resource_seconds: float
    is_normal: bool
    first_at: int
    last_at: int
    instances: list[str]
    evidence: str
    explanation: str
    window_start_at: int


class DiagnosisRow(DiagnosisOfGroup):
    """A row of `diagnoses`."""

    cluster: str
    group_id: str


class StormRow(TypedDict):
    """A row of `storms`."""

    cluster: str
    storm_id: str
    scope: str
    started_at: int
    detected_at: int
    ended_at: int | None
    is_open: bool
    groups: int
    group_ids: list[str]
    rebalances: int
    unexplained_rebalances: int
    lost_resource_seconds_min: float
    lost_resource_seconds: float
    lost_resource_seconds_max: float
    suspected_cause: str | None
    score: float
    causes: list[CauseRow] | None
    by_group: list[GroupLossRow] | None
    differences: list[DifferenceRow]
    evidence: str
    explanation: str


class MarkRow(TypedDict):
    """A row of `marks`."""

    cluster: str
    marked_at: int
    kind: str
    text: str
    group_id: str | None
    marked_by: str | None


class AlertRow(TypedDict):
    """A row of `alerts`."""

    cluster: str
    alert_name: str
    subject: str
    started_at: int
    severity: str
    summary: str
    description: str
    evidence: str
    dashboard_url: str
    raised_at: int
    last_sent_at: int | None
    sent_to: list[str]
    resolved_at: int | None
    last_error: str | None


class JobRunRow(TypedDict):
    """A row of `job_runs`."""

    job: str
    run_id: str
    told_at: int
    started_at: int
    ended_at: int | None
    outcome: str
    error: str | None
    part_of: str | None
    regroup_version: str
    host: str
    pid: int


class QualityResultRow(TypedDict):
    """A row of `quality_results`."""

    table_name: str
    checked_at: int
    rule: str
    table_id: str
    version: int
    severity: str
    sentence: str
    passed: bool
    rows_checked: int
    rows_failed: int
    examples: list[str]


class LimitReachedRow(TypedDict):
    """A row of `limits_reached`."""

    limit_name: str
    cluster: str
    reached_at: int
    allowed: int
    groups: int
    example: str


class SilverRows(TypedDict):
    """Rows of silver of any number of groups, by table."""

    generations: list[GenerationRow]
    generation_members: list[GenerationMemberRow]
    stalls: list[StallRow]
    group_events: list[GroupEventRow]
    groups: list[GroupRow]
    rebalances: list[RebalanceRow]


class SilverOfGroup(TypedDict):
    """Rows of silver of one group, by table."""

    generations: list[GenerationOfGroup]
    generation_members: list[GenerationMemberOfGroup]
    stalls: list[StallOfGroup]
    group_events: list[GroupEventOfGroup]
    groups: list[GroupOfGroup]
    rebalances: list[RebalanceOfGroup]


class GroupHistory(TypedDict):
    """Rows of silver that gold of one group is made of, by table."""

    generations: list[GenerationRow]
    generation_members: list[GenerationMemberRow]
    stalls: list[StallRow]
    group_events: list[GroupEventRow]


class ReassignmentRows(TypedDict):
    """Rows of one cluster's reassignments, by table."""

    reassignments: list[ReassignmentRow]
    reassignment_samples: list[ReassignmentSampleRow]
