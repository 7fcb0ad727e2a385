"""`lowwater groups watch`."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from typing import TYPE_CHECKING

import click

from lowwater.cli.connecting import Connected, Connection, connection_options
from lowwater.cli.groups.choosing import complete_groups, named
from lowwater.cli.groups.lagging import IMPATIENCE, span_of
from lowwater.cli.output import console_of
from lowwater.errors import LowwaterError

if TYPE_CHECKING:
    from lowwater.lag.report import Report

_KEY_BYTES_MAX = 64
_LAST_LOOK_S = 1.0


@click.command("watch")
@click.argument("groups", metavar="[GROUP]…", nargs=-1, shell_complete=complete_groups)
@click.option("--every", "every_ms", metavar="DURATION", callback=span_of, default="2s", show_default=True,
              help="How often to look.")  # fmt: skip
@click.option("--allowed", metavar="RECORDS", type=click.IntRange(0), default=0, show_default=True,
              help="A lag of so many records is well.")  # fmt: skip
@connection_options
def command(groups: tuple[str, ...], every_ms: int, allowed: int, connection: Connection) -> None:
    """Watch the lag of groups in a terminal, until q is pressed.

    Keys: q quits; g, l, t and s sort by group, lag, time lag and status, r turns that round; p shows partitions; the
    arrow keys scroll. The longer it looks, the more it knows: rates, and whether lag shrinks.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("there is no terminal; `lowwater groups lag --watch-for 30s` needs none")
    with connection.open(IMPATIENCE) as connected:
        names = named(connected, groups) if groups else None
        with _Looking(connected, names, every_ms, allowed) as looking:
            _show(looking)


class _Looking:
    """Looks at the groups in a thread of its own, and rings when there is news."""

    def __init__(self, connected: Connected, names: list[str] | None, every_ms: int, allowed: int) -> None:
        self._connected = connected
        self._names = names
        self._every_s = max(every_ms, 100) / 1000
        self._allowed = allowed
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lowwater-watch", daemon=True)
        self.bell, self._ringer = os.pipe()
        self.report: Report | None = None
        self.trouble = ""

    def __enter__(self) -> _Looking:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(_LAST_LOOK_S)
        if self._thread.is_alive():
            return  # a look that hangs is not waited for; it may still ring, and ends with the program
        os.close(self.bell)
        os.close(self._ringer)

    def _run(self) -> None:
        from lowwater.lag.collecting import Observer
        from lowwater.lag.history import History
        from lowwater.lag.judging import judge

        observer, history = Observer(self._connected.cluster), History()
        while not self._is_over.is_set():
            try:
                observation = self._connected.run(observer.observe(self._names))
                history.take(observation)
                self.report, self.trouble = judge(observation, history, allowed=self._allowed), ""
            except Exception as error:  # whatever it is, a view that stands still without a word is worse
                self.trouble = _failure(error)
            os.write(self._ringer, b"!")
            self._is_over.wait(self._every_s)


def _failure(error: Exception) -> str:
    """What went wrong with a look, in a line."""
    if isinstance(error, LowwaterError):
        return str(error)
    return f"looking failed: {type(error).__name__}: {error}"


def _show(looking: _Looking) -> None:
    """Draws until a key says that it is enough."""
    import shutil
    import termios
    import tty

    from rich.live import Live

    from lowwater.cli.groups.watch_view import QUIT, View, rendered

    terminal, view = sys.stdin.fileno(), View()
    before = termios.tcgetattr(terminal)
    resized, resizer = os.pipe()
    os.set_blocking(resizer, False)
    old_wakeup = signal.set_wakeup_fd(resizer, warn_on_full_buffer=False)
    old_handler = signal.signal(signal.SIGWINCH, lambda *_: None)  # the wakeup is all that is needed
    try:
        tty.setcbreak(terminal)
        with Live(console=console_of(0), screen=True, auto_refresh=False) as live:
            while True:
                size = shutil.get_terminal_size()
                live.console.size = (size.columns, size.lines)
                live.update(rendered(view, looking.report, looking.trouble, *size), refresh=True)
                ready, _, _ = select.select([terminal, looking.bell, resized], [], [])
                for each in ready:
                    pressed = os.read(each, _KEY_BYTES_MAX)
                    if each == terminal:
                        keys = _keys(pressed.decode("utf-8", "replace"))
                        if not pressed or QUIT.intersection(keys):
                            return
                        for key in keys:
                            view = view.pressed(key)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, old_handler)
        signal.set_wakeup_fd(old_wakeup)
        os.close(resized)
        os.close(resizer)


def _keys(typed: str) -> list[str]:
    """Arrow keys come as several characters that begin with an escape."""
    keys: list[str] = []
    while typed:
        length = 1
        if typed.startswith("\x1b["):
            length = next((at + 1 for at, one in enumerate(typed) if at > 1 and (one.isalpha() or one == "~")), 2)
        keys.append(typed[:length])
        typed = typed[length:]
    return keys
