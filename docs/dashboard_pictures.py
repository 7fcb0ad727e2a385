"""Take the pictures of the dashboard anew: `python docs/dashboard_pictures.py`. Needs confluent-kafka and Chromium."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic
from playwright.sync_api import Browser, Page, sync_playwright

OUT = Path(__file__).parent / "pictures"
WIDE, NARROW = {"width": 1200, "height": 820}, {"width": 390, "height": 820}
TOPICS = {"orders": 4, "payments": 2, "shipments": 3}
BEHIND = {"billing": (10, 0, 300, 5), "fraud-check": (0, 0, 0, 0), "search-index": (120, 80, 90, 110)}
STORY_S = 50


def fill(bootstrap: str) -> None:
    """An hour of orders, and groups that stopped somewhere in it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, count, 1) for name, count in TOPICS.items()]).values():
        future.result()
    producer = Producer({"bootstrap.servers": bootstrap})
    now_ms = int(time.time() * 1000)
    for place in range(3000):
        value = f'{{"order": {place}, "customer": "c{place % 97}", "amount": {place * 1.1:.2f}}}'
        at_ms = now_ms - (3000 - place) * 1200
        producer.produce("orders", value, f"c{place % 97}", place % 4, timestamp=at_ms, headers=[("source", b"web")])
    producer.flush()
    for group, lags in BEHIND.items():
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        offsets = [Place("orders", partition, 750 - lag) for partition, lag in enumerate(lags)]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()


def live(bootstrap: str, over: threading.Event) -> None:
    """A group that falls behind for a while, then catches up."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "shipping",
            "client.id": "shipper-1",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
        }
    )
    consumer.subscribe(["shipments"])
    began, sent = time.monotonic(), 0
    while not over.is_set():
        for _ in range(30):
            producer.produce("shipments", b"parcel", partition=(0, 0, 0, 1, 1, 2)[sent % 6])
            sent += 1
        producer.poll(0)
        slow = time.monotonic() - began < STORY_S * 0.55
        consumer.consume(num_messages=6 if slow else 120, timeout=0.1)
        over.wait(0.05)
    producer.flush()
    consumer.close()


def take(browser: Browser, url: str) -> None:
    page = _page(browser, url, "groups", WIDE)
    time.sleep(STORY_S)
    _shoot(page, "groups")
    page = _page(browser, url, "groups/shipping", {"width": 1200, "height": 960})
    page.wait_for_selector(".uplot canvas")
    _shoot(page, "group")
    page = _page(browser, url, "groups/billing", WIDE)
    page.keyboard.press("r")
    page.locator("dialog").get_by_role("button", name="-1h").click()
    page.wait_for_selector(".preview table")
    _shoot(page, "reset")
    page = _page(browser, url, "topics/orders", WIDE)
    page.get_by_role("button", name="Look").click()
    page.wait_for_selector(".records table")
    _shoot(page, "topic")
    _shoot(_page(browser, url, "groups/shipping", WIDE, color_scheme="dark"), "dark")
    _shoot(_page(browser, url, "groups", NARROW), "narrow")


def _page(browser: Browser, url: str, where: str, size: dict[str, int], **settings: str) -> Page:
    page = browser.new_page(viewport=size, **settings)  # type: ignore[arg-type]
    page.goto(f"{url}/#/{where}")
    page.wait_for_selector(".scroll table")
    return page


def _shoot(page: Page, name: str) -> None:
    page.wait_for_timeout(1500)
    page.screenshot(path=OUT / f"{name}.png")


def main() -> None:
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        command = [sys.executable, "-m", "lowwater.cli.main", "broker", "--port", "0", "--http-port", "0"]
        broker = subprocess.Popen([*command, "--data-dir", folder], stdout=subprocess.PIPE, text=True)
        assert broker.stdout is not None
        line = broker.stdout.readline()
        found = re.search(r"kafka=(\S+) http=(\S+)", line)
        assert found is not None, line
        over = threading.Event()
        fill(found[1])
        living = threading.Thread(target=live, args=(found[1], over))
        living.start()
        try:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            take(browser, found[2])
        finally:
            over.set()
            living.join()
            broker.terminate()
            broker.wait()


if __name__ == "__main__":
    main()
