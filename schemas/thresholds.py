"""Thresholds of the gold tables for soon, short, often and late: one value per question, with its reason.

Diagnoses, advice, storms and health share these values, so that two tables never judge the same fact differently. Times
are in milliseconds. `docs/decisions/006-one-judgment.md` explains the choice of values that used to differ.
"""

from __future__ import annotations

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000

# --- Members that leave and return -----------------------------------------------------------------------------------

DEFAULT_SESSION_MS = 45_000
"""Session timeout assumed for a member without a known one: the default of session.timeout.ms since Kafka 3.0 (KIP-735)
and of group.consumer.session.timeout.ms (KIP-848). Records of KIP-848 members contain no session timeout.
"""

SHORT_LIFE_MS = 10 * MINUTE_MS
"""Longest membership that counts as short. Kubernetes resets the back-off of a container (CrashLoopBackOff) after it
ran for ten minutes, so a process that lives longer is restarted as if it had never crashed.
"""

RESTART_MS = HOUR_MS
"""Longest absence that counts as a restart, because no restart takes an hour. An instance that is absent for longer was
scaled in, and scaled out again later."""

LOOP = 3
"""Departures of one instance within an hour that count as a loop. A deploy causes one, a rolled back deploy two."""

PAUSED_MS = 4_000
"""A member that returns within this time after its removal counts as the same process, back after a pause; of several
returns in a row, their median counts. Such a process learns at its next heartbeat, after 3 s by default, that it was
removed, and rejoins at its next poll (librdkafka joins at most once a second). A new process has to start first.
Recorded members that were back themselves took up to 3.9 s. With 5 s, some recorded processes that were killed and
started again would count as paused, too.
"""

REPLACED_MS = 10 * MINUTE_MS
"""A rolling update that starts the new process first has stopped the old one within this time."""

POLL_SLACK_MS = 1_500
"""Delay after which a client notices a late poll: up to one heartbeat (librdkafka checks once a second, Java in its
heartbeat thread)."""

OVERLAP_MS = 2 * MINUTE_MS
"""Longest time that a killed process stays in the group after its successor joined. Session timeouts of two minutes are
the longest in use; brokers allow up to thirty.
"""

DEPLOYS_PER_HOUR = 4
"""Maximum number of deploys within an hour that still count as planned."""

SCALED_MS = 5 * MINUTE_MS
"""Time that autoscalers wait before they remove an instance they added (Kubernetes' stabilization window, KEDA's
cooldown)."""

# --- Rebalances ------------------------------------------------------------------------------------------------------

FAILOVER_MS = 30_000
"""Members find a new coordinator and rejoin within a few request timeouts. Sessions restart when the group is loaded,
so a member that does not find the coordinator expires one session timeout later. `failover_ms` adds a third of that for
the join phase that follows.
"""

CONVERGED = 2
"""Cooperative rebalances converge within two follow-ups (KIP-429); more are not normal."""

FLAPS = 3
"""Consecutive rejoins of unchanged members that count as flapping; normal operation causes fewer."""

FLAP_MS = 10 * MINUTE_MS
"""Rejoins within this time of each other belong to one run: twice metadata.max.age.ms, after which clients refresh
their metadata."""

SLOW_MS = 1_000
"""A shorter wait for one member is ignored."""

VERY_SLOW_MS = 5_000
"""A member that joins this much later than the others is slow. Members learn of a rebalance within their heartbeat
interval (3 s by default), so a shorter delay may be chance."""

SLOW_TIMES = 3
"""Times that the same one of several members must join last."""

NOTICED_MS = 3_500
"""Time within which a working member notices a rebalance and joins: the default heartbeat interval of all clients (3 s)
and half a second for its fetch and requests."""

SLOW_BY_CHANCE = 0.001
"""Probability up to which chance does not explain that one member is the last to join that often. A group has several
members, and a cluster many groups."""

TOGETHER_MS = 3_000
"""Departures within a heartbeat interval (3 s by default) of each other count as one event."""

PATTERN_MS = 10_000
"""Time within which the coordinator resolves a new member's pattern (KIP-848), apart from the rebalance that admits
the member."""

SHORT_SESSION_MS = 10_000
"""The default of session.timeout.ms before Kafka 3.0; since then it is 45 s (KIP-735)."""


MARK_MS = 30 * MINUTE_MS
"""Longest time between a mark, or a change of a pod, and an event that it may explain."""

ENOUGH_ABSENCES = 3
"""Absences that are needed both before and after a change of settings for a verdict on it."""

STORM_CALM_MS = 30 * MINUTE_MS
"""A storm is over when no unexplained rebalance came for this long. It is also the window in which they are counted:
three polls of one member that exceed the default of five minutes fit in."""


def failover_ms(session_timeout_ms: int) -> int:
    """Return how long after a group was loaded its rebalances count as caused by that, in milliseconds."""
    return max(FAILOVER_MS, session_timeout_ms * 4 // 3)
