"""What no page sends is answered with a sentence, whatever it is; and two readers never see each other's state."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from bench.malformed import asked_of, post
from dashboards.app import create_app
from dashboards.lake import LocalLake
from dashboards.requests import LARGEST, REFUSED, UPDATE
from tests.ui import sample


def test_malformed_bodies_are_refused_in_a_sentence_and_nothing_is_logged(tmp_path) -> None:
    answers, said = post(tmp_path, count=2_000)
    assert set(answers.statuses) <= {200, 204, 400}
    assert answers.statuses[400] > 1_000
    assert answers.statuses[200] > 50
    assert ([], []) == (answers.told_too_much, said)


def test_a_body_that_is_no_json_or_too_large_is_refused(tmp_path) -> None:
    client = create_app(LocalLake(tmp_path)).server.test_client()
    for data, status in ((b"", 400), (b"{", 400), (b"[" * 100_000, 400), (b"x" * (LARGEST + 1), 413)):
        answer = client.post(UPDATE, data=data, content_type="application/json")
        assert status == answer.status_code
        assert b"Traceback" not in answer.data
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
        answer = app.server.test_client().post(UPDATE, data=json.dumps(body), content_type="application/json")
        return name, answer.get_data(as_text=True)

    with ThreadPoolExecutor(8) as pool:
        for name, text in pool.map(page, range(60)):
            other = next(each for each in names if each != name)
            assert name in text
            assert other not in text
