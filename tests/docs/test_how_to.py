"""The how-to pages: settings that load, commands that exist, configurations that Alertmanager and the parser take."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest
from ruamel.yaml import YAML

from jobs.command_line.parser import parser
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.kafka.logs.log_files import FileLine
from jobs.pages import access
from jobs.ship_logs import envelope
from pipelines.coordinator_events import ParsedEvent
from pipelines.line_reading import read_line
from pipelines.log_envelopes import unwrap
from pipelines.log_layouts import layout, zone
from schemas.states import AlertName
from testing.alerts.receiving import program

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
HOW_TO = sorted((DOCS / "how-to").glob("*.md"))
PAGES = [*HOW_TO, *sorted(DOCS.glob("for-*.md")), DOCS / "tutorial.md", DOCS / "evidence.md"]
SECTIONS = ("**Goal:**", "**Before you start:**", "ow to see that it", "hat can go wrong")
EXAMPLE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"\./regroup ([a-z][^\n`|&;]*)")
FILLED_IN = {"GROUP": "orders", "FOLDER": "folder", "TIME": "12:03", "NAME": "name", "ID": "id"}


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def examples(page: str, language: str) -> list[str]:
    """The examples of a how-to page in this language, without the indentation of the step they belong to."""
    found = EXAMPLE.findall(text(DOCS / "how-to" / f"{page}.md"))
    return [dedent(body) for _, of, body in found if of == language]


def named(pages: list[Path]) -> list[tuple[Path, str]]:
    return [(page, command.strip()) for page in pages for command in COMMAND.findall(text(page))]


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_a_page_has_goal_start_steps_sign_of_success_and_what_can_go_wrong(page) -> None:
    found = [text(page).find(section) for section in SECTIONS]
    assert found == sorted(found)
    assert -1 not in found
    assert re.search(r"^1\. ", text(page), re.MULTILINE)


@pytest.mark.parametrize(("page", "command"), named(PAGES), ids=lambda value: getattr(value, "stem", value))
def test_every_command_exists_with_its_options(page, command) -> None:
    words = [FILLED_IN.get(word, word) for word in shlex.split(command.partition("  #")[0].partition(" >")[0])]
    assert parser().parse_args(words).command == words[0], page


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_the_settings_load(page, tmp_path) -> None:
    for number, example in enumerate(examples(page.stem, "toml")):
        file = tmp_path / f"{number}.toml"
        file.write_text(example, encoding="utf-8")
        Settings.load(file, environment={})


def test_the_guards_of_the_examples_let_the_pages_start(tmp_path) -> None:
    token, file = tmp_path / "pages-token", tmp_path / "regroup.toml"
    token.write_text("0" * 48, encoding="utf-8")
    with_token, with_proxy = examples("share-with-a-team", "toml")
    file.write_text(with_token.replace("/etc/regroup/pages-token", str(token)), encoding="utf-8")
    assert access(Settings.load(file, environment={})).token == "0" * 48
    file.write_text(with_proxy, encoding="utf-8")
    found = access(Settings.load(file, environment={}))
    assert found.proxies
    assert found.readers
    file.write_text('host = "0.0.0.0"', encoding="utf-8")
    with pytest.raises(UserError, match="pages_token"):
        access(Settings.load(file, environment={}))


def test_the_permissions_are_the_needed_ones_of_the_security_page() -> None:
    needed = re.findall(r"^\| (\w+) \| `([^`]+)` \| (\w+) \| needed \|$", text(DOCS / "security.md"), re.MULTILINE)
    page = text(DOCS / "how-to" / "connect-a-secured-cluster.md")
    granted = re.findall(r"--operation (\w+) --(topic|group) (\S+)", page)
    assert len(needed) == 3
    assert needed == [(kind.upper(), name, operation.upper()) for operation, kind, name in granted]


def test_alertmanager_takes_the_configuration_and_routes_by_severity(tmp_path) -> None:
    (example,) = examples("alert-to-slack-and-pagerduty", "yaml")
    file = tmp_path / "alertmanager.yml"
    file.write_text(example, encoding="utf-8")
    subprocess.run([program("amtool"), "check-config", file], check=True, capture_output=True)
    route = [program("amtool"), "config", "routes", "test", f"--config.file={file}", "alertname=KafkaRebalanceStorm"]
    for severity, receiver in (("page", "pagerduty"), ("ticket", "slack")):
        done = subprocess.run([*route, f"severity={severity}"], check=True, capture_output=True, text=True)
        assert receiver == done.stdout.strip()


def test_the_example_inhibits_what_the_configuration_of_the_repository_inhibits() -> None:
    (example,) = examples("alert-to-slack-and-pagerduty", "yaml")
    matcher, kept = stale_alerts(example).split(" ", 2)[1:]
    assert matcher == "!~"
    inhibited = {alert.value for alert in AlertName} - set(re.findall(r"\bKafka\w+", kept))
    assert inhibited == set(re.findall(r"\bKafka\w+", stale_alerts(text(ROOT / "deploy" / "alertmanager.yml"))))


def stale_alerts(config: str) -> str:
    """The matcher of alerts that are inhibited while Regroup does not see the cluster."""
    rules = YAML(typ="safe").load(config)["inhibit_rules"]
    (rule,) = (rule for rule in rules if "KafkaRebalanceTelemetryStale" in str(rule["source_matchers"]))
    (matcher,) = rule["target_matchers"]
    return str(matcher)


LINE = (
    "[2026-11-21 06:41:02,803] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=6] Stabilized group pay "
    "generation 7 with 3 members. (org.apache.kafka.coordinator.group.GroupMetadataManager)"
)
DOCKER = json.dumps({"log": f"{LINE}\n", "stream": "stdout", "time": "2026-11-21T06:41:02.81Z"})
SENT = {
    "vector": json.dumps({"message": LINE}),
    "fluent bit": json.dumps({"@timestamp": 1795243263.1, "stream": "stdout", "_p": "F", "log": LINE}),
    "journal": LINE,
    "docker": json.dumps(envelope(FileLine("file", 1, DOCKER), 1)),
    "shown": examples("ship-logs", "json")[0],
}


@pytest.mark.parametrize("message", SENT.values(), ids=SENT)
def test_a_line_is_read_in_whatever_a_shipper_of_the_page_sends(message) -> None:
    (found,) = unwrap(message.encode())
    event = read_line(found.line, layout(found.layout or "default"), zone(found.zone or "UTC"))
    assert isinstance(event, ParsedEvent)
    assert (event.group_id, event.generation_id) == ("pay", 7)


def test_the_shippers_send_to_the_events_topic_of_the_example() -> None:
    (settings,) = (tomllib.loads(example) for example in examples("ship-logs", "toml"))
    topic = settings["clusters"]["prod"]["events_topic"]
    vector, fluent = (YAML(typ="safe").load(example) for example in examples("ship-logs", "yaml"))
    assert topic == vector["sinks"]["regroup"]["topic"] == fluent["pipeline"]["outputs"][0]["topics"]
    assert f"--topic {topic}" in examples("ship-logs", "ini")[0]
