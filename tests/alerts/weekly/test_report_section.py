"""The sections [teams] and [report] of the settings: what they need, and one sentence for what is wrong."""

from __future__ import annotations

import re

import pytest

from jobs.config.errors import UserError
from jobs.config.settings import Settings

HOOK = '[[report.webhooks]]\nname = "chat"\nurl = "env:CHAT"\n'
MAIL = (
    '[[report.mails]]\nname = "mail"\nserver = "smtp.example.com"\nsender = "a@example.com"\nto = ["b@example.com"]\n'
)

SENDER, TO = 'sender = "a@example.com"\n', 'to = ["b@example.com"]'
LINES = 'sender = "a@x.com\\nBcc: c@x.com"\n'


def load(tmp_path, text) -> Settings:
    file = tmp_path / "regroup.toml"
    file.write_text(text)
    return Settings.load(file, {})


def test_a_whole_section_is_read_with_its_defaults(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("CHAT", "https://hooks.example.com/services/T0/B0/secret")
    monkeypatch.setenv("PASSWORD", "secret word")
    login = 'user = "regroup"\npassword = "env:PASSWORD"\n'
    found = load(tmp_path, f'[teams]\npayments = ["payments-*"]\n[report]\n{HOOK}team = "payments"\n{MAIL}{login}')
    assert found.report is not None
    assert ("monday", "08:00", "UTC") == (found.report.day, found.report.time, found.report.zone)
    hook, mail = found.report.receivers
    assert ("payments", "chat", "mail", 587, "starttls") == (hook.team, hook.name, mail.name, mail.port, mail.security)
    assert "payments" == found.teams.of_group("any", "payments-1")
    assert {"https://hooks.example.com/services/T0/B0/secret", "secret word"} <= set(found.secrets())
    assert "secret" not in repr(found)
    assert () == found.literal_secrets()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[report]\n", "[report] needs 1 to 200 receivers"),
        (f'[report]\nday = "sunny"\n{HOOK}', "day must be monday, tuesday"),
        (f'[report]\ntime = "8 am"\n{HOOK}', 'time must be hours and minutes such as "08:00"'),
        (f'[report]\ntime = "24:00"\n{HOOK}', "time must be hours and minutes"),
        (f'[report]\nzone = "Mars"\n{HOOK}', "zone must be a zone of the IANA database"),
        (f'[report]\nhour = "8"\n{HOOK}', "Unknown setting 'hour' in [report]"),
        (f"[report]\n{HOOK}{HOOK}", "Two receivers of the report are called chat"),
        (f'[report]\n{HOOK}team = "b"\n', "is of the team b, which [teams] does not have: it has none, because"),
        (f'[teams]\na = ["x"]\n[report]\n{HOOK}team = "b"\n', "which [teams] does not have: it has a."),
        ('[report]\n[[report.webhooks]]\nname = "chat"\n', "[[report.webhooks]] has no url"),
        ('[report]\n[[report.webhooks]]\nname = "c"\nurl = "https://x/y"\n', "must be a reference: write env:NAME"),
        ("[report]\n[report.webhooks]\n", "report.webhooks must be a list of tables"),
        (f'[report]\n{MAIL}security = "none"\n', "is another machine: use starttls or tls"),
        (f'[report]\n{MAIL}security = "ssl"\n', "security must be starttls, tls, none"),
        (f'[report]\n{MAIL}user = "a"\n', "needs both user and password"),
        (f'[report]\n{MAIL}user = "a"\npassword = "b"\n', "must be a reference"),
        (f"[report]\n{MAIL.replace('b@example.com', 'nobody')}", "'nobody' is no address of mail"),
        (f"[report]\n{MAIL.replace('b@example.com', 'b@x.com, c@x.com')}", "is no address of mail"),
        (f"[report]\n{MAIL.replace(SENDER, LINES)}", "not allowed in text"),
        (f"[report]\n{MAIL.replace(TO, 'to = [1]')}", "must be str"),
        ('[teams]\na = "x"\n', "a must be a list of patterns"),
        ('teams = "x"\n', "The setting teams must be a table"),
        ('[teams]\na = ["[x"]\n', "has a [ without ]"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path, text, expected) -> None:
    with pytest.raises(UserError, match=re.escape(expected)) as found:
        load(tmp_path, text)
    assert "\n" not in str(found.value)
