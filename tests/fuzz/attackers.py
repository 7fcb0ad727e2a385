"""Many hostile connections at once, in a process of their own. Prints what happened as one line of JSON.

Every attack ends its side after its bytes, so that the broker has to end the connection too, whatever it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from dataclasses import asdict, dataclass, field

from tests.conformance.raw import Wire
from tests.fuzz import plausible
from tests.fuzz.attacks import attack

from lowwater.wire.messages import MetadataRequest
from lowwater.wire.messages.metadata import MetadataRequestTopic

END_TIMEOUT_S = 60.0
SLOWEST_KEPT = 5
PIECE = 256 * 1024


@dataclass
class Damage:
    """What the attackers saw: `hung` must stay empty, `refused` too."""

    attacks: int = 0
    sent_bytes: int = 0
    answered_bytes: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    left_parked: int = 0
    hung: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    slowest: list[tuple[float, int, str]] = field(default_factory=list)


class Attackers:
    """`width` connections at a time; numbers are given out in order."""

    def __init__(self, port: int, seed: int, first: int, count: int, seconds: float, frame_limit: int) -> None:
        self._port = port
        self._seed = seed
        self._numbers = iter(range(first, first + count))
        self._until = time.monotonic() + seconds
        self._frame_limit = frame_limit
        self.damage = Damage()

    async def run(self, width: int) -> Damage:
        await asyncio.gather(*(self._attack_on() for _ in range(width)))
        return self.damage

    async def _attack_on(self) -> None:
        for number in self._numbers:
            if time.monotonic() > self._until or self.damage.refused:
                return
            await self._attack(number)

    async def _attack(self, number: int) -> None:
        one = attack(self._seed, number, self._frame_limit)
        payload = one.payload()
        began = time.monotonic()
        self.damage.attacks += 1
        self.damage.kinds[one.name] = self.damage.kinds.get(one.name, 0) + 1
        self.damage.sent_bytes += len(payload)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            self.damage.refused.append(number)
            return
        try:
            await asyncio.wait_for(self._exchange(reader, writer, payload), 2.0 if one.may_park() else END_TIMEOUT_S)
        except TimeoutError:
            if one.may_park():
                self.damage.left_parked += 1
            else:
                self.damage.hung.append(number)
        finally:
            writer.transport.abort()
        self._note_time(time.monotonic() - began, number, one.name)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, payload: bytes) -> None:
        """Send all, end, and read until the broker ends too."""
        with contextlib.suppress(OSError):  # the broker may end it at any time
            await asyncio.gather(self._send(writer, payload), self._receive(reader))

    async def _send(self, writer: asyncio.StreamWriter, payload: bytes) -> None:
        for at in range(0, len(payload), PIECE):
            writer.write(payload[at : at + PIECE])
            await writer.drain()
        writer.write_eof()

    async def _receive(self, reader: asyncio.StreamReader) -> None:
        while piece := await reader.read(PIECE):
            self.damage.answered_bytes += len(piece)

    def _note_time(self, seconds: float, number: int, name: str) -> None:
        slowest = self.damage.slowest
        slowest.append((round(seconds, 3), number, name))
        slowest.sort(reverse=True)
        del slowest[SLOWEST_KEPT:]


def _learn_topic_ids(port: int) -> None:
    with Wire(("127.0.0.1", port)) as wire:
        asked = [MetadataRequestTopic(name=name) for name in plausible.TOPICS]
        answer = wire.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False))
    plausible.topic_ids[:] = [topic.topic_id for topic in answer.topics]


def main() -> None:
    port, seed, first, count, width, frame_limit = map(int, sys.argv[1:7])
    _learn_topic_ids(port)
    attackers = Attackers(port, seed, first, count, float(sys.argv[7]), frame_limit)
    damage = asyncio.run(attackers.run(width))
    print(json.dumps(asdict(damage)))


if __name__ == "__main__":
    main()
