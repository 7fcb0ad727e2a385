"""One client connection: bytes to frames, frames to the router, replies back in request order.

Small frames are served straight from a receive buffer shared by all connections of the loop; only the rest of an
unfinished frame is kept per connection, so an idle connection holds no buffer. A large frame is received in place, into
a buffer that grows with the bytes that arrived, never with what a length claims.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, cast

from lowwater.broker.router import Peer, Reply, Router, Waits
from lowwater.errors import WireError
from lowwater.types import Buffer

if TYPE_CHECKING:
    from lowwater.server.listener import Listener

logger = logging.getLogger(__name__)

_SIZE = Struct(">i")
SCRATCH_BYTES = 128 * 1024
FRAME_BYTES_START = 4 * 1024
JOIN_BYTES_MAX = 64 * 1024
FRAME_BYTES_KEPT = 4 * 1024 * 1024
PENDING_REPLIES_MAX = 1024


class Connection(asyncio.BufferedProtocol):
    """Parsing stops while a request is parked, too many replies are pending, or the peer does not read."""

    def __init__(self, listener: Listener, router: Router, scratch: memoryview) -> None:
        self._listener = listener
        self._router = router
        self._scratch = scratch
        self._traffic = listener.traffic
        self._frame_bytes_max = listener.frame_bytes_max
        self._unparsed_bytes_max = listener.unparsed_bytes_max
        self._held_bytes_max = listener.write_bytes_high
        self._rest = bytearray()  # received, not parsed: a broken length, or frames behind a parked request
        self._frame = bytearray()  # an unfinished frame is received here; reused from frame to frame
        self._have = 0  # of that frame, length prefix included
        self._need = 0  # 0: no unfinished frame
        self._replies: deque[Reply | Waits] = deque()  # in the order of requests, from the first that waits on
        self._out: list[Buffer] = []
        self._held_bytes = 0  # of replies that are ready and not yet written
        self._parked: Waits | None = None
        self._write_paused = False
        self._reading_paused = False
        self._flush_due = False
        self._parsing = False
        self._was_active = True  # since the listener last looked
        self._unsent_bytes = 0
        self.idle_since_ms = 0.0
        self.transport: asyncio.Transport | None = None
        self.peer = Peer("", "")

    # ---- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        address = transport.get_extra_info("peername")
        self.peer = Peer(address[0] if address else "", self._listener.name)
        self.idle_since_ms = self._listener.now_ms()
        self.transport.set_write_buffer_limits(high=self._listener.write_bytes_high)
        self._listener.connected(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        for reply in self._replies:
            if isinstance(reply, Waits):
                reply.abandon()
        self._replies.clear()
        self._out.clear()
        self._rest = bytearray()
        self._frame = bytearray()
        self._listener.disconnected(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._need:
            return memoryview(self._frame)[self._have : self._need]
        return self._scratch

    def buffer_updated(self, received: int) -> None:
        self._traffic.bytes_in += received
        if self._need:
            self._have += received
            self._continue_frame()
        elif self._rest or self._blocked():
            self._rest += self._scratch[:received]
            if self._blocked():
                self._limit_unparsed()
            else:
                self._parse(memoryview(self._rest))
        else:
            self._parse(self._scratch[:received])

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        self._proceed()

    def release_buffers(self) -> None:
        """Give memory back while the connection is idle."""
        if not self._need and self._frame:
            self._frame = bytearray()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close without waiting for the peer to read what was written."""
        if self.transport is not None:
            self.transport.abort()

    def take_activity(self) -> bool:
        """Whether a request came or an answer went, in part or whole, since the last call."""
        unsent = 0 if self.transport is None else self.transport.get_write_buffer_size()
        active = self._was_active or unsent != self._unsent_bytes
        self._was_active, self._unsent_bytes = False, unsent
        return active

    # ---- bytes to frames

    def _blocked(self) -> bool:
        return (
            self._parked is not None
            or self._write_paused
            or len(self._replies) >= PENDING_REPLIES_MAX
            or self._held_bytes >= self._held_bytes_max
        )

    def _parse(self, data: memoryview) -> None:
        """Serve the whole frames in `data`; keep what is left."""
        if self._rest:
            self._rest = bytearray()
        at, end = 0, len(data)
        self._parsing = True
        try:
            while end - at >= 4:
                if self._held_bytes >= self._held_bytes_max:
                    self._flush()  # a few bytes can ask for many
                    if self._write_paused:
                        break
                if self._replies and self._blocked():
                    break
                (size,) = _SIZE.unpack_from(data, at)
                if not 0 <= size <= self._frame_bytes_max:
                    raise WireError(f"a frame of {size} bytes; the limit is {self._frame_bytes_max}")
                behind = at + 4 + size
                if behind > end:
                    self._begin_frame(data[at:], size + 4)
                    at = end
                    break
                self._serve(data[at + 4 : behind])
                at = behind
        except Exception as error:
            self.fail(error)
            return
        self._parsing = False
        if at < end:
            self._rest = bytearray(data[at:])
            self._limit_unparsed()
        self._flush()

    def _begin_frame(self, first: memoryview, need: int) -> None:
        if len(self._frame) <= len(first):
            self._frame = bytearray(min(need, max(FRAME_BYTES_START, 2 * len(first))))
        self._frame[: len(first)] = first
        self._have, self._need = len(first), need

    def _continue_frame(self) -> None:
        if self._have < self._need:
            if self._have == len(self._frame):
                grown = bytearray(min(self._need, 2 * len(self._frame)))
                grown[: self._have] = self._frame
                self._frame = grown
            return
        if self._blocked():
            self._pause_reading()
            return
        need, self._need = self._need, 0
        self._parse(memoryview(self._frame)[:need])
        if len(self._frame) > FRAME_BYTES_KEPT:
            self._frame = bytearray()

    def _limit_unparsed(self) -> None:
        if len(self._rest) > self._unparsed_bytes_max:
            self._pause_reading()

    def _pause_reading(self) -> None:
        if not self._reading_paused and self.transport is not None:
            self._reading_paused = True
            self.transport.pause_reading()

    def _proceed(self) -> None:
        """Go on with what waited behind a parked request or a slow reader."""
        if self._blocked() or self._parsing or self.transport is None:
            return
        if self._need and self._have == self._need:
            self._continue_frame()
        elif self._rest and not self._need:
            self._parse(memoryview(self._rest))
        if self._reading_paused and not self._blocked() and self.transport is not None:
            self._reading_paused = False
            self.transport.resume_reading()

    # ---- frames to replies

    def _serve(self, frame: memoryview) -> None:
        # Frames count as activity, not bytes: who sends one byte now and then is idle all the same.
        self._was_active = True
        answer = self._router.dispatch(frame, self.peer)
        if isinstance(answer, Waits):
            self._replies.append(answer)
            if not answer.pipelines:
                self._parked = answer
            answer.on_done(self._settled)
        elif answer is not None:
            self._held_bytes += len(answer[0]) if len(answer) == 1 else sum(map(len, answer))
            if self._replies:
                self._replies.append(answer)
            else:
                self._out += answer

    def _settled(self, answer: Waits) -> None:
        """A reply leaves as soon as those before it have left; all that become ready in one turn in one write."""
        try:
            reply = answer.result()
        except Exception as error:
            self.fail(error)
            return
        answer.is_ready = True
        if reply is not None:
            self._held_bytes += len(reply[0]) if len(reply) == 1 else sum(map(len, reply))
        if self._parked is answer:
            self._parked = None
        if not self._flush_due and self.transport is not None:
            self._flush_due = True
            self._listener.call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._flush_due = False
        self._flush()
        self._proceed()

    def _flush(self) -> None:
        replies = self._replies
        while replies:
            reply = replies[0]
            if isinstance(reply, Waits):
                if not reply.is_ready:
                    break
                self._out += reply.result() or ()
            else:
                self._out += reply
            replies.popleft()
        out = self._out
        if not out or self.transport is None:
            return
        self._out = []
        self._was_active = True
        size = sum(map(len, out))
        self._held_bytes -= size
        self._traffic.bytes_out += size
        if len(out) == 1:
            self.transport.write(out[0])
        elif size <= JOIN_BYTES_MAX:
            self.transport.write(b"".join(out))
        else:
            self.transport.writelines(out)

    def fail(self, error: Exception) -> None:
        """Close: nothing that follows on this connection can be trusted."""
        self._parsing = False
        if isinstance(error, WireError):
            logger.info("closing connection of %s: %s", self.peer.host, error)
        else:
            logger.error("closing connection of %s after a failed request", self.peer.host, exc_info=error)
        if self.transport is not None:
            self._flush()
            self.transport.close()
