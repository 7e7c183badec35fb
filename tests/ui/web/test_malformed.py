"""A request that no page sends gets a sentence, whatever it is; and two readers never see each other's state."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from dashboards.app import create_app
from dashboards.lake.lake import LocalLake
from dashboards.web.requests import LARGEST, REFUSED, UPDATE
from testing import sample
from testing.fuzzing.callbacks import asked_of, post
from testing.fuzzing.requests import send

pytestmark = pytest.mark.slow


def test_malformed_bodies_are_refused_in_a_sentence_and_nothing_is_logged(tmp_path) -> None:
    responses, printed = post(tmp_path, count=2_000)
    assert set(responses.statuses) <= {200, 204, 400}
    assert responses.statuses[400] > 1_000
    assert responses.statuses[200] > 50
    assert ([], []) == (responses.leaks, printed)


def test_a_body_that_is_no_json_or_too_large_is_refused(tmp_path) -> None:
    client = create_app(LocalLake(tmp_path)).server.test_client()
    for data, status in ((b"", 400), (b"{", 400), (b"[" * 100_000, 400), (b"x" * (LARGEST + 1), 413)):
        response = client.post(UPDATE, data=data, content_type="application/json")
        assert status == response.status_code
        assert b"Traceback" not in response.data
    assert REFUSED.encode() == client.post(UPDATE, data=b"null", content_type="application/json").data


def test_readers_with_different_addresses_at_once_each_get_their_own_page(tmp_path, now) -> None:
    sample.write(tmp_path, sample.everyday(now))
    app = create_app(LocalLake(tmp_path), now=lambda: now)
    app.server.test_client().get("/_dash-dependencies")
    output = next(name for name in app.callback_map if name.startswith("..made.data"))
    names = ["billing-worker", "imports-joiner"]

    def page(turn: int) -> tuple[str, str]:
        name = names[turn % 2]
        values = {
            "pathname": "/group",
            "search": f"?cluster={sample.CLUSTER}&group={name}&from=all",
            "n_intervals": turn,
        }
        body = asked_of(output, app.callback_map[output], values)
        response = app.server.test_client().post(UPDATE, data=json.dumps(body), content_type="application/json")
        return name, response.get_data(as_text=True)

    with ThreadPoolExecutor(8) as pool:
        for name, text in pool.map(page, range(60)):
            other = next(each for each in names if each != name)
            assert name in text
            assert other not in text


def test_malformed_requests_are_refused_in_a_sentence_and_nothing_is_logged(tmp_path) -> None:
    responses, printed = send(tmp_path, count=1_000)
    assert set(responses.statuses) <= {200, 206, 400, 404, 405, 416}
    assert responses.statuses[400] > 10
    assert ([], []) == (responses.leaks, printed)
    assert responses.slowest_s < 2


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/rows?request=[", 400),
        ("/rows?request={", 400),
        ("/rows?request=" + "[" * 1_200, 400),
        ("/rows?request=" + "[" * 30 + "]" * 30, 400),
        ("/rows?request=" + quote('{"filterModel": {"group": {"filter": "\\ud800"}}}'), 400),
        ("/_dash-component-suites/nothing/x.js", 404),
        ("/_dash-component-suites/dash/nothing.js", 404),
        ("/_dash-component-suites/dash/dcc/async-mathjax.js.map", 404),
        ("/_dash-component-suites/dash/../../pyproject.toml", 404),
    ],
)
def test_what_is_not_there_or_makes_no_sense_is_refused_in_one_sentence(tmp_path, caplog, path, status) -> None:
    client = create_app(LocalLake(tmp_path)).server.test_client()
    client.get("/")
    response = client.get(path)
    assert status == response.status_code
    assert 1 == response.get_data(as_text=True).count("\n")
    assert "text/plain" == response.mimetype
    assert [] == caplog.records


def test_a_lone_surrogate_in_an_update_is_refused(tmp_path) -> None:
    client = create_app(LocalLake(tmp_path)).server.test_client()
    response = client.post(UPDATE, data=b'{"output": "\\ud800"}', content_type="application/json")
    assert 400 == response.status_code
