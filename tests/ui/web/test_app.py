"""The application as its users see it: headers, states and the command."""

from __future__ import annotations

import json
import subprocess
import sys
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from dash import no_update

from dashboards.app import create_app, page
from dashboards.lake.lake import LakeError, LocalLake
from dashboards.pages.fleet import block
from dashboards.queries.store import Store
from dashboards.urlstate import parse
from testing import sample
from tests.ui.reading import words


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/group?group=x", "/_dash-layout", "/assets/regroup.css", "/nowhere"]
)
def test_every_answer_carries_the_security_headers(address, path):
    with urlopen(address + path) as response:
        policy = response.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "script-src 'self' 'sha256-" in policy
    assert "nosniff" == response.headers["X-Content-Type-Options"]
    assert "no-referrer" == response.headers["Referrer-Policy"]
    assert "waitress" not in str(response.headers).lower()


def test_health_is_one_word(address):
    assert b"ok\n" == urlopen(address + "/healthz").read()


def test_nothing_outside_the_assets_is_handed_out(address):
    for path in ("/assets/../app.py", "/assets/%2e%2e/app.py", "/assets/..%2fapp.py"):
        try:
            body = urlopen(address + path).read()
        except HTTPError as error:
            with error:
                body = error.read()
        assert b"create_app" not in body


def test_the_page_loads_nothing_from_another_host(tmp_path, lake):
    index = create_app(lake(tmp_path)).index()
    assert "http://" not in index
    assert "https://" not in index


@pytest.mark.parametrize("path", ["/", "/group", "/rebalance"])
def test_a_missing_warehouse_is_a_state_and_no_error(tmp_path, now, path, lake):
    made, _, fresh = page(Store(lake(tmp_path / "absent")), path, "?group=a&generation=1", None, now)
    assert "Nothing here yet" in words(made)
    assert "no data yet" == words(fresh)


def test_a_group_of_a_cluster_that_is_not_observed_is_not_rebalancing_now(tmp_path, now, lake):
    theirs = sample.stuck(now - 3_600_000)
    for rows in theirs.values():
        for row in rows:
            row["cluster"] = "far"
    sample.write(tmp_path, sample.merge({}, sample.static(now), theirs))
    shown = words(page(Store(lake(tmp_path)), "/", "?from=all", None, now)[0])
    assert "Rebalancing now | 0 | as of" in shown
    assert "; 1 more when last seen" in shown


def test_empty_says_which_of_the_three_kinds(tmp_path, now, lake):
    old = now - 30 * 86_400_000
    sample.write(tmp_path, sample.static(old))
    store = Store(lake(tmp_path))
    assert "Nothing matches the filter" in words(page(store, "/", "?q=zzz&from=all", None, now)[0])
    later = words(page(store, "/", "?from=now-1h", None, now)[0])
    assert "Not observed in this range" in later
    assert "Nothing happened" not in later
    later = f"?cluster=prod-eu&group=pricing-static&from={old - 1_800_000}&to={old}"
    assert "Nothing happened" in words(page(store, "/group", later, None, now)[0])


@pytest.mark.parametrize("path", ["/", "/?q=pricing", "/group?cluster=prod-eu&group=pricing-static"])
def test_a_range_before_the_first_record_is_not_called_quiet(tmp_path, now, path, lake):
    sample.write(tmp_path, sample.static(now))
    store = Store(lake(tmp_path))
    first, (path, _, search) = store.span().first_at, path.partition("?")
    made, _, _ = page(store, path, f"?{search}&from={first - 3_600_000}&to={first}", None, now)
    shown = words(made)
    assert "Not observed in this range" in shown
    for claimed in ("Nothing happened", "Nothing matches", "Rebalances | 0"):
        assert claimed not in shown


def test_a_group_whose_state_is_not_known_is_never_called_quiet(tmp_path, now, lake):
    sample.write(tmp_path, sample.unknown(now))
    store = Store(lake(tmp_path))
    (row,) = block(store, parse("/", ""), {}, now)["rowData"]
    assert ("not observed", "not observed", None, None) == (
        row["state"],
        row["lost_text"],
        row["lost"],
        row["rebalances"],
    )
    described = words(page(store, "/group", "?cluster=prod-eu&group=stock-loader-next", None, now)[0])
    assert "whether it rebalanced is not known" in described
    assert "Nothing happened" not in described
    assert "No rebalance" not in described


