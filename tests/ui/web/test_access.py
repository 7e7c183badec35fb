"""Who may read the pages, asked over HTTP of the application itself."""

from __future__ import annotations

import pytest

from dashboards.app import create_app, main
from dashboards.lake.lake import LocalLake
from dashboards.web.access import Access

TOKEN = "a-token-of-some-length"
HTML = {"Accept": "text/html"}


@pytest.fixture
def client(tmp_path):
    def made(**access):
        return create_app(LocalLake(tmp_path), access=Access.of(**access)).server.test_client()

    return made


def test_without_a_guard_the_pages_may_listen_on_this_machine_only() -> None:
    nobody = Access()
    assert None is nobody.refusal("127.0.0.1")
    assert None is nobody.refusal("::1")
    assert "pages_token" in nobody.refusal("0.0.0.0")
    assert "pages_token" in nobody.refusal("regroup.example")
    assert None is Access.of(token=TOKEN).refusal("0.0.0.0")


def test_the_command_refuses_an_open_address_with_a_sentence(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.delenv("REGROUP_PAGES_TOKEN", raising=False)
    assert 2 == main(["--warehouse", str(tmp_path), "--host", "0.0.0.0", "--port", "0"])
    assert "set pages_token" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8050", "10.1.2.3:8050", ""])
def test_another_name_for_this_machine_is_refused(client, host) -> None:
    response = client().get("/", headers={"Host": host})
    assert 403 == response.status_code
    assert "default-src 'self'" in response.headers["Content-Security-Policy"]


@pytest.mark.parametrize("host", ["localhost:8050", "127.0.0.1", "[::1]:8050"])
def test_this_machine_reads_without_a_guard(client, host) -> None:
    assert 200 == client().get("/", headers={"Host": host}).status_code


@pytest.mark.parametrize("path", ["/", "/group?group=x", "/_dash-layout", "/_dash-dependencies", "/nowhere"])
def test_without_the_token_nothing_is_reported(client, path) -> None:
    browser = client(token=TOKEN)
    assert 401 == browser.get(path).status_code
    assert 401 == browser.get(path, headers={"Authorization": "Bearer wrong"}).status_code
    assert 401 == browser.get(path, headers={"Cookie": "regroup=wrong"}).status_code
    assert 303 == browser.get(path, headers=HTML).status_code
    assert 401 == browser.post("/_dash-update-component", json={}).status_code
    assert 200 == browser.get("/healthz").status_code


def test_the_token_opens_the_pages_for_programs_and_browsers(client) -> None:
    browser = client(token=TOKEN)
    assert 200 == browser.get("/", headers={"Authorization": f"Bearer {TOKEN}"}).status_code
    asked = browser.get("/group?group=a%2Fb&from=1", headers=HTML)
    form = browser.get(asked.location)
    assert b"pages_token" in form.data
    assert 401 == browser.post(asked.location, data={"token": "wrong"}).status_code
    opened = browser.post(asked.location, data={"token": TOKEN})
    assert 303 == opened.status_code
    assert "/group?group=a%2Fb&from=1" == opened.location
    cookie = opened.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert TOKEN not in cookie
    assert 200 == browser.get("/").status_code


@pytest.mark.parametrize(
    "wanted", ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", "evil", "/a\nb"]
)
def test_logging_in_leads_to_no_other_site(client, wanted) -> None:
    opened = client(token=TOKEN).post("/login", query_string={"next": wanted}, data={"token": TOKEN})
    assert "/" == opened.location


def test_what_stands_in_the_address_is_no_markup_of_the_form(client) -> None:
    form = client(token=TOKEN).get("/login", query_string={"next": '/"><script>alert(1)</script>'})
    assert b"<script>" not in form.data


def test_behind_a_proxy_only_that_proxy_is_heard_and_it_must_say_who_asks(client) -> None:
    pages = client(proxies="10.0.0.0/8, 192.168.1.1/32")
    known = {"X-Forwarded-User": "ada"}
    for peer, headers, status in (
        ("10.3.4.5", known, 200),
        ("192.168.1.1", known, 200),
        ("10.3.4.5", {}, 401),
        ("10.3.4.5", {"X-Forwarded-User": " "}, 401),
        ("192.168.1.2", known, 403),
        ("127.0.0.1", known, 403),
    ):
        assert status == pages.get("/", headers=headers, environ_base={"REMOTE_ADDR": peer}).status_code, peer


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ({"token": "short"}, "at least 16 characters"),
        ({"token": TOKEN, "proxies": "10.0.0.0/8"}, "not both"),
        ({"proxies": "somewhere"}, "networks such as"),
    ],
)
def test_a_guard_that_makes_no_sense_is_refused_with_a_sentence(given, printed) -> None:
    with pytest.raises(ValueError, match=printed):
        Access.of(**given)


