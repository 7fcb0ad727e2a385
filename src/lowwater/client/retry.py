"""Trying again what may succeed later: with growing waits, within a time, and saying so when it was all in vain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from lowwater.client.config import ClientConfig
from lowwater.client.driver import Driver, backoff_ms, sleep
from lowwater.client.errors import ClientError

T = TypeVar("T")


class Retry:
    """The waits are those of retry.backoff.ms; the time is default.api.timeout.ms unless a call says another."""

    def __init__(self, config: ClientConfig, driver: Driver) -> None:
        self._driver = driver
        self._first_ms = config.int("retry.backoff.ms")
        self._most_ms = config.int("retry.backoff.max.ms")
        self._timeout_ms = config.int("default.api.timeout.ms")

    async def run(self, attempt: Callable[[float], Awaitable[T]], timeout_ms: float | None = None) -> T:
        """Call `attempt` with the time left in ms until it succeeds, fails for good, or the time is over."""
        limit_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        began_ms = self._driver.monotonic_ms()
        tries = 0
        while True:
            tries += 1
            left_ms = limit_ms - (self._driver.monotonic_ms() - began_ms)
            try:
                return await attempt(max(left_ms, 1))
            except ClientError as error:
                wait_ms = self.wait_ms(tries)
                elapsed_ms = self._driver.monotonic_ms() - began_ms
                if not error.retriable or elapsed_ms + wait_ms >= limit_ms:
                    raise error.after(tries, elapsed_ms) from error.__cause__
            await sleep(self._driver, wait_ms)

    def wait_ms(self, tries: int) -> float:
        """How long to wait after so many tries that failed."""
        return backoff_ms(self._first_ms, self._most_ms, tries, self._driver.ids)
