"""Waking a flow that waits for more than one thing."""

from __future__ import annotations

from lowwater.client.driver import Driver
from lowwater.pending import Pending


class Bell:
    """For one listener, who looks first and then listens; a ring that nobody listens to is over. Who rings goes on."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._is_rung = False
        self._listener: Pending[None] | None = None

    def ring(self) -> None:
        if not self._is_rung:
            self._is_rung = True
            self._driver.call_soon(self._wake)

    def heard(self) -> Pending[None]:
        """Done at the next ring."""
        listener = self._listener = Pending()
        return listener

    def _wake(self) -> None:
        self._is_rung = False
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.resolve(None)
