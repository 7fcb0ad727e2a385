"""A member of a group as a test sees it: it is told what to do, and what happened to it is waited for."""

from __future__ import annotations

import itertools
import json
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import IO, Any

from peers import processes
from tests.conformance.clients.base import ClientError

from lowwater.errors import ErrorCode

Place = tuple[str, int]
TIMEOUT_S = 40
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Joining:
    """How a member joins. Without an assignor one of the consumer protocol leaves the choice to the broker."""

    group: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assignor: str | None = "range"
    instance: str | None = None
    session_timeout_ms: int = 15_000
    heartbeat_ms: int = 200
    rebalance_timeout_ms: int = 30_000
    auto_commit_ms: int | None = None
    reset: str = "earliest"
    metadata_age_ms: int = 500


@dataclass(frozen=True, slots=True)
class Event:
    """`what` is assigned, revoked, lost, polled, noted (an error that passes) or failed (one that does not)."""

    what: str
    places: frozenset[Place] = frozenset()
    code: int = 0
    detail: str = ""


class Member:
    """Its events, in order; what it owns and what it has read follow from them. `news` guards and tells all of it."""

    def __init__(self, name: str, news: threading.Condition, host: Host) -> None:
        self.name = name
        self.news = news
        self.host = host
        self.events: list[Event] = []
        self.owned: set[Place] = set()
        self.read: defaultdict[Place, list[int]] = defaultdict(list)
        self.ended = False
        self._answers: dict[int, dict[str, Any]] = {}

    # ---- what a test asks of it

    def join(self, bootstrap: str, protocol: str, how: Joining) -> None:
        """Start to join; the outcome comes as events."""
        settings = {**asdict(how), "bootstrap": bootstrap, "protocol": protocol, "client_id": self.name}
        self.ask("join", how=settings)

    def commit(self, *offsets: tuple[str, int, int]) -> None:
        """These offsets, or all positions; ClientError when the broker refuses."""
        self.ask("commit", offsets=list(offsets) or None)

    def committed(self, *places: Place) -> list[int | None]:
        found: list[int | None] = self.ask("committed", places=list(places))
        return found

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.ask("seek", topic=topic, partition=partition, offset=offset)

    def hold(self) -> None:
        """Poll no more, until `go_on`."""
        self.ask("hold")

    def go_on(self) -> None:
        self.ask("go_on")

    def close(self) -> None:
        """Leave as the library leaves: a static member's place is kept."""
        self.ask("close")
        with self.news:
            self._ends()

    def kill(self) -> None:
        """kill -9 of its process: the broker is told nothing."""
        self.host.kill()

    # ---- what a test looks at, holding `news`

    def seen(self, what: str) -> list[Event]:
        return [event for event in self.events if event.what == what]

    def rebalances(self) -> list[Event]:
        return [event for event in self.events if event.what in ("assigned", "revoked", "lost")]

    def failures(self) -> list[ErrorCode]:
        return [ErrorCode(event.code) for event in self.seen("failed")]

    # ---- what its host tells

    def ask(self, call: str, **arguments: Any) -> Any:
        number = next(_numbers)
        self.host.send({"id": number, "member": self.name, "call": call, **arguments})
        with self.news:
            answered = self.news.wait_for(lambda: number in self._answers or self.ended, TIMEOUT_S)
            if number not in self._answers:
                raise TimeoutError(f"{self.name} did not answer {call} ({answered=}):\n{self.story()}")
            answer = self._answers.pop(number)
        if "error" in answer:
            raise ClientError(answer["error"], answer["detail"])
        return answer["result"]

    def hear(self, line: dict[str, Any]) -> None:
        with self.news:
            if "answer" in line:
                self._answers[line["answer"]] = line
            else:
                self._note(line)
            self.news.notify_all()

    def host_ended(self) -> None:
        with self.news:
            self._ends()
            self.news.notify_all()

    def _ends(self) -> None:
        self.ended = True
        self.owned = set()

    def _note(self, line: dict[str, Any]) -> None:
        places = frozenset((topic, partition) for topic, partition in line.get("places", ()))
        if line["event"] == "polled":
            place = (line["topic"], line["partition"])
            self.read[place] += line["offsets"]
            places = frozenset({place})
        elif line["event"] == "assigned":
            self.owned |= places
        elif line["event"] in ("revoked", "lost"):
            self.owned -= places
        self.events.append(Event(line["event"], places, line.get("code", 0), str(line.get("detail", ""))))

    def story(self) -> str:
        """Its last events, and what its library wrote to stderr."""
        told = [f"  {each.what} {sorted(each.places)} {each.code or ''} {each.detail}" for each in self.events[-12:]]
        return "\n".join([f"{self.name}: owns {sorted(self.owned)}", *told, *self.host.complaints()])


@dataclass(slots=True)
class Host:
    """A process that runs members; a thread hands out what it says."""

    command: list[str]
    environment: dict[str, str]
    is_shared: bool = False
    members: dict[str, Member] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    stderr: IO[bytes] | None = None
    writing: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> Host:
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self.process = processes.start(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            env=self.environment,
        )
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def send(self, line: dict[str, Any]) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        with self.writing:
            self.process.stdin.write(json.dumps(line).encode() + b"\n")
            self.process.stdin.flush()

    def _listen(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        for text in self.process.stdout:
            line = json.loads(text)
            member = line.get("member") or next(iter(self.members))
            self.members[member].hear(line)
        for each in list(self.members.values()):
            each.host_ended()

    def kill(self) -> None:
        assert self.process is not None
        processes.kill_group(self.process)

    def complaints(self) -> list[str]:
        if self.stderr is None or self.stderr.closed:
            return []
        self.stderr.seek(0)
        return self.stderr.read().decode(errors="replace").splitlines()[-5:]


def within(news: threading.Condition, condition: Callable[[], bool], timeout_s: float) -> bool:
    """Whether `condition` came true in time; it is looked at whenever a member has news."""
    deadline = time.monotonic() + timeout_s
    with news:
        return news.wait_for(condition, deadline - time.monotonic())
