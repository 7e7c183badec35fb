"""Rows of `setting_changes`: each change of a group's settings, what it saved, and what was predicted."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from math import fsum

from pipelines.gold.advice.absence_costs import AbsenceCost, absence_costs, compare, status
from pipelines.gold.advice.latencies import BrokerSettings, latencies, with_callbacks
from pipelines.gold.advice.outcome import policies
from pipelines.gold.advice.prediction import Saving, not_replayed, predict, repetitions, reproduces, saving
from pipelines.gold.advice.setting_changes import SettingChange, setting_changes, value_of
from pipelines.gold.churn import Churn, churn, known_instants
from pipelines.gold.memberships import Silver
from pipelines.gold.window import END_MS, Windows
from schemas.rows import SettingChangeOfGroup
from schemas.states import Evidence, GroupSetting

NEWEST = 5
"""Maximum number of changes of a window that get rows, the newest ones. A group whose settings alternate may have any
number of changes.
"""

COSTS = 100
"""Maximum number of absences before and after a change whose costs a row lists, those nearest to the change."""

INFERRED = (GroupSetting.REBALANCE_MODE, GroupSetting.CLIENT_LIBRARY)


def change_rows(silver: Silver, broker: BrokerSettings, quiet_ms: int) -> list[SettingChangeOfGroup]:
    """Return one row for each of the `NEWEST` changes of settings in one window of one group, oldest first.

    A change is judged by the absences since the change before it and until the next one. Absences during a rollout
    count for neither side. `as_of` is the last known time of the window.
    """
    changes = setting_changes(silver)
    if not changes:
        return []
    begins = [0, *(change.changed_at for change in changes)]
    ends = [*(change.rollout_at for change in changes[1:]), END_MS]
    windows = Windows.of(silver)
    as_of = max(known_instants(silver, silver["generations"]))
    return [
        _row(
            change,
            windows.window(begin, _rollout_stop(windows, begin, change, quiet_ms)),
            windows.window(change.changed_at, end),
            as_of,
            broker,
            quiet_ms,
        )
        for change, begin, end in list(zip(changes, begins, ends, strict=False))[-NEWEST:]
    ]


def _rollout_stop(windows: Windows, begin: int, change: SettingChange, quiet_ms: int) -> int:
    """Return when the first member stopped to get the new settings, in milliseconds: it joined with them later."""
    before = churn(windows.window(begin, change.rollout_at), quiet_ms)
    whole = churn(windows.window(begin, change.changed_at + 1), quiet_ms)
    if before is None or whole is None:
        return change.rollout_at
    returned = {o.gone_at for o in whole.outages if o.back_at is not None}
    stops = (o.stopped_at for o in before.outages if o.back_at is None and o.gone_at in returned)
    return min(stops, default=change.rollout_at)


def _row(
    change: SettingChange, earlier: Silver, later: Silver, as_of: int, broker: BrokerSettings, quiet_ms: int
) -> SettingChangeOfGroup:
    before, after = churn(earlier, quiet_ms), churn(later, quiet_ms)
    costs_before, costs_after = _costs(before, 0), _costs(after, change.changed_at)
    measured = compare(costs_before, costs_after)
    expected = None
    if before is not None and costs_before and costs_after:
        expected = _predicted(change, earlier, later, before, broker)
    # The prediction is for the absences before the change; there were more or fewer of them since.
    scale = len(costs_after) / max(1, len(costs_before))
    is_inferred = all(v.setting in INFERRED for v in change.values)
    return {
        "as_of": as_of,
        "changed_at": change.changed_at,
        "rollout_at": change.rollout_at,
        "settings": [{"setting": v.setting.value, "before": v.before, "after": v.after} for v in change.values],
        "evidence": (Evidence.INFERRED if is_inferred else Evidence.OBSERVED).value,
        "status": status(measured).value,
        "absences_before": len(costs_before),
        "absences_after": len(costs_after),
        "lost_before": fsum(c.lost for c in costs_before),
        "lost_after": fsum(c.lost for c in costs_after),
        "rebalances_before": before.rebalances if before else 0,
        "rebalances_after": after.rebalances if after else 0,
        "saving_measured": measured.saved if measured else None,
        "saving_measured_low": measured.low if measured else None,
        "saving_measured_high": measured.high if measured else None,
        "saving_predicted": expected.estimate * scale if expected else None,
        "saving_predicted_low": expected.low * scale if expected else None,
        "saving_predicted_high": expected.high * scale if expected else None,
        "costs": [
            {"stopped_ms": c.stopped_at, "lost_resource_seconds": c.lost}
            for c in (*costs_before[-COSTS:], *costs_after[:COSTS])
        ],
    }


def _costs(found: Churn | None, since_ms: int) -> list[AbsenceCost]:
    """Return the costs of absences that began after `since_ms`.

    When the last member with the old settings leaves, all others have the new ones, so its absence is the rollout's.
    """
    return [] if found is None else [cost for cost in absence_costs(found) if cost.stopped_at > since_ms]


def _predicted(
    change: SettingChange, earlier: Silver, later: Silver, before: Churn, broker: BrokerSettings
) -> Saving | None:
    """Return what replays of the absences before a change say that it saves; None if the replays cannot tell.

    Both replays know only the history before the change, as advice did then.
    """
    # The first row of a window is the state before it: a generation of the rollout.
    old, new = policies(earlier), [each for each in policies(later) if each[0]["joined_at"] >= change.changed_at]
    if not old or not new or not before.outages or not_replayed(old[-1][0], before):
        return None
    session = value_of(change, GroupSetting.SESSION_TIMEOUT)
    policy = replace(new[0][1], session_timeout_ms=int(session[1]) if session else None)
    if policy == old[-1][1]:
        return None
    measured = latencies(earlier, broker)
    replayed = with_callbacks(before, measured)
    newest = old[-1][0]
    seed = hashlib.sha256(f"{newest['cluster']}\0{newest['group_id']}\0{change.changed_at}".encode()).hexdigest()
    repeated = repetitions(replayed, measured, seed)
    as_is = predict(replayed, measured, old[-1][1], seed, repeated=repeated)
    if not reproduces(as_is, before.lost_ms / 1000):
        return None
    return saving(as_is, predict(replayed, measured, policy, seed, repeated=repeated))
