"""Settings files, environments and flags with bad or hostile values: each is accepted or rejected with a sentence."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from jobs.config.settings import Settings
from testing.fuzzing.findings import Findings, fuzzed, memory_folder
from testing.fuzzing.mutations import STRANGE

SECTIONS = (
    """
[clusters.a]
bootstrap_servers = "localhost:9092"
events_topic = "regroup-events"
events_zone = "UTC"
events_layout = "default"
max_offsets_per_trigger = 5000
quarantine_fuse = true
[clusters.a.kafka]
"security.protocol" = "PLAINTEXT"
[[clusters.a.logs]]
path = "/var/log/kafka/server.log"
layout = "strimzi"
zone = "Europe/Berlin"
broker_id = 1
""",
    """
[[alertmanagers]]
url = "http://localhost:9093"
name = "a"
plain_http = false
[[webhooks]]
url = "https://example.com/hook"
secret = "env:SECRET"
name = "b"
""",
    """
[readers]
alice = ["orders-"]
[databricks]
server_hostname = "dbc-0123.cloud.databricks.com"
http_path = "/sql/1.0/warehouses/0123"
tables = "main.regroup"
token = "env:TOKEN"
""",
    """
[teams]
payments = ["payments-*", "billing-?"]
search = [{ groups = "search-[a-z]*", clusters = "prod" }]
[report]
day = "friday"
time = "17:30"
zone = "Europe/Berlin"
[[report.webhooks]]
name = "chat"
url = "env:CHAT"
team = "payments"
[[report.mails]]
name = "mail"
server = "localhost"
port = 2525
security = "none"
sender = "regroup@example.com"
to = ["sre@example.com"]
user = "regroup"
password = "env:PASSWORD"
""",
)
LITERALS = (
    "nan", "inf", "-inf", "-1", "0", "1e300", "9" * 30, "9" * 5_000, "0x7fffffffffffffffffff", "true", '""', "[]", "{}",
    "[[], [1]]", "[" * 2_000 + "]" * 2_000, "{a = {b = 1}}", "1979-05-27", "1979-05-27T07:32:00Z", '"env:"', '"file:/"',
    r'"\u0000"', r'"a\nb"', r'"\u202e"', r'"\u001b[31m"', '"~nobody-here/x"', '"(?P<at>"', '"' + "(" * 3_000 + '"',
    '"../../etc"', '"%d %m %c"', '"%q"', '"http://["', '"http://a:b@c"', '"http://localhost:99999"',
    '"' + "x" * 5_000 + '"',
)  # fmt: skip
TEXTS = ("", "nan", "inf", "-1", "1e999", "9" * 5_000, "true", "[]", "\udcff", "²", "env:", "file:/", "\x1b[31m", "/\n")
PIECES = ("[clusters]\n", "[[clusters]]\n", "clusters = 5\n", "a = 1\n", "=", "\n", "[a." * 500)
VALUE = re.compile(r"(?<== ).+")


class Input(NamedTuple):
    """The arguments of `Settings.load`."""

    text: bytes
    environment: dict[str, str]
    flags: dict[str, Any]


def inputs(random: Random) -> Iterator[Input]:
    """Yield inputs without end: a value of the file replaced, the file's text changed, or a variable or flag set."""
    defaults = {field.name: field.default for field in fields(Settings) if field.default is not MISSING}
    real = [f"{key} = {_literal(value)}" for key, value in defaults.items() if _literal(value)]
    keys = list(defaults)
    while True:
        text, environment, flags = _some(real, random), {}, {}
        match random.randrange(5):
            case 0 | 1:
                for _ in range(random.choice((1, 1, 3))):
                    found = random.choice(list(VALUE.finditer(text)))
                    text = text[: found.start()] + random.choice(LITERALS) + text[found.end() :]
            case 2:
                text = _mutated(text, random)
            case 3:
                environment = {f"REGROUP_{random.choice(keys).upper()}": random.choice(TEXTS)}
                environment |= {"REGROUP_BOOTSTRAP_SERVERS": random.choice(TEXTS)} if random.random() < 0.2 else {}
            case _:
                flags = {
                    "port": random.choice((-1, 0, 70_000, 10**30, None)),
                    "trigger_seconds": random.choice((float("nan"), float("inf"), -1.0, 0.5, None)),
                    "cluster": random.choice(("a", "b", "../x", "", "x" * 300, "\x1b", None)),
                    "bootstrap_servers": random.choice((*TEXTS, None)),
                }
        yield Input(text.encode("utf-8", "surrogateescape"), environment, flags)


def _some(real: list[str], random: Random) -> str:
    """Return a few top-level keys and one section, because a short file can be read more often."""
    return "\n".join(random.sample(real, 4)) + "\n" + random.choice(SECTIONS)


def _literal(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    return f'"{value}"' if isinstance(value, str | Path) else None


def _mutated(text: str, random: Random) -> str:
    at = random.randrange(len(text))
    piece = random.choice(
        (*STRANGE, "[clusters]\n", "[[clusters]]\n", "clusters = 5\n", "a = 1\n", "=", "\n", "[a." * 500)
    )
    match random.randrange(3):
        case 0:
            return text[:at] + piece + text[at:]
        case 1:
            return text[:at] + text[at + random.randint(1, 30) :]
        case _:
            return text[:at] + piece


def read(file: Path, each: Input) -> str:
    """Load the settings."""
    file.write_bytes(each.text)
    Settings.load(file, each.environment, each.flags)
    return "taken"


def fuzz_settings(count: int, random: Random) -> Findings:
    """Load `count` settings."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        return fuzzed(count, inputs(random), partial(read, Path(folder) / "regroup.toml"))
