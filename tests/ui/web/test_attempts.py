"""Guessing the token is slow, and keeps nobody out who knows it; no thread waits, and memory is bounded."""

from __future__ import annotations

import pytest

from dashboards.app import create_app
from dashboards.lake.lake import LocalLake
from dashboards.web.access import Access
from dashboards.web.attempts import KEPT, LIMITS, Attempts

TOKEN = "a-token-of-some-length"
BURST = LIMITS["client"].burst


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def attempts(clock) -> Attempts:
    return Attempts(clock)


def wrong() -> bool:
    return False


def right() -> bool:
    return True


def looked_at(attempts, tries: int, peer="10.0.0.1", client="") -> int:
    return sum(attempts.judge(peer, client, wrong).wait_s == 0 for _ in range(tries))


def test_after_a_few_wrong_tokens_none_is_looked_at_until_time_has_passed(attempts, clock) -> None:
    assert BURST == looked_at(attempts, 1_000)
    verdict = attempts.judge("10.0.0.1", "", right)
    assert (False, 5) == (verdict.is_right, verdict.wait_s)
    clock.now += verdict.wait_s
    assert attempts.judge("10.0.0.1", "", right).is_right
    clock.now += 3_600
    assert BURST + 720 >= looked_at(attempts, 1_000)


def test_whoever_knows_the_token_is_never_slowed_however_often_it_is_sent(attempts) -> None:
    assert all(attempts.judge("10.0.0.1", "", right).is_right for _ in range(1_000))


def test_invented_clients_do_not_add_up_to_more_than_their_peer_may(attempts) -> None:
    seen = sum(attempts.judge("10.0.0.1", f"client-{n}", wrong).wait_s == 0 for n in range(3 * KEPT))
    assert LIMITS["peer"].burst == seen


def test_many_addresses_do_not_add_up_to_more_than_all_may(attempts) -> None:
    seen = sum(attempts.judge(f"10.{n >> 8}.{n & 255}.1", "", wrong).wait_s == 0 for n in range(3 * KEPT))
    assert LIMITS["all"].burst == seen
    assert KEPT >= len(attempts._allowances)


def test_addresses_of_one_ipv6_network_are_one(attempts) -> None:
    seen = sum(attempts.judge(f"2001:db8::{n:x}", "", wrong).wait_s == 0 for n in range(1, 500))
    assert BURST == seen


def test_a_client_behind_the_same_proxy_is_not_kept_out_by_one_who_guesses(attempts) -> None:
    looked_at(attempts, 1_000, client="203.0.113.7")
    assert attempts.judge("10.0.0.1", "198.51.100.1", right).is_right


def test_who_once_knew_the_token_gets_in_while_everybody_else_guesses(attempts) -> None:
    assert attempts.judge("192.168.0.9", "", right).is_right
    for n in range(3 * KEPT):
        attempts.judge(f"10.{n >> 8}.{n & 255}.1", "", wrong)
    assert not attempts.judge("192.168.0.10", "", right).is_right
    assert attempts.judge("192.168.0.9", "", right).is_right


@pytest.fixture
def client(tmp_path):
    return create_app(LocalLake(tmp_path), access=Access.of(token=TOKEN)).server.test_client()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_guesses_are_answered_429_by_whichever_way_they_come(client) -> None:
    for n in range(BURST):
        response = (
            client.post("/login", data={"token": f"guess-{n}"}) if n % 2 else client.get("/", headers=bearer(f"{n}"))
        )
        assert 401 == response.status_code
    for response in (client.post("/login", data={"token": TOKEN}), client.get("/", headers=bearer(TOKEN))):
        assert 429 == response.status_code
        assert 1 <= int(response.headers["Retry-After"]) <= 5
        assert "Set-Cookie" not in response.headers


def test_whoever_has_a_cookie_reads_on_while_the_same_address_guesses(client, tmp_path) -> None:
    client.post("/login", data={"token": TOKEN})
    other = client.application.test_client()
    for n in range(50):
        other.post("/login", data={"token": f"guess-{n}"})
    assert 429 == other.post("/login", data={"token": TOKEN}).status_code
    assert 200 == client.get("/").status_code


def test_a_cookie_cannot_be_made_from_the_token(tmp_path) -> None:
    cookies = set()
    for _ in range(2):
        app = create_app(LocalLake(tmp_path), access=Access.of(token=TOKEN)).server.test_client()
        cookies.add(app.post("/login", data={"token": TOKEN}).headers["Set-Cookie"].partition(";")[0])
    assert 2 == len(cookies)


def test_an_old_cookie_that_a_page_sends_again_and_again_costs_no_attempt(client) -> None:
    for _ in range(100):
        assert 401 == client.get("/", headers={"Cookie": "regroup=of-last-week"}).status_code
    assert 303 == client.post("/login", data={"token": TOKEN}).status_code


@pytest.mark.parametrize("token", ["\xff" * 20, "ü" * 20, "\x00", "x" * 10_000])
def test_odd_tokens_are_wrong_and_nothing_else(client, token) -> None:
    assert 401 == client.post("/login", data={"token": token}).status_code
    assert 401 == client.get("/", environ_overrides={"HTTP_AUTHORIZATION": f"Bearer {token}"}).status_code
