"""An alert stays until its condition is over, is sent once too often rather than once too rarely, and ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelines.gold.alerts.alert import Alert
from pipelines.gold.alerts.incidents import GIVEN_UP_MS, RESOLVED_FOR_MS, after_sending, is_due, updated_alerts
from pipelines.gold.alerts.messages import identity, labels
from pipelines.gold.alerts.rules import AlertEvaluation
from schemas.gold import ALERTS
from schemas.states import AlertName, AlertSeverity, Evidence
from testing.alerts.rows import CLUSTER, HOUR, MINUTE, NOW

NAME = AlertName.AVAILABILITY_BURN


def alert(subject: str = "orders", started: int = NOW - MINUTE, severity: str = "page", **described) -> Alert:
    texts = {"summary": "summary", "description": "description", "evidence": Evidence.BOUNDED}
    known = {"name": NAME, "cluster": CLUSTER, "subject": subject, "severity": AlertSeverity(severity)}
    return Alert(started_ms=started, **known, **texts | described)


def after(rows, *alerts: Alert, now: int = NOW, unknown=()) -> list[dict]:
    return updated_alerts(
        rows, [AlertEvaluation(cluster=CLUSTER, alerts=alerts, unknown=frozenset(unknown))], now, lambda a: a.subject
    )


def test_a_row_has_every_column_of_the_table():
    (row,) = after([], alert())
    assert set(ALERTS.names) == set(row)


def test_what_goes_on_keeps_its_start_and_its_link():
    (row,) = after([], alert())
    (on,) = after([row | {"sent_to": ["am"]}], alert(started=NOW, summary="worse"), now=NOW + MINUTE)
    assert (NOW - MINUTE, NOW, ["am"], "worse") == (on["started_at"], on["raised_at"], on["sent_to"], on["summary"])


def test_what_no_longer_holds_is_resolved_and_has_to_be_sent():
    (row,) = after([], alert())
    (over,) = after([row | {"sent_to": ["am"]}], now=NOW + MINUTE)
    assert (NOW + MINUTE, []) == (over["resolved_at"], over["sent_to"])
    assert [over] == after([over], now=NOW + HOUR), "once"


def test_what_nobody_can_say_stays_raised():
    rows = after([], alert())
    assert rows == after(rows, now=NOW + HOUR, unknown=[NAME])
    assert rows == updated_alerts(
        rows, [AlertEvaluation(cluster="other", alerts=(), unknown=frozenset())], NOW + HOUR, str
    )


def test_what_holds_again_since_the_same_instant_is_the_same_incident():
    rows = after([], alert())
    (again,) = after(after(rows, now=NOW + MINUTE), alert(), now=NOW + HOUR)
    assert (None, NOW) == (again["resolved_at"], again["raised_at"])
    assert 2 == len(after(after(rows, now=NOW + MINUTE), alert(started=NOW + MINUTE), now=NOW + HOUR)), "else another"


def test_a_ticket_that_becomes_a_page_is_reported_and_a_page_stays_one():
    (ticket,) = after([], alert(severity="ticket"))
    (page,) = after([ticket | {"sent_to": ["am"]}], alert(severity="page"))
    assert ("page", []) == (page["severity"], page["sent_to"])
    (still,) = after([page | {"sent_to": ["am"]}], alert(severity="ticket"))
    assert ("page", ["am"]) == (still["severity"], still["sent_to"])


def test_a_receiver_is_alerted_again_at_its_time_and_what_is_resolved_for_five_minutes():
    row = after([], alert())[0] | {"sent_to": ["am"], "last_sent_at": NOW}
    assert not is_due(row, "am", NOW + 59_000, MINUTE)
    assert is_due(row, "am", NOW + 60_000, MINUTE)
    assert not is_due(row, "am", NOW + HOUR, None), "a webhook has each state once"
    over = row | {"resolved_at": NOW}
    assert is_due(over, "am", NOW + RESOLVED_FOR_MS, MINUTE)
    assert not is_due(over, "am", NOW + RESOLVED_FOR_MS + 1, MINUTE)


def test_a_receiver_that_was_away_gets_what_is_long_resolved():
    over = after([], alert())[0] | {"resolved_at": NOW}
    assert is_due(over, "am", NOW + GIVEN_UP_MS, MINUTE)
    assert not is_due(over, "am", NOW + GIVEN_UP_MS + 1, MINUTE)


def test_who_fails_is_due_at_once_and_says_why():
    row = after([], alert())[0] | {"sent_to": ["a", "b"], "last_sent_at": NOW}
    sent = after_sending(row, {"a": None, "b": "connection refused"}, NOW + MINUTE)
    assert (["a"], NOW + MINUTE, "b: connection refused") == (sent["sent_to"], sent["last_sent_at"], sent["last_error"])
    assert is_due(sent, "b", NOW + MINUTE, MINUTE)
    assert after_sending(sent, {"b": None}, NOW + HOUR)["last_error"] is None


def test_every_state_has_an_identity_of_its_own_and_labels_that_stay():
    (row,) = after([], alert())
    states = [row, row | {"severity": "ticket"}, row | {"resolved_at": NOW}, row | {"started_at": NOW}]
    assert len({identity(state) for state in states}) == len(states)
    assert identity(row) == identity(row | {"last_sent_at": NOW, "summary": "worse"})
    assert {"alertname": NAME, "cluster": CLUSTER, "severity": "page", "group": "orders"} == labels(row)
    fleet = row | {"alert_name": "KafkaRebalanceStorm", "subject": ""}
    assert "fleet" == labels(fleet)["subject"]


@given(st.lists(st.tuples(st.sampled_from(["hold", "cease", "unknown"]), st.booleans()), max_size=12))
def test_whatever_fails_in_between_everybody_knows_the_last_state_in_the_end(course):
    rows, heard = [], None
    now = NOW
    for what, is_away in [*course, ("cease", False)]:
        now += 10_000
        holding = [alert()] if what == "hold" else []
        rows = after(rows, *holding, now=now, unknown=[NAME] if what == "unknown" else [])
        for n, row in enumerate(rows):
            if is_due(row, "am", now, MINUTE):
                heard = heard if is_away else row["resolved_at"] is None
                rows[n] = after_sending(row, {"am": "away" if is_away else None}, now)
    assert heard in (None, False)
    assert len(rows) <= 1
