"""When a group's settings changed: the values that all members shared before and after."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipelines.gold.memberships import Silver, number
from schemas.rows import GenerationMemberRow, GenerationRow
from schemas.states import WITH_CLASSIC, ClientLibrary, GroupProtocol, GroupSetting, RebalanceMode

CLASSIC_ONLY = (GroupSetting.REBALANCE_MODE, GroupSetting.SESSION_TIMEOUT, GroupSetting.REBALANCE_TIMEOUT)
"""Settings that members of the other protocols do not choose, or that do not exist there."""

KNOWN_MODES = (RebalanceMode.EAGER, RebalanceMode.COOPERATIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A new value of a setting. Members had `before` until `until`, and all had `after` from `since` on (ms)."""

    setting: GroupSetting
    before: str
    after: str
    until: int
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    """Values that changed in one rollout, which began at `rollout_at` and was complete at `changed_at` (ms)."""

    values: tuple[Value, ...]
    rollout_at: int
    changed_at: int


def setting_changes(silver: Silver) -> list[SettingChange]:
    """Return the changes that the generations of a group show, oldest first.

    A value counts only in generations whose members all have it, so during a rollout neither the old nor the new value
    is in force. A setting that always differs among members never changes. Unknown values are skipped.
    """
    members: dict[tuple[int, int], list[GenerationMemberRow]] = defaultdict(list)
    for row in silver["generation_members"]:
        members[number(row)].append(row)
    peopled = [
        _Generation(row=g, members=members[number(g)])
        for g in sorted(silver["generations"], key=number)
        if not g["is_empty"] and number(g) in members
    ]
    classic = {e["member_id"] for e in silver["group_events"] if e["detail"] == WITH_CLASSIC}
    classic |= {m["member_id"] for g in peopled if g.row["group_protocol"] == GroupProtocol.CLASSIC for m in g.members}
    return _rollouts(value for setting in GroupSetting for value in _values(setting, peopled, frozenset(classic)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Generation:
    row: GenerationRow
    members: Sequence[GenerationMemberRow]


def _values(setting: GroupSetting, peopled: Sequence[_Generation], classic: frozenset[str]) -> Iterator[Value]:
    """Yield the changes of one setting. `classic` are the members that joined with the classic protocol."""
    last: tuple[int, str] | None = None
    for at, g in enumerate(peopled):
        if (value := _shared(setting, g, classic)) is None:
            continue
        if last is not None and value != last[1]:
            until = peopled[last[0] + 1].row["joined_at"]
            yield Value(setting=setting, before=last[1], after=value, until=until, since=g.row["joined_at"])
        last = at, value


def _shared(setting: GroupSetting, g: _Generation, classic: frozenset[str]) -> str | None:
    """Return the value that all members of a generation have; None if it is unknown or differs."""
    if setting in CLASSIC_ONLY and g.row["group_protocol"] != GroupProtocol.CLASSIC:
        return None
    found = {_value(setting, g.row, member, classic) for member in g.members}
    return found.pop() if len(found) == 1 else None


def _value(setting: GroupSetting, g: GenerationRow, member: GenerationMemberRow, classic: frozenset[str]) -> str | None:
    match setting:
        case GroupSetting.GROUP_PROTOCOL:
            # A group is of the consumer protocol from its first such member on; the others are still classic.
            is_classic = g["group_protocol"] == GroupProtocol.CONSUMER and member["member_id"] in classic
            return GroupProtocol.CLASSIC.value if is_classic else g["group_protocol"]
        case GroupSetting.ASSIGNOR:
            return g["assignor"] or None
        case GroupSetting.REBALANCE_MODE:
            return g["rebalance_mode"] if g["rebalance_mode"] in KNOWN_MODES else None
        case GroupSetting.STATIC_MEMBERSHIP:
            return "yes" if member["group_instance_id"] else "no"
        case GroupSetting.CLIENT_LIBRARY:
            library = member["client_library"]
            return None if library == ClientLibrary.UNKNOWN else library
        case GroupSetting.SESSION_TIMEOUT | GroupSetting.REBALANCE_TIMEOUT:
            timeout_ms = member[
                "session_timeout_ms" if setting == GroupSetting.SESSION_TIMEOUT else "rebalance_timeout_ms"
            ]
            return None if timeout_ms is None else str(timeout_ms)


def _rollouts(values: Iterable[Value]) -> list[SettingChange]:
    """Return one change for values whose rollouts overlap."""
    open_values: list[Value] = []
    out: list[SettingChange] = []
    end = 0
    for value in sorted(values, key=lambda v: (v.until, v.since, v.setting)):
        if open_values and value.until > end:
            out.append(_change(open_values))
            open_values = []
        open_values.append(value)
        end = max(value.since, end if len(open_values) > 1 else 0)
    return [*out, _change(open_values)] if open_values else out


def _change(values: Sequence[Value]) -> SettingChange:
    return SettingChange(
        values=tuple(sorted(values, key=lambda v: (v.setting, v.since))),
        rollout_at=min(v.until for v in values),
        changed_at=max(v.since for v in values),
    )


def value_of(change: SettingChange, setting: GroupSetting) -> tuple[str, str] | None:
    """Return the first value of a setting before the change and its last value after; None if it did not change."""
    found = [v for v in change.values if v.setting == setting]
    return (found[0].before, found[-1].after) if found else None
