"""Members of groups as scripts: generators that yield requests and are sent the replies, thousands at a time.

def script() -> Script:
    reply = yield group_frames.heartbeat("g", 1, "m")
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from bench import group_frames
from bench.connection import ANSWER_TIMEOUT_S, BrokerError, connect, exchange

Script = Generator[bytes, bytes, None]

NOT_AVAILABLE, LOADING, NOT_COORDINATOR = 15, 14, 16
REBALANCE_IN_PROGRESS = 27
MEMBER_ID_REQUIRED = 79
ASSIGNMENT = bytes(40)
METADATA = (bytes(24) + b"a", bytes(24) + b"b")


def await_coordinator(port: int, group: str = "bench") -> None:
    """Return when groups are served; Kafka makes its internal topic when first asked."""
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), contextlib.closing(connect(port)) as connection:
            found = group_frames.error_of(exchange(connection, group_frames.find_coordinator(group)))
            answer = group_frames.error_of(exchange(connection, group_frames.heartbeat(group, 1, "nobody")))
            if not found and answer not in (NOT_AVAILABLE, LOADING, NOT_COORDINATOR):
                return
        time.sleep(0.02)
    raise TimeoutError("there is no group coordinator")


@dataclass(slots=True)
class Membership:
    """A member and the generation it is in; `script` methods are parts of scripts."""

    group: str
    member_id: str = ""
    generation: int = -1
    members: list[str] = field(default_factory=list)
    is_leader: bool = False

    def enter(self, metadata: bytes = METADATA[0]) -> Script:
        """Join and sync until the group is stable with this member in it."""
        while True:
            yield from self.join(metadata)
            given = dict.fromkeys(self.members, ASSIGNMENT) if self.is_leader else {}
            error = group_frames.error_of((yield self.sync(given)))
            if not error:
                return
            if error != REBALANCE_IN_PROGRESS:
                raise BrokerError(f"Sync answered error {error}")

    def join(self, metadata: bytes = METADATA[0]) -> Script:
        while True:
            joined = group_frames.joined((yield group_frames.join(self.group, self.member_id, metadata)))
            self.member_id = joined.member_id
            if joined.error == MEMBER_ID_REQUIRED:
                continue
            if joined.error:
                raise BrokerError(f"Join answered error {joined.error}")
            self.generation, self.members = joined.generation, joined.members
            self.is_leader = joined.leader == joined.member_id
            return

    def sync(self, assignments: dict[str, bytes]) -> bytes:
        return group_frames.sync(self.group, self.generation, self.member_id, assignments)

    def heartbeat(self) -> bytes:
        return group_frames.heartbeat(self.group, self.generation, self.member_id)

    def stay(self, goes_on: Callable[[], bool], metadata: bytes = METADATA[0]) -> Script:
        """Beat, and enter again when the group rebalances."""
        while goes_on():
            error = group_frames.error_of((yield self.heartbeat()))
            if error == REBALANCE_IN_PROGRESS:
                yield from self.enter(metadata)
            elif error:
                raise BrokerError(f"Heartbeat answered error {error}")


class Crowd:
    """Connections that each play one script after the other."""

    def __init__(self, connections: Sequence[socket.socket]) -> None:
        self._connections = connections

    def play(self, scripts: Sequence[Script]) -> float:
        """Play a script on each connection, further ones as connections get free; return the seconds it took."""
        waiting = list(reversed(scripts))
        poll = select.epoll()
        playing: dict[int, _Player] = {}
        started = time.perf_counter()
        for connection in self._connections:
            if waiting:
                poll.register(connection.fileno(), select.EPOLLIN)
                playing[connection.fileno()] = _Player(connection, waiting.pop())
        while playing:
            ready = poll.poll(ANSWER_TIMEOUT_S)
            if not ready:
                raise TimeoutError(f"no reply for {ANSWER_TIMEOUT_S} s to {len(playing)} members")
            for handle, _ in ready:
                if playing[handle].receive():
                    continue
                if waiting:
                    playing[handle] = _Player(playing[handle].connection, waiting.pop())
                else:
                    poll.unregister(handle)
                    del playing[handle]
        poll.close()
        return time.perf_counter() - started


class _Player:
    def __init__(self, connection: socket.socket, script: Script) -> None:
        self.connection = connection
        self._script = script
        self._received = b""
        connection.sendall(next(script))

    def receive(self) -> bool:
        """Take what has arrived; false when the script has ended."""
        data = self.connection.recv(1 << 18)
        if not data:
            raise ConnectionError("the broker closed the connection of a member")
        self._received += data
        if len(self._received) < 4:
            return True
        (size,) = struct.unpack_from(">i", self._received)
        if len(self._received) < 4 + size:
            return True
        reply, self._received = self._received[8 : 4 + size], self._received[4 + size :]
        try:
            self.connection.sendall(self._script.send(reply))
        except StopIteration:
            return False
        return True
