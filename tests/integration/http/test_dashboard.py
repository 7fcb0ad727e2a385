"""The dashboard in a real browser: Debian's Chromium, without a window."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.fresh import fresh
from tests.integration.http.served import Cluster, Served, until

pytestmark = [pytest.mark.peer("chromium"), pytest.mark.timeout(300)]

PATIENCE_MS = 60_000
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e\x07"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield running
        running.close()


class Watched:
    """A page, and everything that went wrong in it."""

    def __init__(self, browser: Browser, served: Served, **settings: object) -> None:
        self.page: Page = browser.new_page(**{"viewport": WIDE, **settings})  # type: ignore[arg-type]
        self.page.set_default_timeout(PATIENCE_MS)
        self.url = served.url
        self.wrong: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: self.wrong.append(f"dialog: {dialog.message}"))
        self.page.on("console", self._said)
        self.page.on("request", self._asked)

    def _said(self, message: object) -> None:
        if message.type == "error" and "status of 4" not in message.text:  # type: ignore[attr-defined]
            self.wrong.append(message.text)  # type: ignore[attr-defined]

    def _asked(self, request: object) -> None:
        if not request.url.startswith((self.url, "data:")):  # type: ignore[attr-defined]
            self.wrong.append(f"asked elsewhere: {request.url}")  # type: ignore[attr-defined]

    def go(self, where: str) -> Page:
        self.page.goto(f"{self.url}/#/{where}")
        return self.page


@pytest.fixture
def at(browser: Browser, served: Served) -> Iterator[Watched]:
    expect.set_options(timeout=PATIENCE_MS)
    watched = Watched(browser, served)
    yield watched
    watched.page.close()
    assert watched.wrong == []


def lag_shown(page: Page) -> int:
    text = page.locator(".tile", has_text="Lag").filter(has_text="records").locator(".value").inner_text()
    return int(text.replace(",", "")) if text != "–" else -1


def test_groups_are_listed_with_their_lag_and_found_by_name(at: Watched, cluster: Cluster) -> None:
    topic, group = cluster.create(fresh("t")), fresh("listed")
    cluster.write(topic, [b"x"] * 1234)
    cluster.commit(group, topic, {0: 0})
    page = at.go("groups")
    row = page.locator("tr", has=page.get_by_role("link", name=group, exact=True))
    expect(row).to_contain_text("1,234")
    page.get_by_label("Filter groups by name").fill("nothing begins so")
    expect(page.get_by_text("No group fits the filter.")).to_be_visible()
    page.get_by_label("Filter groups by name").fill(group)
    row.locator("td").first.click()
    expect(page).to_have_url(re.compile(f"#/groups/{group}$"))
    expect(page.get_by_role("heading", level=1)).to_contain_text(group)


def test_the_chart_follows_a_group_that_falls_behind_and_catches_up(at: Watched, cluster: Cluster) -> None:
    topic, group = cluster.create(fresh("t"), 2), fresh("chased")
    cluster.write(topic, [b"x"] * 10)
    cluster.commit(group, topic, {0: 10, 1: 0})
    page = at.go(f"groups/{group}")
    expect(page.locator(".uplot").first).to_be_visible()
    until(lambda: lag_shown(page) == 0, "it is at the end")
    cluster.write(topic, [b"x"] * 500)
    until(lambda: lag_shown(page) == 500, "it falls behind, and the page shows it by itself")
    cluster.commit(group, topic, {0: 510, 1: 0})
    until(lambda: lag_shown(page) == 0, "it catches up")
    course = page.evaluate(f"fetch('/consumer-groups/{group}/course').then((one) => one.json())")
    [lags] = [one["lag"] for one in course["partitions"] if one["partition"] == 0]
    assert max(one for one in lags if one is not None) == 500
    drawn = page.evaluate(
        "(() => { const c = document.querySelector('.uplot canvas');"
        "return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((one) => one !== 0); })()"
    )
    assert drawn


def test_offsets_are_moved_after_a_preview_and_brought_back(at: Watched, cluster: Cluster) -> None:
    topic, group = cluster.create(fresh("t")), fresh("moved")
    cluster.write(topic, [b"x"] * 100)
    cluster.commit(group, topic, {0: 40})
    page = at.go(f"groups/{group}")
    expect(page.locator(".scroll table").first).to_contain_text(topic)
    page.keyboard.press("r")
    dialog = page.locator("dialog")
    dialog.get_by_label("New position").fill("someday")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog).to_contain_text("is not a start position")
    expect(dialog.get_by_role("button", name="Move them")).to_be_disabled()
    dialog.get_by_role("button", name="earliest").click()
    expect(dialog.locator(".preview tbody tr")).to_have_count(1)
    expect(dialog.locator(".preview tbody tr")).to_contain_text("40")
    assert cluster.committed(group, topic) == [40]
    dialog.get_by_role("button", name="Move them").click()
    expect(page.locator(".notice")).to_contain_text("1 partition moved")
    assert cluster.committed(group, topic) == [0]
    page.locator(".notice").get_by_role("button", name="Undo").click()
    expect(page.locator(".notice").last).to_contain_text("Back where it was")
    assert cluster.committed(group, topic) == [40]


def test_a_group_with_members_is_not_moved(at: Watched, cluster: Cluster) -> None:
    topic, group = cluster.create(fresh("t")), fresh("busy")
    member = cluster.member(group, topic, **{"client.id": "reader-at-work"})
    try:
        page = at.go(f"groups/{group}")
        expect(page.get_by_text("reader-at-work").first).to_be_visible()
        expect(page.get_by_role("button", name="Delete…")).to_be_disabled()
        page.get_by_role("button", name="Move offsets…").click()
        page.locator("dialog").get_by_role("button", name="Preview").click()
        expect(page.locator("dialog")).to_contain_text("reader-at-work")
    finally:
        member.close()


def test_records_are_browsed_from_a_start_position(at: Watched, cluster: Cluster) -> None:
    topic = cluster.create(fresh("browsed"), 2)
    now_ms = int(time.time() * 1000)
    for place in range(6):
        cluster.write(
            topic, [b'{"n": %d}' % place], partition=place % 2, at_ms=now_ms - 60_000 + place, key=b"<i>k</i>"
        )
    page = at.go(f"topics/{topic}")
    expect(page.get_by_role("heading", level=1)).to_contain_text(topic)
    page.get_by_label("Start position").fill("-2")
    page.get_by_role("button", name="Look").click()
    rows = page.locator(".records tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text('{"n": 2}')
    expect(rows.first).to_contain_text("<i>k</i>")
    page.get_by_label("Start position").fill("rubbish")
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".panel .failure")).to_contain_text("is not a start position")


def test_names_full_of_markup_and_control_characters_are_shown_as_text(at: Watched, cluster: Cluster) -> None:
    topic = cluster.create(fresh("t"))
    group = f"{fresh('odd')}{HOSTILE}"
    cluster.commit(group, topic, {0: 0})
    cluster.write(topic, [f"<script>alert(1)</script>{HOSTILE}".encode()], headers=[("<b>", b"<u>")])
    page = at.go("groups")
    link = page.get_by_role("link", name=group.split("<", maxsplit=1)[0])
    expect(link).to_contain_text("<img src=x onerror=alert(1)>␛[31m\\u202e␇")
    link.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("<img src=x onerror=alert(1)>")
    at.go(f"topics/{topic}")
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".records tbody tr").first).to_contain_text("<script>alert(1)</script>")
    assert page.locator("main img, main script, main b.x, main u").count() == 0


@pytest.mark.only_against("lowwater")
def test_the_broker_shows_its_counters(at: Watched) -> None:
    page = at.go("broker")
    expect(page.locator(".scroll table").first).to_contain_text("ApiVersions")
    expect(page.locator(".tile", has_text="Offline partitions").locator(".value")).to_have_text("0")


def test_it_is_dark_for_who_likes_it_and_fits_a_telephone(browser: Browser, served: Served, cluster: Cluster) -> None:
    topic, group = cluster.create(fresh("t")), fresh("narrow")
    cluster.commit(group, topic, {0: 0})
    expect.set_options(timeout=PATIENCE_MS)
    watched = Watched(browser, served, viewport=NARROW, color_scheme="dark")
    page = watched.go(f"groups/{group}")
    expect(page.locator(".scroll table").first).to_contain_text(topic)
    red, green, blue = map(
        int, re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[:3]
    )
    assert red + green + blue < 150
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    page.get_by_label("Light or dark").click()
    red, green, blue = map(
        int, re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[:3]
    )
    assert red + green + blue > 600
    page.close()
    assert watched.wrong == []


def test_the_keyboard_is_enough(at: Watched) -> None:
    page = at.go("groups")
    expect(page.get_by_role("heading", level=1)).to_have_text("Consumer groups")
    page.keyboard.press("t")
    expect(page.get_by_role("heading", level=1)).to_have_text("Topics")
    page.keyboard.press("/")
    expect(page.get_by_label("Filter topics by name")).to_be_focused()
    page.get_by_label("Filter topics by name").blur()
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_contain_text("this help")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    page.keyboard.press("b")
    expect(page.get_by_role("heading", level=1)).to_have_text("Broker")
