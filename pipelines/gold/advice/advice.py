"""Rows of `advice`: the predicted cost of a group's own churn under other settings, and the changes worth making."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pipelines.gold.advice.application_options import application_options
from pipelines.gold.advice.blocked_callbacks import blocked_callback
from pipelines.gold.advice.connect_delays import delay_options
from pipelines.gold.advice.latencies import BrokerSettings, latencies, with_callbacks
from pipelines.gold.advice.options import Group, Option, options
from pipelines.gold.advice.outcome import policy_in_force, trial, with_outcome
from pipelines.gold.advice.prediction import Prediction, Saving, not_replayed, predict, repetitions, reproduces
from pipelines.gold.advice.replay import Policy
from pipelines.gold.churn import Churn, churn
from pipelines.gold.memberships import Silver, number
from pipelines.gold.window import END_MS, window
from schemas.rows import AdviceOfGroup, GenerationRow
from schemas.states import AdviceAction, AdviceStatus, GroupType
from schemas.written import NOTHING, amount, bounded, capitalized, percent, signed, signed_between


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingThreshold:
    """The least saving that is recommended: both resource-seconds in the window and a share of the measured loss. The
    low end of the predicted saving must reach it.
    """

    seconds: float = 10.0
    ratio: float = 0.1


def advice_rows(
    silver: Silver,
    broker: BrokerSettings,
    worth: SavingThreshold,
    quiet_ms: int,
    deployed: Collection[tuple[str, int]] = (),
) -> list[AdviceOfGroup]:
    """Return one row for every action evaluated on one window of one group; none if the window has no churn.

    `deployed` has the member id and time of each departure that diagnoses ascribe to a deploy. The result is
    deterministic: the random numbers of the replays are seeded with the group and its window.
    """
    if not silver["generations"]:
        return []
    newest = max(silver["generations"], key=number)
    policy, since_ms = policy_in_force(silver)
    found = churn(silver if since_ms is None else window(silver, since_ms, END_MS), quiet_ms)
    if found is None:
        return []
    rows = _evaluated(silver, found, policy, newest, broker, worth, deployed)
    of = None if since_ms is None else trial(silver, since_ms, found, quiet_ms)
    if of is None:
        return rows
    tried = with_outcome(of, _none(found, ""), rank=len(rows) + 1)
    return [*(row for row in rows if row["action"] != of.action), tried]


def _evaluated(
    silver: Silver,
    found: Churn,
    policy: Policy,
    newest: GenerationRow,
    broker: BrokerSettings,
    worth: SavingThreshold,
    deployed: Collection[tuple[str, int]],
) -> list[AdviceOfGroup]:
    seed = hashlib.sha256(f"{newest['cluster']}\0{newest['group_id']}\0{found.end_ms}".encode()).hexdigest()
    measured = latencies(silver, broker)
    if newest["group_type"] == GroupType.CONNECT:
        text = f"The churn in this window cost {amount(found.lost_ms / 1000)} resource-seconds, as measured."
        return _ranked(found, None, delay_options(silver, found), text, (), worth)
    if why := not_replayed(newest, found):
        return [_none(found, why)]
    replayed = with_callbacks(found, measured)
    repeated = repetitions(replayed, measured, seed)
    as_is = predict(replayed, measured, policy, seed, repeated=repeated)
    group = Group(
        churn=replayed,
        latencies=measured,
        now=policy,
        as_is=as_is,
        repeated=repeated,
        seed=seed,
        is_streams=newest["group_type"] == GroupType.STREAMS,
        blocked=blocked_callback(silver),
        deployed=frozenset(deployed),
    )
    text = _as_is(as_is, found.lost_ms / 1000)
    if not reproduces(as_is, found.lost_ms / 1000):
        why = f"{text} This is too far off to draw conclusions from replays with other settings."
        return [_none(found, why, as_is)]
    if not found.outages and not found.disturbances:
        return [_none(found, "No instance stopped in this window, so there is nothing to save.", as_is)]
    evaluated = [*options(group), *application_options(group)]
    return _ranked(found, as_is, evaluated, text, measured.assumed, worth)


def _ranked(
    found: Churn,
    as_is: Prediction | None,
    evaluated: Sequence[Option],
    cost: str,
    assumed: Sequence[str],
    worth: SavingThreshold,
) -> list[AdviceOfGroup]:
    """Return the rows with their ranks: recommended actions by saving, then the other actions by saving.

    The row of the action `none` comes first if nothing is recommended, else last. `as_is` is the replay under the
    present settings; None if the actions were evaluated without a replay.
    """
    rows = [_row(found, as_is, option, cost, assumed, worth) for option in evaluated]
    rows.sort(key=lambda row: (-(row["saving"] or 0), row["action"]))
    best = [row for row in rows if row["is_recommended"]]
    none = _none(found, _nothing(rows, cost, worth), as_is, is_recommended=not best)
    ranked = [
        *best,
        *([] if best else [none]),
        *(r for r in rows if not r["is_recommended"]),
        *([none] if best else []),
    ]
    for rank, row in enumerate(ranked, 1):
        row["rank"] = rank
    return ranked


def _as_is(as_is: Prediction, measured: float) -> str:
    return (
        f"The churn in this window cost {amount(measured)} resource-seconds, as measured. A replay with the current "
        f"settings gives {bounded(as_is.lost, as_is.low, as_is.high)}."
    )


def _row(
    found: Churn,
    as_is: Prediction | None,
    option: Option,
    cost: str,
    assumed: Sequence[str],
    worth: SavingThreshold,
) -> AdviceOfGroup:
    now, predicted, saved = found.lost_ms / 1000, option.prediction, option.saving
    before = as_is.lost if as_is else now
    is_worth = saved.low >= max(worth.seconds, worth.ratio * now)
    missing = [c for c in option.preconditions if c.state == "missing"]
    replayed = bounded(predicted.lost, predicted.low, predicted.high)
    parts = [
        cost,
        f"{_sentence(option.action)} would {_effect(saved)}: the predicted loss is {replayed}.",
        option.why,
        *(f"Not recommended until this condition is met: {c.text}." for c in missing if is_worth),
        *(f"Assumed: {text}." for text in assumed),
    ]
    return {
        "as_of": found.end_ms,
        "action": option.action.value,
        "is_recommended": is_worth and not missing,
        "rank": 0,
        "lost_now": now,
        "lost_replayed": as_is.lost if as_is else None,
        "lost_predicted": predicted.lost,
        "lost_predicted_low": predicted.low,
        "lost_predicted_high": predicted.high,
        "saving": saved.estimate,
        "saving_low": saved.low,
        "saving_high": saved.high,
        "saving_ratio": saved.estimate / before if before else None,
        "rebalances_now": found.rebalances,
        "rebalances_predicted": predicted.rebalances,
        "settings": dict(option.settings),
        "preconditions": [str(c) for c in option.preconditions],
        "explanation": " ".join(parts),
        "window_start_at": found.start_ms,
        "window_end_at": found.end_ms,
        "status": AdviceStatus.SUGGESTED.value,
        "saving_measured": None,
    }


def _effect(saved: Saving) -> str:
    """Return `save 7.7 resource-seconds`, with its interval; a negative saving is a cost."""
    low, high = sorted((abs(saved.low), abs(saved.high)))
    if high < NOTHING:
        return "change nothing"
    if saved.low < 0 < saved.high:
        limits = signed_between(saved.low, saved.high)
        return f"save {limits} resource-seconds, most likely {signed(saved.estimate)}, so it is not certain to help"
    change = f"{bounded(abs(saved.estimate), low, high)} resource-seconds"
    return f"save {change}" if saved.estimate > 0 else f"cost {change} more"


def _sentence(action: AdviceAction) -> str:
    return capitalized(action.value.replace("_", " "))


def _nothing(rows: Sequence[AdviceOfGroup], cost: str, worth: SavingThreshold) -> str:
    if any(row["is_recommended"] for row in rows):
        return f"{cost} Without a change, the group loses what the recommended change would save."
    if not rows:
        return f"{cost} No available change would have made a difference."
    best = rows[0]
    saving = best["saving"] or 0
    if saving <= 0:
        return f"{cost} Every evaluated change would cost more, so leave it as it is."
    return (
        f"{cost} The best change, {best['action'].replace('_', ' ')}, would save about {amount(saving)} "
        f"resource-seconds, replay against replay. It is not certain to save {worth.seconds:,.0f} resource-seconds and "
        f"{percent(worth.ratio)}, or it cannot be made yet, so leave it as it is."
    )


def _none(
    found: Churn, explanation: str, as_is: Prediction | None = None, *, is_recommended: bool = True
) -> AdviceOfGroup:
    """Return the row of the action `none`. Its prediction is the replay under the present settings, if there is one."""
    now = found.lost_ms / 1000
    return {
        "as_of": found.end_ms,
        "action": AdviceAction.NONE.value,
        "is_recommended": is_recommended,
        "rank": 1,
        "lost_now": now,
        "lost_replayed": as_is.lost if as_is else None,
        "lost_predicted": as_is.lost if as_is else None,
        "lost_predicted_low": as_is.low if as_is else None,
        "lost_predicted_high": as_is.high if as_is else None,
        "saving": 0.0,
        "saving_low": 0.0,
        "saving_high": 0.0,
        "saving_ratio": 0.0 if now else None,
        "rebalances_now": found.rebalances,
        "rebalances_predicted": as_is.rebalances if as_is else None,
        "settings": {},
        "preconditions": [],
        "explanation": explanation,
        "window_start_at": found.start_ms,
        "window_end_at": found.end_ms,
        "status": AdviceStatus.SUGGESTED.value,
        "saving_measured": None,
    }
