"""Pages name client libraries with their evidence, and say nothing where nothing is known."""

from __future__ import annotations

from dashboards.app import page
from dashboards.lake.lake import LocalLake
from dashboards.queries.store import Store
from dashboards.text import ABSENT
from dashboards.views.clients.libraries import libraries_sentence, library
from testing import sample
from tests.ui.reading import words


def of(name: str | None, evidence: str | None, members: int = 1) -> dict:
    return {"client_library": name, "client_library_evidence": evidence, "members": members}


def test_a_library_is_named_with_its_evidence() -> None:
    assert "franz-go, observed" == library(of("franz-go", "observed"))
    assert "unknown" == library(of("unknown", None))
    assert ABSENT == library({}) == library(of(None, None))


def test_a_group_of_unknown_members_gets_no_sentence() -> None:
    assert "" == libraries_sentence([]) == libraries_sentence([of(None, None), of("unknown", None, 3)])
    several = [of("java", "inferred", 2), of("unknown", None), of(None, None)]
    assert " Client libraries: java, inferred (2 members); unknown (1 member)." == libraries_sentence(several)


def test_the_pages_of_a_group_and_of_a_rebalance_name_the_library(tmp_path, now) -> None:
    sample.write(tmp_path, sample.everyday(now))
    store = Store(LocalLake(tmp_path))
    of_group = f"?cluster={sample.CLUSTER}&group=billing-worker&from=all"
    assert "Client libraries: librdkafka, inferred" in words(page(store, "/group", of_group, None, now)[0])
    of_rebalance = f"{of_group}&incarnation=0&generation=5"
    assert "librdkafka, inferred" in words(page(store, "/rebalance", of_rebalance, None, now)[0])