def test_a_range_that_was_not_read_is_not_called_quiet(tmp_path, now, lake):
    rows = sample.static(now - 7_200_000)
    (one,) = sample.coverage(now)["coverage"]
    of = one | {"source_partition": rows["generations"][0]["source_partition"]}
    spans = [(now - 9_000_000, now - 3_600_000), (None, None), (now - 600_000, now)]
    rows["coverage"] = [
        of | {"from_offset": at, "to_offset": at + 1, "from_at": first, "to_at": last,
              "is_gap": first is None, "gap_reason": None if first else "deleted"}
        for at, (first, last) in enumerate(spans)
    ]  # fmt: skip
    sample.write(tmp_path, rows)

    def shown(first: int, last: int) -> str:
        search = f"?cluster=prod-eu&group=pricing-static&from={now - first}&to={now - last}"
        return words(page(Store(lake(tmp_path)), "/group", search, None, now)[0])

    unread, partly, read = shown(3_000_000, 1_000_000), shown(3_000_000, 1), shown(500_000, 1)
    assert "Not observed in this range" in unread
    assert "Whether it rebalanced in this range is not known." in unread
    assert "did not rebalance in the part of this range that was read" in partly
    assert "No rebalance in the part of this range that was read." in partly
    assert "Nothing happened" not in unread + partly
    assert "Nothing happened" in read


def test_old_data_is_shown_whole_by_default_and_called_old(tmp_path, now, lake):
    sample.write(tmp_path, sample.static(now - 30 * 86_400_000))
    made, _, fresh = page(Store(lake(tmp_path)), "/", "", None, now)
    assert "1 rebalance in 1 group" in words(made)
    assert "Newest record is 30 d old" in words(fresh)


def test_the_page_stays_while_nothing_changed_and_is_made_anew_when_a_table_has(tmp_path, now, lake):
    import json

    sample.write(tmp_path, sample.static(now))
    store = Store(lake(tmp_path, fresh_seconds=0))
    _, made_from, _ = page(store, "/", "", None, now)
    seen = json.loads(json.dumps(made_from))
    assert "_dash_no_update" in str(page(store, "/", "", seen, now)[0].to_plotly_json())
    sample.write(tmp_path, sample.nightly(now))
    assert "2 groups" in words(page(store, "/", "", seen, now)[0])


@pytest.mark.parametrize("path", ["/search?q=a", "/rows?request={}"])
def test_who_asks_for_what_cannot_be_read_learns_why_without_a_traceback(tmp_path, path) -> None:
    class Asleep(LocalLake):
        def versions(self):
            raise LakeError("The SQL warehouse is stopped: start it.")

        def query(self, *_, **__):
            raise LakeError("The SQL warehouse is stopped: start it.")

    response = create_app(Asleep(tmp_path)).server.test_client().get(path, base_url="http://127.0.0.1")
    assert (503, "The SQL warehouse is stopped: start it.\n") == (response.status_code, response.text)


def test_a_failure_is_one_sentence_without_its_cause(tmp_path, now, caplog):
    class Broken(LocalLake):
        def query(self, *_):
            raise ValueError("secret path")

    sample.write(tmp_path, sample.static(now))
    made, seen, _ = page(Store(Broken(tmp_path)), "/", "", None, now)
    assert "Something went wrong" in words(made)
    assert "secret" not in words(made)
    assert seen is None
    assert "secret path" in caplog.text


def test_a_taken_port_is_one_sentence(address, tmp_path):
    port = address.rpartition(":")[2]
    done = subprocess.run(
        [sys.executable, "-m", "dashboards.app", "--warehouse", str(tmp_path), "--port", port],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert 2 == done.returncode
    assert done.stderr.startswith(
        f"The pages cannot listen on 127.0.0.1:{port} (Address already in use): choose another"
    )
    assert 1 == len(done.stderr.splitlines())


def test_a_page_without_a_range_stays_while_the_clock_goes_on(warehouse, now, lake):
    store = Store(lake(warehouse))
    for search, path in (
        ("", "/advice"),
        ("?cluster=prod-eu&group=billing-worker&incarnation=0&generation=5", "/rebalance"),
    ):
        shown, made_from, _ = page(store, path, search, None, now)
        assert shown is not no_update
        assert page(store, path, search, json.loads(json.dumps(made_from)), now + 3_600_000)[0] is no_update


def test_what_a_cluster_did_after_its_own_newest_record_is_not_known_whatever_was_read_of_others(tmp_path, now, lake):
    old = now - 10 * 3_600_000
    ours, theirs = sample.static(now), sample.static(old)
    for rows in theirs.values():
        for row in rows:
            row["cluster"] = "far"
    sample.write(tmp_path, sample.merge({}, ours, theirs))
    store = Store(lake(tmp_path))
    assert {"prod-eu", "far"} == set(store.span().until)
    assert store.span("far").last_at <= old < store.span("prod-eu").last_at
    made, _, fresh = page(store, "/group", "?cluster=far&group=pricing-static&from=now-1h", None, now)
    assert "Not observed in this range" in words(made)
    assert "Newest record of far is 10 h" in words(fresh)
    assert "Newest record of far" in words(page(store, "/", "", None, now)[2]), "the one that is furthest behind"
    assert "live" in words(page(store, "/group", "?cluster=prod-eu&group=pricing-static", None, now)[2])