def test_the_token_is_not_in_what_python_prints() -> None:
    assert TOKEN not in repr(Access.of(token=TOKEN))


@pytest.mark.parametrize(
    ("address", "headers", "is_secure"),
    [
        ("", {}, False),
        ("http://regroup.example", {}, False),
        ("", {"X-Forwarded-Proto": "http"}, False),
        ("https://regroup.example", {}, True),
        ("HTTPS://regroup.example", {}, True),
        ("https://regroup.example", {"X-Forwarded-Proto": "http"}, True),
        ("", {"X-Forwarded-Proto": "https"}, True),
        ("", {"X-Forwarded-Proto": "https, http"}, True),
        ("", {"Forwarded": "for=10.0.0.1;proto=https;by=10.0.0.2"}, True),
    ],
)
def test_the_cookie_of_pages_behind_tls_is_secure(client, address, headers, is_secure) -> None:
    opened = client(token=TOKEN, address=address).post("/login", data={"token": TOKEN}, headers=headers)
    assert is_secure is ("; Secure" in opened.headers["Set-Cookie"])


def test_the_cookie_of_a_request_that_came_by_tls_is_secure(client) -> None:
    opened = client(token=TOKEN).post("/login", data={"token": TOKEN}, base_url="https://localhost")
    assert "; Secure" in opened.headers["Set-Cookie"]


BEHIND = {"proxies": "127.0.0.0/8", "hosts": "Regroup, 10.0.0.5", "address": "https://pages.example:8443/x"}


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("127.0.0.1:8050", 200), ("[::1]:8050", 200), ("regroup:8050", 200), ("REGROUP", 200),
        ("10.0.0.5", 200), ("pages.example", 200), ("pages.example:8443", 200),
        ("evil.example", 403), ("evil.example:8050", 403), ("10.1.2.3:8050", 403), ("pages.example.evil.example", 403),
        ("evil.pages.example", 403), ("127.0.0.1.evil.example", 403), ("127.0.0.1@evil.example", 403), ("", 403),
        ("evil.example#127.0.0.1", 403), ("evil.example/127.0.0.1", 403), ("[::1", 403), ("[", 403), ("::1", 403),
        ("evil.example\\@127.0.0.1", 403), ("*", 403), (" ", 403), ("pages.example:x", 403), ("pages.example,evil", 403),
    ],
)  # fmt: skip
def test_a_proxy_asks_for_the_pages_by_a_name_of_theirs(client, host, status) -> None:
    response = client(**BEHIND).get("/", headers={"Host": host, "X-Forwarded-User": "ada"})
    assert status == response.status_code
    assert (status == 403) == (b"pages_hosts" in response.data)


@pytest.mark.parametrize(
    ("host", "status"), [("10.1.2.3:8050", 200), ("[2001:db8::1]:8050", 200), ("evil.example", 403)]
)
def test_pages_that_listen_everywhere_go_by_every_address_and_by_no_name(client, host, status) -> None:
    response = client(proxies="127.0.0.0/8", hosts="0.0.0.0").get(
        "/", headers={"Host": host, "X-Forwarded-User": "ada"}
    )
    assert status == response.status_code


@pytest.mark.parametrize("host", ["[::1", "[", "127.0.0.1@evil.example", "evil.example\\@127.0.0.1", "a b", "\xff"])
def test_a_host_that_is_none_is_refused_and_no_error(client, host) -> None:
    assert 403 == client().get("/", environ_overrides={"HTTP_HOST": host}).status_code


@pytest.mark.parametrize("wanted", ["//[", "http://[", "/[", "//"])
def test_an_address_that_is_none_leads_home(client, wanted) -> None:
    assert 200 == client(token=TOKEN).get("/login", query_string={"next": wanted}).status_code


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ({"proxies": ","}, "names no network"),
        ({"proxies": " "}, "names no network"),
        ({"proxies": "10.0.0.0/8", "header": " "}, "identity_header is empty"),
        ({"hosts": "http://regroup.example"}, "names without port"),
        ({"hosts": "regroup.example:8050"}, "names without port"),
        ({"address": "https://[regroup"}, "no address"),
        ({"token": " " * 20}, "at least 16 characters"),
        ({"token": "env:A_TOKEN_OF_SOME_LENGTH"}, "not env:NAME"),
        ({"readers": 0}, "must be a table"),
    ],
)
def test_a_setting_that_would_guard_nothing_is_refused_with_a_sentence(given, printed) -> None:
    with pytest.raises(ValueError, match=printed):
        Access.of(**given)
