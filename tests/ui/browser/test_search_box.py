"""The search box: groups are found by keyboard and mouse, and untrusted text stays text."""

from __future__ import annotations

from testing import sample
from testing.serving import serving
from tests.ui.web.test_search import HOSTILE


def test_a_browser_finds_a_group_by_keyboard_alone(watched):
    page = watched.open("/?from=now-6h")
    page.keyboard.press("/")
    page.keyboard.type("worker")
    page.wait_for_selector("#suggestions [role=option]")
    box = page.locator("#search input[type=search]")
    assert ("combobox", "true") == (box.get_attribute("role"), box.get_attribute("aria-expanded"))
    page.keyboard.press("ArrowDown")
    chosen = page.locator("#suggestions [aria-selected=true]")
    assert box.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    assert "billing-worker" in chosen.inner_text()
    page.keyboard.press("Escape")
    assert "false" == box.get_attribute("aria-expanded")
    assert "worker" == box.input_value()
    page.keyboard.type("s")
    page.keyboard.press("Backspace")
    page.wait_for_selector("#suggestions [role=option]")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/group?from=now-6h&cluster=prod-eu&group=billing-worker")
    page.wait_for_selector("h1:text-is('billing-worker')")


def test_enter_without_a_choice_lists_the_groups_that_contain_it(watched):
    page = watched.open("/")
    page.locator("#search input[type=search]").fill("billing")
    page.wait_for_selector("#suggestions [role=option]")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=billing*")


def test_a_browser_shows_strangers_ids_as_text_and_follows_them_with_the_mouse(tmp_path, window, now):
    sample.write(tmp_path, sample.hostile(now, HOSTILE))
    with serving(tmp_path) as address, window.page(address) as watched:
        page = watched.open("/")
        page.locator("#search input[type=search]").fill("<img")
        option = page.locator("#suggestions [role=option]").first
        assert "<img src=x onerror=alert(1)>" in option.inner_text()
        assert 0 == page.locator("#suggestions img").count()
        option.click()
        page.wait_for_selector("h1:text-is('<img src=x onerror=alert(1)>')")


def test_a_host_leads_to_the_groups_of_its_members(watched):
    page = watched.open("/")
    page.locator("#search input[type=search]").fill("10.0.4.11")
    option = page.locator("#suggestions [role=option]").first
    option.wait_for()
    assert option.inner_text().startswith("host /10.0.4.11")
    option.click()
    page.wait_for_selector("#page .crumbs")
