"""What `lowwater cat` does when a log was cut off behind its back."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.fetched import P0

from lowwater.cli.cat.asked import Looks, Where
from lowwater.cli.cat.layout import parse_layout
from lowwater.cli.cat.talk import CatError, Talk
from lowwater.cli.cat.tap import Tap
from lowwater.client.fetching.events import Fetched, Truncated


class Sought:
    """A fetcher that notes where it is to read on."""

    def __init__(self) -> None:
        self.seeks: list[Any] = []

    def seek(self, one: Any, offset: int) -> None:
        self.seeks.append((one, offset))

    def remove(self, _: Any) -> None:
        pass


def tap_of(fetcher: Any) -> Tap:
    return Tap(None, fetcher, Where(), Looks(parse_layout(rb"%s\n")), Talk())  # type: ignore[arg-type]


def cut_off(*, goes_on: bool) -> list[Fetched]:
    return [Fetched([], [], [Truncated(P0, 10, 20, goes_on)], lambda: None)]


def test_reading_goes_on_where_the_log_is_another_one(capsys: pytest.CaptureFixture[str]) -> None:
    fetcher = Sought()
    tap = tap_of(fetcher)
    tap.pour(cut_off(goes_on=True))
    tap.settle()
    assert fetcher.seeks == [(P0, 10)]
    assert "offsets 10 to 19 are gone, reading goes on at 10" in capsys.readouterr().err


def test_it_is_an_error_where_nothing_says_how_to_go_on() -> None:
    with pytest.raises(CatError, match=r"cars \[0\]: the log was truncated, offsets 10 to 19 are gone"):
        tap_of(Sought()).pour(cut_off(goes_on=False))
