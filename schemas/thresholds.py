"""What gold takes for soon, short, often or late: one value for one question, with the reason for each.

Diagnoses, advice, storms and health all read these, so that two tables never judge the same fact differently. Times are
in milliseconds. `docs/decisions/006-one-judgment.md` says how the values were chosen where two were in use before.
"""

from __future__ import annotations

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000

# --- Members that come and go ----------------------------------------------------------------------------------------

DEFAULT_SESSION_MS = 45_000
"""Session of a member whose own timeout is not known: the default of session.timeout.ms since Kafka 3.0 (KIP-735) and
of group.consumer.session.timeout.ms (KIP-848), whose members have no timeout of their own in the records.
"""

SHORT_LIFE_MS = 10 * MINUTE_MS
"""A membership is short up to here: Kubernetes resets the back-off of a container (CrashLoopBackOff) once it has run
for ten minutes, so a process that lives longer is restarted as if it had never crashed.
"""

RESTART_MS = HOUR_MS
"""An instance that is away for longer was scaled in, and out again later: no restart takes an hour."""

LOOP = 3
"""So many departures of one instance within an hour make a loop: a deploy takes one, a rolled back deploy two."""

PAUSED_MS = 3_500
"""A process that only paused hears at its next heartbeat, after 3 s by default, that it was dropped, and joins again at
once; a new process has to start first. One return within this is taken for that of the same process: with 5 s, recorded
processes that were killed and started again would be, too.
"""

PAUSED_LOOP_MS = 5_000
"""The same for the median of several returns in a row, which one fast start does not decide: 3 s and two requests."""

REPLACED_MS = 10 * MINUTE_MS
"""A rolling update that starts the new process first is through with each pair by then."""

POLL_SLACK_MS = 1_500
"""A client checks its poll in steps of up to a heartbeat (librdkafka once a second, Java's heartbeat thread)."""

OVERLAP_MS = 2 * MINUTE_MS
"""A killed process may be followed by the next one for so long before the coordinator drops it: session timeouts of two
minutes are the longest in use, of thirty the longest that brokers allow.
"""

DEPLOYS_PER_HOUR = 4
"""So many deploys within an hour are still planned by somebody."""

SCALED_MS = 5 * MINUTE_MS
"""Autoscalers wait so long before they take away what they added (Kubernetes' stabilisation, KEDA's cooldown)."""

# --- Rebalances ------------------------------------------------------------------------------------------------------

FAILOVER_MS = 30_000
"""Members find a new coordinator and join again within a few request timeouts. Sessions begin anew when the group is
loaded, so a member that does not find it expires a session later: a third is added for the join phase that follows.
"""

CONVERGED = 2
"""Cooperative rebalances settle within two follow-ups (KIP-429); more is no longer normal."""

FLAPS = 3
"""So many rejoins of unchanged members, one soon after another, are more than a group's ordinary life brings."""

FLAP_MS = 10 * MINUTE_MS
"""Rejoins within this of each other are one run: twice metadata.max.age.ms, after which clients ask anew."""

SLOW_MS = 1_000
"""Waiting for one member for less does not matter."""

VERY_SLOW_MS = 5_000
"""A member learns of a rebalance within its heartbeat interval (3 s by default): this is more than being last."""

SLOW_TIMES = 3
"""Being the last member so often, out of several, is unlikely by chance."""

TOGETHER_MS = 3_000
"""Departures within a heartbeat interval (3 s by default) of each other are one event."""

PATTERN_MS = 10_000
"""The coordinator resolves a new member's pattern (KIP-848) within this, beside the rebalance that admits it."""

SHORT_SESSION_MS = 10_000
"""session.timeout.ms was 10 s by default before Kafka 3.0, and 45 s since (KIP-735)."""


def failover_ms(session_timeout_ms: int) -> int:
    """Return for how long after a group was loaded its rebalances follow from that, for members of this session."""
    return max(FAILOVER_MS, session_timeout_ms * 4 // 3)
