"""The section [otlp] of the settings: one sentence for what is wrong, and no secret in the file."""

from __future__ import annotations

import sys

import pytest

from jobs.alerting.otlp.encoding import check_installed
from jobs.config.errors import UserError
from jobs.config.otlp_section import Otlp, otlp_section
from jobs.config.settings import Settings

HERE = 'endpoint = "http://127.0.0.1:4318"\n'


def load(folder, text: str) -> Settings:
    file = folder / "regroup.toml"
    file.write_text(text)
    return Settings.load(file, environment={})


def test_a_collector_with_a_login(tmp_path, monkeypatch):
    monkeypatch.setenv("KEY", " abc \n")
    text = f'[otlp]\n{HERE}max_hours = 6\nheaders = {{ "X-Key" = "env:KEY" }}\nresource = {{ a = "b" }}\n'
    settings = load(tmp_path, text)
    assert settings.otlp == Otlp(
        endpoint="http://127.0.0.1:4318", headers={"X-Key": "env:KEY"}, resource={"a": "b"}, max_hours=6
    )
    assert settings.otlp.request_headers() == {"X-Key": "abc"}
    assert any("abc" in secret for secret in settings.secrets())
    assert settings.literal_secrets() == ()
    assert otlp_section(None) is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no endpoint"),
        ('endpoint = "otel:4318"\n', "is not an address"),
        ('endpoint = "https://otel:99999"\n', "is not an address"),
        ('endpoint = "https://me:pw@otel"\n', "contains a user or password"),
        ('endpoint = "http://otel:4318"\n', "without encryption"),
        (HERE + "max_hours = 0\n", "at least 1"),
        (HERE + 'traces = "yes"\n', "must be true or false"),
        (HERE + 'protocol = "grpc"\n', "Unknown setting 'protocol' in [otlp]"),
        (HERE + 'headers = { "X-Key" = "literal" }\n', "must be a reference"),
        (HERE + 'headers = { "X Key" = "env:A" }\n', "no name of an HTTP header"),
        (HERE + "headers = 3\n", "must be a table"),
        (HERE + "resource = { a = 1 }\n", "must be str"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path, text, sentence):
    with pytest.raises(UserError) as refused:
        load(tmp_path, f"[otlp]\n{text}")
    assert sentence in str(refused.value)
    assert "literal" not in str(refused.value)
    assert "pw" not in str(refused.value)


def test_a_value_that_no_header_can_have(monkeypatch):
    monkeypatch.setenv("KEY", "a\nb: c")
    with pytest.raises(UserError, match="one line of ASCII text"):
        Otlp(endpoint="https://otel", headers={"X-Key": "env:KEY"}).request_headers()


def test_a_missing_sdk_is_one_sentence(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("opentelemetry.sdk.trace")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    with pytest.raises(UserError, match=r"install regroup\[otlp\]"):
        check_installed()
