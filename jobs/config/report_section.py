"""The [report] section of the settings: when the weekly report is sent, and to whom."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dashboards.teams import NO_TEAM, Teams
from jobs.config.declared import REFERENCES, all_typed, quoted_value, refuse_unknown, secret, table, tables, text
from jobs.config.errors import UserError
from jobs.config.receivers import is_loopback

R = TypeVar("R", "ReportWebhook", "ReportMail")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
ADDRESS = re.compile(r"[^\s@<>,;:\"\x00-\x1f\x7f]+@[^\s@<>,;:\"\x00-\x1f\x7f]+")
SECURITY = ("starttls", "tls", "none")
MOST_RECEIVERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportWebhook:
    """An incoming webhook of a chat that takes Slack's messages. With `team`, it gets the report of that team."""

    name: str
    url: str = field(repr=False)
    team: str = ""

    def address(self) -> str:
        """Return the address that `url` refers to. Never print or store it: whoever knows it can post there.

        Raises:
            UserError: the reference is broken, or its target is no address with TLS.
        """
        found = secret(f"The url of the report's webhook {self.name}", self.url).strip()
        try:
            parts = urlsplit(found)
            host = parts.hostname or ""
            is_safe = bool(parts.port is None or parts.port) and (
                parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
            )
        except ValueError:
            host, is_safe = "", False
        if not host or not is_safe:
            raise UserError(f"The url of the report's webhook {self.name} is no address with https://: correct it.")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportMail:
    """A mail server and the addresses that get the report. With `team`, they get the report of that team."""

    name: str
    server: str
    sender: str
    to: tuple[str, ...]
    port: int = 587
    security: str = "starttls"
    user: str = ""
    password: str = field(default="", repr=False)
    team: str = ""

    def login(self) -> tuple[str, str] | None:
        """Return the user and the password; None without a user. Never print or store them.

        Raises:
            UserError: the password's reference is broken.
        """
        if not self.user:
            return None
        return self.user, secret(f"The password of the report's mail {self.name}", self.password)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklyReport:
    """When the report of the last whole week is sent. Weeks begin on Monday at 00:00 in `zone`."""

    day: str = "monday"
    time: str = "08:00"
    zone: str = "UTC"
    webhooks: tuple[ReportWebhook, ...] = ()
    mails: tuple[ReportMail, ...] = ()

    @property
    def receivers(self) -> Sequence[ReportWebhook | ReportMail]:
        return (*self.webhooks, *self.mails)


def report_section(declared: Any, teams: Teams) -> WeeklyReport | None:
    """Return what [report] describes; None without this section.

    Raises:
        UserError: a key is unknown or missing, a value is not valid, or there is no such team.
    """
    if declared is None:
        return None
    values = dict(table("report", declared))
    hooks = tuple(
        _receiver("[[report.webhooks]]", ReportWebhook, each)
        for each in tables("report.webhooks", values.pop("webhooks", []))
    )
    mails = tuple(
        _receiver("[[report.mails]]", ReportMail, each) for each in tables("report.mails", values.pop("mails", []))
    )
    refuse_unknown(values, {f.name for f in fields(WeeklyReport)}, "[report]")
    report = WeeklyReport(webhooks=hooks, mails=mails, **all_typed(WeeklyReport, values, "[report]"))
    if report.day not in DAYS:
        raise UserError(f"In [report], day must be {', '.join(DAYS)}, but is {quoted_value(report.day)}.")
    if not TIME.fullmatch(report.time):
        raise UserError(f'In [report], time must be hours and minutes such as "08:00", but is {report.time[:20]!r}.')
    try:
        ZoneInfo(report.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UserError(
            f'In [report], zone must be a zone of the IANA database such as "Europe/Berlin", but is '
            f"{quoted_value(report.zone)}."
        ) from None
    _check_receivers(report, teams)
    return report


def _check_receivers(report: WeeklyReport, teams: Teams) -> None:
    if not 0 < len(report.receivers) <= MOST_RECEIVERS:
        raise UserError(
            f"[report] needs 1 to {MOST_RECEIVERS} receivers: write [[report.webhooks]] or [[report.mails]] below it."
        )
    names = [receiver.name for receiver in report.receivers]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"Two receivers of the report are called {twice}: give each a name of its own (name = ...).")
    for receiver in report.receivers:
        if receiver.team and receiver.team not in (*teams.names, NO_TEAM):
            known = ", ".join(teams.names) or "none, because there is no section [teams]"
            raise UserError(
                f"The receiver {receiver.name} of the report is of the team {receiver.team}, which [teams] does not "
                f"have: it has {known}."
            )


def _receiver(section: str, kind: type[R], declared: Any) -> R:
    if not isinstance(declared, dict):
        raise UserError(f"{section} must be a table: write {section} on a line of its own.")
    values: dict[str, Any] = dict(declared)
    refuse_unknown(values, {f.name for f in fields(kind)}, section)
    for key in ("name", "url", "server", "sender", "to"):
        if key in {f.name for f in fields(kind)} and not values.get(key):
            raise UserError(f"{section} has no {key}: add {key} = ...")
    to = values.pop("to", ())
    values = all_typed(kind, values, section)
    if not values["name"].isprintable():
        raise UserError(f"The name {quoted_value(values['name'])} in {section} has characters that cannot be printed.")
    return kind(**values | (_checked_mail(section, values, to) if kind is ReportMail else _checked_hook(values)))


def _checked_hook(values: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_literal("url", "webhook", values)
    return {}


def _checked_mail(section: str, values: Mapping[str, Any], to: Any) -> dict[str, Any]:
    name = values["name"]
    listed = [to] if isinstance(to, str) else to
    if not isinstance(listed, list) or len(listed) > MOST_RECEIVERS:
        raise UserError(f"In {section}, to must be a list of at most {MOST_RECEIVERS} addresses of mail.")
    for address in (values["sender"], *(text(f"An address in {section}", each) for each in listed)):
        if not ADDRESS.fullmatch(address):
            raise UserError(
                f"In {section}, {quoted_value(address)} is no address of mail: write it like sre@example.com."
            )
    security = values.get("security", SECURITY[0])
    if security not in SECURITY:
        raise UserError(f"In {section}, security must be {', '.join(SECURITY)}, but is {quoted_value(security)}.")
    if security == "none" and not is_loopback(values["server"]):
        raise UserError(f"The mail server of {name} is another machine: use starttls or tls, not security = none.")
    if bool(values.get("user")) != bool(values.get("password")):
        raise UserError(f"In {section}, {name} needs both user and password, or neither.")
    if values.get("password"):
        _refuse_literal("password", "mail", values)
    return {"to": tuple(listed)}


def _refuse_literal(key: str, kind: str, values: Mapping[str, Any]) -> None:
    if not values[key].startswith(REFERENCES):
        raise UserError(
            f"The {key} of the report's {kind} {values['name']} must be a reference: write env:NAME or file:PATH, and "
            "put the secret there."
        )
